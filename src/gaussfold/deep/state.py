"""A training that was interrupted, as a model file holds it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import jax
import jax.numpy as jnp
import numpy as np

from gaussfold.deep.trees import Layout, layout_from
from gaussfold.deep.types import Arrays, Document, Tree
from gaussfold.schema import refuse


@dataclass(frozen=True)
class TrainingState:
    """Which method, with which settings, on which tree; and its variables, the optimiser's included.

    Written by a method's ``save`` and read by its ``restore``.
    """

    method: str
    settings: Document
    layout: Layout
    arrays: Arrays

    def state(self) -> Arrays:
        """Named arrays."""
        return self.arrays

    def store_header(self) -> Document:
        """The rest, as JSON."""
        return {"method": self.method, "settings": self.settings, **self.layout.describe()}

    @classmethod
    def from_store(cls, header: Document, arrays: Arrays) -> Self:
        """The training of a file."""
        method, settings = header["method"], header["settings"]
        if not isinstance(method, str) or not isinstance(settings, dict):
            refuse("method, settings", f"{method!r} and {settings!r:.60}", "a string and an object are needed")
        return cls(method, settings, layout_from(header), arrays)


def named_arrays(state: Tree) -> Arrays:
    """Leaves of a state by their paths."""
    return {jax.tree_util.keystr(path): np.asarray(leaf) for path, leaf in jax.tree_util.tree_leaves_with_path(state)}


def filled(template: Tree, arrays: Arrays) -> Tree:
    """A state of the template's structure with the leaves of :func:`named_arrays`."""
    places = jax.tree_util.tree_leaves_with_path(template)
    leaves = []
    for path, leaf in places:
        name = jax.tree_util.keystr(path)
        found = arrays.get(name)
        if found is None or found.shape != leaf.shape:
            what = "missing" if found is None else f"of shape {found.shape}"
            msg = f"path: the saved training has {name} {what}, {leaf.shape} is needed: restore it with equal settings"
            raise ValueError(msg)
        leaves.append(jnp.asarray(found, dtype=leaf.dtype))
    return jax.tree.unflatten(jax.tree.structure(template), leaves)
