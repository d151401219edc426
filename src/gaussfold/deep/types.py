"""What passes between the files of this folder: trees, batches, networks and log likelihoods.

JAX has no type for a tree of arrays. These names say which tree is meant where; two of them stand for anything.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol, TypeAlias, runtime_checkable

import jax
import numpy as np

Tree: TypeAlias = Any
"""Any JAX pytree: nested dicts, lists, tuples, Flax or Equinox modules."""
Document: TypeAlias = dict[str, Any]
"""An object of JSON, as model files and files of trials hold them."""

Batch: TypeAlias = Tree
"""Rows of data: a tree of arrays with one row per example in front, such as ``(X, y)``."""
Variables: TypeAlias = dict[str, jax.Array]
"""Groups of numbers that a method learns, by name."""
Inner: TypeAlias = dict[str, Tree]
"""All that a method carries from step to step: variables, the optimiser's memory, a buffer."""
Hyper: TypeAlias = dict[str, Tree]
"""Numbers that a step is told: priors, rates, keys. Other ones need no other compilation."""
Arrays: TypeAlias = dict[str, np.ndarray]
"""Named arrays of a model file."""

Apply: TypeAlias = Callable[[Tree, Tree], jax.Array]
"""A network: ``apply(params, X)`` gives outputs, one row per row of X."""
LogLikelihoodFunction: TypeAlias = Callable[[Tree, Batch], jax.Array]
"""``log_likelihood(params, batch)``: one value per row of the batch, or their sum."""
Schedule: TypeAlias = Callable[[jax.Array], jax.Array]
"""A learning rate's value at a step."""
Rate: TypeAlias = float | Schedule
"""A learning rate, or a schedule."""
Rates: TypeAlias = Rate | Mapping[str, Rate] | None
"""One for all groups of variables, or one for each; None is the usual one."""
Seed: TypeAlias = int | np.random.Generator | jax.Array
"""What random numbers are drawn with: a seed, a NumPy generator or a JAX key."""


@runtime_checkable
class Shaped(Protocol):
    """An array of NumPy, JAX, pandas, ..."""

    @property
    def shape(self) -> tuple[int, ...]:
        """Length of each axis."""
        ...


Spread: TypeAlias = float | Shaped | Tree
"""A number, a vector with one number per parameter, or a tree like the parameters."""
