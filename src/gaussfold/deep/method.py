"""What every method that trains in steps shares: checks, epochs, resuming, saving."""

from __future__ import annotations

import os
import warnings
from abc import ABC, abstractmethod
from typing import ClassVar, Self

import jax
import jax.numpy as jnp
import numpy as np

from gaussfold import schema, store
from gaussfold.checks import one_of, positive, refuse, whole
from gaussfold.deep import batches, evidence, feeds, scales, temperature, training
from gaussfold.deep.likelihoods import LogLikelihood, function, likelihood_in
from gaussfold.deep.options import Training, described, spread
from gaussfold.deep.posterior import Belief, Posterior
from gaussfold.deep.state import TrainingState, filled, named_arrays
from gaussfold.deep.stepping import Stepper, pure_step
from gaussfold.deep.summary import NotSettledWarning, Summary, last_tenth
from gaussfold.deep.training import Course, Given, Program, State, TrainingError
from gaussfold.deep.trees import Layout, layout_of
from gaussfold.deep.types import Arrays, Batch, Document, Hyper, Inner, LogLikelihoodFunction, Tree
from gaussfold.progress import Progress
from gaussfold.types import Array, ArrayLike

# The constructors of the methods begin alike (log_likelihood, params, rank, prior_precision), and each names its
# settings in a dict: signatures are written out because help() shows them, dicts because files hold these names.


class Method(ABC):
    """A log likelihood, a tree of parameters, and steps; the parent of VIFA, SLANG and SWAG.

    A subclass says what a step does (:meth:`program`, :meth:`hyper`, :meth:`initial`), what its variables mean
    (:meth:`belief`) and by what a saved training is known (:meth:`settings`). Constructors begin alike on purpose:
    methods can be exchanged.
    """

    kind: ClassVar[str]
    version: ClassVar[int] = 1
    """Of the arrays in a saved training; see :meth:`upgraded`."""

    def __init__(self, log_likelihood: LogLikelihoodFunction, params: Tree, options: Training) -> None:
        self.layout: Layout = layout_of(params)
        self.log_likelihood = function("log_likelihood", log_likelihood, "(params, batch)")
        self.batch_size = options.batch_size
        self.max_bad_steps = whole("max_bad_steps", options.max_bad_steps)
        self.seed = whole("seed", options.seed, least=0)
        self.centre = self.layout.flatten(params)
        finite = np.isfinite(np.asarray(self.centre))
        if not finite.all():
            bad = next(name for name, part in self.layout.slices().items() if not finite[part].all())
            msg = f"params: leaf {bad} has NaN or infinity; start from finite numbers"
            raise ValueError(msg)
        self.scales = scales.of_leaves(self.layout, self.centre)
        given = options.prior_precision
        self.prior: str | None = None
        if isinstance(given, str):
            self.prior = one_of("prior_precision", given, evidence.NAMES, also="finite numbers > 0")
        if self.prior is None:
            self.prior_precision = spread("prior_precision", given, self.layout, above_zero=True)
        else:
            self.prior_precision = scales.spread(self.layout, evidence.first(self.layout, self.scales))
        self.learns_prior = self.prior is not None and evidence.NAMES[self.prior]
        self.prior_mean = spread("prior_mean", options.prior_mean, self.layout)
        self.temperature = options.temperature
        if isinstance(self.temperature, str):
            one_of("temperature", self.temperature, (temperature.AUTO,), also="a number > 0")
        else:
            positive("temperature", self.temperature)
        self.usual_epochs = 100.0
        self._state: State | None = None
        self._cold = 1.0
        self._losses: list[Array] = []

    # What a method says.

    @abstractmethod
    def program(self) -> Program:
        """What a step does."""

    @abstractmethod
    def hyper(self, rows: int, size: int) -> Hyper:
        """What it is told, for so many rows in the data and in a batch."""

    @abstractmethod
    def initial(self) -> Inner:
        """Variables before the first step."""

    @abstractmethod
    def belief(self, inner: Inner) -> Belief:
        """The Gaussian that the variables stand for."""

    @abstractmethod
    def settings(self) -> Document:
        """What must be the same when a saved training goes on."""

    @property
    @abstractmethod
    def draws_per_step(self) -> int:
        """Random numbers, or as much work as they are."""

    @property
    def batches_per_step(self) -> int:
        """Batches that a step looks at."""
        return 1

    @property
    def longest_chunk(self) -> int:
        """Steps after which :meth:`collect` must have looked."""
        return 1 << 10

    def forget(self) -> None:
        """Forget what was collected outside of the variables."""
        return

    def collect(self, inner: Inner) -> None:
        """Look at the variables after a chunk."""
        del inner  # nothing is collected

    def collected_arrays(self) -> Arrays:
        """What was collected outside of the variables, as named arrays."""
        return {}

    def recollect(self, arrays: Arrays) -> None:
        """Undo :meth:`collected_arrays`."""
        del arrays  # nothing was collected

    def upgraded(self, arrays: Arrays, version: int) -> Arrays:
        """Arrays of a training that an earlier version has saved, as this one has them."""
        del version  # none has changed anything
        return arrays

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
    def failed(self) -> bool:
        """Whether the training was given up."""
        return self._state is not None and int(self._state["failed"]) >= 0

    @property
    def losses(self) -> Array:
        """The objective at each step (an estimate from its batches and draws); NaN where it was skipped."""
        return np.concatenate([np.zeros(0), *self._losses])

    @property
    def variables(self) -> Inner:
        """What the training carries from step to step, as it stands."""
        inner: Inner = self._begun("variables")["inner"]
        return inner

    @property
    def posterior(self) -> Posterior:
        """The posterior as it stands after the last good step."""
        inner = self._begun("posterior")["inner"]
        return Posterior(self.belief(inner), self.layout, likelihood_in(self.log_likelihood))

    def _begun(self, name: str) -> State:
        if self._state is None:
            msg = f"{name}: nothing has been learned yet; call fit(data) first"
            raise ValueError(msg)
        return self._state

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
        self._state = training.forgiven(self._begun("fit")) if going_on else self.begin()
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
            self._state = training.forgiven(self._begun("fit")) if going_on else self.begin()
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

    def check_stepping(self, steps: int | None) -> None:
        """Take over how long a loop outside will be."""
        del steps  # any will do

    def belief_of(self, inner: Inner) -> Belief:
        """The Gaussian of variables that a loop outside has."""
        return self.belief(inner)

    def check_batch(self, batch: Batch) -> None:
        """Refuse rows of a batch that cannot be learned from."""
        self.check_labels(batch)
        arrays, _ = batches.check_data(batch)
        batches.check_finite(self.log_likelihood, self.layout.unflatten(self.centre), arrays)

    def _remembered(self, going_on: bool) -> dict[str, object]:
        """All that a training changes, to go back to: what goes on writes over its arrays, what begins does not."""
        found = dict(vars(self)) | {"_losses": list(self._losses)}
        if going_on:
            found |= {"_state": jax.tree.map(jnp.copy, self._state)} | self.collected_so_far()
        return found

    def collected_so_far(self) -> dict[str, object]:
        """Attributes that :meth:`collect` writes to, in memory of their own."""
        return {}

    def check_course(self, course: Course, going_on: bool) -> None:
        """Refuse a length that what was begun cannot go on to; take one over that is begun with."""
        del course, going_on  # any will do

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
        self._begun("summary")
        bound, fall, settled = last_tenth(self.losses)
        flat = np.broadcast_to(np.asarray(self.precision_learned()), (self.layout.dim,))
        parts = {name: flat[part] for name, part in self.layout.slices().items() if part.stop > part.start}
        each = {name: float(part[0]) if (part == part[0]).all() else None for name, part in parts.items()}
        return Summary(self.kind, self.steps, self.skipped, bound, fall, settled, self._cold, each)

    def precision_learned(self) -> jax.Array:
        """The prior's precision, as it stands."""
        return self.prior_precision

    def __repr__(self) -> str:
        state = f"{self.steps} steps" if self._state is not None else "not fitted"
        return f"{type(self).__name__}({self.layout.dim} parameters, {state})"

    def course(
        self, rows: int, epochs: float | None, steps: int | None, side_by_side: int = 1, size: int | None = None
    ) -> Course:
        """How long to train on so many rows, and in which chunks, whether resumed or not."""
        size = batches.check_batch_size(self.batch_size, rows) if size is None else size
        per_step = self.batches_per_step
        if steps is None:
            wanted = self.usual_epochs if epochs is None else positive("epochs", epochs)
            total = max(1, round(wanted * (rows // size)))
        elif epochs is None:
            total = whole("steps", steps)
        else:
            msg = f"epochs={epochs!r}, steps={steps!r}: give one of them"
            raise ValueError(msg)
        work = side_by_side * (20 * self.draws_per_step + 200 * per_step * size)
        return Course(rows, size, per_step, total, min(training.chunk_length(work, total), self.longest_chunk))

    def check_labels(self, data: Batch) -> None:
        """Refuse labels that the likelihood cannot explain, where it is known."""
        if isinstance(self.log_likelihood, LogLikelihood):
            self.log_likelihood.check(data, self.layout.unflatten(self.centre))

    def check_function(self, arrays: Batch, size: int) -> None:
        """Refuse a log likelihood that does not give one number per row, and rows of which it gives none."""
        params = self.layout.unflatten(self.centre)
        batches.check_log_likelihood(self.log_likelihood, params, arrays, size)
        batches.check_finite(self.log_likelihood, params, arrays)

    def begin(self) -> State:
        """Forget everything; returns the state before the first step."""
        state, self._losses = training.start(self.initial()), []
        self.forget()
        return state

    def observe(self, state: State, losses: Array) -> None:
        """After a chunk: keep its state and its losses, and look at the variables."""
        self._state = state
        self._losses.append(losses)
        self.collect(state["inner"])

    def _run(self, source: feeds.Source, course: Course, progress: bool | None) -> None:
        state = self._begun("fit")
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
        arrays = named_arrays(self._begun("save")) | {"losses": self.losses} | self.collected_arrays()
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

    def prior_and_scale(self, rows: int, size: int) -> Hyper:
        """The part of :meth:`hyper` that no method is without."""
        return {
            "precision": self.prior_precision,
            "prior_mean": self.prior_mean,
            "scale": jnp.asarray(rows / size / self._cold, self.layout.dtype),
        }
