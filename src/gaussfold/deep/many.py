"""Several trainings side by side in one compiled loop: folds of a cross-validation, settings of a search."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

from gaussfold.deep import batches, training
from gaussfold.deep.method import Method
from gaussfold.deep.posterior import Posterior
from gaussfold.deep.training import Course, Given, Program, State
from gaussfold.deep.types import Batch, Hyper, Tree
from gaussfold.progress import Progress


def _stands_still(going: jax.Array, after: State, before: State) -> State:
    """The new state, or the old one of a training that has failed; a buffer as it is: choosing would copy all of it."""
    inner = {
        name: part if name == "buffer" else training.kept(going, part, before["inner"][name])
        for name, part in after["inner"].items()
    }
    counts = {name: training.kept(going, after[name], before[name]) for name in after if name != "inner"}
    return counts | {"inner": inner}


@partial(jax.jit, static_argnums=(0,), donate_argnums=(1,))
def _run(program: Program, states: State, given: Given, rows: jax.Array, count: int) -> tuple[State, jax.Array]:
    def one(state: State, hyper: Hyper, data: Batch, index: jax.Array) -> tuple[State, jax.Array]:
        drawn = program.draw(hyper, state["step"])
        after, loss = training.advance(program, state, Given(hyper, data, given.limit), index, drawn)
        going = state["failed"] < 0
        return _stands_still(going, after, state), jnp.where(going, loss, jnp.nan)

    def body(carry: tuple[int, State, jax.Array]) -> tuple[int, State, jax.Array]:
        i, now, losses = carry
        after, loss = jax.vmap(one)(now, given.hyper, given.data, rows[:, i])
        return i + 1, after, losses.at[:, i].set(loss)

    def going(carry: tuple[int, State, jax.Array]) -> jax.Array:
        # one condition for all: a loop of its own for each would copy every variable at every step
        return (carry[0] < count) & (carry[1]["failed"] < 0).any()

    _, after, losses = jax.lax.while_loop(going, body, (0, states, training.no_losses(rows.shape[:2])))
    return after, losses


def fit_many(
    methods: Sequence[Method],
    data: Sequence[Batch],
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
    program = _one_program(methods, data)
    arrays, rows = _checked_data(data)
    first = methods[0]
    course = first.course(rows, epochs, steps, len(methods))
    first.check_function(arrays[0], course.size)
    for method, each in zip(methods, data, strict=True):
        method.check_labels(each)
        method.check_course(course, False)
    hypers = _stack([method.hyper(rows, course.size) for method in methods])
    given = Given(hypers, _stack(arrays), first.max_bad_steps)
    _train(methods, program, given, course, progress)
    return [None if method.failed else method.posterior for method in methods]


def _train(methods: Sequence[Method], program: Program, given: Given, course: Course, progress: bool | None) -> None:
    states = _stack([method.begin() for method in methods])
    with Progress(f"{len(methods)} × {methods[0].kind}", course.total, 0, progress) as bar:
        for at in range(0, course.total, course.length):
            index, counts = zip(*(course.chunk(method.seed, at) for method in methods), strict=True)
            states, losses = _run(program, states, given, np.stack(index), counts[0])
            seen = np.asarray(losses, dtype=np.float64)[:, : counts[0]]
            for number, method in enumerate(methods):
                method.observe(_part(states, number), seen[number])
            note = f"objective {np.nanmean(seen):.6g}" if np.isfinite(seen).any() else ""
            bar.show(at + counts[0], note)


def _one_program(methods: Sequence[Method], data: Sequence[Batch]) -> Program:
    """What a step of all the methods does."""
    if not methods or len(methods) != len(data):
        msg = f"methods, data: {len(methods)} and {len(data)}; equal numbers, at least one, are needed"
        raise ValueError(msg)
    program = methods[0].program()
    if any(method.program() != program for method in methods):
        msg = "methods: they differ in more than numbers; equal classes, log likelihoods, trees and options are needed"
        raise ValueError(msg)
    return program


def _checked_data(data: Sequence[Batch]) -> tuple[list[Batch], int]:
    """The data as JAX arrays, and the number of rows of each."""
    checked = [batches.check_data(each) for each in data]
    if len({rows for _, rows in checked}) != 1:
        msg = f"data: numbers of rows {[rows for _, rows in checked]}; all must be the same"
        raise ValueError(msg)
    return [arrays for arrays, _ in checked], checked[0][1]


def _stack(trees: Sequence[Tree]) -> Tree:
    return jax.tree.map(lambda *leaves: jnp.stack(leaves), *trees)


def _part(tree: Tree, number: int) -> Tree:
    return jax.tree.map(lambda leaf: leaf[number], tree)
