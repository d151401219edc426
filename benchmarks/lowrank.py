"""Time and memory per observation of the low-rank belief in a million dimensions, and of streaming factor analysis.

First table: a textbook NumPy version of lrvga Alg. 1 with the mean update (26), one inner loop, against ours by row
and by block, on the same random linear problem; peak memory is what Python allocates during the folds (the row
included), as a multiple of 8·d·(p+4) bytes. Second table: factor analysis of d = 1000, N = 10⁵ rows (quick: 2000).
"""

from __future__ import annotations

import time
import tracemalloc
from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.decomposition import FactorAnalysis, IncrementalPCA

import gaussfold as gf
from benchmarks.report import Report

LIKELIHOOD = gf.likelihoods.Gaussian(1.0)
ASKED = {
    (1, 1, "eigen", "float64"): "asked at p = 1, block 1: 3 times the textbook, peak memory 1.3 x 8d(p+4)",
    (100, 1, "eigen", "float64"): "asked at p = 100, block 1: 8 times the textbook, peak memory 1.3 x 8d(p+4)",
    (100, 32, "eigen", "float64"): "asked at p = 100, block 32: 60 times the textbook",
}


def textbook_step(
    W: np.ndarray, psi: np.ndarray, mean: np.ndarray, x: np.ndarray, y: float
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """One inner loop of lrvga Alg. 1 and the mean (26), as printed."""
    one = np.eye(W.shape[1])
    scaled = W / psi[:, None]
    M_inverse = np.linalg.inv(one + W.T @ scaled)
    V = np.outer(x, x @ scaled) + W @ (W.T @ scaled) + (psi / psi)[:, None] * W
    W_new = V @ np.linalg.inv(one + M_inverse @ (scaled.T @ V))
    psi_new = x * x + (W * W).sum(axis=1) + psi - ((W_new @ M_inverse) * V).sum(axis=1)
    M = one + W_new.T @ (W_new / psi_new[:, None])
    gain = (x - W_new @ np.linalg.solve(M, W_new.T @ (x / psi_new))) / psi_new
    return W_new, psi_new, mean + gain * (y - x @ mean)


def _textbook_seconds(d: int, p: int) -> float:
    rng = np.random.default_rng(0)
    W, psi, mean = 0.1 * rng.standard_normal((d, p)), np.ones(d), np.zeros(d)

    def step() -> None:
        nonlocal W, psi, mean
        W, psi, mean = textbook_step(W, psi, mean, x, 0.3)

    x = rng.standard_normal(d)
    return _best(step, p)


def _best(step: Callable[[], None], p: int) -> float:
    """Seconds per call: the better of two means, over enough calls for what our projection does only now and then."""
    calls = 1 if p >= 100 else max(p, 8)
    means = []
    for _ in range(2):
        started = time.perf_counter()
        for _ in range(calls):
            step()
        means.append((time.perf_counter() - started) / calls)
    return min(means)


def _our_seconds(d: int, p: int, block: int, **options: Any) -> tuple[float, float]:
    """Seconds per observation over calls of one block each, and peak memory in another call."""
    rng = np.random.default_rng(0)
    belief = gf.LowRankGaussian(np.zeros(d), 0.1 * rng.standard_normal((d, p)), np.ones(d), block_size=block, **options)
    X, y = rng.standard_normal((block, d)), rng.standard_normal(block)
    best = _best(lambda: gf.fold(belief, LIKELIHOOD, X, y), p) / block  # type: ignore[arg-type,func-returns-value]
    del X
    held = belief.precision().W.nbytes + 2 * belief.precision().psi.nbytes  # the mean is of the diagonal's size
    tracemalloc.start()
    X = rng.standard_normal((block, d))
    gf.fold(belief, LIKELIHOOD, X, y)
    peak = held + tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return best, peak / (8.0 * d * (p + 4))


def _projections(report: Report, quick: bool) -> None:
    d = 20_000 if quick else 10**6
    gf.fold(gf.LowRankGaussian.isotropic(9, 2), LIKELIHOOD, np.ones((2, 9)), [1.0, 0.0])  # compile
    for p in (1, 2, 10, 100):
        base = _textbook_seconds(d, p)
        report.rows.append([f"textbook Alg. 1, p = {p}", base, 1.0, float("nan")])
        cases = [(1, "eigen", np.float64), (1, "em", np.float64), (1, "eigen", np.float32)]
        if p == 100:
            cases += [(8, "eigen", np.float64), (32, "eigen", np.float64), (32, "em", np.float64)]
        for block, projection, dtype in cases:
            seconds, memory = _our_seconds(d, p, block, projection=projection, dtype=dtype)
            name = f"{projection}, p = {p}, block {block}, {np.dtype(dtype).name}"
            report.rows.append([name, seconds, base / seconds, memory])
            if name := ASKED.get((p, block, projection, np.dtype(dtype).name), ""):
                report.notes.append(f"{name}: {base / seconds:.1f} times, {memory:.2f}")


def _factor_analyses(report: Report, quick: bool) -> None:
    rng = np.random.default_rng(1)
    d, n, p = 1000, 2000 if quick else 100_000, 10
    F, psi = rng.standard_normal((d, p)), rng.uniform(0.2, 3.0, d)
    truth = F @ F.T + np.diag(psi)
    X = rng.standard_normal((n, p)) @ F.T + np.sqrt(psi) * rng.standard_normal((n, d))
    models = {
        "StreamingFactorAnalysis, block 32": gf.StreamingFactorAnalysis(p, block_size=32),
        "StreamingFactorAnalysis, block 256": gf.StreamingFactorAnalysis(p, block_size=256),
        "scikit-learn FactorAnalysis": FactorAnalysis(p),
        "scikit-learn IncrementalPCA": IncrementalPCA(p, batch_size=256),
    }
    for name, model in models.items():
        started = time.perf_counter()
        model.fit(X)
        seconds = time.perf_counter() - started
        error = np.linalg.norm(model.get_covariance() - truth) / np.linalg.norm(truth)
        report.numbers.setdefault("factor_analysis", {})[name] = {"seconds": seconds, "distance": float(error)}
        report.notes.append(f"{name}, d = {d}, N = {n}: {seconds:.2f} s, covariance distance {error:.4f}")


def run(quick: bool = False) -> Report:
    """Measure both."""
    report = Report(
        "Low rank plus diagonal, per observation", ["method", "seconds", "times the textbook", "peak / 8d(p+4)"]
    )
    _projections(report, quick)
    _factor_analyses(report, quick)
    return report
