"""A posterior over some leaves of a tree, the others staying as they are: a last layer, adapters, any choice.

:func:`only` makes a network of the chosen leaves alone. Every method takes that as it takes any other network, so none
of them has to know about it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple, TypeAlias

import jax

from gaussfold.deep.likelihoods import function
from gaussfold.deep.trees import layout_of
from gaussfold.deep.types import Apply, Tree

Where: TypeAlias = str | Sequence[str] | Callable[[str, jax.Array], bool]
"""The path of a leaf or what its path begins with, several of them, or a question of path and leaf."""


class Part(NamedTuple):
    """Some leaves of a network's parameters, and the network as a function of them."""

    apply: Apply
    """``apply(params, X)`` with the leaves that were not chosen where they were."""
    params: dict[str, jax.Array]
    """The chosen leaves, by their paths."""
    whole: Callable[[Tree], Tree]
    """The full tree with these leaves in it, such as ``part.whole(posterior.mean)``."""


def only(apply: Apply, params: Tree, where: Where) -> Part:
    """Look at some leaves of a tree alone.

    Parameters
    ----------
    apply, params
        A network and all of its parameters; leaves that are not chosen may be of any kind.
    where
        Which leaves: a path as :func:`gaussfold.deep.layout_of` names them, or its beginning (``"['head']"``);
        several of them; or a function of path and leaf (``lambda path, leaf: "lora" in path``).

    Examples
    --------
    The last layer of a trained network:

    >>> import gaussfold as gf, jax.numpy as jnp, numpy as np
    >>> apply = lambda params, X: jnp.tanh(X @ params["body"]) @ params["head"]
    >>> trained = {"body": np.ones((2, 3), np.float32), "head": np.zeros(3, np.float32)}
    >>> head = only(apply, trained, "['head']")
    >>> sorted(head.params)
    ["['head']"]
    >>> X = np.random.default_rng(0).normal(size=(50, 2)).astype(np.float32)
    >>> model = gf.deep.LRVGA(head.apply, gf.likelihoods.Gaussian(0.1), head.params)
    >>> print(head.whole(model.fit(X, np.tanh(X.sum(axis=1))).mean)["head"].sum().round(1))
    1.0
    """
    function("apply", apply, "(params, X)")
    leaves = jax.tree_util.tree_leaves_with_path(params)
    names = [jax.tree_util.keystr(path) for path, _ in leaves]
    chosen = _chosen(where, names, [leaf for _, leaf in leaves])
    fixed = {name: leaf for name, (_, leaf) in zip(names, leaves, strict=True) if name not in chosen}
    own = {name: leaf for name, (_, leaf) in zip(names, leaves, strict=True) if name in chosen}
    layout_of(own)  # says which of them is no parameter
    structure = jax.tree.structure(params)

    def whole(part: Tree) -> Tree:
        return jax.tree.unflatten(structure, [fixed[name] if name in fixed else part[name] for name in names])

    return Part(lambda part, X: apply(whole(part), X), own, whole)


def _chosen(where: Where, names: list[str], leaves: list[jax.Array]) -> set[str]:
    """Paths of the leaves that are meant; a name that fits none, and a choice of none, are refused."""
    if callable(where):
        found = {name for name, leaf in zip(names, leaves, strict=True) if where(name, leaf)}
    else:
        found = set()
        for wanted in [where] if isinstance(where, str) else where:
            fitting = {name for name in names if name.startswith(wanted)}
            if not fitting:
                some = ", ".join(names[:6]) + (", ..." if len(names) > 6 else "")
                msg = f"where={wanted!r}: no leaf has a path that begins so; the tree has {some}"
                raise ValueError(msg)
            found |= fitting
    if not found:
        msg = f"where={where!r}: it chooses none of the {len(names)} leaves; at least one is needed"
        raise ValueError(msg)
    return found
