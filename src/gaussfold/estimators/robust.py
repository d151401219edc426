"""Student-t noise of a scale that is not known: each row has a precision of its own, learned beside the weights.

``y = x'θ + σ ε/√λ`` with ``λ ~ Gamma(df/2, df/2)`` is Student-t noise of df degrees of freedom and scale σ. Were λ
known, the row would be one of weight λ, and the normal-inverse-gamma family of `gaussfold.estimators.noise` would stay
exact, but that the row counts as one: ``a += w/2``, ``b += w λ r²/(2 (1 + w λ v))``. In λ's place stands its mean:

    (df + 1)/(df + r²/(s² (1 + v)))    in one pass, r and v before the row is learned, s² = b/a;
    (df + 1)/(df + r²/s² + v)          under the posterior of all rows, again and again until it settles.

The latter is variational Bayes for weights, noise and all λ; as Student-t noise is not log-concave there may be several
optima, and it finds the one that a pass over the rows leads to.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from gaussfold.beliefs.dense.belief import DenseGaussian
from gaussfold.dynamics import Dynamics
from gaussfold.estimators.noise import NoiseBelief
from gaussfold.folding import FoldResult, fold
from gaussfold.likelihoods import Gaussian, StudentT
from gaussfold.rows import Block
from gaussfold.trace import RowError, Trace
from gaussfold.types import Array, Moments

UNIT = Gaussian(1.0)
"""Noise in units of itself."""


def one_pass(
    belief: DenseGaussian,
    noise: NoiseBelief,
    rows: tuple[Block, Array, Array],
    df: float,
    dynamics: Dynamics | None = None,
    factor: float = 1.0,
) -> tuple[FoldResult, NoiseBelief]:
    """Fold rows (design, labels, weights), in order, into a belief, in place; NaN and weight 0 teach nothing.

    ``dynamics`` and ``factor`` say how the weights and the noise forget before each row.
    """
    design, target, weight = rows
    trace, squares = Trace.empty(target.size), np.ones(target.size)
    for i, (y, w) in enumerate(zip(target.tolist(), weight.tolist(), strict=True)):
        row = Block(design.array[i : i + 1])
        learned = y == y and w > 0.0
        if learned:
            noise = noise.relax(factor)
            if dynamics is not None:
                dynamics.tick(belief)
        (mean,), (variance,) = belief.marginal(row)
        trace.mean[i], trace.variance[i] = mean, variance
        squares[i] = square = noise.scale / noise.shape
        if not learned:
            continue
        residual = y - mean
        w *= (df + 1.0) / (df + residual * residual / (square * (1.0 + variance)))
        try:
            site = fold(belief, UNIT, row, target[i : i + 1], sample_weight=np.array([w]))
        except RowError as error:
            raise RowError(i) from error
        trace.site_precision[i], trace.site_shift[i] = site.site_precision[0], site.site_shift[0]
        gain = 0.5 * w * residual * residual / (1.0 + w * variance)
        noise = replace(noise, shape=noise.shape + 0.5 * float(weight[i]), scale=noise.scale + gain)
    scale = np.sqrt(squares)
    seen = Moments(trace.mean / scale, trace.variance)
    trace.log_predictive[:] = StudentT(df, 1.0).log_predictive(target / scale, seen) - np.log(scale)
    return trace, noise


def again(
    belief: DenseGaussian, noise: NoiseBelief, prior: DenseGaussian, rows: tuple[Block, Array, Array], df: float
) -> tuple[DenseGaussian, NoiseBelief]:
    """Weights and noise from all rows anew, each with the precision that it has under the belief."""
    design, target, weight = rows
    counts = np.where(np.isnan(target), 0.0, weight)
    mean, variance = belief.marginal(design)
    square = noise.scale / noise.shape
    shares = (df + 1.0) / (df + np.nan_to_num(target - mean) ** 2 / square + variance)
    found, weighed = prior.copy(), counts * shares
    trace = fold(found, UNIT, design, target, sample_weight=weighed)
    residual = np.nan_to_num(target - trace.mean)
    gain = 0.5 * float(np.sum(weighed * residual**2 / (1.0 + weighed * trace.variance)))
    after = replace(noise, shape=noise.prior_shape + 0.5 * float(counts.sum()), scale=noise.prior_scale + gain)
    return found, after


def spread(df: float) -> float:
    """Variance of Student-t noise of scale 1; infinite for df ≤ 2."""
    return df / (df - 2.0) if df > 2.0 else math.inf
