"""Normal noise of known standard deviation: the conjugate case, where every rule is exact."""

from __future__ import annotations

from dataclasses import dataclass
from math import log, pi
from typing import ClassVar

import numpy as np

from gaussfold.checks import positive
from gaussfold.likelihoods.base import GAUSSIAN, ScalarLikelihood, floats
from gaussfold.protocols import Kernel
from gaussfold.types import Array, ArrayLike, Moments


@dataclass(frozen=True)
class Gaussian(ScalarLikelihood):
    """``y = f + noise``, ``noise ~ N(0, std²)``.

    Parameters
    ----------
    std : float
        Standard deviation of the noise, > 0.

    Examples
    --------
    >>> Gaussian(std=0.7).derivatives(1.3, 0.2)
    (array(2.2449), array(-2.0408))
    """

    std: float
    log_concave: ClassVar[bool] = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "std", positive("std", self.std, owner="Gaussian"))

    @property
    def kernel(self) -> Kernel:
        """(code, std, unused)."""
        return GAUSSIAN, self.std, 0.0

    def log_prob(self, y: ArrayLike, f: ArrayLike) -> Array:
        """``-(y - f)²/(2 std²) - log std - log(2π)/2``."""
        y, f = floats(y, f)
        z = (y - f) / self.std
        return np.asarray(-0.5 * z * z - log(self.std) - 0.5 * log(2.0 * pi))

    def derivatives(self, y: ArrayLike, f: ArrayLike) -> tuple[Array, Array]:
        """``(y - f)/std²`` and ``-1/std²``."""
        y, f = floats(y, f)
        precision = self.std**-2
        return np.asarray((y - f) * precision), np.full(f.shape, -precision)

    def conditional(self, f: ArrayLike) -> Moments:
        """``f`` and ``std²``."""
        (f,) = floats(f)
        return Moments(f.copy(), np.full(f.shape, self.std**2))

    def conditional_derivatives(self, f: ArrayLike) -> tuple[Moments, Moments]:
        """The mean has slope 1; nothing else moves."""
        (f,) = floats(f)
        none = np.zeros(f.shape)
        return Moments(np.ones(f.shape), none), Moments(none, none)

    def quadratic_bound(self, y: ArrayLike, moments: Moments) -> tuple[Array, Array]:
        """Itself."""
        return self.derivatives(y, moments.mean)
