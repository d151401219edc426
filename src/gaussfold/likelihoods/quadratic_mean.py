"""Normal likelihoods with constant noise whose mean is a quadratic polynomial of the latents: closed forms.

``y | f ~ N(ν(f), Σ)`` with ``ν_i(m + δ) = ν_i(m) + s_i'δ + δ'Q_iδ/2``. Under ``f ~ N(m, C)`` the mean of ν_i is
``ν_i(m) + tr(Q_iC)/2``, its affine fit has the slope s_i, and what the fit leaves has the covariance
``tr(Q_iCQ_jC)/2``: nothing that vi, pl, pl2 and Gauss-Newton ask for needs a node, in however many dimensions.
"""

from __future__ import annotations

from math import log, pi
from typing import NamedTuple

import numpy as np

from gaussfold.likelihoods.chained import AnyCubature
from gaussfold.likelihoods.gaussian_noise import GaussianNoise
from gaussfold.likelihoods.normal import NormalMoments, keep_observed
from gaussfold.linalg.small import inverse
from gaussfold.types import Array


class _Parts(NamedTuple):
    """What the closed forms share: of the observed outputs, with zeros for the missing ones."""

    residual: Array  # (N, P): y - E ν
    precision: Array  # (N, P, P): Σ⁻¹
    slope: Array  # (N, P, D): s
    bend: Array  # (N, P, D, D): Q
    turned: Array  # (N, P, D, D): Q C
    fixed: Array  # (N,): log |2πΣ|


class QuadraticMean(GaussianNoise):
    """Closed forms where ``cubature`` is None; a rule given by name or object is used as for any other likelihood.

    A subclass has ``conditional_curvatures`` with a constant ``mean_curvature`` and a constant covariance.
    """

    def expected_log_prob(self, Y: Array, mean: Array, cov: Array, cubature: AnyCubature = None) -> Array:
        """``-(ē'Pē + tr(P Cov ν) + log |2πΣ|)/2``."""
        if cubature is not None:
            return super().expected_log_prob(Y, mean, cov, cubature)
        parts = self._parts(Y, mean, cov)
        spread = parts.slope @ cov @ np.swapaxes(parts.slope, 1, 2) + _leftover(parts.turned)
        square = np.einsum("ni,nij,nj->n", parts.residual, parts.precision, parts.residual)
        return np.asarray(-0.5 * (square + np.einsum("nij,nij->n", parts.precision, spread) + parts.fixed))

    def expected_derivatives(
        self, Y: Array, mean: Array, cov: Array, cubature: AnyCubature = None
    ) -> tuple[Array, Array]:
        """``S'Pē - Σ_i Q_iC(S'P)_i`` and ``-E S'PS + Σ_i (Pē)_i Q_i``."""
        if cubature is not None:
            return super().expected_derivatives(Y, mean, cov, cubature)
        parts = self._parts(Y, mean, cov)
        weighed = parts.precision @ parts.slope  # PS
        pulled = (parts.precision @ parts.residual[:, :, None])[:, :, 0]
        first = np.einsum("nid,ni->nd", parts.slope, pulled)
        first -= (parts.turned @ weighed[..., None])[..., 0].sum(axis=1)
        return first, np.einsum("ni,nide->nde", pulled, parts.bend) - _squares(parts)

    def expected_gauss_newton(self, Y: Array, mean: Array, cov: Array, cubature: AnyCubature = None) -> Array:
        """``E S'PS = S'PS + Σ_ij P_ij Q_iCQ_j``."""
        if cubature is not None:
            return super().expected_gauss_newton(Y, mean, cov, cubature)
        return _squares(self._parts(Y, mean, cov))

    def predictive(self, mean: Array, cov: Array, cubature: AnyCubature = None) -> tuple[Array, Array]:
        """Mean and covariance of y: the noise, what the affine fit carries over, and what it leaves."""
        if cubature is not None:
            return super().predictive(mean, cov, cubature)
        moments, _ = self.closed_regression(mean, cov)
        slope = np.asarray(moments.mean_slope)
        return moments.mean, moments.cov + slope @ cov @ np.swapaxes(slope, 1, 2)

    def closed_regression(self, mean: Array, cov: Array) -> tuple[NormalMoments, Array]:
        """The affine fit: Ω does not depend on the mean, and ``∂Ω_ij/∂C = (Q_iCQ_j + Q_jCQ_i)/2``."""
        given = self.conditional_curvatures(mean)
        N, D = mean.shape
        bend = np.broadcast_to(np.asarray(given.mean_curvature), (N, self.outputs, D, D))
        turned = bend @ cov[:, None]
        moments = NormalMoments(
            given.mean + 0.5 * np.einsum("nikk->ni", turned),
            given.cov + _leftover(turned),
            given.mean_slope,
            mean_curvature=bend,
        )
        pairs = turned[:, :, None] @ bend[:, None]
        return moments, 0.5 * (pairs + np.swapaxes(pairs, 1, 2))

    def _parts(self, Y: Array, mean: Array, cov: Array) -> _Parts:
        given = self.conditional_curvatures(mean)
        shape = (mean.shape[0], self.outputs, mean.shape[1], mean.shape[1])
        bend = np.broadcast_to(np.asarray(given.mean_curvature), shape)
        middle = given.mean + 0.5 * np.einsum("nikl,nlk->ni", bend, cov)
        noise = np.broadcast_to(given.cov, (*shape[:2], self.outputs))
        residual, kept, count = keep_observed(Y, NormalMoments(middle, noise, given.mean_slope, mean_curvature=bend))
        seen = (~np.isnan(Y))[:, :, None]
        precision = np.where(seen, inverse(kept.cov), 0.0)
        bend = np.asarray(kept.mean_curvature)
        fixed = np.linalg.slogdet(kept.cov)[1] + count * log(2.0 * pi)
        return _Parts(residual, precision, np.asarray(kept.mean_slope), bend, bend @ cov[:, None], fixed)


def _leftover(turned: Array) -> Array:
    """``tr(Q_iCQ_jC)/2`` for every pair."""
    rows, outputs = turned.shape[:2]
    flat = turned.reshape(rows, outputs, -1)
    return np.asarray(0.5 * flat @ np.swapaxes(np.swapaxes(turned, 2, 3).reshape(rows, outputs, -1), 1, 2))


def _squares(parts: _Parts) -> Array:
    """``S'PS + Σ_ij P_ij Q_iCQ_j``, as ``Σ_i S_i(PS)_i' + Q_iC(PQ)_i``."""
    rows, outputs, D = parts.slope.shape
    weighed = (parts.precision @ parts.bend.reshape(rows, outputs, D * D)).reshape(parts.bend.shape)
    plain = np.swapaxes(parts.slope, 1, 2) @ (parts.precision @ parts.slope)
    return np.asarray(plain + (parts.turned @ weighed).sum(axis=1))
