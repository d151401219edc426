"""Probabilities of classes, the softmax of latents, averaged over a Gaussian of the latents."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import scipy

from gaussfold.engine.softmax.largest import class_log_averages
from gaussfold.expectations.largest import largest_table
from gaussfold.expectations.quasi_random import enough_nodes, normal_nodes
from gaussfold.linalg.small import lower_roots
from gaussfold.types import Array

PREDICTING = 1024
"""Nodes for the probabilities of a row."""
ROOM = 1 << 21
"""Numbers that are worked on at a time."""


def class_log_probabilities(mean: Array, spread: Array) -> Array:
    """``log E p_k`` (n, K) over latents of mean (n, K) and covariance (n, K, K), or variances (n, K) between none.

    In the log: a probability may be too small for a double.
    """
    out = np.empty(mean.shape)
    if spread.ndim == 2:
        class_log_averages(
            np.ascontiguousarray(mean, dtype=np.float64), np.ascontiguousarray(spread, dtype=np.float64),
            largest_table(), out,
        )  # fmt: skip
        return out
    for rows, log_p in _log_probabilities(mean, spread):
        found = scipy.special.logsumexp(log_p, axis=2) - np.log(log_p.shape[2])
        out[rows] = found - scipy.special.logsumexp(found, axis=1, keepdims=True)
    return out


def class_probability_std(mean: Array, spread: Array) -> Array:
    """Standard deviation (n, K) of the p_k that latents give."""
    out = np.empty(mean.shape)
    for rows, log_p in _log_probabilities(mean, spread):
        out[rows] = np.exp(log_p).std(axis=2)
    return out


def predicting_nodes(classes: int) -> Array:
    """What probabilities of so many classes are averaged over, (K, S)."""
    return normal_nodes(classes, enough_nodes(classes, PREDICTING))


def _log_probabilities(mean: Array, spread: Array) -> Iterator[tuple[slice, Array]]:
    """Of some rows at a time, at every node: (rows, K, nodes)."""
    n, classes = mean.shape
    nodes = predicting_nodes(classes)
    size = max(1, ROOM // nodes.size)
    for first in range(0, n, size):
        rows = slice(first, first + size)
        if spread.ndim == 2:
            f = mean[rows, :, None] + np.sqrt(spread[rows])[:, :, None] * nodes
        else:
            f = mean[rows, :, None] + lower_roots(spread[rows], "cov") @ nodes
        f -= f.max(axis=1, keepdims=True)
        yield rows, f - np.log(np.exp(f).sum(axis=1, keepdims=True))
