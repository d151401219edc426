"""Peers that run in Python: ``python -m benchmarks.peers sklearn|river FILE BITS LIMIT`` prints one line of JSON."""

from __future__ import annotations

import json
import math
import sys
import time
from itertools import islice
from pathlib import Path

import numpy as np


def sklearn_sgd(path: str, bits: int, limit: int) -> dict[str, float]:
    """SGDClassifier on CSR that was parsed beforehand (parsing is not timed), 1000 rows a call."""
    from sklearn.linear_model import SGDClassifier

    from gaussfold.data.readers import Stream
    from gaussfold.data.reading import Reading

    model = SGDClassifier(loss="log_loss", random_state=0)
    loss, rows, seconds = 0.0, 0, 0.0
    for chunk in Stream(path, Reading(bits=bits, constant=False)):
        X, y = chunk.X, chunk.label
        for start in range(0, len(y), 1000):
            began = time.perf_counter()
            part, labels = X[start : start + 1000], y[start : start + 1000]
            p = model.predict_proba(part)[:, 1] if rows else np.full(len(labels), 0.5)
            model.partial_fit(part, labels, classes=[0.0, 1.0])
            seconds += time.perf_counter() - began
            loss -= np.log(np.clip(np.where(labels == 1.0, p, 1.0 - p), 1e-15, 1.0)).sum()
            rows += len(labels)
        if rows >= limit:
            break
    return {"examples": rows, "average_loss": loss / rows, "seconds": seconds}


def river_logistic(path: str, bits: int, limit: int) -> dict[str, float]:  # noqa: ARG001
    """River's logistic regression, one dict a row, from the text."""
    from river import linear_model, optim

    model = linear_model.LogisticRegression(optimizer=optim.AdaGrad(0.1))
    loss, rows, began = 0.0, 0, time.perf_counter()
    with Path(path).open() as file:
        for line in islice(file, limit):
            label, *spaces = line.split("|")
            x = {f"{space[0]}^{word}": 1.0 for space in spaces for word in space[1:].split()}
            y = label.strip() == "1"
            p = model.predict_proba_one(x).get(True, 0.5)
            loss -= math.log(max(p if y else 1.0 - p, 1e-15))
            model.learn_one(x, y)
            rows += 1
    return {"examples": rows, "average_loss": loss / rows, "seconds": time.perf_counter() - began}


if __name__ == "__main__":
    name, path, bits, limit = sys.argv[1:]
    run = {"sklearn": sklearn_sgd, "river": river_logistic}[name]
    print(json.dumps(run(path, int(bits), int(limit))))
