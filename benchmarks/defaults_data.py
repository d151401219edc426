"""Data as a newcomer has them: raw, of all scales, with rows in any order; and train/test splits of them.

``shared`` data sets are read from a folder beside the repository, where there is one; they are never copied.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
from sklearn import datasets

SHARED = Path(os.environ.get("GAUSSFOLD_SHARED", "/work/shared/data"))


class Task(NamedTuple):
    """A data set and its splits; ``tuned`` ones were looked at while defaults were chosen, the others were not."""

    name: str
    X: np.ndarray
    y: np.ndarray
    splits: list[tuple[np.ndarray, np.ndarray]]
    tuned: bool


def splits(n: int, count: int, share: float = 0.3, seed: int = 1000) -> list[tuple[np.ndarray, np.ndarray]]:
    """Rows to learn from and rows to predict, drawn so often."""
    held = max(1, round(share * n))
    orders = [np.random.default_rng(seed + place).permutation(n) for place in range(count)]
    return [(order[held:], order[:held]) for order in orders]


def _odd(X: np.ndarray, seed: int) -> np.ndarray:
    """The same columns in units from a millionth to a million, some far from zero, and a constant one."""
    rng = np.random.default_rng(seed)
    scale = 10.0 ** rng.uniform(-6, 6, X.shape[1])
    offset = np.where(rng.random(X.shape[1]) < 0.3, 1000.0, 0.0)
    return np.column_stack([(X + offset) * scale, np.full(len(X), 3.0)])


def classifications(count: int = 5) -> Iterator[Task]:
    """Two classes and more."""
    for name, tuned in (("breast_cancer", True), ("iris", False), ("wine", True), ("digits", False)):
        X, y = getattr(datasets, f"load_{name}")(return_X_y=True)
        yield Task(name, X, y, splits(len(y), count), tuned)
    X, y = datasets.load_iris(return_X_y=True)
    yield Task("iris versicolor?", X, (y == 1).astype(int), splits(len(y), count), True)
    X, y = datasets.load_wine(return_X_y=True)
    yield Task("wine 1?", X, (y == 1).astype(int), splits(len(y), count), False)
    X, y = datasets.load_digits(return_X_y=True)
    yield Task("digits odd?", X, y % 2, splits(len(y), count), True)
    yield Task(
        "digits 3 or 8",
        X[(y == 3) | (y == 8)],
        y[(y == 3) | (y == 8)],
        splits(((y == 3) | (y == 8)).sum(), count),
        True,
    )
    rng = np.random.default_rng(5)
    for place, (n, d, flip, apart) in enumerate(
        [(100, 20, 0.0, 1.0), (300, 20, 0.05, 1.0), (200, 5, 0.0, 2.0), (500, 40, 0.1, 0.5)]
    ):
        for seed in (0, 1):
            X, y = datasets.make_classification(
                n, d, n_informative=max(2, d // 3), n_redundant=d // 4, flip_y=flip, class_sep=apart, random_state=seed
            )
            yield Task(
                f"made {n}x{d} {'odd units' if seed else ''}",
                _odd(X, seed) if seed else X,
                y,
                splits(n, count),
                place % 2 == seed,
            )
    X = rng.standard_normal((4000, 5))
    y = (rng.random(4000) < 1 / (1 + np.exp(5.0 - X @ np.array([1, 0.5, 0, 0, -1])))).astype(int)
    yield Task("rare events", X, y, splits(4000, count), True)
    X, y = datasets.make_moons(300, noise=0.2, random_state=1)
    yield Task("moons", X, y, splits(300, count), False)
    X = rng.standard_t(2, (500, 6))
    y = (X[:, 0] - X[:, 1] + rng.standard_normal(500) > 0).astype(int)
    yield Task("heavy tails", X, y, splits(500, count), False)
    X, y = rng.standard_normal((200, 10)), rng.integers(0, 2, 200)
    yield Task("pure noise", X, y, splits(200, count), True)
    if not SHARED.exists():
        return
    table = np.genfromtxt(SHARED / "elec2.csv", delimiter=",", skip_header=1)[::10]
    yield Task("elec2, shuffled", table[:, :-1], table[:, -1].astype(int), splits(len(table), count), False)
    table = np.genfromtxt(SHARED / "banana_large.csv", delimiter=",", skip_header=1)
    yield Task("banana", table[:, :-1], table[:, -1].astype(int), splits(len(table), count), True)
    X, y = datasets.load_svmlight_file(str(SHARED / "a9a.libsvm"))
    yield Task("a9a, 3000 rows", X[:3000].toarray(), y[:3000].astype(int), splits(3000, count), False)


def regressions(count: int = 5) -> Iterator[Task]:
    """Numbers to predict."""
    X, y = datasets.load_diabetes(return_X_y=True)
    yield Task("diabetes", X, y, splits(len(y), count), True)
    X, Y = datasets.load_linnerud(return_X_y=True)
    for k, name in enumerate(("weight", "waist", "pulse")):
        yield Task(f"linnerud {name}", X, Y[:, k], splits(len(Y), 4 * count, 0.25), k == 0)
    for seed in (0, 1):
        odd = (lambda X, s=seed: _odd(X, s)) if seed else (lambda X: X)
        X, y = datasets.make_regression(200, 10, n_informative=5, noise=20.0, random_state=seed)
        yield Task(f"made linear {seed}", odd(X), 1e4 * y + 1e7 if seed else y, splits(200, count), seed == 0)
        X, y = datasets.make_friedman1(300, random_state=seed)
        yield Task(f"friedman1 {seed}", odd(X), y, splits(300, count), seed == 1)
        X, y = datasets.make_friedman2(300, noise=50.0, random_state=seed)
        yield Task(f"friedman2 {seed}", odd(X), y, splits(300, count), seed == 0)
        X, y = datasets.make_sparse_uncorrelated(100, 20, random_state=seed)
        yield Task(f"sparse 20 {seed}", odd(X), y, splits(100, count), seed == 1)
    rng = np.random.default_rng(3)
    X = rng.standard_normal((150, 4))
    X = np.column_stack([X, X @ rng.standard_normal((4, 3)) + 1e-4 * rng.standard_normal((150, 3))])
    y = X @ rng.standard_normal(7) + 0.1 * rng.standard_normal(150)
    yield Task("nearly collinear", X, y, splits(150, count), False)
    if not SHARED.exists():
        return
    for name, tuned in (("bostonHousing", True), ("concrete", False), ("energy", True), ("yacht", False)):
        with np.load(SHARED / "uci" / f"{name}.npz") as part:
            pairs = list(zip(part["train_idx"], part["test_idx"], strict=True))[: 2 * count]
            yield Task(name, part["X"], part["y"], pairs, tuned)
    for place, path in enumerate(sorted((SHARED / "uci_small").glob("*.test_mask.csv.gz"))):
        name = path.name.split(".")[0]
        table = np.genfromtxt(path.with_name(f"{name}.csv.gz"), delimiter=",")
        masks = np.genfromtxt(path, delimiter=",").T[:count] > 0
        pairs = [(np.flatnonzero(~mask), np.flatnonzero(mask)) for mask in masks]
        yield Task(name, table[:, :-1], table[:, -1], pairs, place % 2 == 0)
