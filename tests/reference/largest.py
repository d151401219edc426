"""E softmax over independent latents: over all of them at once, and by the largest of latents with Gumbel noise.

Both by sums over fine grids, without a table: nothing here is shared with ``engine.softmax.largest``.
"""

from __future__ import annotations

import numpy as np
from scipy.special import log_softmax, logsumexp


def by_latents(mean, std, points=41, reach=7.0):
    """log E p_k by a grid over all latents: a few classes, and spreads of a few at the most."""
    z = np.linspace(-reach, reach, points)
    grid = np.stack([axis.ravel() for axis in np.meshgrid(*[z] * len(mean), indexing="ij")])
    log_weight = -0.5 * (grid**2).sum(axis=0)
    log_p = log_softmax(np.asarray(mean)[:, None] + np.asarray(std)[:, None] * grid, axis=0)
    return logsumexp(log_p + log_weight, axis=1) - logsumexp(log_weight)


def by_largest(mean, std, points=6001):
    """log E p_k = log of ∫ φ_k Π_{j≠k} Φ_j dt, any number of classes."""
    mean, std = np.asarray(mean, float) - np.max(mean), np.asarray(std, float)
    t = np.linspace((mean - 12 * std - 6).max(), (mean + 10 * std + 35).max(), points)
    z = np.linspace(-12, 12, int(201 + 60 * std.max()))
    log_weight = -0.5 * z**2 - logsumexp(-0.5 * z**2)
    log_cdf, log_density = np.empty((2, len(mean), points))
    for k, (m, s) in enumerate(zip(mean, std, strict=True)):
        x = np.minimum(m + s * z - t[:, None], 300.0)
        log_cdf[k] = logsumexp(log_weight - np.exp(x), axis=1)
        log_density[k] = logsumexp(log_weight + x - np.exp(x), axis=1)
    parts = log_density + log_cdf.sum(axis=0) - log_cdf
    return logsumexp(np.nan_to_num(parts, nan=-np.inf), axis=1) + np.log(t[1] - t[0])
