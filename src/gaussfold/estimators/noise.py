"""An unknown noise level, learned exactly beside the weights: the normal-inverse-gamma family.

With ``y = x'θ + ε``, ``ε ~ N(0, σ²)``, ``θ | σ² ~ N(μ, σ² P)`` and ``σ² ~ InverseGamma(a, b)`` the
posterior stays in the family. Given σ the weights follow the Kalman filter in units of the noise
(`fold` with ``Gaussian(1)``). Integrating θ out of a row of weight w (its likelihood to the power w)
leaves, with ``r = y - x'μ`` and ``v = x'P x`` taken before the row is learned,

    ∫ N(f; x'μ, σ² v) N(y; f, σ²)^w df  ∝  (σ²)^(-w/2) exp(-w r² / (2 σ² (1 + w v))),

so that

    a += w / 2,      b += w r² / (2 (1 + w v)).

Where P is approximate, as of a low-rank belief, both gains are multiplied by the share that the noise has in a row's
variance (`NoiseBelief.learn`): r² of a row that the weights leave open tells of P's error instead.

Before the row is learned y has a Student-t distribution with 2a degrees of freedom, centre x'μ and
squared scale ``(b/a) (1 + v)``; x'θ the same with ``(b/a) v``.

Forgetting relaxes σ² towards its prior as it does the weights: the density becomes
``q(σ²)^λ p(σ²)^(1-λ)``, that is ``a ← λ a + (1-λ) a₀`` and the same for b, one tick before each
learned row.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import Self

import numpy as np
from scipy.special import gammaln

from gaussfold.types import Array, Moments


@dataclass(frozen=True)
class NoiseBelief:
    """``σ² ~ InverseGamma(shape, scale)``, and the prior it started from."""

    shape: float
    scale: float
    prior_shape: float
    prior_scale: float

    @classmethod
    def from_guess(cls, std: float, worth: float) -> Self:
        """Start from a guess of the noise's standard deviation that is worth so many observations."""
        shape, scale = worth / 2.0, worth * std**2 / 2.0
        return cls(shape, scale, shape, scale)

    @property
    def variance(self) -> float:
        """Posterior mean of σ²; infinite while the shape is at most 1."""
        return self.scale / (self.shape - 1.0) if self.shape > 1.0 else math.inf

    def relax(self, factor: float) -> Self:
        """One tick of forgetting (or several: the factor's power)."""
        return replace(
            self,
            shape=factor * self.shape + (1.0 - factor) * self.prior_shape,
            scale=factor * self.scale + (1.0 - factor) * self.prior_scale,
        )

    def learn(
        self, residual: Array, variance: Array, weight: Array, factor: float = 1.0, least: float = 1.0
    ) -> tuple[Self, Array, Array]:
        """Fold rows in, in order; return also shape and scale as they were when each row was predicted.

        ``residual`` and ``variance`` are y - x'μ and x'P x of each row before it was learned. A row counts by the share
        of the noise in its variance, but at least by ``least``: 1 where P is exact and every row tells as much, less
        where it is not and rows that the weights leave open tell of P's error.
        """
        spread = 1.0 + weight * variance
        counted = weight * np.maximum(1.0 / spread, least)
        gains = np.column_stack([counted, counted * residual**2 / spread]) / 2.0
        if factor == 1.0:
            path = np.cumsum(np.vstack([[self.shape, self.scale], gains]), axis=0)
            return replace(self, shape=float(path[-1, 0]), scale=float(path[-1, 1])), path[:-1, 0], path[:-1, 1]
        pull = (1.0 - factor) * self.prior_shape, (1.0 - factor) * self.prior_scale

        def step(state: tuple[float, float], gain: tuple[float, float]) -> tuple[float, float]:
            return factor * state[0] + pull[0] + gain[0], factor * state[1] + pull[1] + gain[1]

        path = np.array(list(accumulate(map(tuple, gains.tolist()), step, initial=(self.shape, self.scale))))
        before = factor * path[:-1] + pull
        after = replace(self, shape=float(path[-1, 0]), scale=float(path[-1, 1]))
        return after, before[:, 0], before[:, 1]

    def spread(self, draws: Array, mean: Array, rng: np.random.Generator) -> Array:
        """Draws of the weights in units of the noise, each with a noise level of its own put in: a Student-t."""
        variance = self.scale / rng.gamma(self.shape, size=len(draws))
        return np.asarray(mean + (draws - mean) * np.sqrt(variance)[:, None])


def log_student(residual: Array, variance: Array, shape: Array, scale: Array) -> Array:
    """Log density of y before seeing it, in the units of y."""
    spread = 2.0 * scale * (1.0 + variance)
    return np.asarray(
        gammaln(shape + 0.5)
        - gammaln(shape)
        - 0.5 * np.log(np.pi * spread)
        - (shape + 0.5) * np.log1p(residual**2 / spread)
    )


def scaled(moments: Moments, noise: NoiseBelief | None) -> Moments:
    """Turn moments in units of the noise into plain ones; without a NoiseBelief they are plain already."""
    if noise is None:
        return moments
    if math.isinf(noise.variance):  # 0 times infinity would be NaN, but what is known exactly stays so
        return Moments(moments.mean, np.where(moments.variance > 0.0, math.inf, 0.0))
    return Moments(moments.mean, moments.variance * noise.variance)
