"""Posteriors of networks: time per epoch and to a given NMLL, the loop in compiled code, cost over D and K.

Boston (published split 0, one hidden layer of 50, noise and prior given) where ``../shared/data`` has it, and
scikit-learn's digits (one hidden layer of 32). Compilation is not timed: every method has run before with the same
shapes. laplace-torch runs in a venv of its own: ``GAUSSFOLD_TORCH_PYTHON``, by default /tmp/venv_torch/bin/python.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from functools import partial
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import gaussfold as gf
from benchmarks.deep_tasks import Task, boston, digits, line, mlp
from benchmarks.report import Report
from gaussfold import deep
from gaussfold.deep.batches import batch_rows
from gaussfold.deep.vifa import THESIS

TORCH = Path(os.environ.get("GAUSSFOLD_TORCH_PYTHON", "/tmp/venv_torch/bin/python"))


def makers(task: Task, epochs: int) -> dict[str, Any]:
    """Methods, as functions that make a fresh one."""
    function = deep.log_likelihood(mlp, task.likelihood)
    shared = {"prior_precision": task.precision, "batch_size": task.batch}
    vifa = partial(
        deep.VIFA, function, task.params, n_samples=4, init_std=0.05, learning_rate=0.01, average=0.0, temperature=1.0,
        **shared,
    )  # fmt: skip
    burn = epochs * 3 // 4 * (len(task.train[1]) // task.batch)
    return {
        "mean field (VIFA, K = 0)": partial(vifa, rank=0),
        "VIFA, K = 1": partial(vifa, rank=1),
        "VIFA, K = 10": partial(vifa, rank=10),
        "SLANG, K = 1": partial(
            deep.SLANG, function, task.params, rank=1, n_samples=1, learning_rate=0.02, precision_rate=0.02,
            momentum=0.9, curvature="gauss-newton", **shared,
        ),
        "SWAG, K = 10": partial(
            deep.SWAG, function, task.params, rank=10, optimizer="adam", learning_rate=3e-3, burn_in=burn,
            every=max(1, len(task.train[1]) // task.batch // 2), temperature=1.0, **shared,
        ),
    }  # fmt: skip


def nmll(task: Task, posterior: Any) -> float:
    """On the test rows."""
    found = posterior.predict(mlp, task.test[0], 100).log_prob(task.test[1])
    return float(task.offset - found.mean())


MARKS = (1, 2, 5, 10, 20, 30)
"""Epochs after which the NMLL is looked at."""


def _race(task: Task, method: Any, marks: list[int]) -> tuple[float, float, float]:
    """Seconds of training, seconds until the goal was reached (NaN if never), and the last NMLL."""
    spent, goal, score = 0.0, float("nan"), float("nan")
    for mark in marks:
        started = time.perf_counter()
        posterior = method.fit(task.train, epochs=mark, resume=True)
        spent += time.perf_counter() - started
        score = nmll(task, posterior)
        if score <= task.goal and goal != goal:
            goal = spent
    return spent, goal, score


def _compete(report: Report, task: Task, quick: bool) -> None:
    epochs = 2 if quick else 40
    for name, make in makers(task, epochs).items():
        marks = [epochs] if name.startswith("SWAG") else [*(mark for mark in MARKS if mark < epochs), epochs]
        first, _, _ = _race(task, make(), marks)  # compiles
        spent, goal, score = _race(task, make(), marks)
        report.rows.append([task.name, name, spent / epochs, goal, score, first - spent])
    report.rows.append(_one_pass(task, 1))
    _torch(report, task, epochs, quick)


def _one_pass(task: Task, repeats: int) -> list[Any]:
    """L-RVGA: an epoch is all there is."""
    draws = (
        {"n_samples": 10, "block_size": 10} if task.offset else {"n_samples": 3, "block_size": 5}
    )  # softmax: 10 × rows
    best, score, first = float("inf"), float("nan"), 0.0
    for repeat in range(repeats + 1):
        method = deep.LRVGA(
            mlp,
            task.likelihood,
            task.params,
            linearise="samples",
            rank=10,
            prior_std=0.1 if task.offset else 0.2,
            seed=0,
            **draws,
        )
        started = time.perf_counter()
        posterior = method.fit(*task.train)
        seconds = time.perf_counter() - started
        first, best = (seconds, best) if repeat == 0 else (first, min(best, seconds))
        score = nmll(task, posterior)
    reached = best if score <= task.goal else float("nan")
    return [task.name, "L-RVGA, p = 10, one pass", best, reached, score, first - best]


def _torch(report: Report, task: Task, epochs: int, quick: bool) -> None:
    if quick or not TORCH.is_file():
        report.notes.append(f"laplace-torch was not run on {task.name}")
        return
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "task.npz"
        noise = task.likelihood.std if isinstance(task.likelihood, gf.likelihoods.Gaussian) else 1.0
        np.savez(
            path, X=task.train[0], y=task.train[1].astype(np.int64 if task.offset == 0.0 else np.float32),
            X_test=task.test[0], y_test=task.test[1].astype(np.int64 if task.offset == 0.0 else np.float32),
            units=len(task.params["b1"]), noise=noise, precision=task.precision, batch=task.batch,
        )  # fmt: skip
        script = Path(__file__).parent / "peers_laplace.py"
        found = subprocess.run(
            [str(TORCH), str(script), str(path), str(epochs)], capture_output=True, text=True, check=False, timeout=300
        )
    if found.returncode:
        report.notes.append(f"laplace-torch failed on {task.name}: {found.stderr.strip().splitlines()[-1]}")
        return
    answer = json.loads(found.stdout.strip().splitlines()[-1])
    report.numbers.setdefault("laplace_torch", {})[task.name] = answer
    for kind in ("last_layer full", "all kron"):
        score = answer[kind]["nmll"] + task.offset
        total = answer["train_seconds"] + answer[kind]["laplace_seconds"]
        reached = total if score <= task.goal else float("nan")
        report.rows.append(
            [task.name, f"laplace-torch, {kind}", answer["seconds_per_epoch"], reached, score, float("nan")]
        )


def _loops(report: Report, quick: bool) -> None:
    """Steps inside compiled code, and the same step, jitted, in a loop of Python; in turns, the best of each."""
    task = boston()
    params = {"b": jnp.zeros(()), "w": jnp.zeros(13)}
    function = deep.log_likelihood(line, gf.likelihoods.Gaussian(std=0.5))
    make = partial(deep.VIFA, function, params, rank=3, **(THESIS | {"batch_size": 100}))
    method, rows, data = make(), len(task.train[1]), jax.tree.map(jnp.asarray, task.train)
    program, hyper = method.program(), method.hyper(rows, 100)

    @jax.jit
    def one(inner: Any, index: Any, step: Any) -> Any:
        batches = jax.tree.map(lambda a: a[index], data)
        return program.step(inner, hyper, batches, program.draw(hyper, step), step)

    def shuffled(count: int) -> None:
        """As one would write it: a permutation per epoch, ten batches a step."""
        rng, inner, pool = np.random.default_rng(0), method.initial(), np.zeros((0, 100), np.int32)
        for step in range(count):
            while len(pool) < 10:
                epoch = rng.permutation(rows)[: rows // 100 * 100].reshape(-1, 100)
                pool = np.concatenate([pool, epoch.astype(np.int32)])
            inner, loss, ok = one(inner, pool[:10], step)
            pool = pool[10:]
        jax.block_until_ready((inner, loss, ok))

    def bare(count: int) -> None:
        """The same batches in every step, already where they are needed."""
        inner, index = method.initial(), jnp.asarray(batch_rows(0, 0, 10, rows, 100))
        for step in range(count):
            inner, loss, ok = one(inner, index, step)
        jax.block_until_ready((inner, loss, ok))

    few = 20 if quick else 1000
    works = {
        "compiled": (lambda count: make().fit(task.train, steps=count), 16 * few),
        "python": (shuffled, few),
        "python_without_batches": (bare, few),
    }
    for work, count in works.values():
        work(count)  # compiles
    times: dict[str, list[float]] = {name: [] for name in works}
    for _ in range(2 if quick else 9):
        for name, (work, count) in works.items():
            times[name].append(_seconds(partial(work, count)) / count)
    best = {name: min(values) for name, values in times.items()}
    ratios = [np.median(np.divide(times[name], times["compiled"])) for name in list(works)[1:]]
    report.numbers["loop"] = {"best": best, "median_ratios": ratios, "all": times}
    inside, outside, dispatch = best.values()
    report.notes.append(
        f"Boston, linear, K = 3, M = 100, L = 10: {1e6 * inside:.0f} µs a step in the compiled loop, "
        f"{1e6 * outside:.0f} µs in a Python loop over the same jitted step ({outside / inside:.1f} times; median of "
        f"{len(times['python'])} turns {ratios[0]:.1f}); {1e6 * dispatch:.0f} µs ({dispatch / inside:.1f} times, "
        f"median {ratios[1]:.1f}) if no batches have to be chosen"
    )


def _seconds(work: Any) -> float:
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


LARGE = (10**7, 10)
OVER_D = [(10**p, 10) for p in (3, 4, 5, 6)] + [(3 * 10**4, 10), (3 * 10**5, 10)]
OVER_K = [(10**6, k) for k in (0, 1, 3, 30)]


def _scaling(report: Report, quick: bool) -> None:
    """Cost over D and K; the largest in a process of its own, for its memory."""
    groups = [(0.1, [(10**3, 10), (10**4, 3)])] if quick else [(45.0, OVER_D + OVER_K), (20.0, [LARGE])]
    table: list[dict[str, float]] = []
    for seconds, cases in groups:
        found = subprocess.run(
            [sys.executable, "-m", "benchmarks.deep_scale", str(seconds), *(f"{dim},{rank}" for dim, rank in cases)],
            capture_output=True, text=True, check=False, timeout=280,
        )  # fmt: skip
        if found.returncode:
            report.notes.append(f"scaling {cases} failed: {found.stderr.strip().splitlines()[-1]}")
            return
        answer = json.loads(found.stdout.strip().splitlines()[-1])
        table += answer["steps"]
    unit = {(row["D"], row["K"]): 1e9 * row["seconds"] / (row["D"] * (row["K"] + 2)) for row in table}
    for (dim, rank), value in sorted(unit.items()):
        report.notes.append(
            f"VIFA, D = {dim:.0e}, K = {rank}: {1e-6 * value * dim * (rank + 2):.3g} ms a step, {value:.2f} ns per "
            "number of the posterior, D·(K + 2)"
        )
    far = [value for (dim, _), value in unit.items() if dim >= 10**4]
    middle = 0.5 * (min(far) + max(far))
    report.numbers["scaling"] = {"steps": table, "peak_gb": answer["peak_gb"], "ns per number": [min(far), max(far)]}
    report.notes.append(
        f"from D = 10⁴ on, {min(far):.2f} to {max(far):.2f} ns per number: {middle:.2f} ± "
        f"{100 * (max(far) / middle - 1):.0f} %; peak of the last process {answer['peak_gb']:.2f} GB"
    )


PARTS = ("boston", "digits", "loop", "scaling")


def run(quick: bool = False) -> Report:
    """Measure all of it, or the parts that ``GAUSSFOLD_BENCH_PARTS`` names, such as ``loop,scaling``."""
    parts = os.environ.get("GAUSSFOLD_BENCH_PARTS", ",".join(PARTS)).split(",")
    columns = ["data", "method", "s per epoch", "s to the NMLL", "NMLL at the end", "s to compile"]
    report = Report("Posteriors of networks", columns)
    for name, make, rows in (("boston", boston, 60), ("digits", digits, 100)):
        if name in parts:
            task = make(rows if quick else None)
            _compete(report, task, quick)
            report.notes.append(f"{task.name}: the NMLL to reach is {task.goal}")
    if "loop" in parts:
        _loops(report, quick)
    if "scaling" in parts:
        _scaling(report, quick)
    return report
