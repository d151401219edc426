"""Figure 2, right: progressive log loss on real data, relative to the best AdaGrad."""

from __future__ import annotations

import itertools
import math
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.utils import murmurhash3_32

from experiments.registry import ORACLES, Context
from experiments.sparse.learners import GRIDS, METHODS, PRIOR
from gaussfold.data.readers import Stream
from gaussfold.data.reading import Reading
from gaussfold.rows import Rows
from gaussfold.types import Array

FOLDER = ORACLES.parent / "data"
BITS = 18
NAMES = ["sgd-root", "sgd", "adf", "dimgauss", "gauss", "auto", "forgetting"]
PRIORS = [2.0**k for k in range(-5, 10)]
FORGETTING = [1.0, 0.9999, 0.999, 0.99, 0.97, 0.9, 0.8]
RATES = (0.02, 0.05, 0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 6.4, 12.8, 25.6, 51.2, 102.4)


def panel(context: Context) -> dict[str, Any] | None:
    """Mean log loss of each method with its best setting, and in percent of AdaGrad's best; None without the data."""
    found = {title: read() for title, read in DATA.items()} if FOLDER.is_dir() else {}
    if not found:
        return None
    return {title: _score(context, title, *data) for title, data in found.items()}


def _score(context: Context, title: str, rows: Rows, y: Array) -> dict[str, Any]:
    best: dict[str, Any] = {}
    dim = rows.width
    for name in context.track(NAMES, title):
        tried = [
            (float(METHODS[name].make(dim, *setting.values()).learn(rows, y).mean()), k, setting)
            for k, setting in enumerate(_settings(name))
        ]
        loss, _, setting = min(item for item in tried if not math.isnan(item[0]))
        best[name] = {"label": METHODS[name].label, "log_loss": loss, "setting": setting}
    for numbers in best.values():
        numbers["percent_of_adagrad"] = 100.0 * (numbers["log_loss"] / best["sgd-root"]["log_loss"] - 1.0)
    return {"examples": int(y.size), "entries": int(rows.data.size), "methods": best}


def _settings(name: str) -> list[dict[str, float]]:
    """Wider than for the synthetic streams: nobody knows the true weights here."""
    tuned = METHODS[name].tuned
    if tuned == (PRIOR,):
        return [{PRIOR: std} for std in PRIORS]
    numbers: Any = {
        "sgd-root": [(rate,) for rate in RATES],
        "sgd": [*GRIDS["sgd"], *itertools.product(RATES, (0.5, 0.75, 1.0), (0.0, 1.0))],
        "forgetting": itertools.product(PRIORS, FORGETTING),
    }.get(name, [()])
    return [dict(zip(tuned, item, strict=True)) for item in numbers]


def draw(ax: Any, found: dict[str, Any]) -> None:
    """Bars: how much lower (or higher) than the best AdaGrad, in percent."""
    width = 0.8 / (len(NAMES) - 1)
    for k, name in enumerate(NAMES[1:]):
        values = [data["methods"][name]["percent_of_adagrad"] for data in found.values()]
        places = np.arange(len(found)) + (k - (len(NAMES) - 2) / 2) * width
        bars = ax.bar(places, values, 0.9 * width, color=METHODS[name].color, label=METHODS[name].label)
        ax.bar_label(bars, fmt="%+.2g", fontsize=7, padding=2)
    ax.axhline(0.0, color="black", lw=1)
    ax.set_yscale("symlog", linthresh=1.0, linscale=1.5)
    ax.margins(y=0.12)
    ax.set_xticks(range(len(found)), [f"{title}\n{data['examples']:,} rows" for title, data in found.items()])
    ax.set(title="real data", ylabel="log loss against the best AdaGrad, %")


def criteo(path: Path = FOLDER / "criteo-8000.csv") -> tuple[Rows, Array]:
    """Hash (column, value) into 2^18 slots; counts are cut to the whole part of log²(1 + n); slot 0 is constant."""
    indptr, indices, labels = [0], [], []
    for line in path.read_text(encoding="utf-8").splitlines():
        label, *fields = line.split("\t")
        labels.append(float(label))
        for column, field in enumerate(fields):
            text = str(int(math.log1p(max(int(field), 0)) ** 2)) if column < 13 and field else field
            indices.append(murmurhash3_32(f"{column}={text}", positive=True) % 2**BITS)
        indices.append(0)
        indptr.append(len(indices))
    return Rows(np.array(indptr), np.array(indices), np.ones(len(indices)), max(indices) + 1), np.array(labels)


def table(name: str) -> tuple[Rows, Array]:
    """Read a file as the command line does, constant included."""
    chunks = list(Stream(FOLDER / name, Reading(bits=10), copy=True))
    starts = np.cumsum([0, *(chunk.data.size for chunk in chunks)])
    indptr = np.concatenate([[0], *(chunk.indptr[1:] + start for chunk, start in zip(chunks, starts, strict=False))])
    indices, data = (np.concatenate([getattr(c, part) for c in chunks]) for part in ("indices", "data"))
    return Rows(indptr, indices, data, int(indices.max()) + 1), np.concatenate([c.label for c in chunks])


DATA = {
    "Criteo (head)": criteo,
    "Adult (a9a)": lambda: table("a9a.libsvm"),
    "electricity": lambda: table("elec2.csv"),
}
