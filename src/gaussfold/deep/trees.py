"""Trees of parameters as flat vectors, with the name, shape and dtype of every leaf."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable
from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np

from gaussfold.checks import one_of, whole
from gaussfold.deep.types import Document, Tree
from gaussfold.schema import refuse
from gaussfold.types import ArrayLike

FLOATS = ("float64", "float32", "float16", "bfloat16")
"""What a leaf may be made of."""
RUNNING = ("['batch_stats']", ".batch_stats")
"""How the path of a leaf begins that Flax keeps beside the parameters."""
MOST = 2**40
"""Entries along an axis that a model file may claim."""


@dataclass(frozen=True)
class Leaf:
    """Where a leaf is and what it looks like."""

    name: str
    shape: tuple[int, ...]
    dtype: str

    @property
    def size(self) -> int:
        """Number of entries."""
        return math.prod(self.shape)

    def __str__(self) -> str:
        return f"{self.name} {self.dtype}{list(self.shape)}"


@dataclass(frozen=True)
class Layout:
    """How a tree lies in a flat vector: leaf after leaf, in JAX's order, each in C order.

    Hashable, so that compiled functions can be shared between objects with equal layouts. Made by :func:`layout_of`.
    """

    treedef: jax.tree_util.PyTreeDef | None
    """None: from a file that could not hold it."""
    leaves: tuple[Leaf, ...]

    @property
    def dim(self) -> int:
        """Number of parameters D."""
        return sum(leaf.size for leaf in self.leaves)

    @property
    def dtype(self) -> np.dtype[np.floating]:
        """Of the flat vector: float64 if any leaf is, otherwise float32."""
        return np.dtype("float64" if any(leaf.dtype == "float64" for leaf in self.leaves) else "float32")

    @property
    def names(self) -> tuple[str, ...]:
        """Paths of the leaves."""
        return tuple(leaf.name for leaf in self.leaves)

    def slices(self) -> dict[str, slice]:
        """Where each leaf lies in the flat vector."""
        ends = np.cumsum([leaf.size for leaf in self.leaves])
        return {leaf.name: slice(int(end) - leaf.size, int(end)) for leaf, end in zip(self.leaves, ends, strict=True)}

    def flatten(self, tree: Tree) -> jax.Array:
        """The tree as one vector; the tree must have this layout. Can be traced by JAX."""
        found = jax.tree.structure(tree)
        if found != self.treedef:
            raise ValueError(self._difference(tree))
        parts = [jnp.ravel(leaf).astype(self.dtype) for leaf in jax.tree.leaves(tree)]
        flat = jnp.concatenate(parts)
        if flat.size != self.dim:
            raise ValueError(self._difference(tree))
        return flat

    def unflatten(self, flat: ArrayLike) -> Tree:
        """The tree of a vector (D,), or of vectors stacked in front: (..., D). Can be traced by JAX."""
        if self.treedef is None:
            kinds = ", ".join(self.names[:3]) + (" ..." if len(self.names) > 3 else "")
            msg = (
                f"tree: the leaves {kinds} come from a class that a model file cannot hold; give a tree of the same "
                "structure: gaussfold.deep.load(path, like=params)"
            )
            raise ValueError(msg)
        vector = jnp.asarray(flat)
        if vector.ndim == 0 or vector.shape[-1] != self.dim:
            msg = f"flat: shape {vector.shape}; (..., {self.dim}) is needed"
            raise ValueError(msg)
        places = self.slices()
        parts = [
            vector[..., places[leaf.name]].reshape(vector.shape[:-1] + leaf.shape).astype(leaf.dtype)
            for leaf in self.leaves
        ]
        return jax.tree.unflatten(self.treedef, parts)

    def check(self, tree: Tree, argument: str = "params") -> None:
        """Raise a ValueError that names the first leaf in which a tree differs from this layout."""
        if self.treedef is not None and jax.tree.structure(tree) != self.treedef:
            raise ValueError(self._difference(tree, argument))
        if _leaves(tree, argument) != self.leaves:
            raise ValueError(self._difference(tree, argument))

    def _difference(self, tree: Tree, argument: str = "params") -> str:
        theirs = {leaf.name: leaf for leaf in _leaves(tree, argument)}
        for leaf in self.leaves:
            if theirs.get(leaf.name) != leaf:
                found = theirs.get(leaf.name, "missing")
                return f"{argument}: mismatched tree: {leaf} expected, {found} found; give a tree of the same structure"
        extra = [str(leaf) for name, leaf in theirs.items() if name not in self.names]
        what = f"{extra[0]} is not expected" if extra else f"{self.treedef} expected, {jax.tree.structure(tree)} found"
        return f"{argument}: mismatched tree: {what}; give a tree of the same structure"

    def describe(self) -> Document:
        """The layout as JSON can hold it; see :func:`layout_from`."""
        document: Document = {"leaves": [[leaf.name, list(leaf.shape), leaf.dtype] for leaf in self.leaves]}
        if self.treedef is not None:
            document["structure"] = _encode(jax.tree.unflatten(self.treedef, range(len(self.leaves))))
        return dict(json.loads(json.dumps(document)))


def layout_of(params: Tree, argument: str = "params") -> Layout:
    """Look at a tree of parameters; refuse leaves that are not real floating point numbers, by their path.

    Examples
    --------
    >>> import numpy as np
    >>> layout = layout_of({"w": np.ones((2, 3), np.float32), "b": np.zeros(2, np.float32)})
    >>> layout.names, layout.dim
    (("['b']", "['w']"), 8)
    """
    leaves = _leaves(params, argument)
    if not sum(leaf.size for leaf in leaves):
        msg = f"{argument}: the tree {jax.tree.structure(params)} holds no numbers; give the network's parameters"
        raise ValueError(msg)
    return Layout(jax.tree.structure(params), leaves)


def layout_from(document: Document) -> Layout:
    """Undo :meth:`Layout.describe`; of a tree with classes of its own only names and shapes are known."""
    leaves = tuple(_leaf(*described) for described in document["leaves"])
    if not sum(leaf.size for leaf in leaves):
        msg = "leaves: they hold no numbers; at least one is needed"
        raise ValueError(msg)
    structure = document.get("structure")
    if structure is None:
        return Layout(None, leaves)
    tree = _decode(structure)
    if jax.tree.leaves(tree) != list(range(len(leaves))):
        msg = f"structure: its leaves are not 0 to {len(leaves) - 1} in order, as 'leaves' counts them"
        raise ValueError(msg)
    return Layout(jax.tree.structure(tree), leaves)


def _leaf(name: object, shape: object, dtype: object) -> Leaf:
    if not isinstance(name, str) or not isinstance(shape, list):
        refuse("leaves", f"{name!r} of shape {shape!r}", "a string and a list are needed")
    kind = one_of("dtype", dtype, FLOATS, owner=f"leaf {name}")
    return Leaf(name, tuple(whole("shape", size, least=0, most=MOST, owner=f"leaf {name}") for size in shape), kind)


def _leaves(params: Tree, argument: str) -> tuple[Leaf, ...]:
    found = []
    for path, value in jax.tree_util.tree_leaves_with_path(params):
        name = jax.tree_util.keystr(path) or "(the tree itself)"
        if name.startswith(RUNNING):
            msg = (
                f"{argument}: leaf {name} is a running statistic, no parameter; give variables['params'] alone, and "
                "let apply put the rest beside it"
            )
            raise ValueError(msg)
        try:
            dtype = jnp.result_type(value) if np.ndim(value) or not isinstance(value, float) else np.dtype("float32")
            shape = tuple(int(size) for size in np.shape(value))
        except (TypeError, ValueError):
            dtype, shape = None, ()
        if dtype is None or not jnp.issubdtype(dtype, jnp.floating):
            kind = type(value).__name__ if dtype is None else f"an array of {dtype}"
            msg = (
                f"{argument}: leaf {name} is {kind}; only real floating point leaves can have a posterior: "
                "keep the others outside of the tree (equinox.partition, flax.nnx.split, or a closure)"
            )
            raise ValueError(msg)
        found.append(Leaf(name, shape, str(dtype)))
    return tuple(found)


def _encode(tree: Tree) -> int | Document | None:
    """A tree of dicts, lists and tuples with leaf numbers, as JSON; None if anything else is in it."""
    if isinstance(tree, int):
        return None if isinstance(tree, bool) else tree
    if type(tree) is dict and all(type(key) is str for key in tree):
        parts = _encoded(tree.values())
        return None if parts is None else {"dict": dict(zip(tree, parts, strict=True))}
    if type(tree) in (list, tuple):
        parts = _encoded(tree)
        return None if parts is None else {type(tree).__name__: parts}
    return None


def _encoded(trees: Iterable[Tree]) -> list[int | Document | None] | None:
    parts = [_encode(tree) for tree in trees]
    return None if None in parts else parts


def _decode(document: int | Document) -> Tree:
    if isinstance(document, int):
        return document
    ((kind, parts),) = document.items()
    if kind == "dict":
        return {key: _decode(value) for key, value in parts.items()}
    if kind not in ("list", "tuple"):
        msg = f"structure: {kind!r}; allowed are 'dict', 'list' and 'tuple'"
        raise ValueError(msg)
    values = [_decode(value) for value in parts]
    return values if kind == "list" else tuple(values)
