"""Statistical linear regression of the response on its latents: bayes-newton (28)-(31), (45)."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gaussfold.likelihoods.chained import AnyCubature, Block, VectorLikelihood
from gaussfold.likelihoods.normal import NormalMoments
from gaussfold.linalg.small import inverse
from gaussfold.types import Array


class Regression(NamedTuple):
    """The best affine fit to E[y | f] over N(mean, cov), and what is left over."""

    moments: NormalMoments
    """μ = E ν and Ω, with their derivatives in the mean (first order: the slope A of the fit only)."""
    cov_by_cov: Array | None
    """∂Ω/∂C_kl, shape (N, P, P, D, D); None at first order."""


def regress(
    likelihood: VectorLikelihood, mean: Array, cov: Array, cubature: AnyCubature = None, *, second_order: bool = False
) -> Regression:
    """Fit over every row's marginal: ν ≈ A f + b, Ω = E[Σ + (ν - Af - b)(ν - Af - b)'].

    The second-order fit also differentiates μ and Ω in the mean, node by node. In the covariance, Price's theorem gives
    ``∂Ω/∂C_kl = (Ω_kl + A_k C A_l' + A_l C A_k')/2``, where A_k is the derivative of the slope A in the k-th mean.
    """
    blank = np.zeros((mean.shape[0], likelihood.outputs))
    fit = _second_order if second_order else _first_order
    parts = [fit(likelihood, block) for block in likelihood.blocks(blank, mean, cov, cubature)]
    if len(parts) == 1:
        return parts[0]
    moments = NormalMoments(*map(_joined, zip(*(p.moments for p in parts), strict=True)))  # type: ignore[arg-type]
    return Regression(moments, _joined(tuple(p.cov_by_cov for p in parts)))


def _joined(columns: tuple[Array | None, ...]) -> Array | None:
    found = [c for c in columns if c is not None]
    return np.concatenate(found) if found else None


def _first_order(likelihood: VectorLikelihood, block: Block) -> Regression:
    given = likelihood.conditional(block.latents)
    mean, cross, residual = _fit(block, given.mean)
    cov = block.average(given.cov) + _outer(block, residual, residual)
    return Regression(NormalMoments(mean, cov, cross @ inverse(block.roots)), None)


def _fit(block: Block, values: Array) -> tuple[Array, Array, Array]:
    """Mean, slope in whitened coordinates (``E[ν x']``) and residuals at the nodes."""
    mean = block.average(values)
    away = values - mean[:, None]
    cross = np.einsum("p,npi,pd->nid", block.weights, away, block.points)
    return mean, cross, away - block.points @ np.swapaxes(cross, -1, -2)


def _outer(block: Block, a: Array, b: Array) -> Array:
    return np.asarray(np.einsum("p,npi,npj->nij", block.weights, a, b))


def _second_order(likelihood: VectorLikelihood, block: Block) -> Regression:
    """As above, and derivatives: those of the fit are the fits of the derivatives, because the nodes move with m."""
    given = likelihood.conditional_curvatures(block.latents)
    w, x = block.weights, block.points
    mean, _, residual = _fit(block, given.mean)
    cov = block.average(given.cov) + _outer(block, residual, residual)
    shape = (*block.latents.shape[:2], likelihood.responses, likelihood.latents)
    slopes = np.broadcast_to(given.mean_slope, shape)  # type: ignore[arg-type]
    slope = block.average(slopes)
    cross_k = np.einsum("p,npik,pd->nidk", w, slopes - slope[:, None], x)
    residual_k = slopes - slope[:, None] - np.einsum("pd,nidk->npik", x, cross_k)
    half = np.einsum("p,npik,npj->nijk", w, residual_k, residual)
    cov_slope = half + np.swapaxes(half, 1, 2)
    pair = np.einsum("p,npik,npjl->nijkl", w, residual_k, residual_k)
    cov_curvature = pair + np.swapaxes(pair, 1, 2)
    spread = np.einsum("nidk,njdl->nijkl", cross_k, cross_k)  # A_k C A_l'
    mean_curvature = np.zeros((*mean.shape, likelihood.latents, likelihood.latents))
    if given.mean_curvature is not None:
        bends = np.broadcast_to(given.mean_curvature, (*shape, likelihood.latents))
        mean_curvature = block.average(bends)
        cross_kl = np.einsum("p,npikl,pd->nidkl", w, bends - mean_curvature[:, None], x)
        residual_kl = bends - mean_curvature[:, None] - np.einsum("pd,nidkl->npikl", x, cross_kl)
        half = np.einsum("p,npikl,npj->nijkl", w, residual_kl, residual)
        cov_curvature = cov_curvature + half + np.swapaxes(half, 1, 2)
    if given.cov_slope is not None:
        cov_slope = cov_slope + block.average(given.cov_slope)
    if given.cov_curvature is not None:
        cov_curvature = cov_curvature + block.average(given.cov_curvature)
    by_cov = 0.5 * (cov_curvature + spread + np.swapaxes(spread, 1, 2))
    return Regression(NormalMoments(mean, cov, slope, cov_slope, mean_curvature, cov_curvature), by_cov)
