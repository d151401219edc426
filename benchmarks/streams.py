"""Many streams, each read from a file with no option given: progressive loss beside Vowpal Wabbit's and River's.

Losses are those of predict-then-learn: log loss, or squared error where labels are numbers (``--likelihood gaussian``
is then the one option, as ``--loss_function`` is VW's). Peers are judged in hindsight, by their best setting.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import math
import sys
import tempfile
import warnings
from pathlib import Path

import numpy as np

from benchmarks.report import Report
from benchmarks.streams_data import Stream, streams, tuned
from benchmarks.streams_peers import RIVER, VOWPAL, river, vowpal
from gaussfold.cli.app import app

NEAR = 1.01
"""A loss within one per cent is no loss."""
QUICK = ("iris", "rcv1_mini", "wine")
_PEERS = Path("output/benchmarks/streams_peers")


def ours(stream: Stream, folder: Path) -> float:
    """What `gaussfold train FILE` says, or for numbers the squared error of the predictions it writes."""
    path = stream.write_csv(folder / "ours.csv") if stream.table else stream.write_vw(folder / "ours.vw")
    told = folder / "ours.jsonl"
    options = ["--likelihood", "gaussian", "-p", str(told)] if stream.numbers else []
    with contextlib.redirect_stdout(io.StringIO()) as out, contextlib.suppress(SystemExit):
        app(["train", str(path), "--quiet", "--json", *options])
    if not stream.numbers:
        return float(json.loads(out.getvalue().splitlines()[-1])["average_loss"])
    predicted = np.array([json.loads(line)["prediction"] for line in told.read_text().splitlines()])
    return float(np.mean((predicted - np.array(stream.labels)) ** 2))


def run(*, quick: bool = False) -> Report:
    """One row a stream; those that were looked at while choosing first, the others untouched at their first run."""
    all_of_them = streams()
    looked_at = tuned([stream.name for stream in all_of_them])
    halves = {stream.name: "chosen on" if stream.name in looked_at else "untouched" for stream in all_of_them}
    return table([stream for stream in all_of_them if not quick or stream.name in QUICK], halves)


def table(chosen: list[Stream], halves: dict[str, str]) -> Report:
    """One row a stream, by the part of the list that it belongs to; then how many are at or below the peers."""
    warnings.simplefilter("ignore")  # of peers that diverge
    columns = ("stream", "rows", "half", "ours", "VW default", "VW best of 8", "River best of 6", "ours/best", "")
    report = Report("streams: progressive loss, no option given", columns)
    with tempfile.TemporaryDirectory() as name:
        for stream in sorted(chosen, key=lambda each: (halves[each.name], each.name)):
            report.rows.append(_compare(stream, Path(name), halves[stream.name]))
    for half in sorted({str(row[2]) for row in report.rows}):
        rows = [row for row in report.rows if row[2] == half]
        below = sum(row[7] <= 1.0 for row in rows)
        near = sum(1.0 < row[7] <= NEAR for row in rows)
        default = sum(row[3] <= row[4] for row in rows)
        report.notes.append(
            f"{half}: at or below the best of both in hindsight on {below} of {len(rows)}, within 1 % on {near} more; "
            f"at or below VW's default on {default}"
        )
    return report


def _kept(stream: Stream, folder: Path) -> tuple[dict[str, float], dict[str, float]]:
    """Losses of the peers, which take minutes and do not change: kept by what the stream holds and how they are set."""
    text = stream.write_vw(folder / "kept.vw").read_bytes()
    settings = repr((list(VOWPAL.items()), list(RIVER)))
    path = _PEERS / f"{stream.name}-{hashlib.sha256(text + settings.encode()).hexdigest()[:16]}.json"
    if not path.exists():
        _PEERS.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps([vowpal(stream, folder), river(stream)]))
    first, second = json.loads(path.read_text())
    return first, second


def _compare(stream: Stream, folder: Path, half: str) -> list[object]:
    loss = ours(stream, folder)
    theirs = _kept(stream, folder)
    best = [min((each for each in found.values() if not math.isnan(each)), default=math.nan) for found in theirs]
    ratio = loss / min(each for each in best if not math.isnan(each))
    verdict = "" if ratio <= 1.0 else ("within 1 %" if ratio <= NEAR else "behind")
    default = theirs[0].get("default", math.nan)
    print(f"{stream.name}: ours {loss:.5g}, VW {default:.5g}, best {best}, {ratio:.4f}", file=sys.stderr, flush=True)
    return [stream.name, len(stream.labels), half, loss, default, *best, ratio, verdict]
