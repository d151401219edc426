"""What a method that trains in steps is: its tree, its prior, what a step does, and what has come of it so far."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar

import jax
import jax.numpy as jnp
import numpy as np

from gaussfold.checks import one_of, positive, whole
from gaussfold.deep import batches, evidence, scales, temperature, training
from gaussfold.deep.likelihoods import LogLikelihood, function, likelihood_in
from gaussfold.deep.options import Training, spread
from gaussfold.deep.posterior import Belief, Posterior
from gaussfold.deep.training import Course, Program, State
from gaussfold.deep.trees import Layout, layout_of
from gaussfold.deep.types import Arrays, Batch, Document, Hyper, Inner, LogLikelihoodFunction, Tree
from gaussfold.types import Array

# The constructors of the methods begin alike (log_likelihood, params, rank, prior_precision), and each names its
# settings in a dict: signatures are written out because help() shows them, dicts because files hold these names.


class Steps(ABC):
    """A log likelihood, a tree of parameters, and steps; :class:`gaussfold.deep.method.Method` trains by them.

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
        self.fewest_steps = 1  # of a training whose length nobody has given
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

    def check_stepping(self, steps: int | None) -> None:
        """Take over how long a loop outside will be."""
        del steps  # any will do

    def belief_of(self, inner: Inner) -> Belief:
        """The Gaussian of variables that a loop outside has."""
        return self.belief(inner)

    def collected_so_far(self) -> dict[str, object]:
        """Attributes that :meth:`collect` writes to, in memory of their own."""
        return {}

    def check_course(self, course: Course, going_on: bool) -> None:
        """Refuse a length that what was begun cannot go on to; take one over that is begun with."""
        del course, going_on  # any will do

    def precision_learned(self) -> jax.Array:
        """The prior's precision, as it stands."""
        return self.prior_precision

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
        inner: Inner = self.begun("variables")["inner"]
        return inner

    @property
    def posterior(self) -> Posterior:
        """The posterior as it stands after the last good step."""
        inner = self.begun("posterior")["inner"]
        return Posterior(self.belief(inner), self.layout, likelihood_in(self.log_likelihood))

    def begun(self, name: str) -> State:
        """The state as it stands; ``name`` is what somebody wanted of it."""
        if self._state is None:
            msg = f"{name}: nothing has been learned yet; call fit(data) first"
            raise ValueError(msg)
        return self._state

    def check_batch(self, batch: Batch) -> None:
        """Refuse rows of a batch that cannot be learned from."""
        self.check_labels(batch)
        arrays, _ = batches.check_data(batch)
        batches.check_finite(self.log_likelihood, self.layout.unflatten(self.centre), arrays)

    def course(
        self, rows: int, epochs: float | None, steps: int | None, side_by_side: int = 1, size: int | None = None
    ) -> Course:
        """How long to train on so many rows, and in which chunks, whether resumed or not."""
        size = batches.check_batch_size(self.batch_size, rows) if size is None else size
        per_step = self.batches_per_step
        if steps is None:
            wanted = self.usual_epochs if epochs is None else positive("epochs", epochs)
            total = max(self.fewest_steps if epochs is None else 1, round(wanted * (rows // size)))
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

    def prior_and_scale(self, rows: int, size: int) -> Hyper:
        """The part of :meth:`hyper` that no method is without."""
        return {
            "precision": self.prior_precision,
            "prior_mean": self.prior_mean,
            "scale": jnp.asarray(rows / size / self._cold, self.layout.dtype),
        }
