"""Moments of ``N(f | m, v) p(y | f)^α``, in plain NumPy: what power EP matches."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import scipy

from gaussfold.expectations.gauss_hermite import nodes
from gaussfold.expectations.kinks import mended
from gaussfold.types import Array, ArrayLike, Moments

STEPS = 50
WIDTH, GRID = 9.0, 721


def tilted(
    log_prob: Callable[[Array, Array], ArrayLike],
    derivatives: Callable[[Array, Array], tuple[ArrayLike, ArrayLike]],
    y: ArrayLike,
    moments: Moments,
    alpha: float,
) -> tuple[Array, Array, Array]:
    """``log E p^α`` and its first two derivatives in m, elementwise, by Gauss-Hermite nodes around the mode.

    The derivatives come as tilted averages, ``E_t[l']`` and ``E_t[l''] + Var_t[l']`` of ``l = α log p``: they do not
    cancel for small v.
    """
    m, v, y = np.broadcast_arrays(
        np.asarray(moments.mean, dtype=float), np.asarray(moments.variance, dtype=float), np.asarray(y, dtype=float)
    )
    mode, precision = m, 1.0 / v
    for _ in range(STEPS):  # Newton, with a likelihood that bends upwards taken as flat
        first, second = (alpha * np.asarray(d) for d in derivatives(y, mode))
        precision = 1.0 / v - np.minimum(second, 0.0)
        mode = mode + (first - (mode - m) / v) / precision
    points, weights = nodes()
    spread = 1.0 / np.sqrt(precision)[..., None]
    f = mode[..., None] + points * spread
    log_w = np.log(weights) + 0.5 * points**2 - 0.5 * (f - m[..., None]) ** 2 / v[..., None]
    log_w = log_w + alpha * np.asarray(log_prob(y[..., None], f))
    total = scipy.special.logsumexp(log_w, axis=-1, keepdims=True)
    share = np.exp(log_w - total)
    first, second = (alpha * np.asarray(d) for d in derivatives(y[..., None], f))
    gradient = (share * first).sum(axis=-1)
    square = (share * (second + first**2)).sum(axis=-1)
    by_parts = ((share * (f - m[..., None]) ** 2).sum(axis=-1) / v - 1.0) / v
    believed = mended(square, by_parts, np.ones(v.shape), v)
    # arrays also where a single number was asked for: kinks are written into them
    value, slope = np.array(total[..., 0] - 0.5 * np.log(precision * v)), np.array(gradient)
    found = value, slope, np.array(believed - gradient**2)
    kinked = np.asarray(believed != square)
    if kinked.any():
        for whole, part in zip(
            found, _on_grid(log_prob, y[kinked], m[kinked], v[kinked], mode[kinked], alpha), strict=True
        ):
            whole[kinked] = part
    return found


def _on_grid(
    log_prob: Callable[[Array, Array], ArrayLike], y: Array, m: Array, v: Array, mode: Array, alpha: float
) -> tuple[Array, Array, Array]:
    """The same from the moments on many equal steps, for p that has kinks: Gauss-Hermite nodes are too far apart."""
    f = mode[:, None] + np.sqrt(v)[:, None] * np.linspace(-WIDTH, WIDTH, GRID)
    step = 2.0 * WIDTH / (GRID - 1)
    log_w = alpha * np.asarray(log_prob(y[:, None], f)) - 0.5 * (f - m[:, None]) ** 2 / v[:, None]
    total = scipy.special.logsumexp(log_w, axis=1, keepdims=True)
    share = np.exp(log_w - total)
    away = (share * (f - m[:, None])).sum(axis=1)
    spread = (share * (f - m[:, None] - away[:, None]) ** 2).sum(axis=1)
    return total[:, 0] + np.log(step / np.sqrt(2.0 * np.pi)), away / v, (spread / v - 1.0) / v
