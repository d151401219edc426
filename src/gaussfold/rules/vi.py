"""Variational inference: the Gaussian that is nearest in KL(q ‖ posterior)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar, NamedTuple

import numpy as np

from gaussfold.checks import whole
from gaussfold.engine.seam import compiled_for, expectations, initial_guess, jets
from gaussfold.likelihoods.one_latent import as_vector
from gaussfold.protocols import Likelihood
from gaussfold.rules.base import StreamRule, View
from gaussfold.rules.stein import without_derivatives, without_hessian
from gaussfold.types import Array, ArrayLike, Moments, Record, Site, VectorSite


@dataclass(frozen=True)
class VI(StreamRule):
    """J = E l'(f), H = E l''(f) under N(m, v): rvga (3)-(4), bayes-newton (15).

    Parameters
    ----------
    derivatives
        How many derivatives of log p the averages are made of: 2; 1 (H from gradients) or 0 (both from log p alone),
        which are the same by integration by parts, rvga (16)-(19), and run in Python.

    Examples
    --------
    >>> import gaussfold as gf
    >>> from gaussfold.types import Moments
    >>> count, latent = 3.0, Moments(mean=1.0, variance=0.5)
    >>> site = gf.rules.VI().site(gf.likelihoods.Poisson(), count, latent)
    >>> print(f"{site.gradient:.4f} {site.curvature:.4f}")  # 3 - e^1.25, -e^1.25
    -0.4903 -3.4903
    >>> site = gf.rules.VI(derivatives=0).site(gf.likelihoods.Poisson(), count, latent)  # from log p alone
    >>> print(f"{site.gradient:.4f} {site.curvature:.4f}")
    -0.4903 -3.4903
    """

    derivatives: int = field(default=2, repr=False, kw_only=True)
    name: ClassVar[str] = "vi"
    curvatures: ClassVar[tuple[str, ...]] = ("exact", "heuristic", "gauss-newton", "quasi-newton", "riemannian")
    is_stationary: ClassVar[bool] = True
    descends: ClassVar[bool] = True
    needs_log_concave: ClassVar[bool] = True

    def __post_init__(self) -> None:
        whole("derivatives", self.derivatives, least=0, most=2, owner="VI")

    @property
    def takes_classes(self) -> bool:
        """``engine.softmax`` is this rule at the posterior."""
        return self.derivatives == 2

    @property
    def record(self) -> VIRecord | None:
        """How the engine knows this rule; it takes both derivatives."""
        return VIRecord() if self.derivatives == 2 else None

    def site(self, likelihood: Likelihood, y: ArrayLike, moments: Moments) -> Site:
        """Average the derivatives over the marginal."""
        if self.derivatives == 2:
            return Site(*likelihood.expected_derivatives(y, moments))
        shape = np.shape(moments.mean)
        mean, variance, label = (np.reshape(a, (-1, 1)) for a in np.broadcast_arrays(*moments, y))
        found = self.site_several(View(as_vector(likelihood), label, mean, variance[:, :, None]))
        return Site(found.gradient.reshape(shape), found.curvature.reshape(shape))

    def site_several(self, view: View) -> VectorSite:
        """The same on f in R^D."""
        if self.derivatives == 2:
            return VectorSite(*view.likelihood.expected_derivatives(*view[1:]))
        return without_hessian(view) if self.derivatives == 1 else without_derivatives(view)

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


# What the engine runs: see ``engine.rules`` for what each function means. Loops are compiled for this rule alone, apart
# from the others: it is the default, and whoever fits a first model should not wait for five more.


class VIRecord(NamedTuple):
    """The rule in the engine."""


@compiled_for(VIRecord)
def rule_site(
    family: Record, rule: VIRecord, y: float, w: float, m: float, v: float, m0: float, v0: float
) -> tuple[float, float]:
    """E l' and E l''."""
    j, h, _, _ = expectations.expected_derivatives(family, y, m, v)
    return w * j, w * h


@compiled_for(VIRecord)
def site_with_slopes(
    family: Record, rule: VIRecord, y: float, w: float, m: float, v: float, m0: float, v0: float
) -> tuple[float, float, float, float, float, float]:
    """By Price's theorem: ∂/∂v = ½ ∂²/∂m²."""
    e1, e2, e3, e4 = expectations.expected_derivatives(family, y, m, v)
    return w * e1, w * e2, w * e2, 0.5 * w * v * e3, w * e3, 0.5 * w * v * e4


@compiled_for(VIRecord)
def start(family: Record, rule: VIRecord, y: float, w: float, m0: float, v0: float) -> tuple[float, float, int]:
    """Beside the belief before, or where the family knows that averages settle."""
    if not initial_guess.vi_start_is_root(family):
        near, m, v = initial_guess.beside_prior(family, y, w, m0, v0)
        if near:
            return m, v, 1
    return initial_guess.vi_start(family, y, w, m0, v0)


@compiled_for(VIRecord)
def nearby_root(
    family: Record, rule: VIRecord, y: float, w: float, m0: float, v0: float
) -> tuple[bool, float, float, float, float, int]:
    """By series in the step, where the belief is narrow on the likelihood's length."""
    if jets.has_jets(family):
        return jets.averaged_root(family, y, w, m0, v0)
    return False, 0.0, 0.0, m0, v0, 0


@compiled_for(VIRecord)
def nearby_root_and_score(
    family: Record, rule: VIRecord, y: float, w: float, m0: float, v0: float
) -> tuple[bool, float, float, float, float, float, int]:
    """The same, with the score."""
    if jets.has_jets(family) and jets.scores_by_jets(family):
        return jets.scored_root(family, y, w, m0, v0)
    return False, 0.0, 0.0, 0.0, m0, v0, 0


@compiled_for(VIRecord)
def starts_at_root(family: Record, rule: VIRecord) -> bool:
    """Where the family's own approximation is solved exactly."""
    return initial_guess.vi_start_is_root(family)


@compiled_for(VIRecord)
def has_objective(family: Record, rule: VIRecord) -> bool:
    """The Kullback-Leibler divergence."""
    return True
