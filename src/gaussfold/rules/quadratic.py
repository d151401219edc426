"""Quadratic lower bounds on the log likelihood: Jaakkola-Jordan and its relatives."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from gaussfold.likelihoods.chained import AnyCubature, VectorLikelihood
from gaussfold.likelihoods.one_latent import OneLatent
from gaussfold.protocols import Likelihood
from gaussfold.types import Array, ArrayLike, Moments, Site, VectorSite


@dataclass(frozen=True)
class Quadratic:
    """The quadratic lower bound that is tightest in expectation under N(m, v): rvga (82)-(90).

    Where one exists: Gaussian (itself), Bernoulli logit and negative binomial (Jaakkola-Jordan), Bernoulli probit
    (curvature -1), Student-t (Gaussian scale mixture). A likelihood says so by having ``quadratic_bound(y, moments)``.
    """

    name: ClassVar[str] = "quadratic"
    code: ClassVar[int] = 5
    alpha: ClassVar[float] = 1.0

    def site(self, likelihood: Likelihood, y: ArrayLike, moments: Moments) -> Site:
        """Ask the likelihood for its bound."""
        bound = getattr(likelihood, "quadratic_bound", None)
        if bound is None:
            msg = f"rule='quadratic': {likelihood!r} has no quadratic bound; use rule='vi'"
            raise ValueError(msg)
        return Site(*bound(y, moments))

    def site_several(
        self,
        likelihood: VectorLikelihood,
        Y: Array,
        mean: Array,
        cov: Array,
        cubature: AnyCubature = None,  # noqa: ARG002
    ) -> VectorSite:
        """Defined for one latent only."""
        if not isinstance(likelihood, OneLatent):
            msg = f"rule='quadratic': {likelihood} has several latents and no quadratic bound; use rule='vi'"
            raise ValueError(msg)  # noqa: TRY004
        first, second = self.site(likelihood.scalar, Y[:, 0], Moments(mean[:, 0], cov[:, 0, 0]))
        return VectorSite(first[:, None], second[:, None, None])

    def energy_several(
        self, likelihood: VectorLikelihood, Y: Array, mean: Array, cov: Array, cubature: AnyCubature = None
    ) -> Array:
        """``E log p``: a site from any rule has a variational energy (16)."""
        return likelihood.expected_log_prob(Y, mean, cov, cubature)
