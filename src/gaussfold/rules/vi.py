"""Variational inference: the Gaussian that is nearest in KL(q ‖ posterior)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from gaussfold.protocols import Likelihood
from gaussfold.types import ArrayLike, Moments, Site


@dataclass(frozen=True)
class VI:
    """J = E l'(f), H = E l''(f) under N(m, v): rvga (3)-(4), bayes-newton (15)."""

    name: ClassVar[str] = "vi"
    code: ClassVar[int] = 2
    alpha: ClassVar[float] = 1.0

    def site(self, likelihood: Likelihood, y: ArrayLike, moments: Moments) -> Site:
        """Average the derivatives over the marginal."""
        return Site(*likelihood.expected_derivatives(y, moments))
