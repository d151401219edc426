"""Likelihoods that are normal given their latents, ``y | f ~ N(ν(f), Σ(f))``: bayes-newton (33)."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from gaussfold.likelihoods import normal
from gaussfold.likelihoods.chained import VectorLikelihood
from gaussfold.types import Array, ArrayLike


class GaussianNoise(VectorLikelihood):
    """From the conditional moments with two derivatives, everything else; missing outputs are left out one by one."""

    gaussian_noise: ClassVar[bool] = True

    def log_prob(self, Y: ArrayLike, F: ArrayLike) -> Array:
        """``log N(y | ν(f), Σ(f))``."""
        return normal.log_density(np.asarray(Y, dtype=float), self.conditional(F))

    def derivatives(self, Y: ArrayLike, F: ArrayLike) -> tuple[Array, Array]:
        """By the chain rule through both moments."""
        Y = np.asarray(Y, dtype=float)
        moments = self.conditional_curvatures(F)
        return normal.gradient(Y, moments), normal.hessian(Y, moments)
