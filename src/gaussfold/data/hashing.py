"""Dataframes into hashed sparse features: what the command line does to tables, for scikit-learn pipelines."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self

import narwhals.stable.v2 as nw
import numpy as np
from narwhals.stable.v2.typing import IntoDataFrame, IntoSeries
from scipy import sparse
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils import Tags

from gaussfold.data.columns import Feature, assemble, categories, numbers
from gaussfold.data.reading import Column, Reading
from gaussfold.types import ArrayLike


class FeatureHasher(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Hash the columns of a dataframe into a sparse matrix of 2^bits columns.

    A numeric column is one feature, named by the column; any other is one feature per text, hashed together with the
    column's name. Missing numbers and texts are features of their own, unseen texts need no care. The hash is 32-bit
    MurmurHash3 of the text, seeded by that of the column's name; its lowest bits are the slot.

    Parameters
    ----------
    bits : int, default=18
        The matrix has 2^bits columns.
    interact : sequence of str, default=()
        Pairs of columns to multiply: "site,advertiser", or two letters that the names begin with; ":" is any column.
    categorical : sequence of str, default=()
        Columns of numbers that are to be taken as texts.

    Examples
    --------
    >>> import polars as pl
    >>> from gaussfold.data.hashing import FeatureHasher
    >>> frame = pl.DataFrame({"age": [31.0, None], "city": ["Oslo", "Rome"]})
    >>> FeatureHasher(bits=10).fit_transform(frame).toarray().sum(axis=1)
    array([32., 2.])
    """

    def __init__(self, bits: int = 18, interact: Sequence[str] = (), categorical: Sequence[str] = ()) -> None:
        self.bits = bits
        self.interact = interact
        self.categorical = categorical

    def fit(self, X: ArrayLike, y: ArrayLike = None) -> Self:  # noqa: ARG002
        """Do nothing but check the parameters and remember the columns' names."""
        self._reading()
        self.feature_names_in_ = np.array(_frame(X).columns, dtype=object)
        self.n_features_in_ = len(self.feature_names_in_)
        return self

    def transform(self, X: ArrayLike) -> sparse.csr_matrix:
        """Return the hashed rows; no fit is needed, nothing is learned."""
        frame = _frame(X)
        features = [self._feature(frame[name], name) for name in frame.columns]
        indptr, indices, data = assemble(features, len(frame), self._reading())
        return sparse.csr_matrix((data, indices, indptr), shape=(len(frame), 1 << self.bits))

    def _reading(self) -> Reading:
        return Reading(bits=self.bits, interact=tuple(self.interact), constant=False)

    def _feature(self, series: nw.Series[IntoSeries], name: str) -> Feature:
        if (series.dtype.is_numeric() or series.dtype == nw.Boolean) and name not in self.categorical:
            values = series.cast(nw.Float64).to_numpy()
            return numbers(Column(name, "number"), np.asarray(values, np.float64), "X")
        texts: dict[str, int] = {}
        codes = [-1 if text is None else texts.setdefault(str(text), len(texts)) for text in series.to_list()]
        return categories(Column(name, "category"), list(texts), np.array(codes, np.int64))

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.requires_fit = False
        tags.input_tags.string = True
        tags.input_tags.allow_nan = True
        return tags


def _frame(X: ArrayLike) -> nw.DataFrame[IntoDataFrame]:
    if isinstance(X, nw.DataFrame):
        return X
    try:
        return nw.from_native(X, eager_only=True)
    except TypeError as error:
        msg = f"X is a {type(X).__name__}; a dataframe is needed (pandas, polars, pyarrow, ...)"
        raise ValueError(msg) from error
