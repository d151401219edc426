"""From a text file to a saved model, whole processes: ours, Vowpal Wabbit; scikit-learn and River beside them."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.clicks import write_few, write_zipf
from benchmarks.report import Report

_DATA = Path("output/benchmarks/data")
_VW = [sys.executable, "-m", "vowpalwabbit", "--loss_function", "logistic", "-P", "1000000000"]
_OURS = [sys.executable, "-m", "gaussfold.cli", "train", "--quiet", "--json"]
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
    with tempfile.TemporaryFile() as out:
        began = time.perf_counter()
        child = subprocess.Popen(
            command, stdout=out, stderr=subprocess.STDOUT, env={**os.environ, "GAUSSFOLD_QUIET": "1"}
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


def _vowpal(path: Path, bits: int, model: Path, n: int, *options: str) -> Run:
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
    report.notes += [
        "examples/s: examples over whole process less start-up (the same on one line); nan: start-up dominates.",
        "Vowpal Wabbit: `python -m vowpalwabbit`, its own driver and parser; the pip package has no `vw` program.",
        "scikit-learn: CSR parsed beforehand, only predict and partial_fit (1000 rows a call) are timed.",
        "scikit-learn touches all 2^bits weights in every call, so on the second file it sees the first rows only.",
        "River: its own process, but only its first rows; parsing in Python is timed.",
    ]
    return report


def _file(report: Report, title: str, path: Path, n: int, bits: int, folder: Path, quick: bool) -> None:
    model = folder / "model"
    one = folder / "one.vw"
    with path.open() as file:
        one.write_text(file.readline())
    learners: dict[str, Any] = {
        "gaussfold, one prior": lambda file: _ours(file, bits, model, "0.5"),
        "gaussfold, one prior, float32": lambda file: _ours(file, bits, model, "0.5", "--float32"),
        "gaussfold, auto": lambda file: _ours(file, bits, model, "auto"),
    }
    if importlib.util.find_spec("vowpalwabbit"):
        for name, options in (("default", ()), ("--ftrl", ("--ftrl",)), ("--coin", ("--coin",))):
            learners[f"vowpal wabbit {name}"] = lambda file, options=options: _vowpal(file, bits, model, n, *options)
    rows: dict[str, tuple[Run, float]] = {}
    for name, learn in learners.items():
        start = min(learn(one).seconds for _ in range(1 if quick else 3))  # the first one may compile
        rows[name] = (learn(path), start)
        print(f"{title}: {name}: {rows[name][0]}, start-up {start:.2f} s", file=sys.stderr, flush=True)
    limit = 2000 if quick else 20_000
    rows["scikit-learn SGDClassifier, parsed before"] = (
        _peer("sklearn", path, bits, n if bits < 20 else 10 * limit),
        0.0,
    )
    if importlib.util.find_spec("river"):
        rows["River LogisticRegression, AdaGrad"] = (_peer("river", path, bits, limit), 0.0)
    # a run that start-up dominates says nothing about speed: no number rather than noise
    rates = {
        name: run.examples / (run.seconds - start) if run.seconds > 1.5 * start else float("nan")
        for name, (run, start) in rows.items()
    }
    known = [rate for name, rate in rates.items() if name.startswith("vowpal") and rate == rate]
    fastest = max(known, default=float("nan"))
    for name, (run, start) in rows.items():
        report.rows.append(
            [
                title,
                name,
                rates[name],
                start,
                run.seconds,
                run.cpu,
                f"{run.loss:.6f}",
                run.peak,
                rates[name] / fastest,
            ]
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
