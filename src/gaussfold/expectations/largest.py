"""Of a latent with Gumbel noise: the distribution function that makes integrals over a line of averages of a softmax.

Add independent standard Gumbel noise to K latents, and p(y = k | f) is the probability that f_k + G_k is the largest.
So for independent latents averages over all of them are integrals over one number, the largest t, with

    Φ_k(t) = P(f_k + G_k ≤ t) = E exp(-exp(f_k - t)).

Here is the table of Φ that ``engine.softmax.largest`` interpolates: A = log(-log Φ) in standard units of f + G, over
the share of its standard deviation that is the noise's. A is next to linear where f hardly varies and next to that of
a normal number where f is all, and keeps its digits in both tails.
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import numpy as np
import scipy

from gaussfold.types import Array

GUMBEL_STD = np.pi / np.sqrt(6.0)
LOWEST, HIGHEST, STEP = -14.0, 26.0, 0.5
"""Places of the table in standard units."""
SHARES = 96
"""And shares of the noise: as 1 - (1 - i/96)², closer together where the latent hardly varies."""
NARROW = 1.2
"""Standard deviations of the latent up to which averages go over it, beyond over the noise."""


class _Slopes(NamedTuple):
    """A and its derivatives by the place."""

    value: Array
    first: Array
    second: Array


@lru_cache(maxsize=1)
def largest_table() -> Array:
    """Coefficients (share, place, power) of the polynomials of degree five between places. Made in 20 ms."""
    places = np.arange(LOWEST, HIGHEST + 0.5 * STEP, STEP)
    shares = 1.0 - (1.0 - np.arange(SHARES + 1) / SHARES) ** 2
    value, first, second = np.stack([np.stack(_column(share, places)) for share in shares], axis=1)
    a, b = (value[:, :-1], first[:, :-1] * STEP, second[:, :-1] * STEP**2), (value, first * STEP, second * STEP**2)
    rise = b[0][:, 1:] - a[0] - a[1] - 0.5 * a[2]
    turn, bend = b[1][:, 1:] - a[1] - a[2], b[2][:, 1:] - a[2]
    table = np.stack(
        [
            a[0], a[1], 0.5 * a[2], 10.0 * rise - 4.0 * turn + 0.5 * bend, -15.0 * rise + 7.0 * turn - bend,
            6.0 * rise - 3.0 * turn + 0.5 * bend,
        ],
        axis=2,
    )  # fmt: skip
    table.flags.writeable = False
    return table


def _column(share: float, places: Array) -> _Slopes:
    """At all places, for one share of the noise."""
    std = GUMBEL_STD / share if share > 0.0 else np.inf
    latent = np.sqrt(max(std**2 - GUMBEL_STD**2, 0.0))
    if share == 0.0:  # a normal number
        log_cdf, above, std = scipy.special.log_ndtr(places), scipy.special.ndtr(-places), 1.0
        slope = np.exp(-0.5 * places**2 - 0.5 * np.log(2.0 * np.pi) - log_cdf)
        bend = -places * slope
    else:
        average = _over_latent if latent < NARROW else _over_noise
        log_cdf, above, slope, bend = average(np.euler_gamma + std * places, latent)
    log_cdf = np.where(above > 0.5, log_cdf, np.log1p(-np.minimum(above, 0.9)))
    relative = slope / log_cdf
    return _Slopes(np.log(-log_cdf), std * relative, std**2 * ((bend - slope**2) / log_cdf - relative**2))


def _over_latent(t: Array, std: float) -> tuple[Array, Array, Array, Array]:
    """Log Φ, 1 - Φ, and Φ'/Φ and Φ''/Φ at t, by the trapezoidal rule over the latent."""
    z = np.arange(-9.5, 9.51, 0.25)
    log_weight = -0.5 * z**2
    log_weight -= scipy.special.logsumexp(log_weight)
    x = np.exp(np.minimum(std * z - t[:, None], 100.0))
    log_cdf = scipy.special.logsumexp(log_weight - x, axis=1)
    share = np.exp(log_weight - x - log_cdf[:, None])
    return (
        log_cdf, -np.expm1(-x) @ np.exp(log_weight), (x * share).sum(axis=1), (x * (x - 1.0) * share).sum(axis=1),
    )  # fmt: skip


def _over_noise(t: Array, std: float) -> tuple[Array, Array, Array, Array]:
    """The same over the noise, in steps that grow with it."""
    x = np.arange(-5.0, 20.0, 0.25)
    noise = x + 0.02 * x**3
    weight = np.exp(-noise - np.exp(-noise)) * (1.0 + 0.06 * x**2)
    weight /= weight.sum()
    z = (t[:, None] - noise) / std
    density = np.exp(-0.5 * z**2) / np.sqrt(2.0 * np.pi)
    cdf = scipy.special.ndtr(z) @ weight
    slope, bend = density @ weight / std / cdf, (-z * density) @ weight / std**2 / cdf
    return np.log(cdf), scipy.special.ndtr(-z) @ weight, slope, bend
