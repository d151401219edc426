"""Posterior linearisation: the best affine fit to the conditional mean over the marginal."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from gaussfold.engine.seam import BuiltInRule, compiled_for, expectations, initial_guess
from gaussfold.likelihoods import normal
from gaussfold.likelihoods.normal import NormalMoments
from gaussfold.likelihoods.regression import regress
from gaussfold.linalg.small import inverse
from gaussfold.protocols import Likelihood
from gaussfold.rules.base import SiteRule, StreamRule, View
from gaussfold.rules.taylor import linear_site
from gaussfold.types import Array, ArrayLike, Moments, Record, Site, VectorSite


@dataclass(frozen=True)
class PL(StreamRule):
    """Statistical linear regression, bayes-newton (29)-(31).

    slope a = ∂E[h]/∂m, residual variance Ω = Var[y] - v a² (all under N(m, v)): J = a (y - E h)/Ω, H = -a²/Ω.

    Examples
    --------
    >>> import gaussfold as gf
    >>> from gaussfold.types import Moments
    >>> count, latent = 3.0, Moments(mean=1.0, variance=0.5)
    >>> site = gf.rules.PL().site(gf.likelihoods.Poisson(), count, latent)
    >>> print(f"{site.gradient:.4f} {site.curvature:.4f}")
    -0.3228 -2.2977
    """

    name: ClassVar[str] = "pl"
    curvatures: ClassVar[tuple[str, ...]] = ("exact", "heuristic", "gauss-newton", "quasi-newton")
    energy_over_cavity: ClassVar[bool] = True
    linearises: ClassVar[bool] = True

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

    def site_several(self, view: View) -> VectorSite:
        """The same on f in R^D: J = A'Ω⁻¹(y - E ν), H = -A'Ω⁻¹A."""
        found = view.likelihood.compiled_site(self.record, *view[1:])
        if found is not None:
            return VectorSite(*found)
        return linear_site(view.likelihood.response(view.Y), regress(view.likelihood, *view[2:]).moments)

    def slopes_several(self, view: View) -> tuple[Array, Array]:
        """Derivatives of the target in the mean and in the covariance with Ω held fixed: (54)."""
        full = regress(view.likelihood, *view[2:], second_order=True).moments
        fixed = NormalMoments(full.mean, full.cov, full.mean_slope, mean_curvature=full.mean_curvature)
        responses = view.likelihood.response(view.Y)
        residual, kept, _ = normal.keep_observed(responses, fixed)
        pulled = (inverse(kept.cov) @ residual[..., None])[..., 0]
        by_cov = 0.5 * np.einsum("ni,nikl->nkl", pulled, np.asarray(kept.mean_curvature))
        return linear_site(responses, fixed).gradient, by_cov

    def energy_several(self, view: View) -> Array:
        """``log E p`` over the cavity: the EP energy with power 1, §4.3.2."""
        return view.likelihood.log_predictive(*view[1:])


@dataclass(frozen=True)
class PL2(SiteRule):
    """Second-order posterior linearisation, bayes-newton (45): derivatives of log N(y | E ν, Ω), with Ω moving too.

    Where the noise depends on the latents this sees it, and :class:`PL` does not. Its sites can be of either sign and
    need not settle within one row, so that a stream takes it with at="prior" or "extragradient".

    Examples
    --------
    >>> import numpy as np
    >>> import gaussfold as gf
    >>> model = gf.likelihoods.HeteroscedasticGaussian()  # mean and log noise
    >>> surprise = gf.rules.View(model, np.array([[4.0]]), np.zeros((1, 2)), 0.1 * np.eye(2)[None])
    >>> gf.rules.PL().site_several(surprise).gradient.round(2)  # blind to noise
    array([[ 7.65, -0.  ]])
    >>> gf.rules.PL2().site_several(surprise).gradient.round(2)
    array([[ 7.65, 20.65]])
    """

    name: ClassVar[str] = "pl2"
    curvatures: ClassVar[tuple[str, ...]] = ("exact", "heuristic", "gauss-newton", "quasi-newton", "riemannian")
    energy_over_cavity: ClassVar[bool] = True
    linearises: ClassVar[bool] = True
    settles: ClassVar[bool] = False

    def site_several(self, view: View) -> VectorSite:
        """Gradient and Hessian of the target in the mean."""
        moments = regress(view.likelihood, *view[2:], second_order=True).moments
        responses = view.likelihood.response(view.Y)
        return VectorSite(normal.gradient(responses, moments), normal.hessian(responses, moments))

    def gauss_newton_several(self, view: View) -> VectorSite:
        """Minus the square of the whitened residual's slope, (46); for a likelihood that is not normal, PL (§5.3)."""
        if not view.likelihood.gaussian_noise:
            return PL().site_several(view)
        moments = regress(view.likelihood, *view[2:], second_order=True).moments
        responses = view.likelihood.response(view.Y)
        return VectorSite(normal.gradient(responses, moments), -normal.gauss_newton(responses, moments))

    def slopes_several(self, view: View) -> tuple[Array, Array]:
        """Derivatives of the target in the mean and in the covariance, Ω's included."""
        fit = regress(view.likelihood, *view[2:], second_order=True)
        rows, P = len(view.mean), view.likelihood.responses
        by_cov = NormalMoments(
            fit.moments.mean,
            fit.moments.cov,
            mean_slope=0.5 * np.asarray(fit.moments.mean_curvature).reshape(rows, P, -1),
            cov_slope=np.asarray(fit.cov_by_cov).reshape(rows, P, P, -1),
        )
        responses = view.likelihood.response(view.Y)
        return normal.gradient(responses, fit.moments), normal.gradient(responses, by_cov).reshape(view.cov.shape)

    def energy_several(self, view: View) -> Array:
        """``log E p`` over the cavity: the EP energy with power 1, §4.3.2."""
        return view.likelihood.log_predictive(*view[1:])


# What the engine runs: see ``engine.rules`` for what each function means.


@compiled_for(PL)
def rule_site(
    family: Record, rule: BuiltInRule, y: float, w: float, m: float, v: float, m0: float, v0: float
) -> tuple[float, float]:
    """The affine fit over the marginal."""
    j, h = expectations.linearised(family, y, m, v)
    return w * j, w * h


@compiled_for(PL)
def start(family: Record, rule: BuiltInRule, y: float, w: float, m0: float, v0: float) -> tuple[float, float, int]:
    """Where averages settle."""
    return initial_guess.averaged_start(family, y, w, m0, v0)


@compiled_for(PL)
def may_vanish(family: Record, rule: BuiltInRule) -> bool:
    """Where e^v has outgrown the label the site vanishes, and the prior is the answer."""
    return True
