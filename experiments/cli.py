"""The command line of the experiments."""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from experiments import gallery
from experiments.registry import EXPERIMENTS, ORACLES, Context, Experiment, Result

GALLERY = Path("docs") / "gallery"


def main(argv: Sequence[str] | None = None) -> int:
    """Run what the arguments name; return the exit status."""
    parser = _parser()
    args = parser.parse_args(argv)
    if args.list:
        for experiment in EXPERIMENTS.values():
            print(f"{experiment.name:12s} {experiment.title}")
        return 0
    if args.tables:
        print(gallery.final_kls(args.out), gallery.wins(args.out), sep="\n\n")
        return 0
    names = list(EXPERIMENTS) if args.all else args.names
    if not names:
        parser.error("nothing to run: name an experiment, or give --all or --list")
    unknown = [name for name in names if name not in EXPERIMENTS]
    if unknown:
        parser.error(f"unknown experiment {unknown[0]!r}: choose from {', '.join(EXPERIMENTS)}")
    oracles = ORACLES if args.oracle_data else None
    if oracles is not None and not oracles.is_dir():
        parser.error(f"--oracle-data: {oracles} is absent; run without it to draw our own data")
    try:
        import matplotlib  # noqa: F401
        import rich  # noqa: F401
    except ImportError as missing:
        parser.error(f"{missing}: the experiments draw, so they need pip install 'gaussfold[plot]'")
    for name in names:
        started = time.perf_counter()
        context = Context(quick=args.quick, full=args.full, oracles=oracles, track=partial(_track, name))
        png, numbers = run(EXPERIMENTS[name], context, args.out)
        print(f"{name}: {png} ({time.perf_counter() - started:.1f} s)", flush=True)
        if oracles is not None and "synthetic" in json.dumps(numbers):
            print(
                f"{name}: the authors' data are not all in {oracles}; what was used is in the JSON",
                flush=True,
            )
    return 0


def run(experiment: Experiment, context: Context, out: Path) -> tuple[Path, dict[str, Any]]:
    """Run one experiment, write its PNG and its JSON; return the path of the PNG and the JSON's content."""
    from experiments import style

    # A run on the authors' data never overwrites one on ours: the gallery must not depend on ../shared.
    stem = experiment.name + ("-oracle" if context.oracles else "")
    png = out / f"{stem}.png"
    with style.look():
        result: Result = experiment.run(context)
        out.mkdir(parents=True, exist_ok=True)
        style.save(result.figure, png)
    numbers = plain({"experiment": experiment.name, "title": experiment.title, **result.numbers})
    text = json.dumps(numbers, indent=1, ensure_ascii=False, allow_nan=False)
    png.with_suffix(".json").write_text(text + "\n", encoding="utf-8")
    return png, numbers


def plain(value: Any, digits: int = 7) -> Any:
    """Turn arrays into lists and round floats, so that the file stays small; NaN and ∞ become null."""
    if isinstance(value, dict):
        return {str(key): plain(item, digits) for key, item in value.items()}
    if hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, (list, tuple)):
        return [plain(item, digits) for item in value]
    if isinstance(value, float):
        rounded = float(f"{value:.{digits}g}")
        return rounded if abs(rounded) < float("inf") else None
    return value


def _track(name: str, items: Iterable[Any], description: str) -> Iterator[Any]:
    """Move a bar on a terminal; elsewhere (a log, a pipe) say nothing until the experiment is done."""
    if not sys.stderr.isatty():
        yield from items
        return
    from rich.console import Console
    from rich.progress import track

    yield from track(items, description=f"{name}: {description}", transient=True, console=Console(stderr=True))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m experiments",
        description="Reproduce the figures of the papers: each run writes a PNG and a JSON with its numbers.",
    )
    parser.add_argument("names", nargs="*", metavar="NAME", help="experiments to run, e.g. rvga-fig3")
    parser.add_argument("--all", action="store_true", help="run every experiment")
    parser.add_argument("--list", action="store_true", help="list the experiments and stop")
    parser.add_argument(
        "--out", type=Path, default=GALLERY, metavar="DIR", help="where to write (default: %(default)s)"
    )
    parser.add_argument("--tables", action="store_true", help="print the tables of the gallery from DIR")
    parser.add_argument("--full", action="store_true", help="the papers' longest runs (10 million examples)")
    parser.add_argument("--quick", action="store_true", help="fewer seeds and coarser grids")
    parser.add_argument(
        "--oracle-data",
        action="store_true",
        help="use the authors' data in ../shared/oracles where it exists; files are named NAME-oracle",
    )
    return parser
