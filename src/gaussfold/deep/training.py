"""A training loop inside compiled code: chunks of steps, counted and skipped where they are not numbers.

A method supplies a :class:`Program`: what one step does to its variables. The loop is a ``while`` in XLA over the
steps of a chunk, rather than a scan, so that it stops at once after too many bad steps and any number of steps runs
in one compiled function. While a chunk runs, the rows of the next are shuffled.
"""

from __future__ import annotations

from functools import partial
from typing import NamedTuple, Protocol, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np

from gaussfold.deep.batches import batch_rows
from gaussfold.deep.types import Batch, Hyper, Inner, Tree

State: TypeAlias = dict[str, Tree]
"""``step``, ``skipped``, ``bad`` (in a row), ``failed`` (a step, or -1) and the method's ``inner`` variables."""
Taken: TypeAlias = tuple[Inner, jax.Array, jax.Array]
"""What a step leaves behind: variables, the loss before it, and whether it is finite."""


class TrainingError(RuntimeError):
    """Training stopped at steps that are not numbers; the state before them is kept."""


class Program(Protocol):
    """What a method does in one step; hashable, so that equal programs share one compilation."""

    def draw(self, hyper: Hyper, step: jax.Array) -> Tree:
        """Random numbers of one step."""
        ...

    def step(self, inner: Inner, hyper: Hyper, batches: Batch, draws: Tree, step: jax.Array) -> Taken:
        """New variables, the loss before the step, and whether the step is finite: if not, variables are the old ones.

        A program that knows before it moves can so move in place; others end with :func:`kept`.
        """
        ...


class Given(NamedTuple):
    """What stays the same from step to step."""

    hyper: Hyper
    data: Batch
    limit: int
    """Give up after so many steps in a row that are not finite."""


class Course(NamedTuple):
    """How long to train, and with which rows."""

    rows: int
    size: int
    """Rows of a batch."""
    per_step: int
    """Batches of a step."""
    total: int
    """Steps."""
    length: int
    """Steps of a chunk, the last ones of the last chunk not taken: one shape to compile."""
    only: np.ndarray | None = None
    """The rows that are learned from, if not all; ``rows`` counts them."""

    def chunk(self, seed: int, at: int) -> tuple[np.ndarray, int]:
        """Row numbers (length, per_step, size) of the chunk that starts at a step, and how many steps of it to take."""
        count = max(0, min(self.length, self.total - at))
        flat = batch_rows(seed, at * self.per_step, count * self.per_step, self.rows, self.size)
        if self.only is not None:
            flat = self.only[flat]
        index = flat.reshape(count, self.per_step, self.size)
        return np.pad(index, ((0, self.length - count), (0, 0), (0, 0))) if count < self.length else index, count


def start(inner: Inner) -> State:
    """The state before the first step, in memory of its own: a chunk takes the memory of the state it starts from."""
    counts = {name: jnp.zeros((), dtype=jnp.int32) for name in ("step", "skipped", "bad")}
    return counts | {"failed": jnp.full((), -1, dtype=jnp.int32), "inner": jax.tree.map(jnp.copy, inner)}


def forgiven(state: State) -> State:
    """The state without its failure, to go on from."""
    return state | {"failed": jnp.asarray(-1, dtype=jnp.int32), "bad": jnp.asarray(0, dtype=jnp.int32)}


def kept(ok: jax.Array, new: Tree, old: Tree) -> Tree:
    """The new tree, or the old one after a step that does not count."""
    return jax.tree.map(partial(jnp.where, ok), new, old)


def advance(program: Program, now: State, given: Given, index: jax.Array, drawn: Tree) -> tuple[State, jax.Array]:
    """One step with the rows ``index`` (batches, rows); returns the state and the loss, NaN for one that is skipped."""
    batches = jax.tree.map(lambda a: a.at[index].get(mode="promise_in_bounds"), given.data)
    inner, loss, ok = program.step(now["inner"], given.hyper, batches, drawn, now["step"])
    bad = jnp.where(ok, 0, now["bad"] + 1)
    after = {
        "step": now["step"] + 1,
        "skipped": now["skipped"] + (1 - ok.astype(jnp.int32)),
        "bad": bad,
        "failed": jnp.where(bad >= given.limit, now["step"], now["failed"]),
        "inner": inner,
    }
    return after, jnp.where(ok, loss, jnp.nan).astype(jnp.result_type(float))


def no_losses(shape: tuple[int, ...]) -> jax.Array:
    """Losses of steps that have not been taken."""
    return jnp.full(shape, jnp.nan, jnp.result_type(float))


def chunk(
    program: Program, early: bool, state: State, given: Given, rows: jax.Array, count: int
) -> tuple[State, jax.Array]:
    """Take ``count`` steps with the given rows (chunk, batches, rows); returns the state and the losses.

    ``early`` draws the random numbers of all steps at once, which is faster where they are few.
    See :data:`run_chunk` for the compiled form.
    """
    first, hyper = state["step"], given.hyper
    draws = jax.vmap(lambda i: program.draw(hyper, first + i))(jnp.arange(rows.shape[0])) if early else None

    def body(carry: tuple[State, jax.Array]) -> tuple[State, jax.Array]:
        now, losses = carry
        i = now["step"] - first
        drawn = jax.tree.map(lambda a: a[i], draws) if early else program.draw(hyper, now["step"])
        after, loss = advance(program, now, given, rows[i], drawn)
        return after, losses.at[i].set(loss)

    def going(carry: tuple[State, jax.Array]) -> jax.Array:
        return (carry[0]["step"] - first < count) & (carry[0]["failed"] < 0)

    after, losses = jax.lax.while_loop(going, body, (state, no_losses(rows.shape[:1])))
    return after, losses


run_chunk = partial(jax.jit, static_argnums=(0, 1), donate_argnums=(2,))(chunk)
""":func:`chunk`, compiled. The state that is passed in must not be used any more: its memory holds the new one."""


def chunk_length(work: int, steps: int) -> int:
    """Steps per chunk, a power of two, for about a tenth of a second at ``work`` operations a step.

    Short trainings do not get chunks below 128 for their own sake: one compiled function serves them all.
    """
    length = 1 << int(np.clip(np.log2(2e8 / max(work, 1)), 0, 10))
    while length > 128 and length // 2 >= steps:
        length //= 2
    return length
