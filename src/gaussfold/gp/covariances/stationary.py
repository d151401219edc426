"""Covariances of the distance between inputs, with one lengthscale or one per column."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np
from scipy.spatial.distance import cdist

from gaussfold.checks import positive
from gaussfold.gp.covariances.base import Covariance
from gaussfold.types import Array

Lengthscale = float | tuple[float, ...]


class Profiles(NamedTuple):
    """Squared distances, ``g(r²)`` and ``-2 g'(r²)``."""

    r2: Array
    value: Array
    weight: Array


@dataclass(frozen=True)
class Stationary(Covariance):
    """``k = variance · g(r²)`` with ``r² = Σ_j ((x_j - z_j)/lengthscale_j)²``."""

    variance: float = 1.0
    lengthscale: Lengthscale = 1.0
    learned: ClassVar[tuple[str, ...]] = ("variance", "lengthscale")

    def __post_init__(self) -> None:
        owner = type(self).__name__
        object.__setattr__(self, "variance", positive("variance", self.variance, owner=owner))
        if np.ndim(self.lengthscale):
            if not np.size(self.lengthscale):
                msg = f"lengthscale={self.lengthscale!r}: {owner} needs one number, or one for each column of X"
                raise ValueError(msg)
            each = tuple(positive("lengthscale", v, owner=owner) for v in np.ravel(self.lengthscale))
            object.__setattr__(self, "lengthscale", each)
        else:
            object.__setattr__(self, "lengthscale", positive("lengthscale", self.lengthscale, owner=owner))

    @abstractmethod
    def _profile(self, r2: Array) -> tuple[Array, Array]:
        """``g(r²)`` and ``-2 g'(r²)``; the latter 0 where it has no limit (Matérn-1/2 at r = 0)."""

    def _value(self, r2: Array) -> Array:
        """``g(r²)`` alone, in an array of its own."""
        return self._profile(r2)[0]

    def _scaled(self, X: Array) -> Array:
        if isinstance(self.lengthscale, tuple) and X.shape[1] != len(self.lengthscale):
            msg = (
                f"lengthscale has {len(self.lengthscale)} entries and X has {X.shape[1]} columns; "
                "give one number, or one per column"
            )
            raise ValueError(msg)
        return np.asarray(X / np.asarray(self.lengthscale))

    def _r2(self, X: Array, Z: Array | None) -> Array:
        left = self._scaled(X)
        return np.asarray(cdist(left, left if Z is None else self._scaled(Z), "sqeuclidean"))

    def __call__(self, X: Array, Z: Array | None = None) -> Array:
        """Values for all pairs of rows."""
        value = self._value(self._r2(X, Z))
        value *= self.variance
        return value

    def diagonal(self, X: Array) -> Array:
        """The variance."""
        return np.full(len(X), self.variance)

    def vjp(self, X: Array, Z: Array | None, bar: Array) -> Array:
        """``∂k/∂log ℓ_j = variance · (-2g') ((x_j - z_j)/ℓ_j)²``."""
        return self.pulled(X, Z, bar)[0]

    def input_vjp(self, X: Array, Z: Array, bar: Array) -> Array:
        """``∂k/∂x_j = -variance · (-2g') (x_j - z_j)/ℓ_j²``."""
        return self._moved(X, Z, self.pulled(X, Z, bar)[1])

    def pullback(self, X: Array, Z: Array, bar: Array) -> tuple[Array, Array]:
        """Both, from one evaluation of the profile."""
        parameters, weight = self.pulled(X, Z, bar)
        return parameters, self._moved(X, Z, weight)

    def with_vjp(self, X: Array) -> tuple[Array, Callable[[Array], Array]]:
        """From one evaluation of the distances and the profile."""
        profile = self._profiles(X, None)
        return self.variance * profile.value, lambda bar: self.pulled_from(X, None, bar, profile)[0]

    def pulled(self, X: Array, Z: Array | None, bar: Array) -> tuple[Array, Array]:
        """What :meth:`vjp` says, and ``bar ∘ variance (-2g')``, of which all derivatives in the distance are made."""
        return self.pulled_from(X, Z, bar, self._profiles(X, Z))

    def _profiles(self, X: Array, Z: Array | None) -> Profiles:
        r2 = self._r2(X, Z)
        return Profiles(r2, *self._profile(r2))

    def pulled_from(self, X: Array, Z: Array | None, bar: Array, profile: Profiles) -> tuple[Array, Array]:
        """As :meth:`pulled`, where the distances and the profile are known."""
        first = self.variance * float(np.vdot(bar, profile.value))
        weight = bar * profile.weight
        weight *= self.variance
        if not isinstance(self.lengthscale, tuple):
            return np.array([first, float(np.vdot(weight, profile.r2))]), weight
        left = self._scaled(X)
        right = left if Z is None else self._scaled(Z)
        rows, columns = weight.sum(axis=1), weight.sum(axis=0)
        cross = np.einsum("ij,ij->j", left, weight @ right)
        return np.array([first, *(rows @ left**2 + columns @ right**2 - 2.0 * cross)]), weight

    def _moved(self, X: Array, Z: Array, weight: Array) -> Array:
        difference = weight.sum(axis=1)[:, None] * X - weight @ Z
        return np.asarray(-difference / np.asarray(self.lengthscale) ** 2)

    def diagonal_vjp(self, X: Array, bar: Array) -> Array:
        """Only the variance is on the diagonal."""
        del X
        return np.array([self.variance * bar.sum(), *np.zeros(len(self.parameters()) - 1)])

    def single(self) -> float:
        """The lengthscale on a line."""
        if isinstance(self.lengthscale, tuple):
            if len(self.lengthscale) > 1:
                msg = f"lengthscale={self.lengthscale!r}: a state space has one input column, so give one number"
                raise ValueError(msg)
            return self.lengthscale[0]
        return self.lengthscale


def horner(z: Array, series: Sequence[float]) -> Array:
    """The polynomial with these coefficients, lowest first, in one array."""
    out = np.full(z.shape, series[-1])
    for c in series[-2::-1]:
        out *= z
        out += c
    return out
