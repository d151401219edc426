"""Derivatives of the variational energy as it is computed, where that is a cubature sum.

``E log p ≈ Σ w log p(m + L x)`` is a function of m and of the root L of the covariance. Its derivative in the
covariance is not the cubature of ``∇² log p`` (only the exact integral obeys Price's theorem), and an optimiser needs
the gradient of the function it evaluates. The likelihoods' ``tilted_slopes`` do the same for power ep.
"""

from __future__ import annotations

import numpy as np

from gaussfold.likelihoods.chained import AnyCubature, VectorLikelihood
from gaussfold.linalg.small import root_adjoint, symmetrised
from gaussfold.rules import Exact
from gaussfold.rules.bfgs import QuasiNewtonMemory
from gaussfold.rules.curvature import Target
from gaussfold.types import Array, VectorSite


def is_summed(model: VectorLikelihood, cubature: AnyCubature) -> bool:
    """Whether this likelihood's expectations are cubature sums; those of one latent are integrated otherwise."""
    return cubature is not None or model.one_latent is None


def summed_slopes(
    model: VectorLikelihood, Y: Array, mean: Array, cov: Array, cubature: AnyCubature
) -> tuple[Array, Array]:
    """Derivatives in mean (N, D) and covariance (N, D, D) of ``Σ w log p``."""
    by_mean, by_cov = np.empty(mean.shape), np.empty(cov.shape)
    for block in model.blocks(Y, mean, cov, cubature):
        gradient = model.derivatives(block.labels, block.latents)[0]
        by_mean[block.rows] = np.einsum("p,npd->nd", block.weights, gradient)
        by_root = np.einsum("p,npd,pe->nde", block.weights, gradient, block.points)
        by_cov[block.rows] = symmetrised(root_adjoint(block.roots, by_root))
    return by_mean, by_cov


class AsSummed(Exact):
    """Exact curvature of vi as (16) is computed: where that is a sum over nodes, the sum's own derivatives.

    Short steps then lower the energy to the last digit, however coarse the nodes are, and kinks of log p count. The
    engine's integrals of one latent are as good as exact.
    """

    def site(self, target: Target, memory: QuasiNewtonMemory | None) -> tuple[VectorSite, QuasiNewtonMemory | None]:
        """The rule's own site, or the sum's."""
        view = target.view
        scalar = view.likelihood.one_latent
        if view.cubature is None and scalar is not None and scalar.record is not None:
            return target.exact(), memory
        by_mean, by_cov = summed_slopes(*view)
        return VectorSite(by_mean, 2.0 * by_cov), memory
