"""What y may be, not only f: quantiles, intervals and draws of the labels, the latents integrated out.

A label's distribution given the latents is one of `scipy.stats`. Its predictive distribution is a mixture of those over
nodes of the latents' Gaussian; quantiles of a mixture lie between the smallest and the largest of its parts' quantiles,
where they are found by bisection.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache, singledispatch
from typing import Any

import numpy as np
import scipy
from scipy import stats

from gaussfold import likelihoods as lk
from gaussfold.expectations.gauss_hermite import nodes
from gaussfold.gp.outputs import Outputs
from gaussfold.likelihoods import links
from gaussfold.linalg.small import lower_roots
from gaussfold.types import Array, ArrayLike

NODES = 40
MANY = 1024
BISECTIONS = 60


@singledispatch
def outcome(likelihood: object, F: Array) -> Any:
    """The distribution of y given latents (..., D), frozen, of `scipy.stats`; others join by ``outcome.register``."""
    msg = (
        f"{likelihood} does not say how its labels are distributed (asked at latents of shape {F.shape}): quantiles "
        "and draws of y need gaussfold.gp.outcomes.outcome.register(YourLikelihood), a function of likelihood and "
        "latents with a frozen distribution of scipy.stats"
    )
    raise ValueError(msg)


@outcome.register
def _(likelihood: lk.Gaussian, F: Array) -> Any:
    return stats.norm(F[..., 0], likelihood.std)


@outcome.register
def _(likelihood: lk.StudentT, F: Array) -> Any:
    return stats.t(likelihood.df, F[..., 0], likelihood.scale)


@outcome.register
def _(likelihood: lk.Bernoulli, F: Array) -> Any:
    return stats.bernoulli(likelihood.conditional(F[..., 0]).mean)


@outcome.register
def _(likelihood: lk.Poisson, F: Array) -> Any:
    del likelihood
    return stats.poisson(np.exp(np.minimum(F[..., 0], 40.0)))


@outcome.register
def _(likelihood: lk.NegativeBinomial, F: Array) -> Any:
    r = likelihood.dispersion
    return stats.nbinom(r, np.maximum(scipy.special.expit(np.log(r) - F[..., 0]), 1e-15))


@outcome.register
def _(likelihood: lk.Gamma, F: Array) -> Any:
    return stats.gamma(likelihood.shape, scale=np.exp(np.minimum(F[..., 0], 300.0)) / likelihood.shape)


@outcome.register
def _(likelihood: lk.Beta, F: Array) -> Any:
    mean = np.clip(likelihood.conditional(F[..., 0]).mean, 1e-12, 1.0 - 1e-12)
    return stats.beta(likelihood.scale * mean, likelihood.scale * (1.0 - mean))


@outcome.register
def _(likelihood: lk.HeteroscedasticGaussian, F: Array) -> Any:
    del likelihood
    return stats.norm(F[..., 0], links.softplus(F[..., 1]))


@outcome.register
def _(likelihood: lk.ProductGaussian, F: Array) -> Any:
    moments = likelihood.conditional(F)
    return stats.norm(moments.mean[..., 0], np.sqrt(moments.cov[..., 0, 0]))


class _Classes:
    """Ordered classes as a distribution on 0, 1, .., K-1."""

    def __init__(self, below: Array) -> None:
        self._below = below  # (..., K): p(y <= k)

    def cdf(self, y: ArrayLike) -> Array:
        """``p(class <= y)``."""
        k = np.floor(np.asarray(y, dtype=float)).astype(np.int64)
        last = self._below.shape[-1] - 1
        found = np.take_along_axis(self._below, np.clip(k, 0, last)[..., None], axis=-1)[..., 0]
        return np.asarray(np.where(k < 0, 0.0, found))

    def ppf(self, q: float) -> Array:
        """The first class that reaches q."""
        return np.asarray((self._below < q - 1e-12).sum(axis=-1), dtype=float).clip(0, self._below.shape[-1] - 1)

    def rvs(self, random_state: np.random.Generator) -> Array:
        """A class."""
        u = random_state.random(self._below.shape[:-1])
        return np.asarray((self._below < u[..., None]).sum(axis=-1), dtype=float)


@outcome.register
def _(likelihood: lk.Ordinal, F: Array) -> Any:
    classes = np.arange(len(likelihood.cutpoints) + 1.0)
    p = np.exp(likelihood.log_prob(classes, F[..., :1]))
    return _Classes(np.cumsum(p, axis=-1))


@outcome.register
def _(likelihood: lk.Softmax, F: Array) -> Any:
    del likelihood
    return _Classes(np.cumsum(scipy.special.softmax(F, axis=-1), axis=-1))


def is_discrete(likelihood: object) -> bool:
    """Whether labels are whole numbers."""
    return isinstance(likelihood, lk.Bernoulli | lk.Poisson | lk.NegativeBinomial | lk.Ordinal | lk.Softmax)


def has_order(likelihood: object) -> bool:
    """Whether one label can be larger than another."""
    return not isinstance(likelihood, lk.Softmax)


def _parts(likelihood: object) -> list[tuple[object, list[int]]]:
    """Every output's likelihood, and the latents it looks at."""
    if isinstance(likelihood, Outputs):
        return [(part, [p]) for p, part in enumerate(likelihood.families)]
    latents = lk.as_vector(likelihood).latents  # type: ignore[arg-type]  # a model's likelihood is one
    return [(likelihood, list(range(latents)))]


def drawn(likelihood: object, F: Array, rng: np.random.Generator) -> Array:
    """Labels for latents (..., D): (...,) for one output, else (..., P)."""
    each = [np.asarray(outcome(part, F[..., at]).rvs(random_state=rng)) for part, at in _parts(likelihood)]
    return each[0] if len(each) == 1 else np.stack(each, axis=-1)


def quantiles(likelihood: object, mean: Array, cov: Array, levels: Sequence[float]) -> Array:
    """Of y at every row for every level: (n, levels), or (n, P, levels) for several outputs."""
    found = []
    for part, at in _parts(likelihood):
        if not has_order(part):
            msg = "Softmax: classes have no order, and so no quantiles; use predict for their probabilities"
            raise ValueError(msg)
        points, weights = _nodes(len(at))
        roots = lower_roots(np.ascontiguousarray(cov[:, at][:, :, at]), "cov")
        F = mean[:, None, at] + points @ np.swapaxes(roots, -1, -2)
        found.append(np.stack([_quantile(outcome(part, F), weights, q, is_discrete(part)) for q in levels], axis=1))
    return found[0] if len(found) == 1 else np.stack(found, axis=1)


def _quantile(given: Any, weights: Array, q: float, discrete: bool) -> Array:
    """By bisection between the parts' own."""
    each = np.asarray(given.ppf(q))
    low, high = each.min(axis=1) - 1.0 * discrete, each.max(axis=1)
    for _ in range(BISECTIONS):
        middle = 0.5 * (low + high)
        reached = given.cdf(np.broadcast_to(middle[:, None], each.shape)) @ weights >= q
        low, high = np.where(reached, low, middle), np.where(reached, middle, high)
    return np.asarray(np.maximum(np.floor(high + 1e-9 * (1.0 + np.abs(high))), 0.0) if discrete else high)


@lru_cache(maxsize=8)
def _nodes(latents: int) -> tuple[Array, Array]:
    """Points (n, D) and positive weights for N(0, I): Gauss-Hermite, or many quasi-random ones in three and more."""
    if latents > 2:
        uniform = stats.qmc.Sobol(latents, seed=0).random(MANY)
        return np.asarray(stats.norm.ppf(np.clip(uniform, 1e-6, 1.0 - 1e-6))), np.full(MANY, 1.0 / MANY)
    x, w = nodes(NODES)
    kept = w > 1e-13
    x, w = x[kept], w[kept] / w[kept].sum()
    if latents == 1:
        return x[:, None], w
    return np.stack([np.repeat(x, x.size), np.tile(x, x.size)], axis=1), np.outer(w, w).ravel()
