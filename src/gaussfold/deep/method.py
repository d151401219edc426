"""What every method that trains in steps shares: checks, epochs, resuming, saving."""

from __future__ import annotations

import os
from typing import Any, ClassVar, Self

import jax
import jax.numpy as jnp
import numpy as np

from gaussfold import store
from gaussfold.checks import positive, whole
from gaussfold.deep import batches, training
from gaussfold.deep.likelihoods import LogLikelihood
from gaussfold.deep.posterior import Posterior
from gaussfold.deep.state import TrainingState, filled, named_arrays
from gaussfold.deep.training import Program, State, TrainingError
from gaussfold.deep.trees import Layout, Tree, layout_of
from gaussfold.types import Array


class Method:
    """A log likelihood, a tree of parameters, and steps; the parent of VIFA, SLANG and SWAG."""

    kind: ClassVar[str]
    version: ClassVar[int] = 1
    """Of the arrays in a saved training; see :meth:`_upgraded`."""

    def __init__(
        self,
        log_likelihood: Any,
        params: Tree,
        *,
        batch_size: int | None,
        max_bad_steps: int,
        seed: int,
    ) -> None:
        if not callable(log_likelihood):
            msg = f"log_likelihood: {type(log_likelihood).__name__}; a function of (params, batch) is needed"
            raise ValueError(msg)  # noqa: TRY004 - every bad argument is one kind of error
        self.layout: Layout = layout_of(params)
        self.log_likelihood = log_likelihood
        self.batch_size = batch_size
        self.max_bad_steps = whole("max_bad_steps", max_bad_steps)
        self.seed = whole("seed", seed, least=0)
        self._centre = self.layout.flatten(params)
        finite = np.isfinite(np.asarray(self._centre))
        if not finite.all():
            bad = next(name for name, part in self.layout.slices().items() if not finite[part].all())
            msg = f"params: leaf {bad} has NaN or infinity; start from finite numbers"
            raise ValueError(msg)
        self._state: State | None = None
        self._losses: list[Array] = []

    # What a method says.

    def _program(self) -> Program:
        raise NotImplementedError

    def _hyper(self, rows: int, size: int) -> dict[str, Any]:
        raise NotImplementedError

    def _initial(self) -> Any:
        raise NotImplementedError

    def _posterior(self, inner: Any) -> Posterior:
        raise NotImplementedError

    def _settings(self) -> dict[str, Any]:
        raise NotImplementedError

    @property
    def _batches_per_step(self) -> int:
        return 1

    @property
    def _longest_chunk(self) -> int:
        return 1 << 10

    def _forget(self) -> None:
        """Forget what was collected outside of the variables."""

    def _collected(self) -> dict[str, np.ndarray]:
        """What was collected outside of the variables, as named arrays."""
        return {}

    def _recollect(self, arrays: dict[str, np.ndarray]) -> None:
        """Undo :meth:`_collected`."""

    def _upgraded(self, arrays: dict[str, np.ndarray], version: int) -> dict[str, np.ndarray]:  # noqa: ARG002
        """Arrays of a training that an earlier version has saved, as this one has them."""
        return arrays

    def _collect(self, inner: Any) -> None:
        """Look at the variables after a chunk."""

    @property
    def _draws_per_step(self) -> int:
        return self.layout.dim

    # What follows.

    @property
    def steps(self) -> int:
        """Steps taken so far, skipped ones included."""
        return 0 if self._state is None else int(self._state["step"])

    @property
    def skipped(self) -> int:
        """Steps that were skipped because the likelihood or a gradient was not finite."""
        return 0 if self._state is None else int(self._state["skipped"])

    @property
    def losses(self) -> Array:
        """The objective at each step (an estimate from its batches and draws); NaN where it was skipped."""
        return np.concatenate([np.zeros(0), *self._losses])

    @property
    def posterior(self) -> Posterior:
        """The posterior as it stands after the last good step."""
        if self._state is None:
            msg = "posterior: nothing has been learned yet; call fit(data) first"
            raise ValueError(msg)
        return self._posterior(self._state["inner"])

    def fit(
        self,
        data: Any,
        *,
        epochs: float | None = None,
        steps: int | None = None,
        resume: bool = False,
        progress: bool | None = None,
    ) -> Posterior:
        """Learn from data.

        Parameters
        ----------
        data
            A tree of arrays with one row per example in front, such as ``(X, y)``; batches of it are what the log
            likelihood sees.
        epochs, steps
            How long, counted from the beginning also when resuming: passes over the data, 100 by default, or steps.
        resume
            Go on from where the last ``fit`` ended, or from what ``restore`` has read, up to the given length. An
            interrupted and resumed training is the unbroken one.
        progress
            Show a bar: True, False, or None for "on a terminal".

        Raises
        ------
        TrainingError
            After ``max_bad_steps`` steps in a row that are not numbers. What was learned before them is kept, can be
            saved, and is in :attr:`posterior`.
        """
        arrays, rows = batches.check_data(data)
        size = batches.check_batch_size(self.batch_size, rows)
        if isinstance(self.log_likelihood, LogLikelihood):
            self.log_likelihood.check(data)
        batches.check_log_likelihood(self.log_likelihood, self.layout.unflatten(self._centre), arrays, size)
        total = self._length(epochs, steps, rows, size)
        if not resume or self._state is None:
            state, self._losses = training.start(self._initial()), []
            self._forget()
        else:
            state = self._state | {"failed": jnp.asarray(-1, dtype=jnp.int32), "bad": jnp.asarray(0, dtype=jnp.int32)}
        self._state = state
        self._run(arrays, rows, size, total, progress)
        return self.posterior

    def _length(self, epochs: float | None, steps: int | None, rows: int, size: int) -> int:
        if steps is not None:
            if epochs is not None:
                msg = f"epochs={epochs!r}, steps={steps!r}: give one of them"
                raise ValueError(msg)
            return whole("steps", steps)
        wanted = 100.0 if epochs is None else positive("epochs", epochs)
        return max(1, round(wanted * (rows // size) / self._batches_per_step))

    def _run(self, data: Any, rows: int, size: int, total: int, progress: bool | None) -> None:
        program, hyper = self._program(), self._hyper(rows, size)
        assert self._state is not None
        per_step, drawn = self._batches_per_step, self._draws_per_step
        length = min(
            training.chunk_length(20 * drawn + 200 * per_step * size, total),  # whether resumed or not
            self._longest_chunk,
        )
        early = length * drawn <= 1 << 22

        def chunk(at: int) -> tuple[Any, int]:
            count = max(0, min(length, total - at))
            flat = batches.batch_rows(self.seed, at * per_step, count * per_step, rows, size)
            index = flat.reshape(count, per_step, size)
            return np.pad(index, ((0, length - count), (0, 0), (0, 0))) if count < length else index, count

        bar = training.Progress(self.kind, total, int(self._state["step"]), progress)
        try:
            step = int(self._state["step"])
            index, count = chunk(step)
            while step < total:
                self._state, losses = training.run_chunk(
                    program, early, self._state, hyper, data, index, count, self.max_bad_steps
                )
                index, following = chunk(step + count)  # while the chunk runs
                done, failed = int(self._state["step"]), int(self._state["failed"])
                self._collect(self._state["inner"])
                seen = np.asarray(losses, dtype=np.float64)[: done - step]
                self._losses.append(seen)
                step, count = done, following
                bar.show(step, f"objective {np.mean(seen):.6g}")
                if failed >= 0:
                    raise TrainingError(self._failure(failed))
        finally:
            bar.close()

    def _failure(self, step: int) -> str:
        return (
            f"step {step}: the log likelihood or its gradient was not finite at {self.max_bad_steps} steps in a row; "
            "what was learned before them is kept (posterior, save). Look at the log likelihood and the data, lower "
            "learning_rate or set max_grad_norm; fit(resume=True) goes on"
        )

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the training as it stands, so that :meth:`restore` and ``fit(resume=True)`` can go on with it."""
        if self._state is None:
            msg = "save: nothing has been learned yet; call fit(data) first"
            raise ValueError(msg)
        arrays = named_arrays(self._state) | {"losses": self.losses} | self._collected()
        settings = self._settings() | {"version": self.version}
        store.save(TrainingState(self.kind, settings, self.layout, arrays), path)

    def restore(self, path: str | os.PathLike[str]) -> Self:
        """Take over a saved training of the same method, tree and settings; then ``fit(data, resume=True)``."""
        found = store.load(path)
        if not isinstance(found, TrainingState) or found.method != self.kind:
            what = found.method if isinstance(found, TrainingState) else type(found).__name__
            msg = f"path: {str(path)!r} holds a {what}, not a training of {self.kind}"
            raise store.StoreError(msg)
        found.layout.check(self.layout.unflatten(self._centre))
        for name, value in self._settings().items():
            if found.settings.get(name) != value:
                msg = f"{name}={value!r}: the saved training had {found.settings.get(name)!r}; give the same"
                raise ValueError(msg)
        arrays = self._upgraded(found.arrays, found.settings.get("version", 1))
        self._state = filled(jax.eval_shape(lambda: training.start(self._initial())), arrays)
        self._losses = [found.arrays["losses"]]
        self._recollect(found.arrays)
        return self


def spread(name: str, value: Any, layout: Layout, *, above_zero: bool = False) -> Any:
    """A number, a vector (D,) or a tree of the parameters' structure, as a number or a vector in JAX."""
    if isinstance(value, int | float | np.number) or getattr(value, "shape", None) in ((), (layout.dim,)):
        flat = np.asarray(value, dtype=layout.dtype)
    else:
        layout.check(value, name)
        flat = np.asarray(layout.flatten(value))
    good = np.isfinite(flat) & ((flat > 0.0) | (not above_zero))
    if not good.all():
        what = "finite numbers > 0" if above_zero else "finite numbers"
        first = float(flat.ravel()[int(np.argmin(good))])
        msg = f"{name}={first!r}: {what} are needed: one, one per parameter, or a tree like params"
        raise ValueError(msg)
    return jnp.asarray(flat)
