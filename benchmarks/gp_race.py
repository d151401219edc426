"""Gaussian processes side by side: processor seconds until a library is within 1 % of the best held-out score of all.

Every library runs in a process of its own on one thread: ours (`gp_race_ours`) and the peers (`peers_gp_race`) with the
Python of their environment. Each writes a trace of (processor seconds, mean negative log predictive density); scoring,
imports and a first small fit that compiles are not counted. A library that is given no stochastic steps is run anew
with ever more iterations, and every run is a point of its trace. All see the same file, none sees the held-out labels.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.gp import HERE, ONE_THREAD, smooth
from benchmarks.report import Report

DATA = HERE.parents[1] / "shared" / "data"
PYTHONS = {
    "gpytorch": ("GAUSSFOLD_GPYTORCH_PYTHON", "/tmp/venv_torch/bin/python", "pip install torch==2.13.0 gpytorch"),
    "gpflow": ("GAUSSFOLD_GPFLOW_PYTHON", "/tmp/venv_gpflow/bin/python", "pip install gpflow"),
    "peers": (
        "GAUSSFOLD_PEERS_PYTHON",
        "/tmp/venv_peers/bin/python",
        "pip install scikit-learn tinygp celerite2 statsmodels jax",
    ),
}
SOURCES = {
    "gpytorch-adam": "gpytorch",
    "gpytorch-ngd": "gpytorch",
    "gpflow": "gpflow",
    "scikit-learn": "peers",
    "tinygp": "peers",
    "celerite2": "peers",
    "statsmodels": "peers",
}
WITHIN = 0.01
BUDGET = 60.0


def _parted(X: np.ndarray, y: np.ndarray, test: np.ndarray) -> dict[str, np.ndarray]:
    return {"X": X[~test], "Y": y[~test], "X_test": X[test], "Y_test": y[test]}


def banana(rows: int) -> dict[str, np.ndarray]:
    """So many rows of banana, the last tenth of all of them (shuffled) held out."""
    table = np.loadtxt(DATA / "banana_large.csv", delimiter=",", skiprows=1)
    table = table[np.random.default_rng(1).permutation(len(table))]
    held = len(table) // 10
    part = np.vstack([table[: min(rows, len(table) - held)], table[-held:]])
    test = np.arange(len(part)) >= len(part) - held
    return _parted(part[:, :2], (part[:, 2] > 0.0).astype(float), test)


def five_columns(rows: int) -> dict[str, np.ndarray]:
    """A smooth function of five columns with noise of 0.2; 5000 more rows held out."""
    rng = np.random.default_rng(11)
    X = rng.uniform(-1.0, 1.0, (rows + 5000, 5))
    y = smooth(X, 1.0, 1.0, 5.0, rng) + 0.2 * rng.normal(size=len(X))
    return _parted(X, y, np.arange(len(X)) >= rows)


def motorcycle(rows: int) -> dict[str, np.ndarray]:
    """Acceleration in a crash, standardised; every fourth of the 133 rows held out."""
    table = np.loadtxt(DATA / "mcycle.csv", delimiter=",")[:rows]
    x, y = ((table[:, k] - table[:, k].mean()) / table[:, k].std() for k in (1, 2))
    return _parted(x[:, None], y, np.arange(len(x)) % 4 == 2)


def counts(rows: int) -> dict[str, np.ndarray]:
    """Hourly counts: two waves a day around a level that wanders over weeks; a tenth of the hours held out."""
    rng = np.random.default_rng(9)
    t = np.arange(float(rows))
    day = 2.0 * np.pi * t / 24.0
    level = 1.5 + 0.8 * np.sin(day + 0.4) + 0.3 * np.cos(2.0 * day) + smooth(t[:, None], 150.0, 0.3, 3.0, rng)
    return _parted(t[:, None], rng.poisson(np.exp(level)).astype(float), rng.random(rows) < 0.1)


TASKS: dict[str, tuple[Callable[[int], dict[str, np.ndarray]], int, int, list[str]]] = {
    "banana 400": (banana, 400, 400, ["gpytorch-adam", "gpytorch-ngd", "gpflow", "scikit-learn"]),
    "banana 2000": (banana, 2000, 800, ["gpytorch-adam", "gpytorch-ngd", "gpflow", "scikit-learn"]),
    "banana 5300": (banana, 5300, 1000, ["gpytorch-adam", "gpytorch-ngd", "gpflow"]),
    "5-D 100000": (five_columns, 100_000, 5000, ["gpytorch-adam", "gpytorch-ngd", "gpflow", "scikit-learn"]),
    "motorcycle": (motorcycle, 133, 133, ["gpytorch-adam", "gpflow", "scikit-learn", "tinygp", "celerite2"]),
    "counts 100000": (counts, 100_000, 3000, ["gpytorch-adam", "statsmodels", "tinygp", "celerite2"]),
}
"""Data, rows, rows of ``--quick``, and who runs besides ours."""


def traced(library: str, task: str, path: Path, budget: float) -> dict[str, Any]:
    """One library's trace, ``{"trace": [[seconds, nlpd], ...], "what": ...}``, or ``{"absent": why}``."""
    command = [sys.executable, "-m", "benchmarks.gp_race_ours"]
    if library != "ours":
        variable, default, install = PYTHONS[SOURCES[library]]
        python = os.environ.get(variable, default)
        if not Path(python).exists():
            return {"absent": f"set {variable} to the Python of an environment made by: {install}"}
        command = [python, str(HERE / "peers_gp_race.py"), library]
    environment = os.environ | ONE_THREAD | {"TF_CPP_MIN_LOG_LEVEL": "3", "TF_NUM_INTRAOP_THREADS": "1"}
    environment |= {"TF_NUM_INTEROP_THREADS": "1"}
    arguments = [*command, task.split()[0], str(path), str(budget)]
    try:
        done = subprocess.run(
            arguments, capture_output=True, text=True, env=environment, cwd=HERE.parent, check=False,
            timeout=60.0 * budget,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return {"absent": "did not end"}
    if done.returncode:
        return {"absent": (done.stderr.strip().splitlines() or [f"exit {done.returncode}"])[-1][:200]}
    found: dict[str, Any] = json.loads(done.stdout.strip().splitlines()[-1])
    return found


def until(trace: list[list[float]], goal: float) -> float | None:
    """Seconds of the first point that is as good as the goal."""
    return min((seconds for seconds, nlpd in trace if nlpd <= goal), default=None)


def run(quick: bool = False, tasks: list[str] | None = None, budget: float | None = None) -> Report:
    """All tasks; the picture of the traces goes beside the JSON files."""
    budget = (5.0 if quick else BUDGET) if budget is None else budget
    report = Report(
        "Gaussian processes: processor seconds to within 1 % of the best held-out score",
        ("data", "library", "what", "seconds to 1 %", "times ours", "best NLPD", "seconds of that"),
    )
    traces: dict[str, dict[str, Any]] = {}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "data.npz"
        for task in tasks or TASKS:
            make, full, few, peers = TASKS[task]
            try:
                np.savez(path, **make(few if quick else full))
            except OSError as error:
                report.notes.append(f"{task}: the data are absent ({error})")
                continue
            found = traces[task] = {}
            for library in ["ours", *peers]:
                began = time.perf_counter()
                found[library] = traced(library, task, path, budget)
                last = found[library].get("trace", [["-", "-"]])[-1]
                said = found[library].get("absent", last)
                print(f"{task}, {library}: {said}, {time.perf_counter() - began:.0f} s on "
                      "the clock", file=sys.stderr, flush=True)  # fmt: skip
            _rows(report, task, found)
    report.numbers["traces"] = traces
    report.notes.append(f"at most {budget:g} s of processor time each, one thread, imports and compilation not counted")
    _picture(traces, Path("output/benchmarks/gp-race.png"))
    return report


def _rows(report: Report, task: str, found: dict[str, Any]) -> None:
    seen = {name: one["trace"] for name, one in found.items() if "trace" in one}
    for name, one in found.items():
        if "absent" in one:
            report.notes.append(f"{task}, {name}: {one['absent']}")
    if not seen:
        return
    best = min(nlpd for trace in seen.values() for _, nlpd in trace)
    goal = best + WITHIN * abs(best)
    ours = until(seen["ours"], goal) if "ours" in seen else None
    for name, trace in seen.items():
        seconds = until(trace, goal)
        lowest = min(trace, key=lambda point: point[1])
        ratio = "-" if seconds is None or ours is None else seconds / ours
        reached = "never" if seconds is None else seconds
        report.rows.append([task, name, found[name]["what"], reached, ratio, f"{lowest[1]:.4f}", lowest[0]])


def _picture(traces: dict[str, dict[str, Any]], path: Path) -> None:
    """Score against seconds, one panel for each data set."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        return
    figure = Figure(figsize=(12.0, 7.0), layout="constrained")
    axes = figure.subplots(2, 3, squeeze=False).ravel()
    names = ["ours", *SOURCES]
    for ax, (task, found) in zip(axes, traces.items(), strict=False):
        lows = [min(nlpd for _, nlpd in one["trace"]) for one in found.values() if "trace" in one]
        if not lows:
            continue
        for name, one in found.items():
            if "trace" in one:
                trace = sorted(one["trace"])
                lower = np.minimum.accumulate([nlpd for _, nlpd in trace])
                style = {"lw": 2.5, "color": "black"} if name == "ours" else {"color": f"C{names.index(name)}"}
                ax.plot([s for s, _ in trace], lower - min(lows) + 1e-4, "o-", ms=3, label=name, **style)
        ax.axhline(WITHIN * abs(min(lows)) + 1e-4, color="grey", lw=1, ls=(0, (4, 2)))
        ax.set(title=task, xscale="log", yscale="log", xlabel="processor seconds", ylabel="NLPD - best + 0.0001")
        ax.legend(fontsize=7)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=110)
