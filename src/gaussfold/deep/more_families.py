"""Counts, positive numbers, shares and ordered classes as JAX differentiates them, and noise that a network tells.

Each is the family of the same name in :mod:`gaussfold.likelihoods`, whose own ``log_prob`` and ``conditional`` (NumPy
and SciPy, which JAX cannot trace) it is compared with over their whole range in the tests.
"""

from __future__ import annotations

import math

import jax
import jax.numpy as jnp
from jax.scipy.special import betaln, log_ndtr, ndtr, polygamma

from gaussfold import likelihoods
from gaussfold.deep.forms import Form, Outputs, aligned, by_output, over_outputs
from gaussfold.types import ArrayLike


def negative_binomial(likelihood: likelihoods.NegativeBinomial) -> Form:
    """``y log σ(g) + r log σ(-g) - log B(y + 1, r) - log(y + r)``, ``g = f - log r``; information ``r σ(g)``."""
    r = likelihood.dispersion

    def log_prob(y: jax.Array, f: jax.Array) -> jax.Array:
        g = f - math.log(r)
        return y * jax.nn.log_sigmoid(g) + r * jax.nn.log_sigmoid(-g) - betaln(y + 1.0, r) - jnp.log(y + r)

    return by_output(
        likelihood,
        log_prob,
        lambda f: (jnp.exp(f), jnp.exp(f) + jnp.exp(2.0 * f) / r),
        lambda eta: r * jax.nn.sigmoid(eta - math.log(r)),
    )


def gamma(likelihood: likelihoods.Gamma) -> Form:
    """``-a f - a y exp(-f) + (a - 1) log y + a log a - log Γ(a)``; information ``a``."""
    a = likelihood.shape
    constant = a * math.log(a) - math.lgamma(a)

    def log_prob(y: jax.Array, f: jax.Array) -> jax.Array:
        known = jnp.where(y > 0.0, y, 1.0)  # a label that is missing stands as 0, and is left out later
        return constant + (a - 1.0) * jnp.log(known) - a * (f + y * jnp.exp(-f))

    return by_output(
        likelihood, log_prob, lambda f: (jnp.exp(f), jnp.exp(2.0 * f) / a), lambda eta: jnp.full_like(eta, a)
    )


def beta(likelihood: likelihoods.Beta) -> Form:
    """``(a - 1) log y + (b - 1) log(1 - y) - log B(a, b)``, a = φg(f), b = φg(-f)."""
    scale = likelihood.scale
    g = jax.nn.sigmoid if likelihood.link == "logit" else ndtr

    def log_prob(y: jax.Array, f: jax.Array) -> jax.Array:
        a, b = scale * g(f), scale * g(-f)
        inside = jnp.where((y > 0.0) & (y < 1.0), y, 0.5)
        return (a - 1.0) * jnp.log(inside) + (b - 1.0) * jnp.log1p(-inside) - betaln(a, b)

    def information(eta: jax.Array) -> jax.Array:
        """``φ² g'² (ψ'(a) + ψ'(b))``."""
        _, slope = jax.jvp(g, (eta,), (jnp.ones_like(eta),))
        return (scale * slope) ** 2 * (polygamma(1, scale * g(eta)) + polygamma(1, scale * g(-eta)))

    return by_output(likelihood, log_prob, lambda f: (g(f), g(f) * g(-f) / (1.0 + scale)), information)


def ordinal(likelihood: likelihoods.Ordinal) -> Form:
    """``log(g(u) - g(l))`` between the borders of the class; information ``Σ p (∂ log p)²``."""
    logit = likelihood.link == "logit"
    scale, count = likelihood.scale, len(likelihood.cutpoints)
    log_g, g = (jax.nn.log_sigmoid, jax.nn.sigmoid) if logit else (log_ndtr, ndtr)

    def log_prob(y: jax.Array, f: jax.Array) -> jax.Array:
        c = jnp.asarray(likelihood.cutpoints, f.dtype)
        k = jnp.clip(y, 0, count).astype(jnp.int32)
        first, last = k == 0, k == count
        upper = (jnp.where(last, 0.0, c[jnp.minimum(k, count - 1)]) - f) / scale
        lower = (jnp.where(first, 0.0, c[jnp.maximum(k - 1, 0)]) - f) / scale
        # work in the left tail, where log g keeps its digits; an end class has one border only
        flip = lower + upper > 0.0
        high, low = jnp.where(flip, -lower, upper), jnp.where(flip, -upper, lower)
        inner = first | last
        log_high, log_low = log_g(jnp.where(inner, 1.0, high)), log_g(jnp.where(inner, 0.0, low))
        between = log_high + jnp.log(-jnp.expm1(log_low - log_high))
        return jnp.where(first, log_g(upper), jnp.where(last, log_g(-lower), between))

    def conditional(f: jax.Array) -> tuple[jax.Array, jax.Array]:
        above = g((f[..., None] - jnp.asarray(likelihood.cutpoints, f.dtype)) / scale)
        mean = above.sum(axis=-1)
        return mean, (above * (2.0 * jnp.arange(count) + 1.0)).sum(axis=-1) - mean**2

    def information(eta: jax.Array) -> jax.Array:
        found = jnp.zeros_like(eta)
        for k in range(count + 1):
            log_p, score = jax.jvp(
                lambda f, k=k: log_prob(jnp.full_like(f, float(k)), f), (eta,), (jnp.ones_like(eta),)
            )
            found = found + jnp.exp(log_p) * score**2
        return found

    return by_output(likelihood, log_prob, conditional, information)


def heteroscedastic(_: likelihoods.HeteroscedasticGaussian) -> Form:
    """Two outputs a label, f₁ and f₂: ``y ~ N(f₁, φ(f₂)²)`` with φ the softplus, bayes-newton (72).

    The first half of a row's outputs are means, the second half noise levels.
    """

    def parted(outputs: Outputs) -> tuple[jax.Array, jax.Array]:
        f = jnp.asarray(outputs)
        if f.ndim < 2 or f.shape[-1] % 2:
            msg = f"outputs: shape {f.shape}; a mean and a noise level for each label are needed, (n, 2) for one label"
            raise ValueError(msg)
        half = f.shape[-1] // 2
        mean, level = f[..., :half], jax.nn.softplus(f[..., half:])
        return (mean[..., 0], level[..., 0]) if half == 1 else (mean, level)

    def log_prob(y: ArrayLike, outputs: Outputs) -> jax.Array:
        mean, std = parted(outputs)
        mean, labels, known = aligned(mean, y)
        value = -0.5 * ((labels - mean) / std.reshape(mean.shape)) ** 2 - jnp.log(std.reshape(mean.shape))
        return over_outputs(value - 0.5 * math.log(2.0 * math.pi), known)

    def conditional(outputs: Outputs) -> tuple[jax.Array, jax.Array]:
        mean, std = parted(outputs)
        return mean, std**2

    def root(y: jax.Array, eta: jax.Array) -> jax.Array:
        half = eta.size // 2
        std = jax.nn.softplus(eta[half:])
        known = ~jnp.isnan(y)
        each = jnp.concatenate([known / std, known * math.sqrt(2.0) * jax.nn.sigmoid(eta[half:]) / std])
        return jnp.diag(each)

    return Form(log_prob, conditional, root, likelihoods.Gaussian(1.0).check_labels, responses=lambda n: n // 2)
