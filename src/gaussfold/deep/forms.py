"""What a likelihood must say to be learned from by a network, and the form of those with one latent."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, TypeAlias

import jax
import jax.numpy as jnp

from gaussfold import likelihoods
from gaussfold.types import Array, ArrayLike

Outputs: TypeAlias = jax.Array | tuple[jax.Array, jax.Array]
"""Of a network; with a learned noise level beside them."""


class Form(NamedTuple):
    """A likelihood in JAX."""

    log_prob: Callable[[ArrayLike, Outputs], jax.Array]
    """Labels and outputs to one log probability per row."""
    conditional: Callable[[Outputs], tuple[jax.Array, jax.Array]]
    """Mean and variance of y given the outputs: of the one-hot class for softmax, else per output."""
    root: Callable[[jax.Array, jax.Array], jax.Array]
    """For one row's labels and outputs η, R with RR' = the Fisher information of η."""
    check_labels: Callable[[ArrayLike], None]
    """Refuse labels that cannot be explained."""
    classes: bool = False
    """Whether a label is the number of a class, one per row."""
    entropy: Callable[[Array], Array] | None = None
    """Of the predicted class, from its probabilities; None: there are no classes."""
    responses: Callable[[int], int] = int
    """How many labels a row has, of so many outputs; as many, unless several outputs belong to one."""


def by_output(
    likelihood: likelihoods.ScalarLikelihood,
    information: Callable[[likelihoods.ScalarLikelihood, jax.Array], jax.Array],
    entropy: Callable[[Array], Array] | None = None,
) -> Form:
    """A family of one latent: each output has its label, and the Fisher information is a diagonal."""

    def of_rows(y: ArrayLike, outputs: Outputs) -> jax.Array:
        f, labels, known = aligned(outputs, y)
        return over_outputs(jnp.asarray(likelihood.log_prob(labels, f)), known)

    def conditional(outputs: Outputs) -> tuple[jax.Array, jax.Array]:
        mean, variance = likelihood.conditional(jnp.asarray(outputs))
        return jnp.asarray(mean), jnp.asarray(variance)

    def root(y: jax.Array, eta: jax.Array) -> jax.Array:
        # no label, no information
        return jnp.diag(jnp.sqrt(jnp.where(jnp.isnan(y), 0.0, information(likelihood, eta))))

    return Form(of_rows, conditional, root, likelihood.check_labels, entropy=entropy)


def over_outputs(value: jax.Array, known: jax.Array) -> jax.Array:
    """Sum over the outputs of each row whose labels are known."""
    value = jnp.where(known, value, 0.0)
    return value.reshape(value.shape[0], -1).sum(axis=1)


def aligned(f: jax.Array, y: ArrayLike) -> tuple[jax.Array, jax.Array, jax.Array]:
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
    # in place of a label that is missing, and left out later, one that every family can explain
    return f, jnp.where(known, labels, 0.5), known
