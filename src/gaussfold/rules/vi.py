"""Variational inference: the Gaussian that is nearest in KL(q ‖ posterior)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from gaussfold.protocols import Likelihood
from gaussfold.rules.base import StreamRule, View
from gaussfold.types import Array, ArrayLike, Moments, Site, VectorSite


@dataclass(frozen=True)
class VI(StreamRule):
    """J = E l'(f), H = E l''(f) under N(m, v): rvga (3)-(4), bayes-newton (15)."""

    name: ClassVar[str] = "vi"
    code: ClassVar[int] = 2
    curvatures: ClassVar[tuple[str, ...]] = ("exact", "heuristic", "gauss-newton", "quasi-newton", "riemannian")
    is_stationary: ClassVar[bool] = True
    descends: ClassVar[bool] = True
    needs_log_concave: ClassVar[bool] = True

    def site(self, likelihood: Likelihood, y: ArrayLike, moments: Moments) -> Site:
        """Average the derivatives over the marginal."""
        return Site(*likelihood.expected_derivatives(y, moments))

    def site_several(self, view: View) -> VectorSite:
        """The same on f in R^D."""
        return VectorSite(*view.likelihood.expected_derivatives(*view[1:]))

    def gauss_newton_several(self, view: View) -> VectorSite:
        """The exact gradient with the variational Gauss-Newton curvature -E G'G: (43), (44)."""
        gradient, _ = view.likelihood.expected_derivatives(*view[1:])
        return VectorSite(gradient, -view.likelihood.expected_gauss_newton(*view[1:]))

    def slopes_several(self, view: View) -> tuple[Array, Array]:
        """Derivatives of E log p in the mean and in the covariance, J and H/2 by Price's theorem: (51)."""
        gradient, hessian = view.likelihood.expected_derivatives(*view[1:])
        return gradient, 0.5 * hessian

    def energy_several(self, view: View) -> Array:
        """``E log p``: the first term of (16)."""
        return view.likelihood.expected_log_prob(*view[1:])
