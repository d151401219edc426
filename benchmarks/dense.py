"""Time per observation of the implicit R-VGA with a full covariance, at several dimensions.

(a) a textbook loop, rvga (73)-(77) with ``scipy.optimize.root``; (b) ours, one row a call; (c) ours, one call; (d) the
R-VGA of bayesianbandits. Beside them the machine's matrix-multiply rate, measured in the same run: (c) is also
given as a share of it, counting 4d² operations a row.
"""

from __future__ import annotations

import math
import sys
import tracemalloc
import warnings
from typing import Any

import numpy as np
from scipy.optimize import root
from scipy.special import expit

import gaussfold as gf
from benchmarks.report import Report, best_seconds, dgemm_rate

BETA2 = 8.0 / math.pi


def textbook_rvga(X: np.ndarray, y: np.ndarray, std: float) -> tuple[np.ndarray, np.ndarray]:
    """Implicit R-VGA as the paper writes it, one row at a time."""
    dim = X.shape[1]
    mean, cov = np.zeros(dim), std**2 * np.eye(dim)
    for x, label in zip(X, y, strict=True):
        reach = cov @ x
        m0, v0 = x @ mean, x @ reach

        def equations(z: np.ndarray, m0: float = m0, v0: float = v0, label: float = label) -> np.ndarray:
            alpha, nu = z[0], np.exp(z[1])
            k = np.sqrt(BETA2 / (nu + BETA2))
            s = 1.0 / (1.0 + np.exp(-k * alpha))
            return np.array([alpha + v0 * s - m0 - v0 * label, nu - v0 / (1.0 + v0 * k * s * (1.0 - s))])

        alpha, log_nu = root(equations, np.array([m0, np.log(v0)]), tol=1e-6).x
        k = np.sqrt(BETA2 / (np.exp(log_nu) + BETA2))
        s = 1.0 / (1.0 + np.exp(-k * alpha))
        mean = mean + reach * (label - s)
        cov = cov - np.outer(reach, reach) / (1.0 / (k * s * (1.0 - s)) + v0)
    return mean, cov


def _problem(dim: int, n: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(dim)
    X = rng.standard_normal((n, dim)) / math.sqrt(dim)
    y = (rng.random(n) < expit(X @ rng.normal(0.0, 3.0, dim))).astype(float)
    return X, y


def _fold(X: np.ndarray, y: np.ndarray) -> Any:
    belief = gf.DenseGaussian.isotropic(X.shape[1])
    gf.fold(belief, gf.likelihoods.Bernoulli(), X, y)
    return belief


def _fold_by_row(X: np.ndarray, y: np.ndarray) -> None:
    belief, likelihood = gf.DenseGaussian.isotropic(X.shape[1]), gf.likelihoods.Bernoulli()
    for i in range(y.size):
        gf.fold(belief, likelihood, X[i : i + 1], y[i : i + 1])


def _bayesianbandits(X: np.ndarray, y: np.ndarray) -> None:
    from bayesianbandits import BayesianGLM, RVGAApproximator

    model = BayesianGLM(alpha=1.0, link="logit", approximator=RVGAApproximator())
    for i in range(y.size):
        model.partial_fit(X[i : i + 1], y[i : i + 1])


def _peak_matrices(X: np.ndarray, y: np.ndarray) -> float:
    """Peak memory of a call beyond its inputs, in d×d matrices; the belief's own one included."""
    dim = X.shape[1]
    tracemalloc.start()
    _fold(X, y)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak / (8.0 * dim * dim)


def run(quick: bool = False) -> Report:
    """Measure at d = 10, 100, 1000, 3000."""
    sizes = ((10, 200), (100, 200)) if quick else ((10, 2000), (100, 2000), (1000, 4096), (3000, 6144))
    report = Report(
        "Dense: microseconds per observation",
        (
            *("d", "(a) textbook", "(b) ours by row", "(c) ours, one call", "(d) bayesianbandits"),
            *("a/b", "a/c", "d/c", "c: % of dgemm", "c: d×d matrices"),
        ),
    )
    for dim, n in sizes:
        print(f"measuring d = {dim} ...", file=sys.stderr)
        X, y = _problem(dim, n)
        few = min(n, 200 if dim <= 100 else 40 if dim <= 1000 else 8)
        _fold(X, y)
        _fold_by_row(X[:2], y[:2])
        rate = dgemm_rate()
        times = {
            "c": best_seconds(lambda X=X, y=y: _fold(X, y), 7 if dim < 3000 else 2) / n,
            "b": best_seconds(lambda X=X, y=y, few=few: _fold_by_row(X[:few], y[:few]), 5) / few,
            "a": best_seconds(lambda X=X, y=y, few=few: textbook_rvga(X[:few], y[:few], 1.0), 3) / few,
        }
        rate = max(rate, dgemm_rate())
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                times["d"] = best_seconds(
                    lambda X=X, y=y, few=few: _bayesianbandits(X[: few // 2], y[: few // 2]), 2
                ) / (few // 2)
        except ImportError:
            times["d"] = math.nan
            report.notes.append("bayesianbandits is absent: pip install -e '.[dev]'")
        share = 4.0 * dim * dim / times["c"] / rate
        micro = {key: 1e6 * value for key, value in times.items()}
        report.rows.append(
            [dim, micro["a"], micro["b"], micro["c"], micro["d"], times["a"] / times["b"], times["a"] / times["c"],
             times["d"] / times["c"], 100.0 * share, _peak_matrices(X, y)]
        )  # fmt: skip
        report.numbers[f"dgemm_gflops_d{dim}"] = rate / 1e9
    rates = (f"{value:.1f} Gflop/s ({key.rpartition('_')[2]})" for key, value in report.numbers.items())
    report.notes.append("dgemm rates in the same run: " + ", ".join(rates))
    report.notes.append(
        "% of dgemm counts 4d² operations a row; what runs is 3⅓d² (through the covariance) or 6d² (its square root)"
    )
    return report
