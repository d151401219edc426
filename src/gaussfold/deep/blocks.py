"""Walks through trees of long arrays block by block, so that what lies between two passes stays in the cache.

A leaf whose last axis has ``dim`` entries is cut along it; every other leaf is handed to each block as it is.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import jax
import jax.numpy as jnp

from gaussfold.deep.training import kept
from gaussfold.deep.types import Tree

TreeT = TypeVar("TreeT")
"""Any tree; what comes out has the structure of what went in."""


def _long(leaf: jax.Array, dim: int) -> bool:
    return jnp.ndim(leaf) > 0 and leaf.shape[-1] == dim


def _cut(tree: TreeT, dim: int, start: jax.Array | int, size: int) -> TreeT:
    def part(leaf: jax.Array) -> jax.Array:
        return jax.lax.dynamic_slice_in_dim(leaf, start, size, axis=-1) if _long(leaf, dim) else leaf

    cut: TreeT = jax.tree.map(part, tree)
    return cut


def total(function: Callable[[Tree], TreeT], tree: Tree, dim: int, size: int) -> TreeT:
    """Sum of ``function(block)`` over the blocks."""
    if dim <= size:
        return function(tree)
    full = dim // size

    def add(number: jax.Array, sums: TreeT) -> Tree:
        return jax.tree.map(jnp.add, sums, function(_cut(tree, dim, number * size, size)))

    zeros = jax.tree.map(lambda a: jnp.zeros(a.shape, a.dtype), jax.eval_shape(function, _cut(tree, dim, 0, size)))
    sums: TreeT = jax.lax.fori_loop(0, full, add, zeros)
    if dim > full * size:
        sums = jax.tree.map(jnp.add, sums, function(_cut(tree, dim, full * size, dim - full * size)))
    return sums


def rewritten(
    ok: jax.Array, function: Callable[[Tree, Tree], Tree], tree: Tree, others: Tree, dim: int, size: int
) -> Tree:
    """The tree with every block replaced by ``function(block, block of others)``, in the tree's own memory.

    Leaves that are not cut are replaced by what the function made of the original ones. Unless ``ok``, nothing is.
    """
    if dim <= size:
        return kept(ok, function(tree, others), tree)
    leaves, structure = jax.tree.flatten(tree)
    full = dim // size

    def replace(start: jax.Array | int, length: int, now: list[jax.Array]) -> list[jax.Array]:
        current = [new if _long(new, dim) else old for new, old in zip(now, leaves, strict=True)]
        block = jax.tree.unflatten(structure, _cut(current, dim, start, length))
        # A condition is a wall for the compiler. Without it every update takes the slices of all arrays anew, and then
        # whole arrays have to be copied before the first is changed.
        made = jax.lax.cond(ok, function, lambda block, _: block, block, _cut(others, dim, start, length))
        return [
            jax.lax.dynamic_update_slice_in_dim(old, new, start, axis=-1) if _long(old, dim) else new
            for old, new in zip(now, jax.tree.leaves(made), strict=True)
        ]

    now = jax.lax.fori_loop(0, full, lambda number, now: replace(number * size, size, now), leaves)
    if dim > full * size:
        now = replace(full * size, dim - full * size, now)
    return jax.tree.unflatten(structure, now)
