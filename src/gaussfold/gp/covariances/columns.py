"""A covariance of some input columns only."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self

import numpy as np

from gaussfold.checks import whole
from gaussfold.gp.covariances.base import Covariance
from gaussfold.types import Array


@dataclass(frozen=True)
class Columns(Covariance):
    """``k(x[columns], z[columns])``: the active dimensions of a covariance; ``covariance.on(0, 2)`` makes one.

    Parameters
    ----------
    part : Covariance
        Of the columns that are left.
    columns : tuple of int
        Which input columns it sees, counted from 0.

    Examples
    --------
    >>> from gaussfold.gp import Matern32
    >>> kernel = Matern32(1.0, 2.0).on(0) * Matern32(1.0, 0.5).on(1)
    >>> kernel.parameters()
    {'0.variance': 1.0, '0.lengthscale': 2.0, '1.variance': 1.0, '1.lengthscale': 0.5}
    """

    part: Covariance
    columns: tuple[int, ...] = (0,)

    def __post_init__(self) -> None:
        given = tuple(whole("columns", c, least=0, owner="Columns") for c in np.ravel(self.columns).tolist())
        if not given or len(set(given)) != len(given):
            msg = f"columns={self.columns!r}: give the numbers of different input columns, at least one"
            raise ValueError(msg)
        object.__setattr__(self, "columns", given)

    def parameters(self) -> dict[str, float]:
        """Those of the covariance."""
        return self.part.parameters()

    def replace(self, values: Mapping[str, float]) -> Self:
        """By name."""
        return type(self)(self.part.replace(values), self.columns)

    def scaled(self, factor: float) -> Covariance:
        """The covariance takes the factor."""
        return Columns(self.part.scaled(factor), self.columns)

    def _seen(self, X: Array) -> Array:
        if X.shape[1] <= max(self.columns):
            msg = f"columns={self.columns!r}: X has {X.shape[1]} columns, numbered from 0; name such as are there"
            raise ValueError(msg)
        return np.ascontiguousarray(X[:, self.columns])

    def __call__(self, X: Array, Z: Array | None = None) -> Array:
        """Values for all pairs of rows."""
        return self.part(self._seen(X), None if Z is None else self._seen(Z))

    def diagonal(self, X: Array) -> Array:
        """Of the columns seen."""
        return self.part.diagonal(self._seen(X))

    def seen_by(self, name: str, X: Array) -> Array:
        """Of the columns seen."""
        return self.part.seen_by(name, self._seen(X))

    def vjp(self, X: Array, Z: Array | None, bar: Array) -> Array:
        """Of the columns seen."""
        return self.part.vjp(self._seen(X), None if Z is None else self._seen(Z), bar)

    def diagonal_vjp(self, X: Array, bar: Array) -> Array:
        """Of the columns seen."""
        return self.part.diagonal_vjp(self._seen(X), bar)

    def input_vjp(self, X: Array, Z: Array, bar: Array) -> Array:
        """Zero in the columns that are not seen."""
        out = np.zeros_like(X)
        out[:, self.columns] = self.part.input_vjp(self._seen(X), self._seen(Z), bar)
        return out
