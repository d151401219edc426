"""``log N(y | μ, Σ)`` where both moments are functions of the latents: value, derivatives and residual slopes.

Serves two masters: likelihoods that are normal given their latents, bayes-newton (33), and the second-order posterior
linearisation (45), whose target is this function of the *integrated* moments. Leading axes broadcast.
"""

from __future__ import annotations

from math import log, pi
from typing import NamedTuple

import numpy as np

from gaussfold.linalg.small import inverse
from gaussfold.types import Array


class NormalMoments(NamedTuple):
    """Moments of y as functions of x in R^D, with as many derivatives as asked for; None stands for zero."""

    mean: Array  # (..., P)
    cov: Array  # (..., P, P)
    mean_slope: Array | None = None  # (..., P, D)
    cov_slope: Array | None = None  # (..., P, P, D)
    mean_curvature: Array | None = None  # (..., P, D, D)
    cov_curvature: Array | None = None  # (..., P, P, D, D)

    def having(self, **derivatives: Array | None) -> NormalMoments:
        """The same moments with these derivatives."""
        return NormalMoments(**(self._asdict() | derivatives))


def keep_observed(Y: Array, moments: NormalMoments) -> tuple[Array, NormalMoments, Array]:
    """Drop missing (NaN) outputs: residual, moments and number of outputs left, per row.

    A missing output gets the residual 0, no slopes, and a unit variance of its own: then it adds nothing to any sum.
    """
    seen = ~np.isnan(Y)
    count = np.asarray(seen.sum(axis=-1), dtype=float)
    residual = np.where(seen, np.where(seen, Y, 0.0) - moments.mean, 0.0)
    if seen.all():
        return residual, moments, count
    pair = seen[..., :, None] & seen[..., None, :]
    cov = np.where(pair, moments.cov, np.eye(Y.shape[-1]))
    return (
        residual,
        NormalMoments(
            moments.mean,
            cov,
            _kept(moments.mean_slope, seen[..., None]),
            _kept(moments.cov_slope, pair[..., None]),
            _kept(moments.mean_curvature, seen[..., None, None]),
            _kept(moments.cov_curvature, pair[..., None, None]),
        ),
        count,
    )


def _kept(array: Array | None, mask: np.ndarray) -> Array | None:
    return None if array is None else np.where(mask, array, 0.0)


def log_density(Y: Array, moments: NormalMoments) -> Array:
    """``log N(y | μ, Σ)`` of the observed outputs."""
    residual, kept, count = keep_observed(Y, moments)
    sign, log_det = _log_det(kept.cov)
    square = np.einsum("...i,...ij,...j->...", residual, inverse(kept.cov), residual)
    value = -0.5 * (square + log_det + count * log(2.0 * pi))
    return np.asarray(np.where(sign > 0.0, value, np.nan))


def _log_det(cov: Array) -> tuple[Array, Array]:
    if cov.shape[-1] == 1:
        value = cov[..., 0, 0]
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.asarray(np.sign(value)), np.asarray(np.log(np.abs(value)))
    sign, value = np.linalg.slogdet(cov)
    return np.asarray(sign), np.asarray(value)


def gradient(Y: Array, moments: NormalMoments) -> Array:
    """``e'Pμ_k - tr(PΣ_k)/2 + e'PΣ_kPe/2``, e = y - μ, P = Σ⁻¹; indices are derivatives."""
    residual, kept, _ = keep_observed(Y, moments)
    precision = inverse(kept.cov)
    pulled = np.asarray((precision @ residual[..., None])[..., 0])  # Pe
    return _first_order(pulled, precision, kept.mean_slope, kept.cov_slope)


def _first_order(pulled: Array, precision: Array, mean_slope: Array | None, cov_slope: Array | None) -> Array:
    if mean_slope is None:
        msg = "the slope of the mean is needed for a derivative; likelihood.conditional_slopes(F) gives it"
        raise ValueError(msg)
    total = np.einsum("...i,...ik->...k", pulled, mean_slope)
    if cov_slope is not None:
        weight = 0.5 * (pulled[..., :, None] * pulled[..., None, :] - precision)
        total = total + np.einsum("...ij,...ijk->...k", weight, cov_slope)
    return np.asarray(total)


def hessian(Y: Array, moments: NormalMoments) -> Array:
    """Second derivatives; with no curvatures this is what Gauss-Newton would drop left in only where Σ moves.

    ``e'Pμ_kl + (Pee'P - P):Σ_kl/2 - μ_k'Pμ_l - μ_k'PΣ_lPe - μ_l'PΣ_kPe - e'PΣ_kPΣ_lPe + tr(PΣ_kPΣ_l)/2``.
    """
    residual, kept, _ = keep_observed(Y, moments)
    precision = inverse(kept.cov)
    pulled = np.asarray((precision @ residual[..., None])[..., 0])
    slope = kept.mean_slope
    if slope is None:
        msg = "the slope of the mean is needed for a derivative; likelihood.conditional_slopes(F) gives it"
        raise ValueError(msg)
    total = -np.swapaxes(slope, -1, -2) @ precision @ slope
    if kept.cov_slope is not None:
        moved = np.einsum("...ijk,...j->...ik", kept.cov_slope, pulled)  # Σ_k P e
        cross = np.swapaxes(slope, -1, -2) @ precision @ moved
        total = total - cross - np.swapaxes(cross, -1, -2) - np.swapaxes(moved, -1, -2) @ precision @ moved
        scaled = np.einsum("...ab,...bck->...ack", precision, kept.cov_slope)  # P Σ_k
        total = total + 0.5 * np.einsum("...ack,...cal->...kl", scaled, scaled)
    if kept.mean_curvature is not None:
        total = total + np.einsum("...i,...ikl->...kl", pulled, kept.mean_curvature)
    if kept.cov_curvature is not None:
        weight = 0.5 * (pulled[..., :, None] * pulled[..., None, :] - precision)
        total = total + np.einsum("...ij,...ijkl->...kl", weight, kept.cov_curvature)
    return np.asarray(total)


def gauss_newton(Y: Array, moments: NormalMoments, *, moving_cov: bool = True) -> Array:
    """``G'G``, G the slope of the whitened residual ``Σ^{-1/2} (y - μ)``: bayes-newton (36), (38), (43), (46).

    With Σ = L L' and S_k = L⁻¹ Σ_k L⁻ᵀ, the column k of G is ``-L⁻¹ μ_k - Φ(S_k) L⁻¹ e``, where Φ keeps the lower
    triangle and half of the diagonal. ``moving_cov=False`` leaves the second part out: (40), (44).
    """
    residual, kept, _ = keep_observed(Y, moments)
    slope = kept.mean_slope
    if slope is None:
        msg = "the slope of the mean is needed for Gauss-Newton; likelihood.conditional_slopes(F) gives it"
        raise ValueError(msg)
    if kept.cov_slope is None or not moving_cov:
        return np.asarray(np.swapaxes(slope, -1, -2) @ inverse(kept.cov) @ slope)
    one = kept.cov.shape[-1] == 1
    whitener = 1.0 / np.sqrt(kept.cov) if one else np.linalg.inv(np.linalg.cholesky(kept.cov))
    white = np.asarray((whitener @ residual[..., None])[..., 0])
    scaled = np.einsum("...ab,...bck,...dc->...adk", whitener, kept.cov_slope, whitener)
    outputs = scaled.shape[-2]
    keep = np.tril(np.ones((outputs, outputs)), -1) + 0.5 * np.eye(outputs)
    G = whitener @ slope + np.einsum("...adk,ad,...d->...ak", scaled, keep, white)
    return np.asarray(np.swapaxes(G, -1, -2) @ G)
