"""The families of :mod:`gaussfold.likelihoods` as networks learn from them: their own ``log_prob`` and ``conditional``.

A form sees a whole batch: outputs of the network with one row per example, and gives one log probability per row;
several outputs of one row are independent. A NaN label says nothing (log probability 0). A family of one latent is
here by its own functions, which JAX traces (:mod:`gaussfold.likelihoods.libraries`), and a line with its Fisher
information; one that somebody wrote himself by what it computes in NumPy (:mod:`gaussfold.deep.foreign`).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import TypeAlias

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import polygamma

from gaussfold import likelihoods
from gaussfold.deep import foreign
from gaussfold.deep.forms import Form, Outputs, aligned, by_output, over_outputs
from gaussfold.deep.noise import LearnedGaussian
from gaussfold.likelihoods.libraries import library_of
from gaussfold.types import Array, ArrayLike

Likelihood: TypeAlias = (
    likelihoods.ScalarLikelihood | likelihoods.Softmax | likelihoods.HeteroscedasticGaussian | LearnedGaussian
)
"""What has a form here."""


def form_of(likelihood: Likelihood) -> Form:
    """The form of a likelihood; a subclass may mean something else, and is taken for a family of its own."""
    if type(likelihood) in _FORMS:
        return _FORMS[type(likelihood)](likelihood)
    assert isinstance(likelihood, likelihoods.ScalarLikelihood)
    information = _INFORMATION.get(type(likelihood))
    if information is None:
        return by_output(foreign.traceable(likelihood), of_moments)
    return by_output(likelihood, information, _entropy if isinstance(likelihood, likelihoods.Bernoulli) else None)


def has_form(likelihood: object) -> bool:
    """Whether a likelihood can be learned from here."""
    return type(likelihood) in _FORMS or isinstance(likelihood, likelihoods.ScalarLikelihood)


def known_families() -> list[str]:
    """Names of the families that have a form."""
    return [family.__name__ for family in (*_INFORMATION, *_FORMS)]


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


def _gaussian(likelihood: likelihoods.Gaussian, f: jax.Array) -> jax.Array:
    return jnp.full_like(f, likelihood.std**-2.0)


def _bernoulli(likelihood: likelihoods.Bernoulli, f: jax.Array) -> jax.Array:
    return likelihood.conditional(f).variance if likelihood.link == "logit" else of_moments(likelihood, f)


def of_moments(likelihood: likelihoods.ScalarLikelihood, f: jax.Array) -> jax.Array:
    """``(∂E[y]/∂f)²/Var(y)``, which is the information of exponential families: of Poisson the rate, of Gamma a."""
    (mean, variance), slopes = jax.jvp(likelihood.conditional, (f,), (jnp.ones_like(f),))
    del mean
    return jnp.where(variance > 0.0, slopes[0] * (slopes[0] / jnp.where(variance > 0.0, variance, 1.0)), 0.0)


def _negative_binomial(likelihood: likelihoods.NegativeBinomial, f: jax.Array) -> jax.Array:
    """``r σ(g)``: of the moments, but their quotient leaves single precision for large rates."""
    return likelihood.dispersion * jax.nn.sigmoid(f - math.log(likelihood.dispersion))


def _gamma(likelihood: likelihoods.Gamma, f: jax.Array) -> jax.Array:
    return jnp.full_like(f, likelihood.shape)


def _student_t(likelihood: likelihoods.StudentT, f: jax.Array) -> jax.Array:
    df, scale = likelihood.df, likelihood.scale
    return jnp.full_like(f, (df + 1.0) / ((df + 3.0) * scale**2))


def _beta(likelihood: likelihoods.Beta, f: jax.Array) -> jax.Array:
    """``φ² g'² (ψ'(a) + ψ'(b))``, with ψ'(a) = 1/a² + ψ'(1 + a), since a may be zero in single precision."""

    def part(f: jax.Array) -> jax.Array:
        log_g = library_of(f).log_cdf[likelihood.link]
        _, slope = jax.jvp(log_g, (f,), (jnp.ones_like(f),))
        a = likelihood.scale * likelihood.conditional(f).mean
        return slope**2 * (1.0 + a**2 * polygamma(1, 1.0 + a))

    return part(f) + part(-f)


def _ordinal(likelihood: likelihoods.Ordinal, f: jax.Array) -> jax.Array:
    """``Σ p (∂ log p)²`` over the classes."""
    found = jnp.zeros_like(f)
    for k in range(len(likelihood.cutpoints) + 1):
        log_p, score = jax.jvp(partial(likelihood.log_prob, float(k)), (f,), (jnp.ones_like(f),))
        found = found + jnp.exp(log_p) * score**2
    return found


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


def _heteroscedastic(_: likelihoods.HeteroscedasticGaussian) -> Form:
    """Two outputs a label: the first half of a row's outputs are means, the second half noise levels."""

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
        return over_outputs(_normal(labels, mean, jnp.log(std.reshape(mean.shape))), known)

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


def _normal(y: jax.Array, mean: jax.Array, log_std: jax.Array) -> jax.Array:
    """Normal noise whose level comes with the outputs: the standard one, in units of the level."""
    return jnp.asarray(likelihoods.Gaussian(1.0).log_prob((y - mean) * jnp.exp(-log_std), 0.0)) - log_std


def _learned_gaussian(_: LearnedGaussian) -> Form:
    def log_prob(y: ArrayLike, outputs: Outputs) -> jax.Array:
        f, log_std = outputs
        f, labels, known = aligned(f, y)
        return over_outputs(_normal(labels, f, log_std), known)

    def conditional(outputs: Outputs) -> tuple[jax.Array, jax.Array]:
        f, log_std = outputs
        return f, jnp.broadcast_to(jnp.exp(2.0 * log_std), f.shape)

    def root(_: jax.Array, eta: jax.Array) -> jax.Array:
        msg = f"likelihood: the information of {eta.shape} outputs alone is not that of a learned noise level"
        raise NotImplementedError(msg)

    return Form(log_prob, conditional, root, likelihoods.Gaussian(1.0).check_labels)


_INFORMATION: dict[type, Callable[..., jax.Array]] = {
    likelihoods.Gaussian: _gaussian,
    likelihoods.Bernoulli: _bernoulli,
    likelihoods.Poisson: of_moments,
    likelihoods.StudentT: _student_t,
    likelihoods.NegativeBinomial: _negative_binomial,
    likelihoods.Gamma: _gamma,
    likelihoods.Beta: _beta,
    likelihoods.Ordinal: _ordinal,
}
"""Of one latent: the Fisher information, all that the family does not say itself."""
_FORMS: dict[type, Callable[..., Form]] = {
    likelihoods.HeteroscedasticGaussian: _heteroscedastic,
    likelihoods.Softmax: _softmax,
    LearnedGaussian: _learned_gaussian,
}


def _entropy(p: Array) -> Array:
    return np.asarray(-(_p_log_p(p) + _p_log_p(1.0 - p)))


def _p_log_p(p: Array) -> Array:
    return np.asarray(p * np.log(np.maximum(p, 1e-300)))
