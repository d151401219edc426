"""Several trainings side by side in one compiled loop: folds of a cross-validation, settings of a search."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from gaussfold.deep import batches, training
from gaussfold.deep.likelihoods import LogLikelihood
from gaussfold.deep.method import Method
from gaussfold.deep.posterior import Posterior
from gaussfold.deep.training import Program, State


def _stands_still(going: Any, after: State, before: State) -> State:
    """The new state, or the old one of a training that has failed; a buffer as it is: choosing would copy all of it."""
    inner = {
        name: part if name == "buffer" else training.kept(going, part, before["inner"][name])
        for name, part in after["inner"].items()
    }
    counts = {name: training.kept(going, after[name], before[name]) for name in after if name != "inner"}
    return counts | {"inner": inner}


@partial(jax.jit, static_argnums=(0,), donate_argnums=(1,))
def _run(
    program: Program, states: State, hypers: Any, data: Any, rows: Any, count: Any, limit: Any
) -> tuple[State, Any]:
    def one(state: State, hyper: Any, data: Any, index: Any) -> tuple[State, Any]:
        drawn = program.draw(hyper, state["step"])
        after, loss = training.advance(program, state, hyper, data, index, drawn, limit)
        going = state["failed"] < 0
        return _stands_still(going, after, state), jnp.where(going, loss, jnp.nan)

    def body(carry: tuple[Any, State, Any]) -> tuple[Any, State, Any]:
        i, now, losses = carry
        after, loss = jax.vmap(one)(now, hypers, data, rows[:, i])
        return i + 1, after, losses.at[:, i].set(loss)

    def going(carry: tuple[Any, State, Any]) -> Any:
        # one condition for all: a loop of its own for each would copy every variable at every step
        return (carry[0] < count) & (carry[1]["failed"] < 0).any()

    _, after, losses = jax.lax.while_loop(going, body, (0, states, training.no_losses(rows.shape[:2])))
    return after, losses


def fit_together(
    methods: Sequence[Method],
    data: Sequence[Any],
    *,
    epochs: float | None = None,
    steps: int | None = None,
    progress: bool | None = None,
) -> list[Posterior | None]:
    """Fit methods that differ in numbers only (rates, priors, seeds, starts), each to its own data of equal size.

    The posteriors are those that each method's ``fit`` would give, up to rounding; one that failed (too many steps
    that are not finite) is None. Many small networks train several times faster this way.

    Parameters
    ----------
    methods
        Such as VIFA objects with the same log likelihood, tree, rank and options.
    data
        One tree of arrays per method.
    epochs, steps, progress
        As for ``fit``.
    """
    if not methods or len(methods) != len(data):
        msg = f"methods, data: {len(methods)} and {len(data)}; equal numbers, at least one, are needed"
        raise ValueError(msg)
    program = methods[0]._program()
    if any(method._program() != program for method in methods):
        msg = "methods: they differ in more than numbers; equal classes, log likelihoods, trees and options are needed"
        raise ValueError(msg)
    checked = [batches.check_data(each) for each in data]
    if len({rows for _, rows in checked}) != 1:
        msg = f"data: numbers of rows {[rows for _, rows in checked]}; all must be the same"
        raise ValueError(msg)
    first, rows = methods[0], checked[0][1]
    size = batches.check_batch_size(first.batch_size, rows)
    total = first._length(epochs, steps, rows, size)
    batches.check_log_likelihood(first.log_likelihood, first.layout.unflatten(first._centre), checked[0][0], size)
    for each in data:
        if isinstance(first.log_likelihood, LogLikelihood):
            first.log_likelihood.check(each)
    stacked = _stack([each for each, _ in checked])
    states = _stack([training.start(method._initial()) for method in methods])
    hypers = _stack([method._hyper(rows, size) for method in methods])
    per_step = first._batches_per_step
    work = len(methods) * (20 * first._draws_per_step + 200 * per_step * size)
    length = min(training.chunk_length(work, total), first._longest_chunk)
    bar = training.Progress(f"{len(methods)} × {first.kind}", total, 0, progress)
    for method in methods:
        method._forget()
        method._losses = []
    for at in range(0, total, length):
        count = min(length, total - at)
        index = np.zeros((len(methods), length, per_step, size), dtype=np.int32)
        for number, method in enumerate(methods):
            flat = batches.batch_rows(method.seed, at * per_step, count * per_step, rows, size)
            index[number, :count] = flat.reshape(count, per_step, size)
        states, losses = _run(program, states, hypers, stacked, index, count, first.max_bad_steps)
        seen = np.asarray(losses, dtype=np.float64)[:, :count]
        for number, method in enumerate(methods):
            method._losses.append(seen[number])
            method._collect(_part(states["inner"], number))
        bar.show(at + count, f"objective {np.nanmean(seen):.6g}" if np.isfinite(seen).any() else "")
    bar.close()
    for number, method in enumerate(methods):
        method._state = _part(states, number)
    return [None if int(method._state["failed"]) >= 0 else method.posterior for method in methods if method._state]


def _stack(trees: Sequence[Any]) -> Any:
    return jax.tree.map(lambda *leaves: jnp.stack(leaves), *trees)


def _part(tree: Any, number: int) -> Any:
    return jax.tree.map(lambda leaf: leaf[number], tree)
