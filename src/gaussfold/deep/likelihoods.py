"""The families of :mod:`gaussfold.likelihoods` in JAX, and two that only networks need: softmax and learned noise.

A likelihood here sees a whole batch: outputs of the network with one row per example, and gives one log probability
per row; several outputs of one row are independent. A NaN label says nothing (log probability 0).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import gammaln, log_ndtr, ndtr

from gaussfold import likelihoods
from gaussfold.checks import positive
from gaussfold.deep.trees import Tree

Apply = Callable[[Tree, Any], Any]
"""A network: ``apply(params, X)`` gives outputs, one row per row of X."""


@dataclass(frozen=True)
class Softmax:
    """Classes 0 .. C-1 (integers), with the network's C outputs as log odds."""

    def config(self) -> dict[str, object]:
        """Name, for model files."""
        return {"name": "Softmax"}


@dataclass(frozen=True)
class LearnedGaussian:
    """Normal noise whose standard deviation is learned with the network, and is as uncertain as the rest.

    Its logarithm is a leaf of the tree, which :func:`with_noise` adds: {"network": params, "log_std": log std}.
    """

    def config(self) -> dict[str, object]:
        """Name, for model files."""
        return {"name": "LearnedGaussian"}


def with_noise(params: Tree, std: float = 1.0) -> dict[str, Tree]:
    """Put a network's parameters beside the logarithm of a noise level, for :class:`LearnedGaussian`."""
    return {"network": params, "log_std": jnp.asarray(math.log(positive("std", std)))}


@dataclass(frozen=True)
class LogLikelihood:
    """``log_likelihood(params, (X, y))``: the log probability of each row's label; made by :func:`log_likelihood`."""

    apply: Apply
    likelihood: Any

    def __call__(self, params: Tree, batch: Any) -> Any:
        """One log probability per row."""
        X, y = batch
        return log_prob(self.likelihood, y, forward(self.likelihood, self.apply, params, X))

    def check(self, data: Any) -> None:
        """Raise a ValueError unless these are inputs and labels that the likelihood can explain."""
        if not (isinstance(data, tuple | list) and len(data) == 2):
            msg = f"data: {type(data).__name__}; a pair (X, y) is needed by gaussfold.deep.log_likelihood"
            raise ValueError(msg)
        if isinstance(self.likelihood, LearnedGaussian):
            likelihoods.Gaussian(1.0).check_labels(data[1])
        elif isinstance(self.likelihood, Softmax):
            labels = np.asarray(data[1], dtype=np.float64).ravel()
            bad = ~np.isnan(labels) & ~((labels >= 0.0) & (labels == np.floor(labels)) & np.isfinite(labels))
            if bad.any():
                row = int(np.argmax(bad))
                msg = f"y[{row}] = {labels[row]}: softmax labels must be class numbers 0, 1, ..; number the classes"
                raise ValueError(msg)
        else:
            self.likelihood.check_labels(data[1])


def log_likelihood(apply: Apply, likelihood: Any) -> LogLikelihood:
    """Join a network and a likelihood into the function that the methods of this module learn from.

    Parameters
    ----------
    apply
        ``apply(params, X)``: the network.
    likelihood
        An object of :mod:`gaussfold.likelihoods`, :class:`Softmax`, :class:`LearnedGaussian`, or a name: "softmax",
        "bernoulli", "poisson", "gaussian" (learned noise).

    Examples
    --------
    >>> import gaussfold as gf
    >>> import jax.numpy as jnp
    >>> function = log_likelihood(lambda params, X: X @ params, gf.likelihoods.Gaussian(std=1.0))
    >>> print(function(jnp.ones(2), (jnp.eye(2), jnp.asarray([1.0, 2.0]))))
    [-0.9189385 -1.4189385]
    """
    return LogLikelihood(apply, resolve(likelihood))


def resolve(likelihood: Any) -> Any:
    """Turn a name into an object; refuse what has no form in JAX."""
    named = {"softmax": Softmax(), "gaussian": LearnedGaussian()}
    if isinstance(likelihood, str) and likelihood in named:
        return named[likelihood]
    if isinstance(likelihood, Softmax | LearnedGaussian):
        return likelihood
    if isinstance(likelihood, likelihoods.Softmax):
        return Softmax()  # how many classes there are, the network says
    try:
        found = likelihoods.resolve(likelihood)
    except ValueError:
        found = None
    if type(found) not in _LOG_PROBS:
        allowed = ", ".join([*(f"likelihoods.{kind.__name__}" for kind in _LOG_PROBS), "'softmax'", "'gaussian'"])
        msg = f"likelihood={likelihood!r}: allowed are {allowed}; or write log_likelihood(params, batch) yourself"
        raise ValueError(msg)
    return found


def from_config(config: dict[str, Any] | None) -> Any:
    """Build the likelihood that ``config()`` described."""
    if config is None:
        return None
    own: dict[Any, Any] = {"Softmax": Softmax, "LearnedGaussian": LearnedGaussian}
    return own[config["name"]]() if config["name"] in own else likelihoods.from_config(config)


def forward(likelihood: Any, apply: Apply, params: Tree, X: Any) -> Any:
    """What the likelihood needs of the network at X: its outputs, and a learned noise level beside them."""
    if isinstance(likelihood, LearnedGaussian):
        if not (isinstance(params, dict) and params.keys() == {"network", "log_std"}):
            msg = "params: a learned noise level is a part of the tree; use gaussfold.deep.with_noise(params)"
            raise ValueError(msg)
        return apply(params["network"], X), params["log_std"]
    return apply(params, X)


def log_prob(likelihood: Any, y: Any, outputs: Any) -> Any:
    """Log probability of each row's label given the outputs of :func:`forward`."""
    if isinstance(likelihood, Softmax):
        return _softmax(y, outputs)
    if isinstance(likelihood, LearnedGaussian):
        f, log_std = outputs
        f, y, known = _aligned(f, y)
        value = -0.5 * ((y - f) * jnp.exp(-log_std)) ** 2 - log_std - 0.5 * math.log(2.0 * math.pi)
    else:
        f, y, known = _aligned(outputs, y)
        value = _LOG_PROBS[type(likelihood)](likelihood, y, f)
    value = jnp.where(known, value, 0.0)
    return value.reshape(value.shape[0], -1).sum(axis=1)


def conditional(likelihood: Any, outputs: Any) -> tuple[Any, Any]:
    """Mean and variance of y given the outputs: of the one-hot class for softmax, else per output."""
    if likelihood is None:
        return outputs, jnp.zeros_like(outputs)
    if isinstance(likelihood, Softmax):
        p = jax.nn.softmax(outputs, axis=-1)
        return p, p * (1.0 - p)
    if isinstance(likelihood, LearnedGaussian):
        f, log_std = outputs
        return f, jnp.broadcast_to(jnp.exp(2.0 * log_std), f.shape)
    return _CONDITIONALS[type(likelihood)](likelihood, outputs)


def _softmax(y: Any, f: Any) -> Any:
    labels = jnp.asarray(y)
    if f.ndim != 2 or labels.shape != f.shape[:1]:
        msg = f"y, outputs: shapes {labels.shape} and {f.shape}; softmax needs (n,) class numbers and (n, classes)"
        raise ValueError(msg)
    known = ~jnp.isnan(labels)
    index = jnp.where(known, labels, 0).astype(jnp.int32)[:, None]
    value = jnp.take_along_axis(jax.nn.log_softmax(f, axis=-1), index, axis=1)[:, 0]
    return jnp.where(known, value, 0.0)


def _aligned(f: Any, y: Any) -> tuple[Any, Any, Any]:
    """Outputs and labels of one shape (a single output needs no axis of its own), and which labels are known."""
    labels = jnp.asarray(y, dtype=f.dtype)
    if f.ndim == labels.ndim + 1 and f.shape[-1] == 1:
        f = f[..., 0]
    elif labels.ndim == f.ndim + 1 and labels.shape[-1] == 1:
        labels = labels[..., 0]
    if f.shape != labels.shape:
        msg = f"y, outputs: shapes {labels.shape} and {f.shape} do not fit; the network must give one output per label"
        raise ValueError(msg)
    known = ~jnp.isnan(labels)
    return f, jnp.where(known, labels, 0.0), known


def _gaussian(likelihood: Any, y: Any, f: Any) -> Any:
    constant = math.log(likelihood.std) + 0.5 * math.log(2.0 * math.pi)
    return -0.5 * ((y - f) / likelihood.std) ** 2 - constant


def _bernoulli(likelihood: Any, y: Any, f: Any) -> Any:
    log_g = jax.nn.log_sigmoid if likelihood.link == "logit" else log_ndtr
    return y * log_g(f) + (1.0 - y) * log_g(-f)


def _bernoulli_moments(likelihood: Any, f: Any) -> tuple[Any, Any]:
    g = jax.nn.sigmoid if likelihood.link == "logit" else ndtr
    return g(f), g(f) * g(-f)


def _student_t(likelihood: Any, y: Any, f: Any) -> Any:
    half = 0.5 * likelihood.df
    constant = math.lgamma(half + 0.5) - math.lgamma(half) - 0.5 * math.log(math.pi * likelihood.df)
    t = (y - f) / likelihood.scale
    return constant - math.log(likelihood.scale) - (half + 0.5) * jnp.log1p(t * t / likelihood.df)


def _student_t_moments(likelihood: Any, f: Any) -> tuple[Any, Any]:
    df = likelihood.df
    return f, jnp.full_like(f, likelihood.scale**2 * df / (df - 2.0) if df > 2.0 else math.inf)


_LOG_PROBS: dict[type, Callable[[Any, Any, Any], Any]] = {
    likelihoods.Gaussian: _gaussian,
    likelihoods.Bernoulli: _bernoulli,
    likelihoods.Poisson: lambda _, y, f: y * f - jnp.exp(f) - gammaln(y + 1.0),
    likelihoods.StudentT: _student_t,
}
_CONDITIONALS: dict[type, Callable[[Any, Any], tuple[Any, Any]]] = {
    likelihoods.Gaussian: lambda likelihood, f: (f, jnp.full_like(f, likelihood.std**2)),
    likelihoods.Bernoulli: _bernoulli_moments,
    likelihoods.Poisson: lambda _, f: (jnp.exp(f), jnp.exp(f)),
    likelihoods.StudentT: _student_t_moments,
}
