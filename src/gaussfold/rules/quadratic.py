"""Quadratic lower bounds on the log likelihood: Jaakkola-Jordan and its relatives."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from gaussfold.protocols import Likelihood
from gaussfold.rules.base import StreamRule, View
from gaussfold.types import Array, ArrayLike, Moments, Site, VectorSite


@dataclass(frozen=True)
class Quadratic(StreamRule):
    """The quadratic lower bound that is tightest in expectation under N(m, v): rvga (82)-(90).

    Where one exists: Gaussian (itself), Bernoulli logit and negative binomial (Jaakkola-Jordan), Bernoulli probit
    (curvature -1), Student-t (Gaussian scale mixture). A likelihood says so by having ``quadratic_bound(y, moments)``.
    """

    name: ClassVar[str] = "quadratic"
    code: ClassVar[int] = 5
    needs_bound: ClassVar[bool] = True

    def site(self, likelihood: Likelihood, y: ArrayLike, moments: Moments) -> Site:
        """Ask the likelihood for its bound."""
        bound = getattr(likelihood, "quadratic_bound", None)
        if bound is None:
            msg = f"rule='quadratic': {likelihood!r} has no quadratic bound; use rule='vi'"
            raise ValueError(msg)
        return Site(*bound(y, moments))

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
