"""The families of :mod:`gaussfold.likelihoods` as JAX differentiates them: one table, by the likelihood's class.

A form sees a whole batch: outputs of the network with one row per example, and gives one log probability per row;
several outputs of one row are independent. A NaN label says nothing (log probability 0). For another family write a
function that makes its :class:`Form`, and a line of the table.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TypeAlias

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import gammaln, log_ndtr, ndtr

from gaussfold import likelihoods
from gaussfold.deep import more_families
from gaussfold.deep.forms import Form, Outputs, aligned, by_output, over_outputs
from gaussfold.deep.noise import LearnedGaussian
from gaussfold.types import Array, ArrayLike

Likelihood: TypeAlias = (
    likelihoods.ScalarLikelihood | likelihoods.Softmax | likelihoods.HeteroscedasticGaussian | LearnedGaussian
)
"""What has a form here."""


def form_of(likelihood: Likelihood) -> Form:
    """The form of a likelihood; of a subclass there is none, since it may mean something else."""
    return _FORMS[type(likelihood)](likelihood)


def has_form(likelihood: object) -> bool:
    """Whether a likelihood can be differentiated by JAX."""
    return type(likelihood) in _FORMS


def known_families() -> list[str]:
    """Names of the families that have a form."""
    return [family.__name__ for family in _FORMS]


def check_classes(labels: Array, outputs: int | None = None) -> None:
    """Refuse what is no class number, or above the number of outputs if that is known; NaN is legal."""
    good = (labels >= 0.0) & (labels == np.floor(labels)) & (labels < (np.inf if outputs is None else outputs))
    bad = ~np.isnan(labels) & ~good
    if bad.any():
        row = int(np.argmax(bad))
        which = "softmax labels must be class numbers 0, 1, ..; number the classes"
        if outputs is not None:
            which = f"classes are 0 to {outputs - 1}, as apply has {outputs} outputs"
        msg = f"y[{row}] = {labels[row]}: {which}"
        raise ValueError(msg)


def _gaussian(likelihood: likelihoods.Gaussian) -> Form:
    std = likelihood.std
    constant = math.log(std) + 0.5 * math.log(2.0 * math.pi)
    return by_output(
        likelihood,
        lambda y, f: -0.5 * ((y - f) / std) ** 2 - constant,
        lambda f: (f, jnp.full_like(f, std**2)),
        lambda eta: 1.0 / jnp.full_like(eta, std**2),
    )


def _bernoulli(likelihood: likelihoods.Bernoulli) -> Form:
    logit = likelihood.link == "logit"
    log_g, g = (jax.nn.log_sigmoid, jax.nn.sigmoid) if logit else (log_ndtr, ndtr)

    def log_prob(y: jax.Array, f: jax.Array) -> jax.Array:
        return y * log_g(f) + (1.0 - y) * log_g(-f)

    def conditional(f: jax.Array) -> tuple[jax.Array, jax.Array]:
        return g(f), g(f) * g(-f)

    def information(eta: jax.Array) -> jax.Array:
        """(∂E[y]/∂η)²/Var(y), which is Var(y) for a natural parameter."""
        variance = conditional(eta)[1]
        if logit:
            return variance
        _, slope = jax.jvp(lambda f: conditional(f)[0], (eta,), (jnp.ones_like(eta),))
        return jnp.where(variance > 0.0, slope**2 / jnp.where(variance > 0.0, variance, 1.0), 0.0)

    return by_output(likelihood, log_prob, conditional, information, lambda p: -(_p_log_p(p) + _p_log_p(1.0 - p)))


def _poisson(likelihood: likelihoods.Poisson) -> Form:
    return by_output(
        likelihood, lambda y, f: y * f - jnp.exp(f) - gammaln(y + 1.0), lambda f: (jnp.exp(f), jnp.exp(f)), jnp.exp
    )


def _student_t(likelihood: likelihoods.StudentT) -> Form:
    df, scale = likelihood.df, likelihood.scale
    half = 0.5 * df
    constant = math.lgamma(half + 0.5) - math.lgamma(half) - 0.5 * math.log(math.pi * df)
    variance = scale**2 * df / (df - 2.0) if df > 2.0 else math.inf

    def log_prob(y: jax.Array, f: jax.Array) -> jax.Array:
        t = (y - f) / scale
        return constant - math.log(scale) - (half + 0.5) * jnp.log1p(t * t / df)

    return by_output(
        likelihood,
        log_prob,
        lambda f: (f, jnp.full_like(f, variance)),
        lambda eta: jnp.full_like(eta, (df + 1.0) / ((df + 3.0) * scale**2)),
    )


def _softmax(_: likelihoods.Softmax) -> Form:
    def log_prob(y: ArrayLike, outputs: Outputs) -> jax.Array:
        f, labels = jnp.asarray(outputs), jnp.asarray(y)
        if f.ndim != 2 or labels.shape != f.shape[:1]:
            msg = f"y, outputs: shapes {labels.shape} and {f.shape}; softmax needs (n,) class numbers and (n, classes)"
            raise ValueError(msg)
        known = ~jnp.isnan(labels)
        index = jnp.where(known, labels, 0).astype(jnp.int32)[:, None]
        value = jnp.take_along_axis(jax.nn.log_softmax(f, axis=-1), index, axis=1)[:, 0]
        return jnp.where(known, value, 0.0)

    def conditional(outputs: Outputs) -> tuple[jax.Array, jax.Array]:
        p = jax.nn.softmax(outputs, axis=-1)
        return p, p * (1.0 - p)

    def root(_: jax.Array, eta: jax.Array) -> jax.Array:
        p = jax.nn.softmax(eta)  # the information is diag(p) - pp'
        return jnp.diag(jnp.sqrt(p)) - jnp.outer(p, jnp.sqrt(p))

    def check_labels(y: ArrayLike) -> None:
        check_classes(np.asarray(y, dtype=np.float64).ravel())

    return Form(log_prob, conditional, root, check_labels, True, lambda p: np.asarray(-_p_log_p(p).sum(axis=-1)))


def _learned_gaussian(_: LearnedGaussian) -> Form:
    def log_prob(y: ArrayLike, outputs: Outputs) -> jax.Array:
        f, log_std = outputs
        f, labels, known = aligned(f, y)
        value = -0.5 * ((labels - f) * jnp.exp(-log_std)) ** 2 - log_std - 0.5 * math.log(2.0 * math.pi)
        return over_outputs(value, known)

    def conditional(outputs: Outputs) -> tuple[jax.Array, jax.Array]:
        f, log_std = outputs
        return f, jnp.broadcast_to(jnp.exp(2.0 * log_std), f.shape)

    def root(_: jax.Array, eta: jax.Array) -> jax.Array:
        msg = f"likelihood: the information of {eta.shape} outputs alone is not that of a learned noise level"
        raise NotImplementedError(msg)

    return Form(log_prob, conditional, root, likelihoods.Gaussian(1.0).check_labels)


_FORMS: dict[type, Callable[..., Form]] = {
    likelihoods.Gaussian: _gaussian,
    likelihoods.Bernoulli: _bernoulli,
    likelihoods.Poisson: _poisson,
    likelihoods.StudentT: _student_t,
    likelihoods.NegativeBinomial: more_families.negative_binomial,
    likelihoods.Gamma: more_families.gamma,
    likelihoods.Beta: more_families.beta,
    likelihoods.Ordinal: more_families.ordinal,
    likelihoods.HeteroscedasticGaussian: more_families.heteroscedastic,
    likelihoods.Softmax: _softmax,
    LearnedGaussian: _learned_gaussian,
}


def _p_log_p(p: Array) -> Array:
    return np.asarray(p * np.log(np.maximum(p, 1e-300)))
