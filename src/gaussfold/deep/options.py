"""Options that all methods which train in steps have in common."""

from __future__ import annotations

import zlib
from dataclasses import dataclass
from typing import TypedDict

import jax
import jax.numpy as jnp
import numpy as np

from gaussfold.deep.trees import Layout
from gaussfold.deep.types import Shaped, Spread, Tree


@dataclass(frozen=True)
class Training:
    """Options of every method, as :class:`gaussfold.deep.VIFA` documents them."""

    prior_precision: Spread
    prior_mean: Spread
    batch_size: int | None
    max_bad_steps: int
    seed: int
    temperature: float | str = 1.0


class Length(TypedDict, total=False):
    """Keywords of a method's ``fit`` that an ensemble passes on."""

    epochs: float | None
    steps: int | None
    stop: int | None
    resume: bool
    n_rows: int | None
    progress: bool | None


def spread(name: str, value: Spread, layout: Layout, *, above_zero: bool = False) -> jax.Array:
    """A number, a vector (D,) or a tree of the parameters' structure, as a number or a vector in JAX.

    A leaf of the tree may be one number for all of the parameter's entries.
    """
    if isinstance(value, int | float | np.number) or (isinstance(value, Shaped) and value.shape in ((), (layout.dim,))):
        flat = np.asarray(value, dtype=layout.dtype)
    else:
        flat = np.asarray(layout.flatten(_filled(name, value, layout)))
    good = np.isfinite(flat) & ((flat > 0.0) | (not above_zero))
    if not good.all():
        what = "finite numbers > 0" if above_zero else "finite numbers"
        first = float(flat.ravel()[int(np.argmin(good))])
        msg = f"{name}={first!r}: {what} are needed: one, one per parameter, or a tree like params"
        raise ValueError(msg)
    return jnp.asarray(flat)


def _filled(name: str, tree: Tree, layout: Layout) -> Tree:
    """The tree, with numbers that stand for a whole leaf written out."""
    if jax.tree.structure(tree) != layout.treedef:
        layout.check(tree, name)  # it says where they differ
    full = [
        np.full(leaf.shape, part, leaf.dtype) if np.ndim(part) == 0 else part
        for leaf, part in zip(layout.leaves, jax.tree.leaves(tree), strict=True)
    ]
    found = jax.tree.unflatten(jax.tree.structure(tree), full)
    layout.check(found, name)
    return found


def described(value: jax.Array, layout: Layout) -> float | list[float] | str:
    """A number, a number per leaf, or a checksum: by which a saved training knows what it was begun with."""
    flat = np.asarray(value)
    if flat.ndim == 0:
        return float(flat)
    parts = [flat[part] for part in layout.slices().values() if part.stop > part.start]
    if all((part == part[0]).all() for part in parts):
        return [float(part[0]) for part in parts]
    return f"crc32 {zlib.crc32(np.ascontiguousarray(flat).tobytes()):08x}"
