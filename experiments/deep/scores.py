"""How good probabilities of classes are: on inputs of the kind that was learned, and on strangers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

BINS = np.linspace(0.0, 1.0, 11)


def scores(p: np.ndarray, y: np.ndarray) -> dict[str, float]:
    """Error rate, log loss and expected calibration error (ten bins of confidence)."""
    confidence, right = p.max(axis=1), p.argmax(axis=1) == y
    where = np.clip(np.digitize(confidence, BINS) - 1, 0, 9)
    gaps = [
        abs(right[where == b].mean() - confidence[where == b].mean()) * (where == b).mean() for b in np.unique(where)
    ]
    return {
        "error": float(1.0 - right.mean()),
        "log_loss": log_loss(p, y),
        "calibration_error": float(np.sum(gaps)),
    }


def log_loss(p: np.ndarray, y: np.ndarray) -> float:
    """Mean of -log of the probability that the label had."""
    return float(-np.log(np.maximum(p[np.arange(len(y)), y], 1e-30)).mean())


def entropy(p: np.ndarray) -> np.ndarray:
    """In nats."""
    return np.asarray(-(p * np.log(np.maximum(p, 1e-30))).sum(axis=1))


def auroc(inside: np.ndarray, outside: np.ndarray) -> float:
    """Probability that a stranger has a higher entropy than one of ours."""
    ranks = np.concatenate([inside, outside]).argsort().argsort()
    n, m = len(inside), len(outside)
    return float((ranks[n:].sum() - m * (m - 1) / 2) / (n * m))


def measured(p: np.ndarray, strangers: Mapping[str, np.ndarray], y: np.ndarray) -> dict[str, float]:
    """Scores on digits and how well entropy tells strangers."""
    own = entropy(p)
    found = scores(p, y) | {"entropy of digits": float(own.mean())}
    for name, other in strangers.items():
        found |= {f"entropy, {name}": float(entropy(other).mean()), f"AUROC, {name}": auroc(own, entropy(other))}
    return found


def summary(runs: Sequence[Mapping[str, float]]) -> dict[str, Any]:
    """Mean and standard error over runs, for each number."""
    table = {name: np.array([run[name] for run in runs]) for name in runs[0]}
    error = {
        name: values.std(ddof=1) / np.sqrt(len(values)) if len(values) > 1 else np.nan for name, values in table.items()
    }
    return {name: [float(values.mean()), float(error[name])] for name, values in table.items()}
