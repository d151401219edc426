"""What the tree itself says of its leaves: how large their entries are, before any data have been seen.

A network's first weights already follow its fan-in, whichever axis of a leaf holds the inputs, so the scale of a matrix
is the root mean square of its entries. One of equal entries says nothing and gets 1/√fan-in, the first axes being
inputs; a vector, such as a bias, gets the usual scale of the others.
"""

from __future__ import annotations

import math

import jax
import jax.numpy as jnp
import numpy as np

from gaussfold.deep.trees import Layout, Leaf
from gaussfold.types import Array

USUAL = 0.1
"""Where nothing at all is known."""


def of_leaves(layout: Layout, flat: jax.Array) -> Array:
    """One scale > 0 for each leaf of the tree that lies in ``flat``."""
    entries = np.asarray(flat, dtype=np.float64)
    found = [_own(leaf, entries[part]) for leaf, part in zip(layout.leaves, layout.slices().values(), strict=True)]
    known = [scale for scale in found if scale > 0.0]
    usual = math.exp(np.mean(np.log(known))) if known else USUAL
    return np.array([scale or usual for scale in found])


def at_least_usual(layout: Layout, flat: jax.Array) -> Array:
    """The same, but no matrix below √(2/fan-in), what keeps the signal of rectified units at its size.

    Smaller first weights are a choice of where training starts, not a belief that weights stay small.
    """
    found = of_leaves(layout, flat)
    floor = [math.sqrt(2.0 / math.prod(leaf.shape[:-1])) if _is_matrix(leaf) else 0.0 for leaf in layout.leaves]
    return np.maximum(found, floor)


def _is_matrix(leaf: Leaf) -> bool:
    return len(leaf.shape) > 1 and leaf.size > 0


def _own(leaf: Leaf, entries: Array) -> float:
    """The scale of one leaf, or 0 where it has none of its own."""
    if entries.size > 1 and np.ptp(entries) > 0.0 and len(leaf.shape) > 1:
        return float(np.sqrt(np.mean(entries * entries)))
    return 1.0 / math.sqrt(math.prod(leaf.shape[:-1])) if _is_matrix(leaf) else 0.0


def spread(layout: Layout, per_leaf: jax.Array | Array) -> jax.Array:
    """A number per leaf as a vector (D,). Can be traced by JAX."""
    parts = [jnp.broadcast_to(per_leaf[i], (leaf.size,)) for i, leaf in enumerate(layout.leaves)]
    return jnp.concatenate(parts).astype(layout.dtype)


def sums(layout: Layout, flat: jax.Array) -> jax.Array:
    """The sum over each leaf of a vector (D,). Can be traced by JAX."""
    return jnp.stack([flat[part].sum() for part in layout.slices().values()])
