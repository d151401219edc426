"""A training loop inside compiled code: chunks of steps, counted and skipped where they are not numbers.

A method supplies a :class:`Program`: what one step does to its variables. The loop is a ``while`` in XLA over the
steps of a chunk, rather than a scan, so that it stops at once after too many bad steps and any number of steps runs
in one compiled function. While a chunk runs, the rows of the next are shuffled.
"""

from __future__ import annotations

import sys
from functools import partial
from typing import Any, Protocol

import jax
import jax.numpy as jnp
import numpy as np

State = dict[str, Any]
"""``step``, ``skipped``, ``bad`` (in a row), ``failed`` (a step, or -1) and the method's ``inner`` variables."""


class TrainingError(RuntimeError):
    """Training stopped at steps that are not numbers; the state before them is kept."""


class Program(Protocol):
    """What a method does in one step; hashable, so that equal programs share one compilation."""

    def draw(self, hyper: Any, step: Any) -> Any:
        """Random numbers of one step."""
        ...

    def step(self, inner: Any, hyper: Any, batches: Any, draws: Any, step: Any) -> tuple[Any, Any, Any]:
        """New variables, the loss before the step, and whether the step is finite: if not, variables are the old ones.

        A program that knows before it moves can so move in place; others end with :func:`kept`.
        """
        ...


def start(inner: Any) -> State:
    """The state before the first step, in memory of its own: a chunk takes the memory of the state it starts from."""
    counts = {name: jnp.zeros((), dtype=jnp.int32) for name in ("step", "skipped", "bad")}
    return counts | {"failed": jnp.full((), -1, dtype=jnp.int32), "inner": jax.tree.map(jnp.copy, inner)}


def kept(ok: Any, new: Any, old: Any) -> Any:
    """The new tree, or the old one after a step that does not count."""
    return jax.tree.map(partial(jnp.where, ok), new, old)


def advance(
    program: Program, now: State, hyper: Any, data: Any, index: Any, drawn: Any, limit: Any
) -> tuple[State, Any]:
    """One step with the rows ``index`` (batches, rows); returns the state and the loss, NaN for one that is skipped."""
    batches = jax.tree.map(lambda a: a.at[index].get(mode="promise_in_bounds"), data)
    inner, loss, ok = program.step(now["inner"], hyper, batches, drawn, now["step"])
    bad = jnp.where(ok, 0, now["bad"] + 1)
    after = {
        "step": now["step"] + 1,
        "skipped": now["skipped"] + (1 - ok.astype(jnp.int32)),
        "bad": bad,
        "failed": jnp.where(bad >= limit, now["step"], now["failed"]),
        "inner": inner,
    }
    return after, jnp.where(ok, loss, jnp.nan).astype(jnp.result_type(float))


def no_losses(shape: tuple[int, ...]) -> Any:
    """Losses of steps that have not been taken."""
    return jnp.full(shape, jnp.nan, jnp.result_type(float))


def chunk(
    program: Program, early: bool, state: State, hyper: Any, data: Any, rows: Any, count: Any, limit: Any
) -> tuple[State, Any]:
    """Take ``count`` steps with the given rows (chunk, batches, rows); returns the state and the losses.

    ``early`` draws the random numbers of all steps at once, which is faster where they are few.
    See :data:`run_chunk` for the compiled form.
    """
    first = state["step"]
    draws = jax.vmap(lambda i: program.draw(hyper, first + i))(jnp.arange(rows.shape[0])) if early else None

    def body(carry: tuple[State, Any]) -> tuple[State, Any]:
        now, losses = carry
        i = now["step"] - first
        drawn = jax.tree.map(lambda a: a[i], draws) if early else program.draw(hyper, now["step"])
        after, loss = advance(program, now, hyper, data, rows[i], drawn, limit)
        return after, losses.at[i].set(loss)

    def going(carry: tuple[State, Any]) -> Any:
        return (carry[0]["step"] - first < count) & (carry[0]["failed"] < 0)

    return jax.lax.while_loop(going, body, (state, no_losses(rows.shape[:1])))  # type: ignore[no-any-return]


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


class Progress:
    """A bar on a terminal; nothing elsewhere, unless asked for."""

    def __init__(self, title: str, total: int, done: int, show: bool | None) -> None:
        self._bar: Any = None
        if show or (show is None and sys.stderr.isatty()):
            from rich.console import Console
            from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
            from rich.progress import Progress as Bar

            columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
            self._bar = Bar(*columns, TextColumn("{task.fields[note]}"), console=Console(stderr=True))
            self._bar.start()
            self._task = self._bar.add_task(title, total=total, completed=done, note="")

    def show(self, done: int, note: str = "") -> None:
        """Move the bar."""
        if self._bar is not None:
            self._bar.update(self._task, completed=done, note=note)

    def close(self) -> None:
        """Leave the bar as it is."""
        if self._bar is not None:
            self._bar.stop()
