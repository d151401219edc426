"""Second-order expansion of the log likelihood at the mean: Laplace, online Newton."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from gaussfold.likelihoods.chained import AnyCubature, VectorLikelihood
from gaussfold.protocols import Likelihood
from gaussfold.types import Array, ArrayLike, Moments, Site, VectorSite


@dataclass(frozen=True)
class Newton:
    """J = l'(m), H = l''(m): bayes-newton (8)."""

    name: ClassVar[str] = "newton"
    code: ClassVar[int] = 0
    alpha: ClassVar[float] = 1.0

    def site(self, likelihood: Likelihood, y: ArrayLike, moments: Moments) -> Site:
        """Look at the mean only."""
        return Site(*likelihood.derivatives(y, moments.mean))

    def site_several(
        self,
        likelihood: VectorLikelihood,
        Y: Array,
        mean: Array,
        cov: Array,  # noqa: ARG002  a rule is given the whole marginal; this one looks at its mean
        cubature: AnyCubature = None,  # noqa: ARG002
    ) -> VectorSite:
        """The same on f in R^D."""
        return VectorSite(*likelihood.derivatives(Y, mean))

    def gauss_newton_several(
        self,
        likelihood: VectorLikelihood,
        Y: Array,
        mean: Array,
        cov: Array,  # noqa: ARG002
        cubature: AnyCubature = None,  # noqa: ARG002
    ) -> VectorSite:
        """The exact gradient with the Gauss-Newton curvature -G'G: (38), (40)."""
        return VectorSite(likelihood.derivatives(Y, mean)[0], -likelihood.gauss_newton(Y, mean))

    def slopes_several(
        self,
        likelihood: VectorLikelihood,
        Y: Array,
        mean: Array,
        cov: Array,  # noqa: ARG002
        cubature: AnyCubature = None,  # noqa: ARG002
    ) -> tuple[Array, None]:
        """The gradient; the target does not depend on the covariance: (49)."""
        return likelihood.derivatives(Y, mean)[0], None

    def energy_several(
        self,
        likelihood: VectorLikelihood,
        Y: Array,
        mean: Array,
        cov: Array,  # noqa: ARG002
        cubature: AnyCubature = None,  # noqa: ARG002
    ) -> Array:
        """``log p`` at the mean: the first term of (17)."""
        return likelihood.log_prob(Y, mean)
