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
    closed = likelihood.closed_regression(mean, cov) if cubature is None else None
    if closed is not None:
        moments, by_cov = closed
        if second_order:
            return Regression(moments, by_cov)
        return Regression(NormalMoments(moments.mean, moments.cov, moments.mean_slope), None)
    blank = np.zeros((mean.shape[0], likelihood.outputs))
    fit = _second_order if second_order else _first_order
    parts = [fit(likelihood, block) for block in likelihood.blocks(blank, mean, cov, cubature)]
    if len(parts) == 1:
        return parts[0]
    joined, joined_cov, *derivatives = (_joined(column) for column in zip(*(p.moments for p in parts), strict=True))
    moments = NormalMoments(np.asarray(joined), np.asarray(joined_cov), *derivatives)
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
    """Mean, slope in whitened coordinates (``E[ν x']``) and residuals at the nodes, of values (n, points, ...)."""
    n, points = block.latents.shape[:2]
    flat = values.reshape(n, points, -1)
    mean = block.weights @ flat
    away = flat - mean[:, None]
    cross = np.swapaxes(away, 1, 2) @ (block.weights[:, None] * block.points)
    residual = away - block.points @ np.swapaxes(cross, 1, 2)
    inner = values.shape[2:]
    return mean.reshape(n, *inner), cross.reshape(n, *inner, -1), residual.reshape(values.shape)


def _outer(block: Block, a: Array, b: Array) -> Array:
    """``Σ w a b'`` over the nodes, all other axes of a before those of b."""
    n, points = block.latents.shape[:2]
    weighed = block.weights[:, None] * a.reshape(n, points, -1)
    product = np.swapaxes(weighed, 1, 2) @ b.reshape(n, points, -1)
    return np.asarray(product.reshape(n, *a.shape[2:], *b.shape[2:]))


def _second_order(likelihood: VectorLikelihood, block: Block) -> Regression:
    """As above, and derivatives: those of the fit are the fits of the derivatives, because the nodes move with m."""
    given = likelihood.conditional_curvatures(block.latents)
    mean, _, residual = _fit(block, given.mean)
    cov = block.average(given.cov) + _outer(block, residual, residual)
    shape = (*block.latents.shape[:2], likelihood.responses, likelihood.latents)
    slope, cross_k, residual_k = _fit(block, np.broadcast_to(np.asarray(given.mean_slope), shape))
    half = np.einsum("nikj->nijk", _outer(block, residual_k, residual))
    cov_slope = half + np.swapaxes(half, 1, 2)
    pair = np.einsum("nikjl->nijkl", _outer(block, residual_k, residual_k))
    cov_curvature = pair + np.swapaxes(pair, 1, 2)
    spread = np.einsum("nikd,njld->nijkl", cross_k, cross_k)  # A_k C A_l'
    mean_curvature = np.zeros((*mean.shape, likelihood.latents, likelihood.latents))
    if given.mean_curvature is not None:
        bends = np.broadcast_to(given.mean_curvature, (*shape, likelihood.latents))
        mean_curvature, _, residual_kl = _fit(block, bends)
        half = np.einsum("niklj->nijkl", _outer(block, residual_kl, residual))
        cov_curvature = cov_curvature + half + np.swapaxes(half, 1, 2)
    if given.cov_slope is not None:
        cov_slope = cov_slope + block.average(given.cov_slope)
    if given.cov_curvature is not None:
        cov_curvature = cov_curvature + block.average(given.cov_curvature)
    by_cov = 0.5 * (cov_curvature + spread + np.swapaxes(spread, 1, 2))
    return Regression(NormalMoments(mean, cov, slope, cov_slope, mean_curvature, cov_curvature), by_cov)
