"""Second-order expansion of the log likelihood at the mean: Laplace, online Newton."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from gaussfold.protocols import Likelihood
from gaussfold.rules.base import StreamRule, View
from gaussfold.types import Array, ArrayLike, Moments, Site, VectorSite


@dataclass(frozen=True)
class Newton(StreamRule):
    """J = l'(m), H = l''(m): bayes-newton (8)."""

    name: ClassVar[str] = "newton"
    code: ClassVar[int] = 0
    curvatures: ClassVar[tuple[str, ...]] = ("exact", "heuristic", "gauss-newton", "quasi-newton", "riemannian")
    looks_at_mean: ClassVar[bool] = True
    needs_log_concave: ClassVar[bool] = True

    def site(self, likelihood: Likelihood, y: ArrayLike, moments: Moments) -> Site:
        """Look at the mean only."""
        return Site(*likelihood.derivatives(y, moments.mean))

    def site_several(self, view: View) -> VectorSite:
        """The same on f in R^D."""
        return VectorSite(*view.likelihood.derivatives(view.Y, view.mean))

    def gauss_newton_several(self, view: View) -> VectorSite:
        """The exact gradient with the Gauss-Newton curvature -G'G: (38), (40)."""
        first, _ = view.likelihood.derivatives(view.Y, view.mean)
        return VectorSite(first, -view.likelihood.gauss_newton(view.Y, view.mean))

    def slopes_several(self, view: View) -> tuple[Array, None]:
        """The gradient; the target does not depend on the covariance: (49)."""
        return view.likelihood.derivatives(view.Y, view.mean)[0], None

    def energy_several(self, view: View) -> Array:
        """``log p`` at the mean: the first term of (17)."""
        return view.likelihood.log_prob(view.Y, view.mean)
