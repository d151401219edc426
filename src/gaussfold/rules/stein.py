"""Averages of derivatives without the derivatives: integration by parts under a Gaussian, rvga (16)-(19).

With f = m + L x, x ~ N(0, I): E ∇l = L⁻ᵀ E[x l], and E ∇²l = L⁻ᵀ E[x ∇l'] (no Hessian, (17)) = L⁻ᵀ E[(xx' - I) l] L⁻¹
(no derivative at all, (19)). On paper both are what they replace; on nodes they are worth as much as these integrate.
"""

from __future__ import annotations

import numpy as np

from gaussfold.linalg.small import symmetrised
from gaussfold.rules.base import View
from gaussfold.types import Array, VectorSite


def without_hessian(view: View) -> VectorSite:
    """E ∇l, and E ∇²l from gradients: rvga (16), (17)."""
    model = view.likelihood
    gradient, curvature = np.empty(view.mean.shape), np.empty(view.cov.shape)
    for block in model.blocks(view.Y, view.mean, view.cov, view.cubature):
        slopes = np.broadcast_to(model.derivatives(block.labels, block.latents)[0], block.latents.shape)
        gradient[block.rows] = np.einsum("p,npd->nd", block.weights, slopes)
        seen = np.einsum("p,pi,npj->nij", block.weights, block.points, slopes)
        curvature[block.rows] = symmetrised(_turned(block.roots, seen))
    return VectorSite(gradient, curvature)


def without_derivatives(view: View) -> VectorSite:
    """Both from log p alone: rvga (18), (19). Its average is taken off first: it has no part in either."""
    model = view.likelihood
    gradient, curvature = np.empty(view.mean.shape), np.empty(view.cov.shape)
    for block in model.blocks(view.Y, view.mean, view.cov, view.cubature):
        value = np.broadcast_to(model.log_prob(block.labels, block.latents), block.latents.shape[:-1])
        value = value - (value @ block.weights)[:, None]
        first = np.einsum("p,np,pi->ni", block.weights, value, block.points)
        second = np.einsum("p,np,pi,pj->nij", block.weights, value, block.points, block.points)
        gradient[block.rows] = _turned(block.roots, first[..., None])[..., 0]
        half = _turned(block.roots, second)
        curvature[block.rows] = symmetrised(_turned(block.roots, np.swapaxes(half, -1, -2)))
    return VectorSite(gradient, curvature)


def _turned(roots: Array, right: Array) -> Array:
    """``L⁻ᵀ right``."""
    return np.asarray(np.linalg.solve(np.swapaxes(roots, -1, -2), right))
