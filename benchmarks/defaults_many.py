"""Many small data sets with two classes: separable ones, few rows, correlated or heavy-tailed features, odd units.

Half of them, by a checksum of the name, were looked at while the width of the prior was chosen (``tuned``); the other
half were made at the same time and never looked at before.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator

import numpy as np
from sklearn import datasets

from benchmarks.defaults_data import Task, splits

KINDS = ("independent", "correlated", "heavy tails", "binary", "skewed")


def tasks(count: int = 2) -> Iterator[tuple[str, Task]]:
    """All of them, each with the group that it belongs to."""
    for group, name, X, y in _named():
        tuned = zlib.crc32(name.encode()) % 2 == 0
        pairs = [pair for pair in splits(len(y), count, seed=5000) if len(np.unique(y[pair[0]])) == 2]
        yield group, Task(name, X, y, pairs, tuned)


def _named() -> Iterator[tuple[str, str, np.ndarray, np.ndarray]]:
    X, y = datasets.load_digits(return_X_y=True)
    for one in range(10):
        for other in range(one):
            kept = (y == one) | (y == other)
            yield "digits two by two", f"digits {other}{one}", X[kept], (y[kept] == one).astype(int)
    X, y = datasets.load_breast_cancer(return_X_y=True)
    for n in (60, 100, 150, 250):
        rows = np.random.default_rng(n).permutation(len(y))[:n]
        yield "small bundled sets", f"breast {n}", X[rows], y[rows]
    for name in ("iris", "wine"):
        X, y = getattr(datasets, f"load_{name}")(return_X_y=True)
        for k in range(3):
            yield "small bundled sets", f"{name} {k}?", X, (y == k).astype(int)
            yield "small bundled sets", f"{name} not {k}", X[y != k], (y[y != k] == y[y != k].max()).astype(int)
    seed = 0
    for n, d in ((50, 3), (100, 20), (100, 50), (200, 5), (300, 40), (500, 20)):
        for kind in KINDS:
            for signal in (0.5, 2.0, 6.0, 30.0):
                seed += 1
                X, y = _simulated(n, d, kind, seed, signal)
                if min(y.sum(), n - y.sum()) >= 5:
                    yield "simulated", f"sim {n}x{d} {kind} {signal:g}", X, y


def _simulated(n: int, d: int, kind: str, seed: int, signal: float) -> tuple[np.ndarray, np.ndarray]:
    """A logistic model whose latent has that standard deviation; some weights are zero, units are anything."""
    rng = np.random.default_rng(seed)
    factors = rng.standard_normal((max(2, d // 4), d))
    X = {
        "independent": lambda: rng.standard_normal((n, d)),
        "correlated": lambda: rng.standard_normal((n, len(factors))) @ factors + 0.5 * rng.standard_normal((n, d)),
        "heavy tails": lambda: rng.standard_t(2.5, (n, d)),
        "binary": lambda: (rng.random((n, d)) < rng.uniform(0.02, 0.5, d)).astype(float),
        "skewed": lambda: rng.lognormal(0.0, 1.0, (n, d)),
    }[kind]()
    weights = rng.standard_normal(d) * (rng.random(d) < (0.2 if seed % 3 == 0 else 1.0))
    weights[0] = 1.0
    spread = X.std(0)
    latent = ((X - X.mean(0)) / np.where(spread > 0.0, spread, 1.0)) @ weights
    latent *= signal / latent.std()
    y = (rng.random(n) < 1.0 / (1.0 + np.exp(0.3 * rng.standard_normal() - latent))).astype(int)
    return X * 10.0 ** rng.uniform(-3.0, 3.0, d), y
