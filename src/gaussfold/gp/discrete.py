"""Derivatives of the variational energy as it is computed, where that is a cubature sum.

``E log p ≈ Σ w log p(m + L x)`` is a function of m and of the root L of the covariance. Its derivative in the
covariance is not the cubature of ``∇² log p`` (only the exact integral obeys Price's theorem), and an optimiser needs
the gradient of the function it evaluates. The likelihoods' ``tilted_slopes`` do the same for power ep.
"""

from __future__ import annotations

from gaussfold.likelihoods.chained import AnyCubature, VectorLikelihood
from gaussfold.rules import Exact
from gaussfold.rules.bfgs import QuasiNewtonMemory
from gaussfold.rules.curvature import Target
from gaussfold.types import Array, VectorSite


def is_summed(model: VectorLikelihood, cubature: AnyCubature) -> bool:
    """Whether this likelihood's expectations are cubature sums; those of one latent are integrated otherwise."""
    return cubature is not None or model.one_latent is None


class AsSummed(Exact):
    """Exact curvature of vi as (16) is computed: where that is a sum over nodes, the sum's own derivatives.

    Short steps then lower the energy to the last digit, however coarse the nodes are, and kinks of log p count. The
    engine's integrals of one latent are as good as exact. ``known`` are slopes that came with the energy.
    """

    def __init__(self, known: tuple[Array, Array] | None = None) -> None:
        self._known = known

    def site(self, target: Target, memory: QuasiNewtonMemory | None) -> tuple[VectorSite, QuasiNewtonMemory | None]:
        """The rule's own site, or the sum's."""
        view = target.view
        if self._known is not None:
            return VectorSite(self._known[0], 2.0 * self._known[1]), memory
        scalar = view.likelihood.one_latent
        if view.cubature is None and scalar is not None and scalar.record is not None:
            return target.exact(), memory
        by_mean, by_cov = view.likelihood.summed_slopes(*view[1:])
        return VectorSite(by_mean, 2.0 * by_cov), memory
