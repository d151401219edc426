"""Quadratic lower bounds on the log likelihood: Jaakkola-Jordan and its relatives."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from gaussfold.engine.seam import BuiltInRule, compiled_for, expectations, initial_guess
from gaussfold.protocols import Likelihood, QuadraticallyBounded
from gaussfold.rules.base import StreamRule, View
from gaussfold.types import Array, ArrayLike, Moments, Record, Site, VectorSite


@dataclass(frozen=True)
class Quadratic(StreamRule):
    """The quadratic lower bound that is tightest in expectation under N(m, v): rvga (82)-(90).

    Where one exists: Gaussian (itself), Bernoulli logit and negative binomial (Jaakkola-Jordan), Bernoulli probit
    (curvature -1), Student-t (Gaussian scale mixture). A likelihood says so by having ``quadratic_bound(y, moments)``.

    Examples
    --------
    >>> import numpy as np
    >>> import gaussfold as gf
    >>> from gaussfold.types import Moments
    >>> heads, latent = 1.0, Moments(mean=1.0, variance=0.5)
    >>> site = gf.rules.Quadratic().site(gf.likelihoods.Bernoulli("logit"), heads, latent)
    >>> xi = np.sqrt(1.5)  # the bound touches at ξ = √(m² + v), and has the curvature -tanh(ξ/2)/(2 ξ)
    >>> print(f"{site.curvature:.6f} {-np.tanh(xi / 2) / (2 * xi):.6f}")
    -0.222820 -0.222820
    """

    name: ClassVar[str] = "quadratic"
    needs_bound: ClassVar[bool] = True

    def site(self, likelihood: Likelihood, y: ArrayLike, moments: Moments) -> Site:
        """Ask the likelihood for its bound."""
        if not isinstance(likelihood, QuadraticallyBounded):
            msg = f"rule='quadratic': {likelihood!r} has no quadratic bound; use rule='vi'"
            raise ValueError(msg)  # noqa: TRY004 - a combination that is not defined, as in check_defined
        return Site(*likelihood.quadratic_bound(y, moments))

    def site_several(self, view: View) -> VectorSite:
        """Defined for one latent only."""
        scalar = view.likelihood.one_latent
        if scalar is None:
            msg = f"rule='quadratic': {view.likelihood} has several latents and no quadratic bound; use rule='vi'"
            raise ValueError(msg)
        first, second = self.site(scalar, view.Y[:, 0], Moments(view.mean[:, 0], view.cov[:, 0, 0]))
        return VectorSite(first[:, None], second[:, None, None])

    def energy_several(self, view: View) -> Array:
        """``E log p``: a site from any rule has a variational energy (16)."""
        return view.likelihood.expected_log_prob(*view[1:])


# What the engine runs: see ``engine.rules`` for what each function means.


@compiled_for(Quadratic)
def rule_site(
    family: Record, rule: BuiltInRule, y: float, w: float, m: float, v: float, m0: float, v0: float
) -> tuple[float, float]:
    """The bound's slope and curvature."""
    j, h, _, _ = expectations.bounded_site(family, y, m, v)
    return w * j, w * h


@compiled_for(Quadratic)
def site_with_slopes(
    family: Record, rule: BuiltInRule, y: float, w: float, m: float, v: float, m0: float, v0: float
) -> tuple[float, float, float, float, float, float]:
    """As the family knows them."""
    return expectations.bounded_slopes(family, y, w, m, v)


@compiled_for(Quadratic)
def start(family: Record, rule: BuiltInRule, y: float, w: float, m0: float, v0: float) -> tuple[float, float, int]:
    """Where the family knows that its bound settles."""
    return initial_guess.bound_start(family, y, w, m0, v0)
