"""The paper's synthetic streams: sparse rows, true weights, labels, in chunks so that memory stays small."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from numba import njit

from gaussfold.rows import Rows
from gaussfold.types import Array

CHUNK = 50_000


class Chunk(NamedTuple):
    """Rows, labels in {0, 1}, and the log loss of the true weights on each."""

    rows: Rows
    y: Array
    true_loss: Array


@dataclass(frozen=True)
class Stream:
    """One setting: how features are drawn, and the standard deviation of the true weights.

    Attributes
    ----------
    kind
        "bernoulli": each of ``dim`` features is active with probability active/dim. "uniform": ``active`` of each of
        ``categories`` equal categories. "exponential": the same, favouring a few. "zipf": one of 2^j features of
        category j with probability ∝ (n+1)^-1.75, j = 1..categories.
    values
        Whether active features have values uniform in [0, 1] instead of 1.
    law
        Of the true weights: "normal", "uniform" on [-√3 std, √3 std], or "two": every second feature from a normal of a
        quarter of std, the others from a wider one, so that ``std`` is that of all.
    """

    dim: int
    active: int
    std: float
    kind: str = "bernoulli"
    categories: int = 1
    values: bool = False
    law: str = "normal"

    def weights(self, rng: np.random.Generator) -> Array:
        """Draw the true weights."""
        if self.law == "uniform":
            return self.std * math.sqrt(3.0) * rng.uniform(-1.0, 1.0, self.dim)
        theta = self.std * rng.standard_normal(self.dim)
        if self.law == "two":
            theta[::2] *= 0.25
            theta[1::2] *= math.sqrt(2.0 - 0.25**2)
        return theta

    def numbers(self) -> dict[str, Any]:
        """Return what belongs in the JSON."""
        return asdict(self)

    def chunks(self, n: int, seed: int) -> Iterator[Chunk]:
        """Draw n examples; weights, features and labels have generators of their own."""
        weights, features, labels = (np.random.default_rng(s) for s in np.random.SeedSequence(seed).spawn(3))
        theta = self.weights(weights)
        draw = _KINDS[self.kind]
        for start in range(0, n, CHUNK):
            size = min(CHUNK, n - start)
            indptr, indices = draw(self, size, features)
            data = features.random(indices.size) if self.values else np.ones(indices.size)
            # every row has at least one feature or adds nothing: reduceat needs care with empty rows
            score = np.zeros(size)
            full = np.diff(indptr) > 0
            score[full] = np.add.reduceat(data * theta[indices], indptr[:-1][full])
            y = (labels.random(size) < 1.0 / (1.0 + np.exp(-score))).astype(np.float64)
            loss = np.logaddexp(0.0, np.where(y > 0.5, -score, score))
            yield Chunk(Rows(indptr, indices, data, self.dim), y, loss)


def _bernoulli(stream: Stream, n: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Gaps between active entries of the n×d table are geometric: exact, and only active entries are drawn."""
    cells, p = n * stream.dim, stream.active / stream.dim
    positions = np.cumsum(rng.geometric(p, size=int(cells * p + 8 * np.sqrt(cells * p) + 64))) - 1
    positions = positions[positions < cells]
    indptr = np.searchsorted(positions, stream.dim * np.arange(n + 1))
    return indptr, (positions % stream.dim).astype(np.int32)


def _category(stream: Stream, n: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """``active`` different features of each category, one after the other, each by its share of what is left."""
    size = stream.dim // stream.categories
    rate = np.exp(-np.arange(size) / (size / 20.0)) if stream.kind == "exponential" else np.ones(size)
    cumulative = np.cumsum(rate)
    indices = np.empty((n, stream.categories * stream.active), dtype=np.int32)
    _draw_categories(cumulative / cumulative[-1], stream.categories, stream.active, rng, indices)
    return np.arange(0, indices.size + 1, indices.shape[1]), indices.ravel()


@njit(error_model="numpy")  # type: ignore[untyped-decorator]
def _draw_categories(cumulative, categories, active, rng, indices):  # type: ignore[no-untyped-def]
    size = cumulative.size
    for r in range(indices.shape[0]):
        for c in range(categories):
            first = c * active
            k = 0
            while k < active:  # what is there already is drawn again: the rest keep their relative shares
                drawn = c * size + min(np.searchsorted(cumulative, rng.random()), size - 1)
                fresh = True
                for j in range(first, first + k):
                    fresh &= indices[r, j] != drawn
                if fresh:
                    indices[r, first + k] = drawn
                    k += 1


def _zipf(stream: Stream, n: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    parts = []
    for j in range(1, stream.categories + 1):
        cumulative = _zipf_shares(j)
        parts.append(np.searchsorted(cumulative, rng.random(n) * cumulative[-1]) + 2**j - 2)
    indices = np.minimum(np.stack(parts, axis=1), stream.dim - 1).astype(np.int32)
    return np.arange(0, indices.size + 1, indices.shape[1]), indices.ravel()


@cache
def _zipf_shares(j: int) -> Array:
    return np.asarray(np.cumsum((np.arange(2**j) + 1.0) ** -1.75))


_KINDS: dict[str, Callable[[Stream, int, np.random.Generator], tuple[np.ndarray, np.ndarray]]] = {
    "bernoulli": _bernoulli,
    "uniform": _category,
    "exponential": _category,
    "zipf": _zipf,
}
