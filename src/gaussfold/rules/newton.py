"""Second-order expansion of the log likelihood at the mean: Laplace, online Newton."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from gaussfold.protocols import Likelihood
from gaussfold.types import ArrayLike, Moments, Site


@dataclass(frozen=True)
class Newton:
    """J = l'(m), H = l''(m): bayes-newton (8)."""

    name: ClassVar[str] = "newton"
    code: ClassVar[int] = 0
    alpha: ClassVar[float] = 1.0

    def site(self, likelihood: Likelihood, y: ArrayLike, moments: Moments) -> Site:
        """Look at the mean only."""
        return Site(*likelihood.derivatives(y, moments.mean))
