"""Modules of Equinox and Flax (NNX, Linen) as they are: parameters apart, and a plain function of them.

What is no parameter (hyperparameters, running statistics, counters, keys) stays outside of the posterior, and the
module is used as it predicts: dropout off, statistics as they are.
"""

from __future__ import annotations

from typing import NamedTuple

import jax

from gaussfold.deep.types import Apply, Tree


class Wrapped(NamedTuple):
    """A module's parameters, and the module as a function of them."""

    apply: Apply
    """``apply(params, X)`` for stacked rows X."""
    params: Tree
    """Floating point leaves that the module calls parameters."""


def wrap(module: Tree, variables: Tree = None, **keywords: object) -> Wrapped:
    """Take a module apart into ``apply(params, X)`` and ``params``, as every method here wants them.

    Parameters
    ----------
    module
        An ``equinox.Module`` (called with one row, so it is vmapped), a ``flax.nnx.Module`` or a
        ``flax.linen.Module`` (called with stacked rows).
    variables
        Of Linen only: what ``module.init`` returned; all but "params" stays as it is.
    keywords
        Passed to every call of the module, such as ``train=False``.
    """
    homes = {kind.__module__.partition(".")[0] + _room(kind) for kind in type(module).__mro__}
    if "flax.linen" in homes:
        return _linen(module, variables, keywords)
    if variables is not None:
        msg = (
            f"variables: a {type(module).__name__} holds its own; they belong to modules of flax.linen, so leave it out"
        )
        raise ValueError(msg)
    if "flax.nnx" in homes:
        return _nnx(module, keywords)
    if "equinox" in homes:
        return _equinox(module, keywords)
    msg = (
        f"module: a {type(module).__name__}; one of Equinox, flax.nnx or flax.linen is needed; or write "
        "apply(params, X) yourself"
    )
    raise ValueError(msg)


def _room(kind: type) -> str:
    parts = kind.__module__.split(".")
    return f".{parts[1]}" if parts[0] == "flax" and len(parts) > 1 else ""


def _equinox(module: Tree, keywords: dict[str, object]) -> Wrapped:
    import equinox

    params, rest = equinox.partition(equinox.nn.inference_mode(module), equinox.is_inexact_array)

    def apply(params: Tree, X: Tree) -> jax.Array:
        whole = equinox.combine(params, rest)
        return jax.vmap(lambda x: whole(x, **keywords))(X)

    return Wrapped(apply, params)


def _nnx(module: Tree, keywords: dict[str, object]) -> Wrapped:
    from flax import nnx

    predicting = nnx.clone(module)
    predicting.eval()
    graph, params, *others = nnx.split(predicting, nnx.Param, ...)

    def apply(params: Tree, X: Tree) -> jax.Array:
        found: jax.Array = nnx.merge(graph, params, *others)(X, **keywords)
        return found

    return Wrapped(apply, params)


def _linen(module: Tree, variables: Tree, keywords: dict[str, object]) -> Wrapped:
    if variables is None or "params" not in variables:
        msg = "variables: a Linen module does not hold its parameters; give what module.init(key, X) returned"
        raise ValueError(msg)
    rest = {name: value for name, value in variables.items() if name != "params"}

    def apply(params: Tree, X: Tree) -> jax.Array:
        found: jax.Array = module.apply({"params": params, **rest}, X, **keywords)
        return found

    return Wrapped(apply, variables["params"])
