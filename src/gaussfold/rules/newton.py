"""Second-order expansion of the log likelihood at the mean: Laplace, online Newton."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from gaussfold.engine.seam import BuiltInRule, compiled_for, families
from gaussfold.protocols import Likelihood
from gaussfold.rules.base import StreamRule, View
from gaussfold.types import Array, ArrayLike, Moments, Record, Site, VectorSite


@dataclass(frozen=True)
class Newton(StreamRule):
    """J = l'(m), H = l''(m): bayes-newton (8).

    Examples
    --------
    >>> import gaussfold as gf
    >>> from gaussfold.types import Moments
    >>> count, latent = 3.0, Moments(mean=1.0, variance=0.5)
    >>> site = gf.rules.Newton().site(gf.likelihoods.Poisson(), count, latent)
    >>> print(f"{site.gradient:.4f} {site.curvature:.4f}")  # 3 - e, -e
    0.2817 -2.7183
    """

    name: ClassVar[str] = "newton"
    curvatures: ClassVar[tuple[str, ...]] = ("exact", "heuristic", "gauss-newton", "quasi-newton", "riemannian")
    looks_at_mean: ClassVar[bool] = True
    finds_mode: ClassVar[bool] = True
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


# What the engine runs: see ``engine.rules`` for what each function means.


@compiled_for(Newton)
def rule_site(
    family: Record, rule: BuiltInRule, y: float, w: float, m: float, v: float, m0: float, v0: float
) -> tuple[float, float]:
    """L' and l'' at the mean."""
    j, h, _, _ = families.derivatives(family, y, m)
    return w * j, w * h


@compiled_for(Newton)
def site_with_slopes(
    family: Record, rule: BuiltInRule, y: float, w: float, m: float, v: float, m0: float, v0: float
) -> tuple[float, float, float, float, float, float]:
    """Nothing depends on the variance."""
    d1, d2, d3, _ = families.derivatives(family, y, m)
    return w * d1, w * d2, w * d2, 0.0, w * d3, 0.0


@compiled_for(Newton)
def starts_at_root(family: Record, rule: BuiltInRule) -> bool:
    """The mode of a log-concave posterior."""
    return families.is_log_concave(family)


@compiled_for(Newton)
def finds_mode(family: Record, rule: BuiltInRule) -> bool:
    """Yes."""
    return True


@compiled_for(Newton)
def has_objective(family: Record, rule: BuiltInRule) -> bool:
    """The mode."""
    return True


@compiled_for(Newton)
def objective(family: Record, rule: BuiltInRule, y: float, w: float, m0: float, v0: float, m: float, v: float) -> float:
    """Minus the log posterior at the mean."""
    return 0.5 * (m - m0) * (m - m0) / v0 - w * families.log_density(family, y, m)
