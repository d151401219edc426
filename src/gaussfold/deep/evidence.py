"""A prior's precision for each leaf, learned with the posterior.

For a leaf of n entries the bound is largest, in closed form, at

    α = (n + ν) / (E‖θ - m‖² + ν s²),

s the leaf's scale as the tree gives it, with a Gamma prior of α that is worth ν entries of that scale. Without it a
leaf whose data say little yet would be drawn to zero, and stay there.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

from gaussfold.deep import scales
from gaussfold.deep.trees import Layout
from gaussfold.deep.types import Hyper, Variables
from gaussfold.types import Array

NAMES = {"evidence": True, "fan-in": False}
"""Whether a prior of this name is learned; both start from the tree's scales."""
WORTH = 10.0
"""ν."""
EVERY = 8
"""Steps between two looks: the precision follows slowly anyway."""
NOISE = "['log_std']"
"""The leaf of a learned noise level; its prior is N(0, 1) in logarithms, whatever the network's is."""


def first(layout: Layout, scale: Array) -> Array:
    """1/s² for each leaf, and 1 for a noise level."""
    return np.array(
        [1.0 if leaf.name.endswith(NOISE) else s**-2 for leaf, s in zip(layout.leaves, scale, strict=True)],
        layout.dtype,
    )


def told(layout: Layout, scale: Array) -> Hyper:
    """What :func:`renewed` needs to know: ν s² of each leaf, and which leaves have a precision to learn."""
    return {
        "pull": jnp.asarray(WORTH * scale**2, layout.dtype),
        "learned": jnp.asarray([not leaf.name.endswith(NOISE) for leaf in layout.leaves]),
    }


def renewed(layout: Layout, variables: Variables, prior_mean: jax.Array, hyper: Hyper, now: jax.Array) -> jax.Array:
    """The best precision of each leaf for a factor Gaussian."""
    away, F = variables["mean"] - prior_mean, variables["factors"]
    second = away * away + (F * F).sum(axis=0) + jnp.exp(variables["log_psi"])
    sizes = jnp.asarray([leaf.size for leaf in layout.leaves], second.dtype)
    found = (sizes + WORTH) / (scales.sums(layout, second) + hyper["pull"])
    return jnp.where(hyper["learned"], found, now)
