"""The records of one call that learns: what the fold is told, and what it has met."""

from __future__ import annotations

from typing import NamedTuple, TypedDict

import numpy as np

from gaussfold.folding import FoldResult
from gaussfold.rules.at import At
from gaussfold.rules.base import StreamRule
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


def learned_rows(targets: list[Array], weight: Array | None) -> np.ndarray:
    """Which rows have a label and count."""
    labelled = ~np.isnan(targets[0])
    return labelled if weight is None else labelled & (weight > 0)
