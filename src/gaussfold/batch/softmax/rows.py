"""Rows with classes, and averages over their latents by nodes."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gaussfold.expectations.quasi_random import enough_nodes, normal_nodes
from gaussfold.types import Array

NODES, MOST_NODES = 128, 1024
"""For averages over a row's latents: as the stream takes them, and more where rows are few."""
LEAST_LEFT = 1e-6
"""Of a row's precision, when its own site is taken out: what rounding may leave."""
MIXING = 997.0
ROOM = 1 << 21
"""Numbers that are worked on at a time."""


class ClassRows(NamedTuple):
    """Rows with labels, all of them learned, and the prior of each class's weights."""

    X: Array
    y: np.ndarray
    weight: Array
    classes: int
    mean: Array
    std: Array

    def pieces(self) -> list[slice]:
        """Some rows at a time."""
        size = max(1, ROOM // (self.classes * max(self.nodes.shape[1], self.classes * self.X.shape[1])))
        return [slice(first, first + size) for first in range(0, len(self.y), size)]

    @property
    def hit(self) -> Array:
        """Which class each row has, (n, K)."""
        return np.asarray(self.y[:, None] == np.arange(self.classes), dtype=np.float64)

    @property
    def nodes(self) -> Array:
        """For the latents of a row, (K, S)."""
        count = max(round(float(self.weight.sum())), 1)  # not of rows: one of weight 2 is two
        size = min(max(NODES, ROOM // (4 * count * self.classes) // 8 * 8), MOST_NODES)
        return normal_nodes(self.classes, enough_nodes(self.classes, size))

    @property
    def once(self) -> Array:
        """Part of its own site that a row does without: of a weight of 2 one half, as if the row came twice."""
        return np.asarray(1.0 / np.maximum(self.weight, 1.0))

    def some(self, count: int) -> ClassRows:
        """About so many rows, chosen by their features and so whatever their order; all, if that leaves too few."""
        if len(self.y) <= count:
            return self
        mixed = np.modf(np.abs(self.X @ np.random.default_rng(0).standard_normal(self.X.shape[1])) * MIXING)[0]
        kept = mixed < count / len(self.y)
        if np.count_nonzero(kept) < count // 2:  # rows that are all alike
            return self
        return self._replace(X=self.X[kept], y=self.y[kept], weight=self.weight[kept])

    def widened(self, width: float, *, apart: bool) -> ClassRows:
        """Under a prior so many times as wide; ``apart``: but for the last weight of each class."""
        std = self.std * width
        if apart:
            std[-1] = self.std[-1]
        return self._replace(std=std)

    def log_predictive(self, latents: Array, part: slice) -> float:
        """Sum of w log E p(y) over some rows, latents (rows, K, S) at the nodes being overwritten."""
        expected_log(latents, self.y[part])
        own = np.take_along_axis(latents, self.y[part, None, None], axis=1)[:, 0].mean(axis=1)
        return float(self.weight[part] @ np.log(np.maximum(own, 1e-300)))


class Seen(NamedTuple):
    """What a posterior says of all rows."""

    value: float
    """F."""
    gradient: Array
    """w (e_y - E p), (n, K)."""
    curvature: Array
    """w b (n, K), or w B (n, K, K)."""
    share: Array
    """E p, (n, K)."""


def expected_log(latents: Array, y: np.ndarray) -> Array:
    """E log p(y) of each row; latents (rows, K, S) become probabilities, in place."""
    latents -= latents.max(axis=1, keepdims=True)
    own = np.take_along_axis(latents, y[:, None, None], axis=1)[:, 0].mean(axis=1)
    np.exp(latents, out=latents)
    total = latents.sum(axis=1)
    latents /= total[:, None]
    return np.asarray(own - np.log(total).mean(axis=1))


def turned(matrices: Array) -> Array:
    """The last two axes exchanged."""
    return np.swapaxes(matrices, -1, -2)


def lower(precision: Array) -> Array:
    """Cholesky's factor, or factors."""
    return np.asarray(np.linalg.cholesky(precision), dtype=np.float64)


def moved(step: Array, before: Array, after: Array) -> Array:
    """The moves of means in their standard deviations, and of the logarithms of variances."""
    return np.stack([step / np.sqrt(before), np.log(after / before)])
