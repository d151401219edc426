"""Streams that nobody had looked at when the defaults were chosen: other sets, other targets and orders, other laws.

Each list of streams is fresh once: what is chosen after its first run has seen it. This one was written on 2026-11-19.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
from river import datasets as river_data
from river.datasets import synth
from sklearn import datasets

from benchmarks.streams_data import SHARED, Row, Stream, _arrays, _river, _svm

MOST = 20_000


def _ordered(n: int, seed: int) -> np.ndarray:
    return np.random.default_rng(seed).permutation(n)


def _numbers(name: str, X: np.ndarray, y: np.ndarray, seed: int | None = 23) -> Stream:
    order = np.arange(len(y)) if seed is None else _ordered(len(y), seed)
    return _arrays(name, X[order], y[order], numbers=True)


def _sides(name: str, X: np.ndarray, y: np.ndarray, seed: int | None = 29) -> Stream:
    """Whether a number is above its median."""
    order = np.arange(len(y)) if seed is None else _ordered(len(y), seed)
    return _arrays(name, X[order], (y > np.median(y))[order])


def _columns(name: str) -> tuple[np.ndarray, np.ndarray]:
    table = np.genfromtxt(SHARED / f"uci_small/{name}.csv.gz", delimiter=",")
    return table[:, :-1], table[:, -1]


def _uci(name: str) -> tuple[np.ndarray, np.ndarray]:
    parts = np.load(SHARED / f"uci/{name}.npz")
    return parts["X"], parts["y"]


def _bundled() -> Iterator[Callable[[], Stream]]:
    """Sets of scikit-learn and River that were not in the table, or other questions about those that were."""
    for name, label in (("wine", 0), ("wine", 2), ("iris", 2)):

        def load(name: str = name, label: int = label) -> Stream:
            X, y = getattr(datasets, f"load_{name}")(return_X_y=True)
            order = _ordered(len(y), 31)
            return _arrays(f"{name} {label}", X[order], (y == label)[order])

        yield load
    yield lambda: _arrays("breast backwards", *(part[::-1] for part in datasets.load_breast_cancer(return_X_y=True)))
    digits = datasets.load_digits()
    pair = np.isin(digits.target, (3, 8))
    yield lambda: _arrays("digits 3 8", digits.data[pair], digits.target[pair] == 8)
    yield lambda: _arrays("digits high", digits.data, digits.target > 4)
    yield lambda: _river("yeast", iter(river_data.Yeast()), lambda y: float(y["Class3"]))
    yield lambda: _river("shuttle", itertools.islice(iter(river_data.Shuttle()), MOST), lambda y: float(bool(y)))
    yield lambda: _river("stocks", iter(river_data.SP500Stocks()), float, numbers=True)
    yield lambda: _river("stocks up", iter(river_data.SP500Stocks()), lambda y: float(y > 0))
    yield lambda: _river("segments sky", iter(river_data.ImageSegments()), lambda y: float(y == "sky"))
    yield lambda: _river("flares m", iter(river_data.SolarFlare()), lambda y: float(y["m-class-flares"] > 0))


def _made_by_river() -> Iterator[Callable[[], Stream]]:
    for made in (
        lambda: ("agrawal 7", synth.Agrawal(classification_function=7, seed=41), float),
        lambda: ("led 1", synth.LED(seed=42, noise_percentage=0.1), lambda y: float(y == 1)),
        lambda: ("led drift 7", synth.LEDDrift(seed=43, n_drift_features=4), lambda y: float(y == 7)),
        lambda: ("mixed", synth.Mixed(seed=44, classification_function=1), float),
        lambda: ("rbf drift", synth.RandomRBFDrift(45, 46, n_features=8, change_speed=0.01), lambda y: float(y == 1)),
        lambda: ("random tree", synth.RandomTree(47, 48), lambda y: float(y == 1)),
    ):

        def classes(made: Callable = made) -> Stream:
            name, source, label = made()
            return _river(name, iter(source.take(8000)), label)

        yield classes
    for made in (
        lambda: ("mv", synth.Mv(seed=49)),
        lambda: ("planes", synth.Planes2D(seed=50)),
        lambda: ("friedman", synth.Friedman(seed=51)),
    ):

        def numbers(made: Callable = made) -> Stream:
            name, source = made()
            return _river(name, iter(source.take(6000)), float, numbers=True)

        yield numbers


def _files() -> Iterator[Callable[[], Stream]]:
    if not SHARED.exists():
        return
    for name in ("autompg", "forest", "machine", "servo", "skillcraft", "stock"):
        yield lambda name=name: _numbers(name, *_columns(name))
    for name in ("bostonHousing", "concrete", "energy", "yacht"):
        yield lambda name=name: _numbers(name, *_uci(name))
    for name in ("airfoil", "skillcraft"):
        yield lambda name=name: _sides(f"{name} above", *_columns(name))
    yield lambda: _sides("parkinsons above, in order", *_columns("parkinsons"), seed=None)
    yield lambda: _numbers("parkinsons shuffled", *_columns("parkinsons"))
    table = np.genfromtxt(SHARED / "elec2.csv", delimiter=",", skip_header=1)
    some = _ordered(len(table), 53)[:MOST]
    yield lambda: _arrays("elec2 shuffled", table[some, :-1], table[some, -1])
    yield lambda: _numbers("elec2 next price", table[5000 : 5000 + MOST, :-1], table[5001 : 5001 + MOST, 1], None)
    yield lambda: _other_target("a9a, another column", SHARED / "a9a.test.libsvm")
    papers = Path(SHARED).parent / "papers"
    for first, second in (("rvga", "lrvga"), ("bayes-newton", "factor-analysis"), ("sparse-online", "rvga")):
        yield lambda first=first, second=second: _papers(papers, first, second)


def _other_target(name: str, path: Path) -> Stream:
    """Which of the rows have the feature that most nearly a third of them have, told by the others."""
    plain = _svm(name, path)
    count: dict[str, int] = {}
    for row in plain.rows:
        for key in row:
            count[key] = count.get(key, 0) + 1
    target = min(count, key=lambda key: abs(count[key] / len(plain.rows) - 1 / 3))
    labels = [float(target in row) for row in plain.rows]
    rows: list[Row] = [{key: x for key, x in row.items() if key != target} for row in plain.rows]
    return Stream(name, labels, rows, table=False)


def _papers(folder: Path, first: str, second: str) -> Stream:
    """From which of two papers a paragraph is, told by its words."""
    found: list[tuple[float, Row]] = []
    for label, name in enumerate((first, second)):
        for part in re.split(r"\n\s*\n", (folder / f"{name}.txt").read_text(encoding="utf-8")):
            words = re.findall(r"[a-z]{2,}", part.lower())
            if len(words) > 5:
                found.append((float(label), dict.fromkeys(words, 1.0)))
    order = _ordered(len(found), 59)
    return Stream(f"{first} or {second}", [found[k][0] for k in order], [found[k][1] for k in order], table=False)


def _laws() -> Iterator[Callable[[], Stream]]:
    """Laws of our own that are on no grid: heavy tails, noise, correlation, rare labels, abrupt change, trends."""

    def sides(name: str, X: np.ndarray, f: np.ndarray, rng: np.random.Generator) -> Stream:
        return _arrays(name, X, rng.random(len(f)) < 1.0 / (1.0 + np.exp(-f)))

    def heavy() -> Stream:
        rng = np.random.default_rng(61)
        X = rng.standard_t(1.5, (6000, 15))
        return sides("heavy columns", X, np.clip(X, -5, 5) @ rng.normal(0, 0.8, 15), rng)

    def flipped() -> Stream:
        rng = np.random.default_rng(62)
        X = rng.standard_normal((6000, 20))
        y = (X @ rng.normal(0, 1.0, 20) > 0) ^ (rng.random(6000) < 0.2)
        return _arrays("one label in five flipped", X, y)

    def idle() -> Stream:
        rng = np.random.default_rng(63)
        X = rng.standard_normal((2000, 300))
        return sides("290 idle columns", X, X[:, :10] @ rng.normal(0, 1.0, 10), rng)

    def together() -> Stream:
        rng = np.random.default_rng(64)
        X = rng.standard_normal((6000, 3)) @ rng.standard_normal((3, 25)) + 0.2 * rng.standard_normal((6000, 25))
        return sides("25 columns of three", X, X @ rng.normal(0, 0.4, 25), rng)

    def rare() -> Stream:
        rng = np.random.default_rng(65)
        X = rng.standard_normal((15_000, 12))
        return sides("one in a hundred", X, X @ rng.normal(0, 0.7, 12) - 5.5, rng)

    def abrupt() -> Stream:
        rng = np.random.default_rng(66)
        X = rng.standard_normal((9000, 12)) * 7.0 + 3.0
        weights = rng.normal(0, 0.25, (3, 12))
        return sides("three worlds", X, ((X - 3.0) * weights[np.arange(9000) // 3000]).sum(axis=1), rng)

    def trend() -> Stream:
        rng = np.random.default_rng(67)
        X, t = rng.standard_normal((5000, 6)), np.arange(5000) / 5000.0
        y = 100.0 + 40.0 * t + X @ rng.normal(0, 3.0, 6) + rng.standard_normal(5000) * (0.5 + 3.0 * t)
        return _numbers("trend, noise that grows", X, y, None)

    def outliers() -> Stream:
        rng = np.random.default_rng(68)
        X = rng.standard_normal((5000, 10))
        return _numbers("heavy noise", X, X @ rng.normal(0, 1.0, 10) + rng.standard_t(2.0, 5000), None)

    def products() -> Stream:
        rng = np.random.default_rng(69)
        X = rng.gamma(2.0, 1.0, (5000, 5))
        return _numbers("products", X, np.prod(X[:, :3], axis=1) + rng.standard_normal(5000), None)

    def clicks(name: str, d: int, active: int, law: Callable[[np.random.Generator], np.ndarray], seed: int) -> Stream:
        rng = np.random.default_rng(seed)
        weight, rows, labels = law(rng), [], []
        popularity = 1.0 / np.arange(1, d + 1) ** 1.1
        popularity /= popularity.sum()
        for _ in range(15_000):
            there = np.unique(rng.choice(d, active, p=popularity))
            labels.append(float(rng.random() < 1.0 / (1.0 + np.exp(1.5 - weight[there].sum()))))
            rows.append({f"w{j}": 1.0 for j in there.tolist()})
        return Stream(name, labels, rows, table=False)

    yield from (heavy, flipped, idle, together, rare, abrupt, trend, outliers, products)
    yield lambda: clicks("clicks, uniform weights", 3000, 12, lambda rng: rng.uniform(-2.0, 2.0, 3000), 71)
    yield lambda: clicks("clicks, few that count", 3000, 12, lambda rng: rng.standard_t(1.2, 3000).clip(-8, 8), 72)
    yield lambda: clicks("clicks, weak", 500, 25, lambda rng: rng.normal(0.0, 0.1, 500), 73)


def streams() -> list[Stream]:
    """All of them, by name."""
    made = [make() for make in itertools.chain(_bundled(), _made_by_river(), _files(), _laws())]
    return sorted(made, key=lambda stream: stream.name)
