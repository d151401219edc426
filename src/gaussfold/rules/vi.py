"""Variational inference: the Gaussian that is nearest in KL(q ‖ posterior)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from gaussfold.likelihoods.chained import AnyCubature, VectorLikelihood
from gaussfold.protocols import Likelihood
from gaussfold.types import Array, ArrayLike, Moments, Site, VectorSite


@dataclass(frozen=True)
class VI:
    """J = E l'(f), H = E l''(f) under N(m, v): rvga (3)-(4), bayes-newton (15)."""

    name: ClassVar[str] = "vi"
    code: ClassVar[int] = 2
    alpha: ClassVar[float] = 1.0

    def site(self, likelihood: Likelihood, y: ArrayLike, moments: Moments) -> Site:
        """Average the derivatives over the marginal."""
        return Site(*likelihood.expected_derivatives(y, moments))

    def site_several(
        self, likelihood: VectorLikelihood, Y: Array, mean: Array, cov: Array, cubature: AnyCubature = None
    ) -> VectorSite:
        """The same on f in R^D."""
        return VectorSite(*likelihood.expected_derivatives(Y, mean, cov, cubature))

    def gauss_newton_several(
        self, likelihood: VectorLikelihood, Y: Array, mean: Array, cov: Array, cubature: AnyCubature = None
    ) -> VectorSite:
        """The exact gradient with the variational Gauss-Newton curvature -E G'G: (43), (44)."""
        gradient, _ = likelihood.expected_derivatives(Y, mean, cov, cubature)
        return VectorSite(gradient, -likelihood.expected_gauss_newton(Y, mean, cov, cubature))

    def slopes_several(
        self, likelihood: VectorLikelihood, Y: Array, mean: Array, cov: Array, cubature: AnyCubature = None
    ) -> tuple[Array, Array]:
        """Derivatives of E log p in the mean and in the covariance, J and H/2 by Price's theorem: (51)."""
        gradient, hessian = likelihood.expected_derivatives(Y, mean, cov, cubature)
        return gradient, 0.5 * hessian

    def energy_several(
        self, likelihood: VectorLikelihood, Y: Array, mean: Array, cov: Array, cubature: AnyCubature = None
    ) -> Array:
        """``E log p``: the first term of (16)."""
        return likelihood.expected_log_prob(Y, mean, cov, cubature)
