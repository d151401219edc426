"""Posterior linearisation: the best affine fit to the conditional mean over the marginal."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from gaussfold.likelihoods import normal
from gaussfold.likelihoods.chained import AnyCubature, VectorLikelihood
from gaussfold.likelihoods.one_latent import OneLatent
from gaussfold.likelihoods.regression import regress
from gaussfold.linalg.small import inverse
from gaussfold.protocols import Likelihood
from gaussfold.rules.taylor import linear_site
from gaussfold.types import Array, ArrayLike, Moments, Site, VectorSite


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

    def site_several(
        self,
        likelihood: VectorLikelihood,
        Y: Array,
        mean: Array,
        cov: Array,
        cubature: AnyCubature = None,
    ) -> VectorSite:
        """The same on f in R^D: J = A'Ω⁻¹(y - E ν), H = -A'Ω⁻¹A."""
        if cubature is None and isinstance(likelihood, OneLatent):
            found = likelihood.compiled_site(self.code, Y, mean, cov)
            if found is not None:
                return VectorSite(*found)
        return linear_site(likelihood.response(Y), regress(likelihood, mean, cov, cubature).moments)

    def slopes_several(
        self, likelihood: VectorLikelihood, Y: Array, mean: Array, cov: Array, cubature: AnyCubature = None
    ) -> tuple[Array, Array]:
        """Derivatives of the target in the mean and in the covariance with Ω held fixed: (54)."""
        moments = regress(likelihood, mean, cov, cubature, second_order=True).moments
        fixed = moments._replace(cov_slope=None, cov_curvature=None)
        residual, kept, _ = normal.keep_observed(likelihood.response(Y), fixed)
        pulled = (inverse(kept.cov) @ residual[..., None])[..., 0]
        by_cov = 0.5 * np.einsum("ni,nikl->nkl", pulled, np.asarray(kept.mean_curvature))
        return linear_site(likelihood.response(Y), fixed).gradient, by_cov

    def energy_several(
        self, likelihood: VectorLikelihood, Y: Array, mean: Array, cov: Array, cubature: AnyCubature = None
    ) -> Array:
        """``log E p`` over the cavity: the EP energy with power 1, §4.3.2."""
        return likelihood.log_predictive(Y, mean, cov, cubature)


@dataclass(frozen=True)
class PL2:
    """Second-order posterior linearisation, bayes-newton (45): derivatives of log N(y | E ν, Ω), with Ω moving too.

    Where the noise depends on the latents this sees it, and :class:`PL` does not. It is offered for sites that
    are visited again (Gaussian processes), not for streams.
    """

    name: ClassVar[str] = "pl2"
    alpha: ClassVar[float] = 1.0

    def site_several(
        self, likelihood: VectorLikelihood, Y: Array, mean: Array, cov: Array, cubature: AnyCubature = None
    ) -> VectorSite:
        """Gradient and Hessian of the target in the mean."""
        moments = regress(likelihood, mean, cov, cubature, second_order=True).moments
        responses = likelihood.response(Y)
        return VectorSite(normal.gradient(responses, moments), normal.hessian(responses, moments))

    def gauss_newton_several(
        self, likelihood: VectorLikelihood, Y: Array, mean: Array, cov: Array, cubature: AnyCubature = None
    ) -> VectorSite:
        """Minus the square of the whitened residual's slope, (46); for a likelihood that is not normal, PL (§5.3)."""
        if not likelihood.gaussian_noise:
            return PL().site_several(likelihood, Y, mean, cov, cubature)
        moments = regress(likelihood, mean, cov, cubature, second_order=True).moments
        responses = likelihood.response(Y)
        return VectorSite(normal.gradient(responses, moments), -normal.gauss_newton(responses, moments))

    def slopes_several(
        self, likelihood: VectorLikelihood, Y: Array, mean: Array, cov: Array, cubature: AnyCubature = None
    ) -> tuple[Array, Array]:
        """Derivatives of the target in the mean and in the covariance, Ω's included."""
        fit = regress(likelihood, mean, cov, cubature, second_order=True)
        responses = likelihood.response(Y)
        shape = (mean.shape[0], likelihood.responses, -1)
        by_cov = fit.moments._replace(
            mean_slope=0.5 * np.asarray(fit.moments.mean_curvature).reshape(shape),
            cov_slope=np.asarray(fit.cov_by_cov).reshape(mean.shape[0], likelihood.responses, *shape[1:]),
            mean_curvature=None,
            cov_curvature=None,
        )
        return normal.gradient(responses, fit.moments), normal.gradient(responses, by_cov).reshape(cov.shape)

    def energy_several(
        self, likelihood: VectorLikelihood, Y: Array, mean: Array, cov: Array, cubature: AnyCubature = None
    ) -> Array:
        """``log E p`` over the cavity: the EP energy with power 1, §4.3.2."""
        return likelihood.log_predictive(Y, mean, cov, cubature)
