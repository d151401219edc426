"""`GPRegressor` beside scikit-learn's, as both are by default: one kernel, the same data, in turns, processor seconds.

scikit-learn's searches once from the kernel it is given; "restarted" lets it search twice, as ours may. The scores are
log marginal likelihoods of the scaled targets at the end, ours minus theirs. Data sets are drawn anew from the seed.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.report import Report
from gaussfold import GPRegressor

SIZES = ((50, 1), (200, 1), (200, 3), (600, 3))
SETS = 8
TURNS = 3


def drawn(rows: int, columns: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """A wave along each column and noise, all of random size."""
    rng = np.random.default_rng([seed, rows, columns])
    X = rng.uniform(0.0, rng.uniform(2.0, 10.0), (rows, columns))
    waves = np.sin(X * rng.uniform(0.3, 2.0, columns) + rng.uniform(0.0, 6.0, columns))
    return X, waves @ rng.normal(size=columns) + 10.0 ** rng.uniform(-2.0, 0.0) * rng.normal(size=rows)


def _theirs(restarts: int) -> Any:
    from sklearn.gaussian_process import GaussianProcessRegressor
    from sklearn.gaussian_process.kernels import ConstantKernel, Matern, WhiteKernel

    kernel = ConstantKernel(1.0) * Matern(1.0, nu=1.5) + WhiteKernel(0.25)
    return GaussianProcessRegressor(kernel, normalize_y=True, n_restarts_optimizer=restarts, random_state=0)


def _timed(made: Callable[[], Any], X: np.ndarray, y: np.ndarray) -> tuple[float, float]:
    """Processor seconds of a fit, and the log marginal likelihood it ends at."""
    began = time.process_time()
    model = made().fit(X, y)
    seconds = time.process_time() - began
    found = model.log_marginal_likelihood_ if isinstance(model, GPRegressor) else model.log_marginal_likelihood_value_
    return seconds, float(found)


def run(quick: bool = False, seed: int = 0) -> Report:
    """All sizes; the best of some turns each."""
    report = Report(
        "GPRegressor beside scikit-learn's, defaults",
        ("rows", "columns", "ms", "times theirs", "least", "most", "of two searches", "log evidence, least", "most"),
    )
    ways: list[Callable[[], Any]] = [GPRegressor, lambda: _theirs(0), lambda: _theirs(1)]
    warnings.simplefilter("ignore")  # scikit-learn's, of parameters at their bounds
    for rows, columns in SIZES[: 2 if quick else None]:
        ratios, gaps, ms = [], [], []
        for each in range(2 if quick else SETS):
            X, y = drawn(rows, columns, 100 * seed + each)
            turns = np.array([[_timed(made, X, y) for made in ways] for _ in range(TURNS)])
            seconds = turns[:, :, 0].min(axis=0)
            ms.append(1e3 * seconds[0])
            ratios.append(seconds[0] / seconds[1:])
            gaps.append(turns[0, 0, 1] - turns[0, 1, 1])
        mean = np.exp(np.mean(np.log(ratios), axis=0))
        one = [r[0] for r in ratios]
        row = [rows, columns, float(np.median(ms)), mean[0], min(one), max(one), mean[1]]
        report.rows.append([*row, f"{min(gaps):.3f}", f"{max(gaps):.3f}"])
        print(*report.rows[-1], flush=True)
    report.notes.append("geometric means over data sets; processor time, the best of turns")
    return report
