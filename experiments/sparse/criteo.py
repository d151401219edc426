"""Figure 2, right: progressive log loss on the head of the Criteo log, relative to the best SGD."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from sklearn.utils import murmurhash3_32

from experiments.registry import ORACLES, Context
from experiments.sparse.learners import METHODS
from gaussfold.beliefs.cellular import Rows
from gaussfold.types import Array

FILE = ORACLES.parent / "data" / "criteo-8000.csv"
BITS = 18
GRIDS = {
    "sgd": (0.02, 0.05, 0.1, 0.2),
    "adf": (0.03, 0.06, 0.12, 0.25, 0.5),
    "dimgauss": (0.03, 0.06, 0.12, 0.25, 0.5),
    "gauss": (0.03, 0.06, 0.12, 0.25, 0.5),
    "auto": (0.0,),
}


def panel(context: Context) -> dict[str, Any] | None:
    """Total log loss of each method with its best setting, in percent of the best SGD's; None without the file."""
    if not FILE.is_file():
        return None
    rows, y = read()
    best: dict[str, Any] = {}
    for name in context.track(GRIDS, "Criteo"):
        tried = {value: float(METHODS[name].make(2**BITS, value).learn(rows, y).mean()) for value in GRIDS[name]}
        value = min(tried, key=lambda v: tried[v])
        best[name] = {"log_loss": tried[value], METHODS[name].tuned or "setting": value}
    for numbers in best.values():
        numbers["percent_of_sgd"] = 100.0 * (numbers["log_loss"] / best["sgd"]["log_loss"] - 1.0)
    return {"examples": int(y.size), "methods": best}


def read() -> tuple[Rows, Array]:
    """Hash (column, value) into 2^18 slots; counts are cut to the whole part of log²(1 + n); slot 0 is constant."""
    indptr, indices, labels = [0], [], []
    for line in FILE.read_text(encoding="utf-8").splitlines():
        label, *fields = line.split("\t")
        labels.append(float(label))
        for column, field in enumerate(fields):
            text = str(int(math.log1p(max(int(field), 0)) ** 2)) if column < 13 and field else field
            indices.append(murmurhash3_32(f"{column}={text}", positive=True) % 2**BITS)
        indices.append(0)
        indptr.append(len(indices))
    return Rows(np.array(indptr), np.array(indices), np.ones(len(indices))), np.array(labels)
