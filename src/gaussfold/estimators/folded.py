"""The records of one call that learns: what the fold is told, and what it has met."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, TypedDict

import numpy as np

from gaussfold.estimators.coordinates import Coordinates
from gaussfold.folding import FoldResult
from gaussfold.likelihoods import Softmax
from gaussfold.protocols import Likelihood
from gaussfold.rows import AnyRows, dense_rows
from gaussfold.rules.at import At
from gaussfold.rules.base import StreamRule
from gaussfold.trace import Trace
from gaussfold.types import Array


class FoldOptions(TypedDict):
    """What every fold and sweep of one call is told."""

    rule: StreamRule
    at: At
    sample_weight: Array | None
    block_size: int | None


class Folded(NamedTuple):
    """The rows of one call, as every belief has met them."""

    results: list[FoldResult]
    targets: list[Array]
    learned: np.ndarray
    """Which rows have a label and count."""
    weight: Array
    """Of the learned rows alone."""

    def log_predictive(self) -> Array:
        """Of the learned rows, before each was learned, for one belief."""
        return np.asarray(self.results[0].log_predictive[self.learned])


class Call(NamedTuple):
    """The rows of one call, checked."""

    X: AnyRows
    targets: list[Array]
    weight: Array | None
    learned: np.ndarray
    """Which rows have a label and count."""

    @classmethod
    def of(cls, X: AnyRows, targets: list[Array], weight: Array | None) -> Call:
        """All rows."""
        return cls(X, targets, weight, learned_rows(targets, weight))

    def part(self, rows: slice | np.ndarray) -> Call:
        """Some of the rows, by a slice, a mask or their places."""
        weight = None if self.weight is None else self.weight[rows]
        return Call(self.X[rows], [target[rows] for target in self.targets], weight, self.learned[rows])

    def check_labels(self, likelihood: Likelihood | Softmax) -> None:
        """Refuse labels before any is learned; a bad one is named by its place in the call."""
        if isinstance(likelihood, Softmax):
            return  # places in classes_
        for target in self.targets:
            likelihood.check_labels(target)

    def counts(self) -> Array:
        """Weights of the learned rows."""
        return np.ones(np.count_nonzero(self.learned)) if self.weight is None else self.weight[self.learned]


def learned_rows(targets: list[Array], weight: Array | None) -> np.ndarray:
    """Which rows have a label and count."""
    labelled = ~np.isnan(targets[0])
    return labelled if weight is None else labelled & (weight > 0)


def check_finite(coordinates: Coordinates, learned: Call) -> None:
    """Refuse rows, or labels, whose squares are no numbers: they have no scale."""
    if coordinates.features.finite and coordinates.target.finite:
        return
    row = int(np.argmax(np.abs(dense_rows(learned.X)).max(axis=1)))
    what = "X" if not coordinates.features.finite else "y"
    msg = f"{what}: too large to square, row {row} of those to be learned among others; scale it, or drop the row"
    raise ValueError(msg)


def joined(pieces: Sequence[list[FoldResult]]) -> list[FoldResult]:
    """Traces of all rows, one for each belief, from those of pieces."""
    if len(pieces) == 1:
        return pieces[0]
    columns = [zip(*traces, strict=True) for traces in zip(*pieces, strict=True)]
    return [Trace(*(np.concatenate(column) for column in each)) for each in columns]
