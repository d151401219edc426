"""What a generalised Gauss-Newton step needs of a likelihood: score and Fisher information of one row's outputs η.

For an exponential family with η its natural parameter, lrvga (28), (40), the score is y - E[y] and the information
Cov(y), whatever y. Here both are in terms of the network's outputs: the score by differentiation of the log
probability, the information in closed form.
"""

from __future__ import annotations

import math
from functools import lru_cache, partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from gaussfold import likelihoods as scalar
from gaussfold.deep.likelihoods import Apply, Softmax, conditional, log_prob
from gaussfold.deep.trees import Layout
from gaussfold.types import Array


class Model(NamedTuple):
    """A network, its likelihood and its parameters' layout; hashable, so that equal models are compiled once."""

    apply: Apply
    likelihood: Any
    layout: Layout

    def outputs(self, flat: Any, x: Any) -> Any:
        """Outputs at rows."""
        return self.apply(self.layout.unflatten(flat), x)

    def eta(self, flat: Any, x: Any, stacked: bool) -> Any:
        """Outputs at one row, as a vector."""
        return jnp.ravel(self.outputs(flat, x[None] if stacked else x))


@lru_cache(maxsize=16)
def interface(model: Model, shape: tuple[int, ...], dtype: Any) -> tuple[bool, int]:
    """Whether ``apply`` takes rows stacked, and its number of outputs.

    Stacked is (n, ...) to (n,) or (n, outputs), which is tried first, with one row; otherwise one row at a time, to
    () or (outputs,).
    """
    vector = jax.ShapeDtypeStruct((model.layout.dim,), model.layout.dtype)
    problems = []
    for front in ((1,), ()):
        try:
            found = jax.eval_shape(model.outputs, vector, jax.ShapeDtypeStruct(front + shape, dtype))
        except (TypeError, ValueError) as error:
            problems.append(f"rows of shape {front + shape}: {str(error).splitlines()[0]}")
            continue
        size: tuple[int, ...] = getattr(found, "shape", (0, 0, 0))
        fits = size[: len(front)] == front and len(size) <= len(front) + 1
        if fits and jnp.issubdtype(found.dtype, jnp.floating):
            return bool(front), math.prod(size)
        problems.append(f"rows of shape {front + shape} give {found}")
    msg = (
        f"apply: rows of X do not go through it ({'; '.join(problems)}); apply(params, x) must take stacked rows to "
        "floats of shape (n,) or (n, outputs), or one row to () or (outputs,)"
    )
    raise ValueError(msg)


def value(likelihood: Any, y: Any, eta: Any) -> Any:
    """Log probability of one row's labels (C,) or class ()."""
    return log_prob(likelihood, y[None], eta[None])[0]


def root(likelihood: Any, y: Any, eta: Any) -> Any:
    """R with RR' = the Fisher information of η; an output whose label is NaN carries none."""
    if isinstance(likelihood, Softmax):  # of diag(π) - ππ'
        p = jax.nn.softmax(eta)
        return jnp.diag(jnp.sqrt(p)) - jnp.outer(p, jnp.sqrt(p))
    return jnp.diag(jnp.sqrt(jnp.where(jnp.isnan(y), 0.0, _information(likelihood, eta))))


def _information(likelihood: Any, eta: Any) -> Any:
    """Fisher information per output: (∂E[y]/∂η)²/Var(y), which is Var(y) for a natural parameter."""
    if isinstance(likelihood, scalar.StudentT):
        return jnp.full_like(eta, (likelihood.df + 1.0) / ((likelihood.df + 3.0) * likelihood.scale**2))
    _, variance = conditional(likelihood, eta)
    if isinstance(likelihood, scalar.Gaussian):
        return 1.0 / variance
    if isinstance(likelihood, scalar.Bernoulli) and likelihood.link != "logit":
        _, slope = jax.jvp(lambda f: conditional(likelihood, f)[0], (eta,), (jnp.ones_like(eta),))
        return jnp.where(variance > 0.0, slope**2 / jnp.where(variance > 0.0, variance, 1.0), 0.0)
    return variance


def checked_labels(likelihood: Any, y: Any, outputs: int, rows: int) -> Array:
    """Labels as (rows, outputs), or (rows,) classes for softmax; NaN where there is none."""
    try:
        labels = np.asarray(y, dtype=np.float64)
    except (TypeError, ValueError) as error:
        msg = f"y: not numeric ({error}); numbers are needed"
        raise ValueError(msg) from error
    classes = isinstance(likelihood, Softmax)
    if not classes and labels.ndim == 1 and outputs == 1:
        labels = labels[:, None]
    if labels.shape != ((rows,) if classes else (rows, outputs)):
        needed = (
            f"({rows},) classes" if classes else f"({rows}, {outputs})" + (f" or ({rows},)" if outputs == 1 else "")
        )
        msg = f"y: shape {np.shape(y)}; {needed} is needed for {rows} rows and {outputs} outputs of apply"
        raise ValueError(msg)
    if classes:
        bad = ~np.isnan(labels) & ~((labels >= 0.0) & (labels < outputs) & (np.floor(labels) == labels))
        if bad.any():
            row = int(np.argmax(bad))
            msg = f"y[{row}] = {labels[row]}: classes are 0 to {outputs - 1}, as apply has {outputs} outputs"
            raise ValueError(msg)
    else:
        for column in labels.T:
            likelihood.check_labels(column)
    return labels


@partial(jax.jit, static_argnums=(0, 1))
def look(model: Model, stacked: bool, samples: Any, x: Any, y: Any, weight: Any) -> tuple[Any, Any, Any]:
    """Mean gradient (D,), Gauss-Newton rows over √K (K, B, C, D) and log probabilities (K, B): lrvga (43)-(45).

    For samples (K, D), rows x (B, ...), labels y (B, ...) and weights (B,).
    """

    def one(flat: Any, x: Any, y: Any, weight: Any) -> tuple[Any, Any, Any]:
        eta, pull = jax.vjp(lambda vector: model.eta(vector, x, stacked), flat)
        (gradient,) = pull(weight * _score(model.likelihood, y, eta))
        (rows,) = jax.vmap(pull)(jnp.sqrt(weight) * root(model.likelihood, y, eta).T)
        return gradient, rows, value(model.likelihood, y, eta)

    over_rows = jax.vmap(one, in_axes=(None, 0, 0, 0))
    gradients, rows, values = jax.vmap(over_rows, in_axes=(0, None, None, None))(samples, x, y, weight)
    return gradients.sum(axis=1).mean(axis=0), rows / math.sqrt(samples.shape[0]), values


@partial(jax.jit, static_argnums=(0, 1))
def look_at_gradient(model: Model, stacked: bool, samples: Any, x: Any, y: Any, weight: Any) -> Any:
    """The mean gradient only, for one backward pass a sample."""

    def of_sample(flat: Any) -> Any:
        eta, pull = jax.vjp(lambda vector: jax.vmap(lambda row: model.eta(vector, row, stacked))(x), flat)
        scores = jax.vmap(lambda label, outputs: _score(model.likelihood, label, outputs))(y, eta)
        return pull(weight[:, None] * scores)[0]

    return jax.vmap(of_sample)(samples).mean(axis=0)


def _score(likelihood: Any, y: Any, eta: Any) -> Any:
    return jax.grad(value, argnums=2)(likelihood, y, eta)
