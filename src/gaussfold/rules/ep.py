"""Expectation propagation: the Gaussian that matches the tilted moments, or a power of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from gaussfold.checks import between
from gaussfold.expectations.tilted import tilted
from gaussfold.likelihoods.chained import AnyCubature, VectorLikelihood
from gaussfold.linalg.small import inverse, lower_roots, smallest_eigenvalues, symmetrised
from gaussfold.protocols import Likelihood
from gaussfold.types import Array, ArrayLike, Moments, Site, VectorSite


@dataclass(frozen=True)
class EP:
    """Power EP on a cavity N(m, v): bayes-newton (22).

    With L = (1/α) log E p(y|f)^α and R = 1/(1 + α v L''): J = R L', H = R L''. alpha = 1 is assumed density
    filtering when it looks at the belief before; alpha → 0 is vi.

    Parameters
    ----------
    alpha
        Power in (0, 1].
    """

    alpha: float = 1.0
    name: ClassVar[str] = "ep"
    code: ClassVar[int] = 3

    def __post_init__(self) -> None:
        between("alpha", self.alpha, 0, 1, "(]", remedy="1 is EP, and for the limit 0 use rule='vi'")

    def site(self, likelihood: Likelihood, y: ArrayLike, moments: Moments) -> Site:
        """Match the first two moments of N(m, v) p(y|f)^α."""
        _, gradient, hessian = tilted(likelihood.log_prob, likelihood.derivatives, y, moments, self.alpha)
        shrink = 1.0 / (1.0 + np.asarray(moments.variance) * hessian)
        return Site(shrink * gradient / self.alpha, shrink * hessian / self.alpha)

    def site_several(
        self, likelihood: VectorLikelihood, Y: Array, mean: Array, cov: Array, cubature: AnyCubature = None
    ) -> VectorSite:
        """The same on f in R^D, looking at the cavity: J = R ∇L (at its mean), H = R ∇²L, R = (I + α ∇²L C)⁻¹."""
        _, gradient, hessian = likelihood.tilted(Y, mean, cov, self.alpha, cubature)
        _refuse_negative_variance(likelihood, hessian, cov)
        return self.scaled(gradient / self.alpha, hessian / self.alpha, cov)

    def scaled(self, gradient: Array, hessian: Array, cov: Array) -> VectorSite:
        """From the derivatives of L at a cavity of covariance C to the site: multiply by R."""
        R = inverse(np.eye(cov.shape[-1]) + self.alpha * hessian @ cov)
        return VectorSite((R @ gradient[..., None])[..., 0], symmetrised(R @ hessian))

    def slopes_several(
        self, likelihood: VectorLikelihood, Y: Array, mean: Array, cov: Array, cubature: AnyCubature = None
    ) -> tuple[Array, Array]:
        """∇L in the mean and in the covariance of the cavity: (53)."""
        gradient, by_cov = likelihood.tilted_slopes(Y, mean, cov, self.alpha, cubature)
        return gradient / self.alpha, by_cov / self.alpha

    def energy_several(
        self, likelihood: VectorLikelihood, Y: Array, mean: Array, cov: Array, cubature: AnyCubature = None
    ) -> Array:
        """``(1/α) log E p^α`` over the cavity: the first term of (27)."""
        return likelihood.log_predictive(Y, mean, cov, cubature, alpha=self.alpha) / self.alpha


def _refuse_negative_variance(likelihood: VectorLikelihood, hessian: Array, cov: Array) -> None:
    """C + C ∇² log Z C is the tilted covariance: only integration error makes it negative, and then R is nonsense."""
    root = lower_roots(cov, "cavity covariance")
    relative = np.eye(cov.shape[-1]) + symmetrised(np.swapaxes(root, -1, -2) @ hessian @ root)
    smallest = smallest_eigenvalues(relative)
    bad = smallest < -1e-8
    if bad.any():
        row = int(np.argmax(bad))
        msg = (
            f"rule='ep': the cubature of {likelihood} gives row {row} of the observed ones a tilted covariance with "
            f"the relative eigenvalue {float(smallest[row])!r}, below zero: the likelihood is too sharp for these "
            "nodes; use more of them, as in cubature=GaussHermite(40), a smaller damping, or cubature=None where "
            "that is exact"
        )
        raise ValueError(msg)
