"""Iterates of stochastic gradient descent as samples: what SWAG and the factor analysis of iterates look at.

The loss is the mean over examples of minus the log posterior, so learning rates are those of ordinary training. They
are not samples of the posterior, see factor-analysis B.2 and Table B.3; that is why VIFA exists.
"""

from __future__ import annotations

import copy
from abc import abstractmethod
from dataclasses import dataclass
from typing import ClassVar, Protocol, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np

from gaussfold import schema
from gaussfold.beliefs.factor import FactorGaussian
from gaussfold.beliefs.lowrank.options import check_rank
from gaussfold.checks import between, positive, whole
from gaussfold.deep import steps
from gaussfold.deep.batches import total
from gaussfold.deep.method import Method
from gaussfold.deep.options import Training
from gaussfold.deep.posterior import Belief
from gaussfold.deep.training import Course, Taken, kept
from gaussfold.deep.trees import Layout
from gaussfold.deep.types import (
    Arrays,
    Batch,
    Document,
    Hyper,
    Inner,
    LogLikelihoodFunction,
    Rates,
    Schedule,
    Spread,
    Tree,
    Variables,
)
from gaussfold.types import Array

_BUFFER = 1 << 22
"""Numbers that wait to be collected."""

RATE = {"params": 1e-2}
"""The usual one, of Adam."""
RANK = 10
"""The usual one, where there are as many parameters."""

Sample: TypeAlias = tuple[jax.Array, dict[str, Variables]]
"""What a step would emit, and the window that it comes from, if there are any."""


@dataclass(frozen=True)
class DescentProgram:
    """A step of gradient descent on the log posterior; after a burn-in, samples are put into a buffer."""

    log_likelihood: LogLikelihoodFunction
    layout: Layout
    optimizer: steps.Steps
    schedule: Schedule | None
    """Of the burn-in, if its rate is a function of the step; that after it is the optimiser's own."""
    windows: bool

    def draw(self, hyper: Hyper, step: jax.Array) -> tuple[()]:  # noqa: ARG002 - a program's signature
        """Nothing is drawn."""
        return ()

    def step(self, inner: Inner, hyper: Hyper, batches: Batch, draws: tuple[()], step: jax.Array) -> Taken:  # noqa: ARG002 - a program's signature
        """One step, and every so often a sample: the iterate, or the mean of those since the last."""
        theta, batch = inner["theta"], jax.tree.map(lambda a: a[0], batches)
        value, slope = jax.value_and_grad(self._loss)(theta, batch, hyper)
        rate = {"rates": {"params": self._rate(hyper, step)}, "max_norm": hyper["max_norm"]}
        gradient = {"params": slope}
        squares = steps.squares(gradient)
        ok = jnp.isfinite(value) & jnp.isfinite(squares["params"])
        shares = self.optimizer.shares(squares, rate) if self.optimizer.clipped else None
        gradient = steps.scaled(gradient, shares)
        moved, memory = self.optimizer.at_given_rates.step(gradient, inner["optimizer"], {"params": theta}, rate, step)
        after = moved["params"]
        position, every = step - hyper["burn_in"] + 1, hyper["every"]
        sample, window = self._sample(inner, after, position, every)
        due = (position > 0) & (position % every == 0) & ok
        slot = jnp.where(due, inner["emitted"] % len(inner["buffer"]), 0)
        buffer = inner["buffer"].at[slot].set(jnp.where(due, sample, inner["buffer"][slot]))
        new = {"theta": after, "optimizer": memory, "emitted": inner["emitted"] + due}
        # The buffer is written by steps that count only: choosing between two would copy it.
        return kept(ok, new | window, {name: inner[name] for name in new | window}) | {"buffer": buffer}, value, ok

    def _loss(self, theta: jax.Array, batch: Batch, hyper: Hyper) -> jax.Array:
        away = theta - hyper["prior_mean"]
        fit = hyper["scale"] * total(self.log_likelihood, self.layout.unflatten(theta), batch).astype(theta.dtype)
        return (0.5 * (hyper["precision"] * away * away).sum() - fit) / hyper["rows"]

    def _rate(self, hyper: Hyper, step: jax.Array) -> jax.Array:
        """The learning rate: one for the burn-in, another after it; each a number or a function of the step."""
        before, after = hyper["rates"]
        before = before if self.schedule is None else self.schedule(step)
        after = dict(self.optimizer.schedules).get("params", lambda _: after)(step)
        return jnp.where(step < hyper["burn_in"], before, after)

    def _sample(self, inner: Inner, after: jax.Array, position: jax.Array, every: jax.Array) -> Sample:
        if not self.windows:
            return after, {}
        number = (position - 1) // every
        old = jax.tree.map(lambda a: jnp.where(number == inner["window"]["number"], a, 0), inner["window"])
        window = {"number": number, "count": old["count"] + 1, "sum": old["sum"] + after}
        return window["sum"] / window["count"], {"window": window}


class Collector(Protocol):
    """What makes a Gaussian of samples that it is shown once, in order."""

    needed: int
    """Samples, at least."""

    def take(self, samples: Array) -> None:
        """Look at new samples, shape (n, D)."""
        ...

    def belief(self) -> FactorGaussian:
        """Their Gaussian."""
        ...

    def arrays(self) -> Arrays:
        """All that was learned, for model files."""
        ...


class SGDIterates(Method):
    """Training by gradient descent whose iterates are collected; the parent of SWAG and FactorIterates.

    Parameters are those of :class:`gaussfold.deep.SWAG`. A skipped step (one that is not finite) collects nothing.
    """

    least_rank: ClassVar[int]
    why_least_rank: ClassVar[str]

    def __init__(
        self,
        log_likelihood: LogLikelihoodFunction,
        params: Tree,
        rank: int | None = None,
        prior_precision: Spread = "fan-in",
        *,
        optimizer: steps.Optimiser = "adam",
        learning_rate: Rates = None,
        max_grad_norm: float | None = None,
        burn_in: float = 0.75,
        burn_in_rate: Rates = None,
        every: float = 0.005,
        windows: bool = False,
        floor: float = 1e-12,
        prior_mean: Spread = 0.0,
        batch_size: int | None = None,
        temperature: float | str = "auto",
        max_bad_steps: int = 10,
        seed: int = 0,
    ) -> None:
        options = Training(prior_precision, prior_mean, batch_size, max_bad_steps, seed, temperature)
        super().__init__(log_likelihood, params, options)
        if self.learns_prior:
            msg = "prior_precision='evidence': iterates have no spread of their own to learn it from; give 'fan-in'"
            raise ValueError(msg)
        wanted = min(RANK, self.layout.dim) if rank is None else rank
        if check_rank(wanted, self.layout.dim, fewest=0) < self.least_rank:
            msg = f"rank={wanted!r}: {self.why_least_rank}; {self.least_rank} to {self.layout.dim} are allowed"
            raise ValueError(msg)
        self.rank, self.floor = int(wanted), positive("floor", floor)
        self.optimizer = optimizer
        self._plan = steps.planned(optimizer, learning_rate, RATE, max_grad_norm)
        self._before = self._plan
        if burn_in_rate is not None:
            self._before = steps.planned(optimizer, burn_in_rate, RATE, max_grad_norm)
        self._rates = (self._before.rates["params"], self._plan.rates["params"])
        self.burn_in = _share_or_steps("burn_in", burn_in, least=0)
        self.every = _share_or_steps("every", every, least=1)
        self._total = 0
        self.windows = bool(windows)
        self._taken = 0
        self._collector: Collector | None = None

    @abstractmethod
    def collector(self, taken: int = 0, arrays: Arrays | None = None) -> Collector:
        """A collector that has seen nothing, or the one that a file holds."""

    @property
    def _slots(self) -> int:
        return max(1, min(1024, _BUFFER // self.layout.dim))

    @property
    def longest_chunk(self) -> int:
        """As many steps as fill the buffer."""
        return 1 << (self._slots.bit_length() - 1)

    @property
    def draws_per_step(self) -> int:
        """None; the gradient is as much work as so many."""
        return self.layout.dim

    @property
    def collected(self) -> int:
        """Samples collected so far."""
        return self._taken

    def program(self) -> DescentProgram:
        """A step of descent."""
        before = dict(self._before.steps.schedules).get("params")
        return DescentProgram(self.log_likelihood, self.layout, self._plan.steps, before, self.windows)

    @property
    def burn_in_steps(self) -> int:
        """Steps before anything is collected."""
        return self.burn_in if isinstance(self.burn_in, int) else int(self.burn_in * self._total)

    @property
    def every_steps(self) -> int:
        """Steps from one sample to the next."""
        return self.every if isinstance(self.every, int) else max(1, int(self.every * self._total))

    def check_course(self, course: Course, going_on: bool) -> None:
        """Shares are of the length that a training was begun with."""
        given = {"burn_in": self.burn_in, "every": self.every}
        shares = [name for name, value in given.items() if isinstance(value, float)]
        if going_on and shares and self._total and self._total != course.total:
            msg = (
                f"steps={course.total}: the training was begun for {self._total}, and {' and '.join(shares)} are "
                "shares of those; give the same length (and stop= to leave off earlier), or burn_in and every in steps"
            )
            raise ValueError(msg)
        self._total = course.total

    def check_stepping(self, steps: int | None) -> None:
        """Shares are of a length that must be known."""
        if steps is None and isinstance(self.burn_in, float):
            msg = "steps=None: burn_in is a share of the training; say how long it will be, or give burn_in in steps"
            raise ValueError(msg)
        self._total = self._total if steps is None else whole("steps", steps)

    def belief_of(self, inner: Inner) -> Belief:
        """The Gaussian of the samples that a state holds: all of them, or it is refused."""
        emitted, slots = int(inner["emitted"]), len(inner["buffer"])
        found = self.collector()
        if not found.needed <= emitted <= slots:
            msg = (
                f"state: {emitted} samples were collected, of which a state holds {slots}; {found.needed} to {slots} "
                "are allowed, so choose burn_in and every accordingly"
            )
            raise ValueError(msg)
        found.take(np.asarray(inner["buffer"][:emitted], dtype=np.float64))
        return found.belief()

    def hyper(self, rows: int, size: int) -> Hyper:
        """The prior, the share of the data in a batch, rates before and after the burn-in."""
        dtype = self.layout.dtype
        return {
            "precision": self._cold * self.prior_precision,
            "prior_mean": self.prior_mean,
            "scale": jnp.asarray(rows / size, dtype),
            "rows": jnp.asarray(rows, dtype),
            "rates": tuple(jnp.asarray(rate, dtype) for rate in self._rates),
            "max_norm": jnp.asarray(self._plan.limit, dtype),
            "burn_in": jnp.asarray(self.burn_in_steps, jnp.int32),
            "every": jnp.asarray(self.every_steps, jnp.int32),
        }

    def initial(self) -> Inner:
        """The given parameters, and an empty buffer."""
        inner = {
            "theta": self.centre,
            "optimizer": self._plan.steps.init({"params": self.centre}),
            "buffer": jnp.zeros((self._slots, self.layout.dim), self.layout.dtype),
            "emitted": jnp.zeros((), jnp.int32),
        }
        if self.windows:
            zero = jnp.zeros((), jnp.int32)
            inner["window"] = {"number": zero - 1, "count": zero, "sum": jnp.zeros_like(self.centre)}
        return inner

    def settings(self) -> Document:
        """How iterates are made and collected."""
        return {
            "rank": self.rank,
            "optimizer": self._plan.name,
            "burn_in": self.burn_in,
            "every": self.every,
            "windows": self.windows,
            "learning_rate": [self._before.described["params"], self._plan.described["params"]],
        }

    def forget(self) -> None:
        """Begin with a new collector."""
        self._taken, self._collector = 0, self.collector()

    def collect(self, inner: Inner) -> None:
        """Take the samples that are new in the buffer."""
        emitted = int(inner["emitted"])
        if emitted == self._taken:
            return
        fresh = np.asarray(inner["buffer"])[np.arange(self._taken, emitted) % self._slots]
        self.take(fresh.astype(np.float64))
        self._taken = emitted

    def take(self, samples: Array) -> None:
        """Look at new samples, in order, shape (n, D)."""
        assert self._collector is not None
        self._collector.take(samples)

    def collected_so_far(self) -> dict[str, object]:
        """The collector."""
        return {"_collector": copy.deepcopy(self._collector)}

    def collected_arrays(self) -> Arrays:
        """How many samples there were, and what was made of them."""
        learned = {} if self._collector is None else self._collector.arrays()
        return {"taken": np.asarray(self._taken), "total": np.asarray(self._total)} | learned

    def recollect(self, arrays: Arrays) -> None:
        """The collector of a file."""
        schema.check(arrays, (schema.Part("taken", (), "whole", low=0),))
        self._taken = int(arrays["taken"])
        if "total" in arrays:
            schema.check(arrays, (schema.Part("total", (), "whole", low=0),))
        self._total = int(arrays.get("total", 0))
        self._collector = self.collector(self._taken, arrays)

    def belief(self, inner: Inner) -> Belief:  # noqa: ARG002 - everything was collected
        """The Gaussian of the samples."""
        assert self._collector is not None
        if self._taken < self._collector.needed:
            msg = (
                f"posterior: {self._taken} samples after {self.steps} steps (burn_in={self.burn_in_steps}, "
                f"every={self.every_steps}), at least {self._collector.needed} are needed; train longer"
            )
            raise ValueError(msg)
        return self._collector.belief()


def _share_or_steps(name: str, value: float, least: int) -> float:
    """A whole number of steps, or a share of the training in [0, 1)."""
    if isinstance(value, int):
        return whole(name, value, least=least)
    return between(name, value, 0, 1, "[)" if least == 0 else "()", remedy="or give a whole number of steps")
