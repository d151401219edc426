"""How every method trains: from arrays or batches, resumed, stepped by hand, saved."""

from __future__ import annotations

import os
import warnings
from typing import Self

import jax
import jax.numpy as jnp
import numpy as np

from gaussfold import schema, store
from gaussfold.checks import refuse, whole
from gaussfold.deep import batches, feeds, temperature, training
from gaussfold.deep.likelihoods import likelihood_in
from gaussfold.deep.options import described
from gaussfold.deep.posterior import Posterior
from gaussfold.deep.state import TrainingState, filled, named_arrays
from gaussfold.deep.stepping import Stepper, pure_step
from gaussfold.deep.stepwise import Steps
from gaussfold.deep.summary import NotSettledWarning, Summary, last_tenth
from gaussfold.deep.training import Course, Given, State, TrainingError
from gaussfold.deep.types import Batch, Document
from gaussfold.progress import Progress
from gaussfold.types import ArrayLike


class Method(Steps):
    """A training; the parent of VIFA, SLANG and SWAG."""

    def fit(
        self,
        data: Batch,
        y: ArrayLike | None = None,
        *,
        epochs: float | None = None,
        steps: int | None = None,
        stop: int | None = None,
        resume: bool = False,
        n_rows: int | None = None,
        progress: bool | None = None,
    ) -> Posterior:
        """Learn from data.

        Parameters
        ----------
        data
            A tree of arrays with one row per example in front, such as ``(X, y)``; batches of it are what the log
            likelihood sees. Or an iterable of such batches, all of one size: a torch DataLoader, a tf.data or Grain
            pipeline, a generator. It is gone through once per epoch in the order that it has; an iterator once, and
            one epoch is then the default.
        y
            Labels, where ``data`` is X alone: ``fit(X, y)`` is ``fit((X, y))``.
        epochs, steps
            How long, counted from the beginning also when resuming: passes over the data, 100 by default, or steps. An
            epoch is as many steps as the data have batches, whatever a step does with its batch.
        stop
            Leave off after so many steps of that length, to go on later.
        resume
            Go on from where the last ``fit`` ended, or from what ``restore`` has read, up to the given length. An
            interrupted and resumed training is the unbroken one; batches of an iterable that were seen are skipped,
            and an iterator goes on where it stands.
        n_rows
            Of an iterable: how many rows one way through has, where ``len`` does not say it.
        progress
            Show a bar: True, False, or None for "on a terminal".

        Raises
        ------
        TrainingError
            After ``max_bad_steps`` steps in a row that are not numbers. What was learned before them is kept, can be
            saved, and is in :attr:`posterior`.
        """
        if y is None and feeds.is_feed(data):
            return self._fit_feed(feeds.Feed(data, n_rows, self.check_batch), epochs, steps, stop, resume, progress)
        if n_rows is not None:
            refuse("n_rows", n_rows, "an iterable of batches", "arrays say it themselves: leave it out")
        data = data if y is None else (data, y)
        arrays, rows = batches.check_data(data)
        course = self.course(rows, epochs, steps)
        self.check_labels(data)
        self.check_function(arrays, course.size)
        going_on = resume and self._state is not None
        self.check_course(course, going_on)
        if not going_on:
            self._cold = self._chosen_temperature(arrays, course)
        self._state = training.forgiven(self.begun("fit")) if going_on else self.begin()
        course = course if stop is None else course._replace(total=min(course.total, stop))
        self._run(feeds.InMemory(arrays, course, self.seed), course, progress)
        self._warn_unless_settled()
        return self.posterior

    def _fit_feed(
        self,
        feed: feeds.Feed,
        epochs: float | None,
        steps: int | None,
        stop: int | None,
        resume: bool,
        progress: bool | None,
    ) -> Posterior:
        """Learn from batches that somebody hands over; after an error everything is as it was."""
        if epochs is None and steps is None and feed.once:
            epochs = 1.0
        course = self.course(feed.rows, epochs, steps, size=feed.size)
        self.check_labels(feed.first)
        self.check_function(jax.tree.map(jnp.asarray, feed.first), feed.size)
        going_on = resume and self._state is not None
        self.check_course(course, going_on)
        before = self._remembered(going_on)
        try:
            if not going_on:  # no rows can be held out
                self._cold = temperature.CANDIDATES[0] if isinstance(self.temperature, str) else float(self.temperature)
            self._state = training.forgiven(self.begun("fit")) if going_on else self.begin()
            course = course if stop is None else course._replace(total=min(course.total, stop))
            feed.start(course, self.steps)
            self._run(feed, course, progress)
        except ValueError:
            vars(self).update(before)
            raise
        self._warn_unless_settled()
        return self.posterior

    def stepper(self, n_rows: int, steps: int | None = None) -> Stepper:
        """The training as pure functions of a state, for a loop of one's own.

        Parameters
        ----------
        n_rows
            Rows of the whole data: how much more they say than a batch.
        steps
            How long it will be, where something is a share of that (SWAG's ``burn_in`` and ``every``).
        """
        rows = whole("n_rows", n_rows)
        self.check_stepping(steps)
        limit, program = self.max_bad_steps, self.program()

        def posterior(state: State) -> Posterior:
            return Posterior(self.belief_of(state["inner"]), self.layout, likelihood_in(self.log_likelihood))

        return Stepper(
            lambda: training.start(self.initial()),
            pure_step(program, lambda size: self.hyper(rows, size), self.batches_per_step, limit),
            posterior,
        )

    def _remembered(self, going_on: bool) -> dict[str, object]:
        """All that a training changes, to go back to: what goes on writes over its arrays, what begins does not."""
        found = dict(vars(self)) | {"_losses": list(self._losses)}
        if going_on:
            found |= {"_state": jax.tree.map(jnp.copy, self._state)} | self.collected_so_far()
        return found

    def _chosen_temperature(self, arrays: Batch, course: Course) -> float:
        """The given temperature, or the one that predicts rows best which the training has not seen."""
        if not isinstance(self.temperature, str):
            return float(self.temperature)
        if course.rows < temperature.FEWEST or not temperature.is_open(likelihood_in(self.log_likelihood)):
            return temperature.CANDIDATES[0]
        only, out = temperature.held_out(self.seed, course.rows)
        size = min(course.size, len(only))
        short = course._replace(rows=len(only), size=size, total=max(1, course.total // 2), only=only)
        batch, found = jax.tree.map(lambda a: a[out], arrays), {}
        for self._cold in temperature.CANDIDATES:
            self._state = self.begin()
            self.check_course(short, False)
            self._run(feeds.InMemory(arrays, short, self.seed), short, False)
            networks = self.posterior.sample(self.seed, temperature.NETWORKS, stacked=True)
            found[self._cold] = temperature.scores(self.log_likelihood, networks, batch)
        self.check_course(course, False)
        return temperature.best(found)

    def _warn_unless_settled(self) -> None:
        _, fall, settled = last_tenth(self.losses)
        if not settled and np.isfinite(fall):
            msg = (
                f"fit: after {self.steps} steps the objective still falls, by {100.0 * fall:.2g} % in the last tenth; "
                "give more epochs, or go on with fit(..., resume=True)"
            )
            warnings.warn(msg, NotSettledWarning, stacklevel=3)

    def summary(self) -> Summary:
        """How the training went: steps, objective, whether it settled, what was learned beside the posterior."""
        self.begun("summary")
        bound, fall, settled = last_tenth(self.losses)
        flat = np.broadcast_to(np.asarray(self.precision_learned()), (self.layout.dim,))
        parts = {name: flat[part] for name, part in self.layout.slices().items() if part.stop > part.start}
        each = {name: float(part[0]) if (part == part[0]).all() else None for name, part in parts.items()}
        return Summary(self.kind, self.steps, self.skipped, bound, fall, settled, self._cold, each)

    def __repr__(self) -> str:
        state = f"{self.steps} steps" if self._state is not None else "not fitted"
        return f"{type(self).__name__}({self.layout.dim} parameters, {state})"

    def _run(self, source: feeds.Source, course: Course, progress: bool | None) -> None:
        state = self.begun("fit")
        program, hyper = self.program(), self.hyper(course.rows, course.size)
        early = course.length * self.draws_per_step <= 1 << 22
        step = int(state["step"])
        data, index, count = source.chunk(step)
        with Progress(self.kind, course.total, step, progress) as bar:
            while step < course.total:
                given = Given(hyper, data, self.max_bad_steps)
                state, losses = training.run_chunk(program, early, state, given, index, count)
                self._state = state  # at once: the memory of the one before is gone
                data, index, following = source.chunk(step + count)  # while the chunk runs
                done, failed = int(state["step"]), int(state["failed"])
                seen = np.asarray(losses, dtype=np.float64)[: done - step]
                self.observe(state, seen)
                step, count = done, following
                bar.show(step, f"objective {np.mean(seen):.6g}")
                if failed >= 0:
                    raise TrainingError(self._failure(failed))

    def _failure(self, step: int) -> str:
        return (
            f"step {step}: the log likelihood or its gradient was not finite at {self.max_bad_steps} steps in a row; "
            "what was learned before them is kept (posterior, save). Look at the log likelihood and the data, lower "
            "learning_rate or set max_grad_norm; fit(resume=True) goes on"
        )

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the training as it stands, so that :meth:`restore` and ``fit(resume=True)`` can go on with it."""
        arrays = named_arrays(self.begun("save")) | {"losses": self.losses} | self.collected_arrays()
        arrays["temperature"] = np.asarray(self._cold)
        store.save(TrainingState(self.kind, self._known_by() | {"version": self.version}, self.layout, arrays), path)

    def restore(self, path: str | os.PathLike[str]) -> Self:
        """Take over a saved training of the same method, tree and settings; then ``fit(data, resume=True)``."""
        found = store.load(path)
        if not isinstance(found, TrainingState) or found.method != self.kind:
            what = found.method if isinstance(found, TrainingState) else type(found).__name__
            msg = f"path: {str(path)!r} holds a {what}, not a training of {self.kind}"
            raise store.StoreError(msg)
        found.layout.check(self.layout.unflatten(self.centre))
        for name, value in self._known_by().items():
            if name in found.settings and found.settings[name] != value:  # an older one says less
                msg = f"{name}={value!r}: the saved training had {found.settings.get(name)!r}; give the same"
                raise ValueError(msg)
        arrays = self.upgraded(found.arrays, found.settings.get("version", 1))
        self._state = filled(jax.eval_shape(lambda: training.start(self.initial())), arrays)
        schema.check(found.arrays, (schema.Part("losses", ("steps",), "double", free=True),))
        self._losses = [found.arrays["losses"]]
        if "temperature" in found.arrays:
            schema.check(found.arrays, (schema.Part("temperature", (), "double", low=0.0),))
        self._cold = float(found.arrays.get("temperature", 1.0))
        self.recollect(found.arrays)
        return self

    def _known_by(self) -> Document:
        prior = described(self.prior_precision, self.layout) if self.prior is None else self.prior
        mean = described(self.prior_mean, self.layout)
        shared = {"prior_precision": prior, "prior_mean": mean, "temperature": self.temperature}
        return self.settings() | shared | {"batch_size": self.batch_size, "seed": self.seed}
