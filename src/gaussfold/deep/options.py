"""Options that all methods which train in steps have in common."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np

from gaussfold.checks import one_of
from gaussfold.deep.scales import by_fan_in
from gaussfold.deep.trees import Layout
from gaussfold.deep.types import Shaped, Spread, Tree
from gaussfold.types import Array


@dataclass(frozen=True)
class Training:
    """Options of every method, as :class:`gaussfold.deep.VIFA` documents them."""

    prior_precision: Spread | str
    prior_mean: Spread
    batch_size: int | None
    max_bad_steps: int
    seed: int


def spread(name: str, value: Spread, layout: Layout, *, above_zero: bool = False) -> jax.Array:
    """A number, a vector (D,) or a tree of the parameters' structure, as a number or a vector in JAX."""
    if isinstance(value, int | float | np.number) or (isinstance(value, Shaped) and value.shape in ((), (layout.dim,))):
        flat = np.asarray(value, dtype=layout.dtype)
    else:
        flat = by_leaf(name, value, layout).astype(layout.dtype)
    good = np.isfinite(flat) & ((flat > 0.0) | (not above_zero))
    if not good.all():
        what = "finite numbers > 0" if above_zero else "finite numbers"
        first = float(flat.ravel()[int(np.argmin(good))])
        msg = f"{name}={first!r}: {what} are needed: one, one per parameter, or a tree like params"
        raise ValueError(msg)
    return jnp.asarray(flat)


def by_leaf(name: str, value: Tree, layout: Layout) -> Array:
    """A tree of the parameters' structure, each leaf a number or of the parameter's shape, as a vector (D,)."""
    if jax.tree.structure(value) != layout.treedef:
        layout.check(value, name)
    parts = []
    for part, leaf in zip(jax.tree.leaves(value), layout.leaves, strict=True):
        if np.shape(part) not in ((), leaf.shape):
            msg = f"{name}: mismatched tree: {leaf.name} has shape {np.shape(part)}; a number or {leaf.shape} is needed"
            raise ValueError(msg)
        parts.append(np.broadcast_to(np.asarray(part, float), leaf.shape).ravel())
    return np.concatenate(parts)


def prior_of(value: Spread | str, layout: Layout, learned: bool) -> jax.Array:
    """The prior's precisions: given, or by fan-in where they are asked for by name."""
    if isinstance(value, str):
        one_of("prior_precision", value, ("fan-in", *(("evidence",) if learned else ())), also="numbers > 0")
        return jnp.asarray(by_fan_in(layout), layout.dtype)
    return spread("prior_precision", value, layout, above_zero=True)


def known_by(value: jax.Array | float) -> float | str:
    """A number as it is, a vector by a digest: for files, which only have to know it again."""
    array = np.asarray(value)
    return float(array) if array.ndim == 0 else hashlib.sha256(array.tobytes()).hexdigest()[:16]
