"""A method as pure functions, for loops of one's own: state in, state out, as optax has it.

The state is a tree of arrays: ``jax.jit``, ``jax.lax.scan`` and checkpointing libraries take it as it is.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp

from gaussfold.deep.posterior import Posterior
from gaussfold.deep.training import Given, Program, State, advance
from gaussfold.deep.types import Batch, Hyper, Tree


class Stepper(NamedTuple):
    """What a training is made of; :meth:`gaussfold.deep.VIFA.stepper` and its kin make one.

    Examples
    --------
    >>> import gaussfold as gf, jax, numpy as np
    >>> X = np.linspace(-1.0, 1.0, 50, dtype=np.float32)[:, None]
    >>> function = gf.deep.log_likelihood(lambda w, X: X @ w, gf.likelihoods.Gaussian(0.5))
    >>> init, step, posterior = gf.deep.VIFA(function, np.zeros(1, np.float32)).stepper(n_rows=50)
    >>> state, step = init(), jax.jit(step)
    >>> for _ in range(300):
    ...     state, loss = step(state, (X, 2.0 * X[:, 0]))
    >>> print(posterior(state).mean.round(1))
    [2.]
    """

    init: Callable[[], Tree]
    """The state before the first step."""
    step: Callable[[Tree, Batch], tuple[Tree, jax.Array]]
    """One step with a batch: the next state, and the objective before it (NaN: it was not finite, and is skipped)."""
    posterior: Callable[[Tree], Posterior]
    """What a state stands for."""


def pure_step(
    program: Program, hyper: Callable[[int], Hyper], per_step: int, limit: int
) -> Callable[[State, Batch], tuple[State, jax.Array]]:
    """A step on a batch whose rows are dealt out to the batches that a step looks at."""

    def step(state: State, batch: Batch) -> tuple[State, jax.Array]:
        arrays: Tree = jax.tree.map(jnp.asarray, batch)
        rows = jax.tree.leaves(arrays)[0].shape[0]
        if rows < per_step or rows % per_step:
            msg = f"batch: {rows} rows; a step looks at {per_step} batches of equal size, so give a multiple of that"
            raise ValueError(msg)
        told = hyper(rows // per_step)
        index = jnp.arange(rows).reshape(per_step, -1)
        return advance(program, state, Given(told, arrays, limit), index, program.draw(told, state["step"]))

    return step
