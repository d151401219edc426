"""First-order expansion of the conditional mean: the extended Kalman filter."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from gaussfold.engine.seam import BuiltInRule, compiled_for, families
from gaussfold.likelihoods.normal import NormalMoments, keep_observed
from gaussfold.likelihoods.one_latent import conditional_derivatives
from gaussfold.linalg.small import inverse, symmetrised
from gaussfold.protocols import Likelihood
from gaussfold.rules.base import StreamRule, View
from gaussfold.types import Array, ArrayLike, Moments, Record, Site, VectorSite


@dataclass(frozen=True)
class Taylor(StreamRule):
    """y ≈ h(m) + h'(m)(f - m) with noise Var[y|m]: bayes-newton (32), rvga (44)-(48), (81).

    J = h'(y - h)/R, H = -h'²/R with h = E[y|f], R = Var[y|f] at f = m. For an exponential family J = l'(m), and H is
    minus the Fisher information: the online natural gradient (rvga Th. 3).

    Examples
    --------
    >>> import gaussfold as gf
    >>> from gaussfold.types import Moments
    >>> heads, latent = 1.0, Moments(mean=1.0, variance=0.5)
    >>> site = gf.rules.Taylor().site(gf.likelihoods.Bernoulli("probit"), heads, latent)
    >>> print(f"{site.gradient:.4f} {site.curvature:.4f}")  # φ/Φ and -φ²/(Φ (1 - Φ)) at 1
    0.2876 -0.4386
    """

    name: ClassVar[str] = "taylor"
    curvatures: ClassVar[tuple[str, ...]] = ("exact", "heuristic", "gauss-newton")
    looks_at_mean: ClassVar[bool] = True
    linearises: ClassVar[bool] = True

    def site(self, likelihood: Likelihood, y: ArrayLike, moments: Moments) -> Site:
        """Look at the mean only."""
        m = np.asarray(moments.mean, dtype=float)
        h, noise = likelihood.conditional(m)
        slope = conditional_derivatives(likelihood, m)[0].mean
        return Site(slope * (np.asarray(y) - h) / noise, -(slope**2) / noise)

    def site_several(self, view: View) -> VectorSite:
        """The same on f in R^D: J = ν'ᵀ Σ⁻¹ (y - ν), H = -ν'ᵀ Σ⁻¹ ν'."""
        return linear_site(view.likelihood.response(view.Y), view.likelihood.conditional_slopes(view.mean))

    def energy_several(self, view: View) -> Array:
        """``log p`` at the mean: the first term of (17), §4.3.2."""
        return view.likelihood.log_prob(view.Y, view.mean)


def linear_site(responses: Array, moments: NormalMoments) -> VectorSite:
    """The site of ``y = ν + A (f - m) + noise`` with noise covariance Σ; missing responses add nothing."""
    residual, kept, _ = keep_observed(responses, moments)
    slope = np.asarray(kept.mean_slope)
    pull = np.swapaxes(slope, -1, -2) @ inverse(kept.cov)
    return VectorSite((pull @ residual[..., None])[..., 0], -symmetrised(pull @ slope))


# What the engine runs: see ``engine.rules`` for what each function means.


@compiled_for(Taylor)
def rule_site(
    family: Record, rule: BuiltInRule, y: float, w: float, m: float, v: float, m0: float, v0: float
) -> tuple[float, float]:
    """The model linearised at the mean."""
    j, h = families.taylor_site(family, y, m)
    return w * j, w * h


@compiled_for(Taylor)
def starts_at_root(family: Record, rule: BuiltInRule) -> bool:
    """Of an exponential family its gradient is newton's, so the mode is the mean; only its curvature is Fisher's."""
    return families.is_log_concave(family) and families.is_exponential(family)
