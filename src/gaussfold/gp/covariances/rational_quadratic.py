"""The rational quadratic covariance: squared exponentials of many length scales at once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from gaussfold.checks import positive
from gaussfold.gp.covariances.stationary import Profiles, Stationary
from gaussfold.types import Array


@dataclass(frozen=True)
class RationalQuadratic(Stationary):
    """``variance · (1 + r²/(2 alpha))^{-alpha}``; the squared exponential as alpha grows. It has no state-space form.

    Parameters
    ----------
    variance, lengthscale : float
        Positive; lengthscale may be a tuple with one number per input column.
    alpha : float
        Positive; small means that long and short scales are mixed.

    Examples
    --------
    >>> RationalQuadratic(2.0, 0.5, alpha=1.0)(np.array([[0.0], [0.5]]))
    array([[2.        , 1.33333333],
           [1.33333333, 2.        ]])
    """

    alpha: float = 1.0
    learned: ClassVar[tuple[str, ...]] = ("variance", "lengthscale", "alpha")

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "alpha", positive("alpha", self.alpha, owner="RationalQuadratic"))

    def _profile(self, r2: Array) -> tuple[Array, Array]:
        base = 1.0 + r2 / (2.0 * self.alpha)
        value = base**-self.alpha
        return value, value / base

    def pulled_from(self, X: Array, Z: Array | None, bar: Array, profile: Profiles) -> tuple[Array, Array]:
        """And ``∂k/∂log alpha = k alpha (s/(1 + s) - log(1 + s))``, ``s = r²/(2 alpha)``."""
        slopes, weight = super().pulled_from(X, Z, bar, profile)
        s = profile.r2 / (2.0 * self.alpha)
        by_alpha = self.variance * profile.value * self.alpha * (s / (1.0 + s) - np.log1p(s))
        return np.append(slopes, float(np.vdot(bar, by_alpha))), weight
