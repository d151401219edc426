"""From a text file to a saved model, whole processes: ours, Vowpal Wabbit; scikit-learn and River beside them."""

from __future__ import annotations

import importlib.util
import json
import math
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from benchmarks.clicks import write_few, write_zipf
from benchmarks.report import Report

_DATA = Path("output/benchmarks/data")
_VW = [sys.executable, "-m", "vowpalwabbit", "--loss_function", "logistic", "-P", "1000000000"]
_OURS = [sys.executable, "-m", "gaussfold.cli", "train", "--quiet", "--json"]
REPEATS = 3
_LOSS = re.compile(r"average loss = ([0-9.eE+-]+)")


@dataclass
class Run:
    """One process: wall-clock and processor seconds, peak memory in MB, progressive loss, examples."""

    seconds: float
    cpu: float
    peak: float
    loss: float
    examples: int


def measure(command: list[str]) -> tuple[float, float, float, str]:
    """Run a process; seconds, processor seconds, peak MB and what it said."""
    # without bytecode every start would compile Python itself, which an installed package does not
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    with tempfile.TemporaryFile() as out:
        began = time.perf_counter()
        child = subprocess.Popen(
            command, stdout=out, stderr=subprocess.STDOUT, env={**environment, "GAUSSFOLD_QUIET": "1"}
        )
        _, status, usage = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
        seconds = time.perf_counter() - began
        out.seek(0)
        text = out.read().decode(errors="replace")
    if child.returncode:
        raise RuntimeError(f"{' '.join(command)} failed with {child.returncode}:\n{text[-2000:]}")
    return seconds, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024.0, text


def _ours(path: Path, bits: int, model: Path, prior: str, *options: str) -> Run:
    seconds, cpu, peak, text = measure(
        [*_OURS, str(path), "-b", str(bits), "-f", str(model), "--prior-std", prior, *options]
    )
    found = json.loads(text.strip().splitlines()[-1])
    return Run(seconds, cpu, peak, found["average_loss"] or 0.0, found["examples"])


def _vowpal(bits: int, model: Path, n: int, options: tuple[str, ...], path: Path) -> Run:
    seconds, cpu, peak, text = measure([*_VW, "-d", str(path), "-b", str(bits), "-f", str(model), *options])
    found = _LOSS.search(text)
    return Run(seconds, cpu, peak, float(found[1]) if found else float("nan"), n)


def _peer(name: str, path: Path, bits: int, limit: int) -> Run:
    _, cpu, peak, text = measure([sys.executable, "-m", "benchmarks.peers", name, str(path), str(bits), str(limit)])
    found = json.loads(text.strip().splitlines()[-1])
    return Run(found["seconds"], cpu, peak, found["average_loss"], found["examples"])


def run(quick: bool = False) -> Report:
    """Measure everything on both files."""
    report = Report(
        "Sparse clicks, text file to saved model",
        [
            "file",
            "learner",
            "examples/s",
            "start-up s",
            "whole s",
            "processor s",
            "log loss",
            "peak MB",
            "against fastest VW",
        ],
    )
    _DATA.mkdir(parents=True, exist_ok=True)
    files = (
        ("200 features", write_few, 100_000 if quick else 5_000_000, 18),
        ("8 M features, Zipf", write_zipf, 50_000 if quick else 3_000_000, 24),
    )
    with tempfile.TemporaryDirectory() as folder:
        for title, write, n, bits in files:
            path = _DATA / f"{write.__name__}-{n}.vw"
            if not path.exists():
                write(path, n)
            _file(report, title, path, n, bits, Path(folder), quick)
    for title, write, n, bits in files:  # last: the peak of a child counts what its parent held when it forked
        parsed, learned = _alone(_DATA / f"{write.__name__}-{n}.vw", bits, 1 if quick else REPEATS)
        report.numbers.setdefault("alone", []).append({"file": title, "parsed_mb_s": parsed, "updates_m_s": learned})
        report.notes.append(
            f"{title}, on one core: parser {parsed:.0f} MB/s; update loop {learned:.0f} million feature updates/s."
        )
    report.notes += [
        f"Best of {REPEATS} for each, in turns. examples/s: examples over whole process less start-up (the same on one "
        "line); nan: start-up dominates.",
        "Vowpal Wabbit: `python -m vowpalwabbit`, its own driver and parser; the pip package has no `vw` program.",
        "scikit-learn: CSR parsed beforehand, only predict and partial_fit (1000 rows a call) are timed.",
        "scikit-learn touches all 2^bits weights in every call, so on the second file it sees the first rows only.",
        "River: its own process, but only its first rows; parsing in Python is timed.",
    ]
    return report


def _learners(bits: int, model: Path, n: int) -> dict[str, Callable[[Path], Run]]:
    learners: dict[str, Callable[[Path], Run]] = {
        "gaussfold, one prior": lambda file: _ours(file, bits, model, "0.5"),
        "gaussfold, one prior, float32": lambda file: _ours(file, bits, model, "0.5", "--float32"),
        "gaussfold, auto": lambda file: _ours(file, bits, model, "auto"),
    }
    if importlib.util.find_spec("vowpalwabbit"):
        for name, options in (("default", ()), ("--ftrl", ("--ftrl",)), ("--coin", ("--coin",))):
            learners[f"vowpal wabbit {name}"] = partial(_vowpal, bits, model, n, options)
    return learners


def _file(report: Report, title: str, path: Path, n: int, bits: int, folder: Path, quick: bool) -> None:
    one = folder / "one.vw"
    with path.open() as file:
        one.write_text(file.readline())
    learners = _learners(bits, folder / "model", n)
    starts, whole = dict.fromkeys(learners, math.inf), dict[str, Run]()
    for learn in learners.values():
        learn(one)  # the first one may compile
    for _ in range(1 if quick else REPEATS):  # in turns, so that a disturbance does not hit one of them only
        for name, learn in learners.items():
            starts[name] = min(starts[name], learn(one).seconds)
            run = learn(path)
            whole[name] = min(run, whole.get(name, run), key=lambda run: run.seconds)
            print(f"{title}: {name}: {run}, start-up {starts[name]:.2f} s", file=sys.stderr, flush=True)
    rows = {name: (whole[name], starts[name]) for name in learners}
    limit = 2000 if quick else 20_000
    few = min(n, 50 * limit) if bits < 20 else 5 * limit
    rows["scikit-learn SGDClassifier, parsed before"] = (_peer("sklearn", path, bits, few), 0.0)
    if importlib.util.find_spec("river"):
        rows["River LogisticRegression, AdaGrad"] = (_peer("river", path, bits, limit), 0.0)
    # a run that start-up dominates says nothing about speed: no number rather than noise
    rates = {
        name: run.examples / (run.seconds - start) if run.seconds > 1.2 * start else math.nan
        for name, (run, start) in rows.items()
    }
    fastest = max(
        (rate for name, rate in rates.items() if name.startswith("vowpal") and rate == rate), default=math.nan
    )
    for name, (run, start) in rows.items():
        report.rows.append(
            [title, name, rates[name], start, run.seconds, run.cpu, f"{run.loss:.6f}", run.peak, rates[name] / fastest]
        )
        report.numbers.setdefault("runs", []).append(
            {
                "file": title,
                "bytes": path.stat().st_size,
                "learner": name,
                "start_up": start,
                "rate": rates[name],
                **vars(run),
            }
        )


def _alone(path: Path, bits: int, repeats: int) -> tuple[float, float]:
    """Parser (MB/s) and update loop (millions of features a second), each by itself, on the first 64 MB of a file."""
    from gaussfold.cli.model import StreamModel
    from gaussfold.cli.setting import Setting
    from gaussfold.data.readers import Stream
    from gaussfold.data.reading import Reading

    reading = Reading(bits=bits)
    best_parse, best_learn, entries = math.inf, math.inf, 0
    with tempfile.NamedTemporaryFile(suffix=".vw") as part:
        with path.open("rb") as file:
            part.write(file.read(1 << 26).rpartition(b"\n")[0] + b"\n")
        part.flush()
        for _ in range(repeats + 1):  # the first round may compile
            began = time.thread_time()
            for _chunk in Stream(part.name, reading, background=False):
                pass
            best_parse = min(best_parse, time.thread_time() - began)
            model = StreamModel(Setting(prior_std=0.5), reading)
            spent, entries = 0.0, 0
            for chunk in Stream(part.name, reading, background=False):
                began = time.thread_time()
                model.learn(chunk)
                spent += time.thread_time() - began
                entries += chunk.data.size
            best_learn = min(best_learn, spent)
        return os.path.getsize(part.name) / best_parse / 1e6, entries / best_learn / 1e6
