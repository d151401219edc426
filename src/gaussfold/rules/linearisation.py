"""Posterior linearisation: the best affine fit to the conditional mean over the marginal."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from gaussfold.protocols import Likelihood
from gaussfold.types import ArrayLike, Moments, Site


@dataclass(frozen=True)
class PL:
    """Statistical linear regression, bayes-newton (29)-(31).

    slope a = ∂E[h]/∂m, residual variance Ω = Var[y] - v a² (all under N(m, v)): J = a (y - E h)/Ω, H = -a²/Ω.
    """

    name: ClassVar[str] = "pl"
    code: ClassVar[int] = 4
    alpha: ClassVar[float] = 1.0

    def site(self, likelihood: Likelihood, y: ArrayLike, moments: Moments) -> Site:
        """Fit over the marginal; the slope by a central difference of the integrated mean."""
        m = np.asarray(moments.mean, dtype=float)
        v = np.asarray(moments.variance, dtype=float)
        step = 1e-5 * np.sqrt(1.0 + v)
        mean, total = likelihood.predictive(Moments(m, v))
        slope = (
            likelihood.predictive(Moments(m + step, v)).mean - likelihood.predictive(Moments(m - step, v)).mean
        ) / (2.0 * step)
        residual = total - v * slope**2
        return Site(slope * (np.asarray(y) - mean) / residual, -(slope**2) / residual)
