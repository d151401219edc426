"""Processes in space and time on a Markov time axis: the same log marginal likelihood as dense, linear in time."""

from __future__ import annotations

import time

import numpy as np

from benchmarks.report import Report
from gaussfold import likelihoods as lk
from gaussfold.gp import GaussianProcess, Matern32, Matern52, SpaceTime

KERNEL = SpaceTime(Matern32(1.0, 10.0), Matern52(1.0, 0.7))
NOISE = 0.3


def rows(times: int, places: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """A wave that travels over places in the plane, seen everywhere at every time."""
    rng = np.random.default_rng(seed)
    where = rng.uniform(-1.0, 1.0, (places, 2))
    t, at = np.repeat(np.arange(float(times)), places), np.tile(np.arange(places), times)
    X = np.column_stack([t, where[at]])
    return X, np.sin(t / 8.0 + 2.0 * X[:, 1]) * np.cos(X[:, 2]) + NOISE * rng.normal(size=len(t))


def run(quick: bool = False) -> Report:
    """Sizes that double in time, then in places; dense where it fits."""
    report = Report(
        "Space x time", ("times", "places", "rows", "structure", "log marginal likelihood", "seconds", "with slope")
    )
    sizes = [(50, 10), (100, 20), (500, 20), (1000, 20), (2000, 20), (4000, 20), (500, 40), (500, 80)]
    GaussianProcess(KERNEL, lk.Gaussian(NOISE), structure="markov").fit(*rows(5, 3, 0)).energy_gradient(settled=True)
    for times, places in sizes[: 3 if quick else None]:
        X, y = rows(times, places, 1)
        found = []
        for structure in ("dense", "markov") if len(y) <= 2000 else ("markov",):
            model = GaussianProcess(KERNEL, lk.Gaussian(NOISE), structure=structure)
            began = time.process_time()
            value = model.log_marginal_likelihood(X, y)
            alone = time.process_time() - began
            began = time.process_time()
            model.fit(X, y).energy_gradient(settled=True)
            fit = time.process_time() - began
            found.append(value)
            report.rows.append(
                [str(times), str(places), str(len(y)), structure, f"{value:.6f}", f"{alone:.2f}", f"{fit:.2f}"]
            )
            print(*report.rows[-1], flush=True)
        if len(found) == 2:
            report.notes.append(f"{len(y)} rows: apart by {abs(found[0] - found[1]):.1e} nats")
    return report
