"""A signal times a positive amplitude: amplitude demodulation."""

from __future__ import annotations

from dataclasses import dataclass
from math import log, pi
from typing import ClassVar

import numpy as np

from gaussfold.checks import positive
from gaussfold.likelihoods.conditionally_linear import ConditionallyLinear
from gaussfold.likelihoods.links import sigmoid, sigmoid_slope, softplus
from gaussfold.likelihoods.normal import NormalMoments
from gaussfold.types import Array, ArrayLike


@dataclass(frozen=True)
class ProductGaussian(ConditionallyLinear):
    """``y | f₁, f₂ ~ N(f₁ φ(f₂), std²)`` with φ the softplus: bayes-newton (73).

    Parameters
    ----------
    std
        Standard deviation of the noise, > 0. (The paper gives the variance, 0.1.)

    Examples
    --------
    >>> ProductGaussian(std=0.5).conditional([[2.0, 0.3]]).mean
    array([[1.7087]])
    """

    std: float
    latents: ClassVar[int] = 2
    outputs: ClassVar[int] = 1
    outer: ClassVar[tuple[int, ...]] = (1,)

    def __post_init__(self) -> None:
        object.__setattr__(self, "std", positive("std", self.std, owner="ProductGaussian"))

    def log_prob(self, Y: ArrayLike, F: ArrayLike) -> Array:
        """``-r²/2 - log std - log(2π)/2``, ``r = (y - f₁ φ)/std``; 0 where y is missing."""
        residual, _, _, missing = self._parts(Y, F)
        value = -0.5 * residual**2 - log(self.std) - 0.5 * log(2.0 * pi)
        return np.asarray(np.where(missing, 0.0, value))

    def derivatives(self, Y: ArrayLike, F: ArrayLike) -> tuple[Array, Array]:
        """With g = (φ, f₁ φ')/std the slope of the mean: gradient ``r g``, Hessian ``r ∂g - g g'``."""
        residual, slope, F, missing = self._parts(Y, F)
        first = residual[..., None] * slope
        across = residual * sigmoid(F[..., 1]) / self.std
        bend = residual * F[..., 0] * sigmoid_slope(F[..., 1]) / self.std
        second = -slope[..., :, None] * slope[..., None, :]
        second[..., 0, 1] += across
        second[..., 1, 0] += across
        second[..., 1, 1] += bend
        if missing.any():
            first, second = np.where(missing[..., None], 0.0, first), np.where(missing[..., None, None], 0.0, second)
        return np.asarray(first), np.asarray(second)

    def gauss_newton(self, Y: Array, F: Array) -> Array:
        """``g g'``."""
        _, slope, _, missing = self._parts(Y, F)
        slope = np.where(missing[..., None], 0.0, slope)
        return np.asarray(slope[..., :, None] * slope[..., None, :])

    def conditional(self, F: ArrayLike) -> NormalMoments:
        """``f₁ φ(f₂)`` and ``std²``."""
        F = np.asarray(F, dtype=float)
        mean = F[..., :1] * softplus(F[..., 1:])
        return NormalMoments(mean, np.full((1,) * (F.ndim - 1) + (1, 1), self.std**2))

    def conditional_slopes(self, F: ArrayLike) -> NormalMoments:
        """``(φ, f₁ φ')``; the noise is constant."""
        F = np.asarray(F, dtype=float)
        slope = np.stack([softplus(F[..., 1]), F[..., 0] * sigmoid(F[..., 1])], axis=-1)
        return self.conditional(F).having(mean_slope=slope[..., None, :])

    def conditional_curvatures(self, F: ArrayLike) -> NormalMoments:
        """``0``, ``φ'`` across, ``f₁ φ''``."""
        F = np.asarray(F, dtype=float)
        across = sigmoid(F[..., 1])
        bend = np.stack([np.zeros_like(across), across, across, F[..., 0] * sigmoid_slope(F[..., 1])], axis=-1)
        return self.conditional_slopes(F).having(mean_curvature=bend.reshape(*across.shape, 1, 2, 2))

    def linear_part(self, a: Array) -> tuple[Array, Array, float]:
        """Given f₂ the mean is φ(f₂) f₁."""
        return softplus(a[..., None]), np.full((1,) * (a.ndim + 1), self.std**2), 0.0

    def _parts(self, Y: ArrayLike, F: ArrayLike) -> tuple[Array, Array, Array, np.ndarray]:
        """Standardised residual, slope of the standardised mean, latents, and where the output is missing."""
        Y, F = np.asarray(Y, dtype=float), np.asarray(F, dtype=float)
        missing = np.isnan(Y[..., 0])
        scale = softplus(F[..., 1])
        residual = (np.where(missing, 0.0, Y[..., 0]) - F[..., 0] * scale) / self.std
        slope = np.stack([scale, F[..., 0] * sigmoid(F[..., 1])], axis=-1) / self.std
        return residual, slope, F, np.broadcast_to(missing, residual.shape)
