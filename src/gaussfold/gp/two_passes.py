"""Filter and smoother for sites that are negative in some direction: what they add first, what they take away after.

A filter in time order meets a negative site before the later rows that outweigh it, and may find no posterior, or one
that is all rounding, half way to a posterior that is perfectly good. So the positive parts Λ⁺ go first. Their posterior
is a Markov chain again: with filtered covariances P_n and the gain ``G_n = P_n A'(A P_n A' + Q)⁻¹`` it runs backwards,

    ``z_n = G_n z_{n+1} + N(0, (I - G_n A) P_n (I - G_n A)' + G_n Q G_n')``,

z the state minus its smoothed mean. The negative parts are sites on that chain. Whatever rows have been visited, the
precision is that of the final posterior or more: no pivot is worse than the posterior itself.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gaussfold.gp.kalman import Filtered, GeneralSmoother, Matrices, Smoother
from gaussfold.gp.priors import lost
from gaussfold.linalg.small import applied, symmetrised
from gaussfold.types import Array

ROUNDED = 1e-14
"""Eigenvalues of a scaled covariance below this are zeros."""


class Both(NamedTuple):
    """Marginals of the latents and log Z."""

    mean: Array
    cov: Array
    log_z: float


def parts(precision: Array) -> tuple[Array, Array]:
    """``Λ = Λ⁺ - Λ⁻``, both positive semi-definite."""
    if precision.shape[-1] == 1:
        return np.maximum(precision, 0.0), np.maximum(-precision, 0.0)
    values, vectors = np.linalg.eigh(precision)
    positive = symmetrised((vectors * np.maximum(values, 0.0)[:, None, :]) @ np.swapaxes(vectors, 1, 2))
    return positive, positive - precision


def smooth(matrices: Matrices, first: tuple[Smoother, Filtered, Array], negative: Array) -> Both:
    """The posterior with the negative parts taken away from that of the positive ones.

    ``first`` is the pass over the positive parts: its smoother, what the filter left, and the latents' smoothed means.
    """
    smoother, filtered, mean = first
    P = smoother.states(filtered)[1]
    back, noise = _backwards(P[:-1], matrices.A[matrices.step[1:]], matrices.Q[matrices.step[1:]])
    N, S = P.shape[:2]
    tables = np.zeros((2, N, S, S))
    tables[0, 1:], tables[1, 1:] = back[::-1], noise[::-1]
    other = GeneralSmoother(Matrices(np.arange(N), tables[0], tables[1], matrices.H))
    pull = applied(negative, mean)
    left, bad = other.forward(np.zeros(S), np.ascontiguousarray(P[-1]), -negative[::-1], pull[::-1], None)
    if bad >= 0:
        raise lost(N - 1 - bad, "first seen at, in time order,")
    z, cov = np.empty(mean.shape), np.empty(negative.shape)
    other.backward(slice(0, N), 0, left, other.carry(), z, cov, None)
    log_z = filtered.log_z + 0.5 * float(np.vdot(mean, pull)) + float(left.log_z)
    return Both(mean + z[::-1], np.ascontiguousarray(cov[::-1]), log_z)


def _backwards(P: Array, A: Array, Q: Array) -> tuple[Array, Array]:
    """Gains G_n and covariances of the chain that runs from the last row to the first."""
    turned = np.swapaxes(A, 1, 2)
    ahead = symmetrised(A @ P @ turned) + Q
    scale = np.sqrt(np.maximum(np.diagonal(ahead, axis1=1, axis2=2), np.finfo(float).tiny))
    values, vectors = np.linalg.eigh(ahead / (scale[:, :, None] * scale[:, None, :]))
    inverse = np.where(values > ROUNDED, 1.0 / np.where(values > ROUNDED, values, 1.0), 0.0)
    solved = (vectors * inverse[:, None, :]) @ np.swapaxes(vectors, 1, 2) / (scale[:, :, None] * scale[:, None, :])
    G = P @ turned @ solved
    rest = np.eye(P.shape[1]) - G @ A
    return G, symmetrised(rest @ P @ np.swapaxes(rest, 1, 2) + G @ Q @ np.swapaxes(G, 1, 2))
