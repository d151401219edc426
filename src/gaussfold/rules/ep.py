"""Expectation propagation: the Gaussian that matches the tilted moments, or a power of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from gaussfold.checks import between
from gaussfold.engine.seam import BuiltInRule, compiled_for, expectations
from gaussfold.expectations.tilted import tilted
from gaussfold.likelihoods.chained import VectorLikelihood
from gaussfold.linalg.small import inverse, lower_roots, smallest_eigenvalues, symmetrised
from gaussfold.protocols import Likelihood
from gaussfold.rules.base import StreamRule, View
from gaussfold.types import Array, ArrayLike, Moments, Record, Site, VectorSite


@dataclass(frozen=True)
class EP(StreamRule):
    """Power EP on a cavity N(m, v): bayes-newton (22).

    With L = (1/α) log E p(y|f)^α and R = 1/(1 + α v L''): J = R L', H = R L''. alpha = 1 is assumed density
    filtering when it looks at the belief before; alpha → 0 is vi.

    Parameters
    ----------
    alpha
        Power in (0, 1].

    Examples
    --------
    >>> import gaussfold as gf
    >>> from gaussfold.types import Moments
    >>> heads, cavity = 1.0, Moments(mean=0.0, variance=1.0)
    >>> site = gf.rules.EP().site(gf.likelihoods.Bernoulli("probit"), heads, cavity)
    >>> print(f"{site.gradient:.4f} {site.curvature:.4f}")
    0.8276 -0.4669
    >>> after = 1 / (1 / cavity.variance - site.curvature)
    >>> print(f"N({after * site.gradient:.4f}, {after:.4f})")  # the moments of N(0, 1) Φ(f): 1/√π and 1 - 1/π
    N(0.5642, 0.6817)
    """

    alpha: float = 1.0
    name: ClassVar[str] = "ep"
    curvatures: ClassVar[tuple[str, ...]] = ("exact", "heuristic", "quasi-newton", "riemannian")
    looks_at_cavity: ClassVar[bool] = True
    energy_over_cavity: ClassVar[bool] = True
    is_stationary: ClassVar[bool] = True

    def __post_init__(self) -> None:
        between("alpha", self.alpha, 0, 1, "(]", remedy="1 is EP, and for the limit 0 use rule='vi'")

    def site(self, likelihood: Likelihood, y: ArrayLike, moments: Moments) -> Site:
        """Match the first two moments of N(m, v) p(y|f)^α."""
        _, gradient, hessian = tilted(likelihood.log_prob, likelihood.derivatives, y, moments, self.alpha)
        shrink = 1.0 / (1.0 + np.asarray(moments.variance) * hessian)
        return Site(shrink * gradient / self.alpha, shrink * hessian / self.alpha)

    def site_several(self, view: View) -> VectorSite:
        """The same on f in R^D, looking at the cavity: J = R ∇L (at its mean), H = R ∇²L, R = (I + α ∇²L C)⁻¹."""
        _, gradient, hessian = view.likelihood.tilted(view.Y, view.mean, view.cov, self.alpha, view.cubature)
        _refuse_negative_variance(view.likelihood, hessian, view.cov)
        return through_cavity(VectorSite(gradient / self.alpha, hessian / self.alpha), view.cov, self.alpha)

    def slopes_several(self, view: View) -> tuple[Array, Array]:
        """∇L in the mean and in the covariance of the cavity: (53)."""
        gradient, by_cov = view.likelihood.tilted_slopes(view.Y, view.mean, view.cov, self.alpha, view.cubature)
        return gradient / self.alpha, by_cov / self.alpha

    def energy_several(self, view: View) -> Array:
        """``(1/α) log E p^α`` over the cavity: the first term of (27)."""
        return view.likelihood.log_predictive(*view[1:], alpha=self.alpha) / self.alpha


def through_cavity(target: VectorSite, cov: Array, alpha: float) -> VectorSite:
    """From the derivatives of L at a cavity of covariance C to the site: multiply by R = (I + α ∇²L C)⁻¹."""
    R = inverse(np.eye(cov.shape[-1]) + alpha * target.curvature @ cov)
    return VectorSite((R @ target.gradient[..., None])[..., 0], symmetrised(R @ target.curvature))


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


# What the engine runs: see ``engine.rules`` for what each function means.


@compiled_for(EP)
def rule_site(
    family: Record, rule: BuiltInRule, y: float, w: float, m: float, v: float, m0: float, v0: float
) -> tuple[float, float]:
    """Looks at the cavity: what is left of N(m, v) without the fraction alpha of the site N(m, v)/N(m0, v0)."""
    alpha = rule.alpha
    precision = (1.0 - alpha) / v + alpha / v0
    cavity_variance = 1.0 / precision
    cavity_mean = cavity_variance * ((1.0 - alpha) * m / v + alpha * m0 / v0)
    j, h = expectations.ep_site(family, alpha, y, w, cavity_mean, cavity_variance)
    return j + h * (m - cavity_mean), h


@compiled_for(EP)
def start(family: Record, rule: BuiltInRule, y: float, w: float, m0: float, v0: float) -> tuple[float, float, int]:
    """The full moment match, which is the answer for alpha = 1."""
    j, h = expectations.ep_site(family, 1.0, y, w, m0, v0)
    v = v0 / (1.0 - v0 * h)
    return m0 + v * j, v, 1


@compiled_for(EP)
def looks_at_prior_only(family: Record, rule: BuiltInRule) -> bool:
    """The cavity is the belief before then."""
    return rule.alpha == 1.0
