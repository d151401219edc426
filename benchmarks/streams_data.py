"""Streams as people have them: text, clicks, tables of columns in all units, drift, and made ones off every grid.

Each has two sides: the file that we are given as it is, and rows as dictionaries, from which the peers' input is made
(a category is a feature ``column=value``). ``tuned`` marks the streams that were looked at while the defaults were
chosen: every second one by name, fixed before the first was run. The others were only ever reported.
"""

from __future__ import annotations

import csv
import itertools
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
from river import datasets as river_data
from river.datasets import synth
from sklearn import datasets

SHARED = Path(os.environ.get("GAUSSFOLD_SHARED", "/work/shared/data"))
Row = dict[str, float | str]


class Stream(NamedTuple):
    """Labels (0 and 1, or numbers) and rows; ``table``: we are given CSV, else text of VW's format."""

    name: str
    labels: list[float]
    rows: list[Row]
    table: bool
    numbers: bool = False

    def features(self) -> Iterator[dict[str, float]]:
        """Rows as numbers: a category is a feature of its own, an empty field is none."""
        for row in self.rows:
            yield {
                (f"{name}={value}" if isinstance(value, str) else name): (1.0 if isinstance(value, str) else value)
                for name, value in row.items()
                if value != ""
            }

    def write_vw(self, path: Path) -> Path:
        """For Vowpal Wabbit, and for us where the stream is text."""
        with path.open("w") as file:
            for label, row in zip(self.labels, self.features(), strict=True):
                told = repr(label) if self.numbers else ("1" if label else "-1")
                file.write(f"{told} |f {' '.join(f'{_word(k)}:{v!r}' for k, v in row.items())}\n")
        return path

    def write_csv(self, path: Path) -> Path:
        """For us, where the stream is a table."""
        names = list(dict.fromkeys(itertools.chain.from_iterable(self.rows)))
        with path.open("w", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(["label", *names])
            for label, row in zip(self.labels, self.rows, strict=True):
                writer.writerow([repr(label) if self.numbers else int(label), *(row.get(name, "") for name in names)])
        return path


def _word(name: str) -> str:
    return name.replace(" ", "_").replace(":", "_").replace("|", "_")


def _arrays(name: str, X: np.ndarray, y: np.ndarray, *, numbers: bool = False) -> Stream:
    columns = [f"x{i}" for i in range(X.shape[1])]
    rows: list[Row] = [dict(zip(columns, row, strict=True)) for row in X.tolist()]
    return Stream(name, y.astype(float).tolist(), rows, table=True, numbers=numbers)


def _river(name: str, rows: Iterator[tuple[dict, object]], label: Callable[[object], float], **how: bool) -> Stream:
    kept, labels = [], []
    for x, y in rows:
        kept.append({_column(k): v if isinstance(v, str) else float(v) for k, v in x.items() if _plain(v)})
        labels.append(label(y))
    return Stream(name, labels, kept, table=True, **how)


def _column(name: object) -> str:
    """A name that is no number: a header of numbers would be a row."""
    return f"x{name}" if str(name).isdigit() else str(name)


def _plain(value: object) -> bool:
    return isinstance(value, str | int | float | bool | np.number)


def _shuffled(n: int) -> np.ndarray:
    return np.random.default_rng(5).permutation(n)


def _text(name: str, path: Path, *, numbers: bool = False) -> Stream:
    """One of VW's own files: label, weight and tag, then namespaces of features."""
    labels, rows = [], []
    for line in path.read_text().splitlines():
        head, *spaces = line.split("|")
        label = float(head.split()[0])
        row: Row = {}
        for space in spaces:
            first, *words = space.split(" ")
            for word in words:
                key, _, value = word.partition(":")
                if key:
                    row[f"{first}^{key}" if first else key] = float(value) if value else 1.0
        labels.append(label if numbers else float(label > 0))
        rows.append(row)
    return Stream(name, labels, rows, table=False, numbers=numbers)


def _bandit(path: Path) -> Stream:
    """Which costs were zero, told by the words: action:cost:probability | words."""
    labels, rows = [], []
    for line in path.read_text().splitlines():
        head, _, words = line.partition("|")
        action, cost = head.split(":")[:2]
        labels.append(float((action == "1") == (float(cost) == 0.0)))
        rows.append(dict.fromkeys(words.split(), 1.0))
    return Stream("rcv1_raw", labels, rows, table=False)


def _svm(name: str, path: Path) -> Stream:
    labels, rows = [], []
    for line in path.read_text().splitlines():
        label, *features = line.split()
        labels.append(float(float(label) > 0))
        rows.append({key: float(value) for key, value in (each.split(":") for each in features)})
    return Stream(name, labels, rows, table=False)


def _criteo(path: Path) -> Stream:
    names = ["label", *(f"i{k}" for k in range(13)), *(f"c{k}" for k in range(26))]
    labels, rows = [], []
    for line in path.read_text().splitlines():
        fields = dict(zip(names, line.split("\t"), strict=True))
        labels.append(float(fields.pop("label")))
        rows.append({k: float(v) if k[0] == "i" else v for k, v in fields.items() if v})
    return Stream("criteo", labels, rows, table=True)


def _made(name: str, n: int, d: int, active: int, std: float, seed: int) -> Stream:
    """Clicks: some of d features present, weights from N(0, std²)."""
    rng = np.random.default_rng(seed)
    weight = rng.normal(0.0, std, d)
    rows, labels = [], []
    for _ in range(n):
        there = rng.choice(d, active, replace=False)
        f = weight[there].sum() / (1.0 if active < 5 else active**0.5 / 2.0) - 0.5
        labels.append(float(rng.random() < 1 / (1 + np.exp(-f))))
        rows.append({f"f{j}": 1.0 for j in there.tolist()})
    return Stream(name, labels, rows, table=False)


def _valued(name: str, n: int, d: int, seed: int) -> Stream:
    """Named features of real values, popular ones and rare ones."""
    rng = np.random.default_rng(seed)
    popularity = 1.0 / np.arange(1, d + 1) ** 0.9
    weight = rng.normal(0.0, 1.2, d)
    rows, labels = [], []
    for there in rng.choice(d, (n, 22), p=popularity / popularity.sum()):
        columns = np.unique(there)
        x = np.round(rng.gamma(2.0, 0.4, columns.size), 4)
        labels.append(float(rng.random() < 1 / (1 + np.exp(0.5 - weight[columns] @ x))))
        rows.append({f"f{j}": v for j, v in zip(columns.tolist(), x.tolist(), strict=True)})
    return Stream(name, labels, rows, table=False)


def _units(seed: int) -> Stream:
    """Columns in units from a millionth to a million, far from zero."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((3000, 12))
    y = rng.random(3000) < 1 / (1 + np.exp(-X @ rng.standard_normal(12)))
    return _arrays("made units", (X + rng.normal(0, 3, 12)) * 10.0 ** rng.uniform(-6, 6, 12), y)


def _recurring(seed: int) -> Stream:
    """Two worlds that take turns."""
    rng = np.random.default_rng(seed)
    X, weights = rng.standard_normal((8000, 10)), rng.standard_normal((2, 10)) * 1.5
    y = rng.random(8000) < 1 / (1 + np.exp(-(X * weights[np.arange(8000) // 1000 % 2]).sum(axis=1)))
    return _arrays("made recurring", X, y)


def _bundled() -> Iterator[Callable[[], Stream]]:
    """What scikit-learn and River bring along."""
    for name, label in (("breast_cancer", 1), ("wine", 1), ("iris", 1)):

        def load(name: str = name, label: int = label) -> Stream:
            X, y = getattr(datasets, f"load_{name}")(return_X_y=True)
            order = np.arange(len(y)) if name == "breast_cancer" else _shuffled(len(y))
            return _arrays(name, X[order], (y == label)[order])

        yield load
    yield lambda: _arrays("digits odd", (d := datasets.load_digits()).data, d.target % 2)
    yield lambda: _arrays("diabetes", *datasets.load_diabetes(return_X_y=True, scaled=False), numbers=True)
    yield lambda: _river("phishing", iter(river_data.Phishing()), float)
    yield lambda: _river("segments", iter(river_data.ImageSegments()), lambda y: float(y == "path" or y == "window"))
    yield lambda: _river("bananas", iter(river_data.Bananas()), float)
    yield lambda: _river("solar flare", iter(river_data.SolarFlare()), lambda y: float(y["c-class-flares"] > 0))
    yield lambda: _river("chick weights", iter(river_data.ChickWeights()), float, numbers=True)
    yield lambda: _river("trump approval", iter(river_data.TrumpApproval()), float, numbers=True)
    for made in (
        lambda: ("agrawal", synth.Agrawal(classification_function=2, seed=1), 20_000),
        lambda: ("hyperplane", synth.Hyperplane(seed=2, n_features=10, mag_change=0.001, noise_percentage=0.1), 20_000),
        lambda: ("sea", synth.ConceptDriftStream(synth.SEA(1, 3, 0.1), synth.SEA(3, 4, 0.1), 3, 10_000, 500), 20_000),
        lambda: ("sine", synth.Sine(seed=4, balance_classes=False), 10_000),
        lambda: ("stagger", synth.STAGGER(1, seed=5), 5000),
        lambda: ("waveform 0", synth.Waveform(seed=6), 5000),
    ):

        def stream(made: Callable = made) -> Stream:
            name, source, n = made()
            return _river(
                name, iter(source.take(n)), lambda y: float(y == 1) if name != "waveform 0" else float(y == 0)
            )

        yield stream
    yield lambda: _river(
        "friedman drift", iter(synth.FriedmanDrift(seed=7, position=(2000, 4000, 6000)).take(8000)), float, numbers=True
    )


def _files() -> Iterator[Callable[[], Stream]]:
    """What lies beside the repository."""
    if not SHARED.exists():
        return
    yield lambda: _svm("a9a", SHARED / "a9a.libsvm")
    yield lambda: _svm("a9a test", SHARED / "a9a.test.libsvm")
    yield lambda: _criteo(SHARED / "criteo-8000.csv")
    yield lambda: _arrays(
        "elec2", (t := np.genfromtxt(SHARED / "elec2.csv", delimiter=",", skip_header=1))[:, :-1], t[:, -1]
    )
    yield lambda: _text("rcv1_mini", SHARED / "vw/rcv1_mini.dat")
    yield lambda: _text("0001", SHARED / "vw/0001.dat")
    yield lambda: _bandit(SHARED / "vw/rcv1_raw_cb_small.vw")
    yield lambda: _text("0002", SHARED / "vw/0002.dat", numbers=True)
    yield lambda: _text("frank", SHARED / "vw/frank.dat", numbers=True)
    for name in ("airfoil", "bike", "elevators", "parkinsons"):

        def small(name: str = name) -> Stream:
            table = np.genfromtxt(SHARED / f"uci_small/{name}.csv.gz", delimiter=",")
            return _arrays(name, table[:, :-1], table[:, -1], numbers=True)

        yield small


def _synthetic() -> Iterator[Callable[[], Stream]]:
    for std, seed in ((0.2, 11), (1.5, 12), (2.8, 13), (9.0, 14)):
        yield lambda std=std, seed=seed: _made(f"made std {std}", 30_000, 200, 20, std, seed)
    yield lambda: _made("made 3000 features", 30_000, 3000, 3, 1.1, 15)
    yield lambda: _valued("made values", 20_000, 5000, 16)
    yield lambda: _units(17)
    yield lambda: _recurring(18)


def streams() -> list[Stream]:
    """All of them, by name."""
    made = [make() for make in itertools.chain(_bundled(), _files(), _synthetic())]
    return sorted(made, key=lambda stream: stream.name)


def tuned(names: list[str]) -> set[str]:
    """Which of these were looked at while choosing: every second by name."""
    return set(sorted(names)[::2])
