"""What a generalised Gauss-Newton step needs of a likelihood: score and Fisher information of one row's outputs η.

For an exponential family with η its natural parameter, lrvga (28), (40), the score is y - E[y] and the information
Cov(y), whatever y. Here both are in terms of the network's outputs: the score by differentiation of the log
probability, the information in closed form.
"""

from __future__ import annotations

import math
from functools import lru_cache, partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from gaussfold.deep.families import Likelihood, check_classes, form_of
from gaussfold.deep.trees import Layout
from gaussfold.deep.types import Apply
from gaussfold.types import Array, ArrayLike


class Model(NamedTuple):
    """A network, its likelihood and its parameters' layout; hashable, so that equal models are compiled once."""

    apply: Apply
    likelihood: Likelihood
    layout: Layout

    def outputs(self, flat: jax.Array, x: jax.Array) -> jax.Array:
        """Outputs at rows."""
        return self.apply(self.layout.unflatten(flat), x)

    def eta(self, flat: jax.Array, x: jax.Array, stacked: bool) -> jax.Array:
        """Outputs at one row, as a vector."""
        return jnp.ravel(self.outputs(flat, x[None] if stacked else x))


@lru_cache(maxsize=16)
def interface(model: Model, shape: tuple[int, ...], dtype: np.dtype[np.generic]) -> tuple[bool, int]:
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
        if isinstance(found, jax.ShapeDtypeStruct) and _fits(found, front):
            return bool(front), math.prod(found.shape)
        problems.append(f"rows of shape {front + shape} give {found}")
    msg = (
        f"apply: rows of X do not go through it ({'; '.join(problems)}); apply(params, x) must take stacked rows to "
        "floats of shape (n,) or (n, outputs), or one row to () or (outputs,)"
    )
    raise ValueError(msg)


def _fits(found: jax.ShapeDtypeStruct, front: tuple[int, ...]) -> bool:
    """Whether these are floats of one number or one vector per row."""
    fits = found.shape[: len(front)] == front and len(found.shape) <= len(front) + 1
    return fits and bool(jnp.issubdtype(found.dtype, jnp.floating))


def value(likelihood: Likelihood, y: jax.Array, eta: jax.Array) -> jax.Array:
    """Log probability of one row's labels (C,) or class ()."""
    return form_of(likelihood).log_prob(y[None], eta[None])[0]


def root(likelihood: Likelihood, y: jax.Array, eta: jax.Array) -> jax.Array:
    """R with RR' = the Fisher information of η; an output whose label is NaN carries none."""
    return form_of(likelihood).root(y, eta)


def checked_labels(likelihood: Likelihood, y: ArrayLike, outputs: int, rows: int) -> Array:
    """Labels as (rows, outputs), or (rows,) classes for softmax; NaN where there is none."""
    form, labels = form_of(likelihood), _numbers(y)
    outputs = form.responses(outputs)
    if not form.classes and labels.ndim == 1 and outputs == 1:
        labels = labels[:, None]
    if labels.shape != ((rows,) if form.classes else (rows, outputs)):
        needed = f"({rows},) classes" if form.classes else f"({rows}, {outputs})"
        also = f" or ({rows},)" if outputs == 1 and not form.classes else ""
        msg = f"y: shape {np.shape(y)}; {needed}{also} is needed for {rows} rows and as many labels as apply explains"
        raise ValueError(msg)
    if form.classes:
        check_classes(labels, outputs)
    else:
        for column in labels.T:
            form.check_labels(column)
    return labels


def _numbers(y: ArrayLike) -> Array:
    try:
        return np.asarray(y, dtype=np.float64)
    except (TypeError, ValueError) as error:
        msg = f"y: not numeric ({error}); numbers are needed"
        raise ValueError(msg) from error


@partial(jax.jit, static_argnums=(0, 1))
def look(
    model: Model, stacked: bool, samples: jax.Array, x: jax.Array, y: jax.Array, weight: jax.Array
) -> tuple[jax.Array, jax.Array, jax.Array]:
    """Mean gradient (D,), Gauss-Newton rows over √K (K, B, C, D) and log probabilities (K, B): lrvga (43)-(45).

    For samples (K, D), rows x (B, ...), labels y (B, ...) and weights (B,).
    """

    def one(flat: jax.Array, x: jax.Array, y: jax.Array, weight: jax.Array) -> tuple[jax.Array, jax.Array, jax.Array]:
        eta, pull = jax.vjp(lambda vector: model.eta(vector, x, stacked), flat)
        (gradient,) = pull(weight * _score(model.likelihood, y, eta))
        (rows,) = jax.vmap(pull)(jnp.sqrt(weight) * root(model.likelihood, y, eta).T)
        return gradient, rows, value(model.likelihood, y, eta)

    over_rows = jax.vmap(one, in_axes=(None, 0, 0, 0))
    gradients, rows, values = jax.vmap(over_rows, in_axes=(0, None, None, None))(samples, x, y, weight)
    return gradients.sum(axis=1).mean(axis=0), rows / math.sqrt(samples.shape[0]), values


@partial(jax.jit, static_argnums=(0, 1))
def look_at_gradient(
    model: Model, stacked: bool, samples: jax.Array, x: jax.Array, y: jax.Array, weight: jax.Array
) -> jax.Array:
    """The mean gradient only, for one backward pass a sample."""

    def of_sample(flat: jax.Array) -> jax.Array:
        eta, pull = jax.vjp(lambda vector: jax.vmap(lambda row: model.eta(vector, row, stacked))(x), flat)
        scores = jax.vmap(lambda label, outputs: _score(model.likelihood, label, outputs))(y, eta)
        return pull(weight[:, None] * scores)[0]

    return jax.vmap(of_sample)(samples).mean(axis=0)


def _score(likelihood: Likelihood, y: jax.Array, eta: jax.Array) -> jax.Array:
    return jax.grad(value, argnums=2)(likelihood, y, eta)
