"""What the adapters for River share: rows of a dataframe, and the way to a file and back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from gaussfold.estimators.river import labels, storage
from gaussfold.estimators.river.features import Named
from gaussfold.estimators.river.weights import Diagonal, Weights
from gaussfold.types import Array, ArrayLike

if TYPE_CHECKING:
    import pandas as pd


class RiverModel:
    """Beliefs over the weights of named features. A subclass says what labels mean, and how one row is learned fast."""

    _weights: Weights

    # What a subclass says.

    def _label(self, y: object) -> Any:
        """A label as it is learned; None or NaN if there is none. Anything that is no label is refused."""
        raise NotImplementedError

    def _learn(self, rows: list[Named], found: list[Any], weights: Array) -> None:
        """Learn rows that all have a label and a weight, all or none."""
        raise NotImplementedError

    def _members(self) -> Sequence[Diagonal]:
        """All beliefs."""
        raise NotImplementedError

    def _restore(self, described: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> None:
        """Take over the beliefs of a file; the columns are there."""
        raise NotImplementedError

    # What follows.

    def learn_many(self, X: pd.DataFrame, y: pd.Series, w: ArrayLike | None = None) -> None:
        """Learn from the rows of a dataframe in order, all or none: the same as one by one.

        Columns may come and go from call to call; a missing value is an absent feature.
        """
        given, weights = labels.one_each(X, y, w)
        found = [self._label(label) for label in given]
        said = [
            label is not None and label == label and weight > 0.0 for label, weight in zip(found, weights, strict=True)
        ]
        rows = [row for row, keeps in zip(self._named(X), said, strict=True) if keeps]  # the others give no columns
        if rows:
            kept = [label for label, keeps in zip(found, said, strict=True) if keeps]
            self._learn(rows, kept, weights[np.array(said)])

    def _named(self, X: pd.DataFrame) -> list[Named]:
        return [self._weights.columns.named(x) for x in X.to_dict(orient="records")]

    # Model files: see `gaussfold.store`.

    def state(self) -> dict[str, np.ndarray]:
        """Everything numeric that was learned, as plain named arrays."""
        return storage.state(self._members())

    def store_header(self) -> dict[str, object]:
        """Parameters and the names of the features, as JSON can hold them."""
        return storage.header(self, self._weights)

    @classmethod
    def from_store(cls, header: dict[str, Any], arrays: dict[str, np.ndarray]) -> Self:
        """Rebuild, bit for bit, the model that `state` and `store_header` describe."""
        self = storage.blank(cls, header)
        self._weights = storage.named(self._weights, header)
        self._restore(header, arrays)
        return self
