"""First-order expansion of the conditional mean: the extended Kalman filter."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from gaussfold.protocols import Likelihood
from gaussfold.types import ArrayLike, Moments, Site


@dataclass(frozen=True)
class Taylor:
    """y ≈ h(m) + h'(m)(f - m) with noise Var[y|m]: bayes-newton (32), rvga (44)-(48), (81).

    J = h'(y - h)/R, H = -h'²/R with h = E[y|f], R = Var[y|f] at f = m. For an exponential family J = l'(m), and H is
    minus the Fisher information: the online natural gradient (rvga Th. 3).
    """

    name: ClassVar[str] = "taylor"
    code: ClassVar[int] = 1
    alpha: ClassVar[float] = 1.0

    def site(self, likelihood: Likelihood, y: ArrayLike, moments: Moments) -> Site:
        """Look at the mean only; h' by a central difference of the conditional mean."""
        m = np.asarray(moments.mean, dtype=float)
        step = 1e-5 * (1.0 + np.abs(m))
        h, noise = likelihood.conditional(m)
        slope = (likelihood.conditional(m + step).mean - likelihood.conditional(m - step).mean) / (2.0 * step)
        return Site(slope * (np.asarray(y) - h) / noise, -(slope**2) / noise)
