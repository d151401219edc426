"""Iterates of stochastic gradient descent as samples: what SWAG and the factor analysis of iterates look at.

The loss is the mean over examples of minus the log posterior, so learning rates are those of ordinary training. They
are not samples of the posterior, see factor-analysis B.2 and Table B.3; that is why VIFA exists.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, replace
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
from gaussfold.deep.scales import usual_rate
from gaussfold.deep.training import Taken, kept
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

Sample: TypeAlias = tuple[jax.Array, dict[str, Variables]]
"""What a step would emit, and the window that it comes from, if there are any."""


@dataclass(frozen=True)
class DescentProgram:
    """A step of gradient descent on the log posterior; after a burn-in, samples are put into a buffer."""

    log_likelihood: LogLikelihoodFunction
    layout: Layout
    optimizer: steps.Steps
    schedules: tuple[Schedule | None, Schedule | None]
    """Of the learning rate before and after the burn-in, where it is not a number."""
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
        moved, memory = self.optimizer.step(gradient, inner["optimizer"], {"params": theta}, rate, step)
        after = moved["params"]
        position = step - hyper["burn_in"] + 1
        sample, window = self._sample(inner, after, position, hyper["every"])
        due = (position > 0) & (position % hyper["every"] == 0) & ok
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
        """That of the burn-in, or the later one: each a number or a schedule."""
        before, later = (
            rate if schedule is None else jnp.asarray(schedule(step), rate.dtype)
            for rate, schedule in zip(hyper["rates"], self.schedules, strict=True)
        )
        return jnp.where(step < hyper["burn_in"], before, later)

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
        rank: int = 10,
        prior_precision: Spread | str = "fan-in",
        *,
        optimizer: steps.Optimiser = "adam",
        learning_rate: Rates = None,
        max_grad_norm: float | None = None,
        burn_in: float = 0.75,
        burn_in_rate: Rates = None,
        every: float = 0.01,
        windows: bool = False,
        floor: float = 1e-12,
        temperature: float | None = None,
        prior_mean: Spread = 0.0,
        batch_size: int | None = None,
        max_bad_steps: int = 10,
        seed: int = 0,
    ) -> None:
        super().__init__(log_likelihood, params, Training(prior_precision, prior_mean, batch_size, max_bad_steps, seed))
        if check_rank(rank, self.layout.dim, fewest=0) < self.least_rank:
            msg = f"rank={rank!r}: {self.why_least_rank}; {self.least_rank} to {self.layout.dim} are allowed"
            raise ValueError(msg)
        self.rank, self.floor = int(rank), positive("floor", floor)
        self.optimizer = optimizer
        usual = {"params": usual_rate(self.layout)}
        later = steps.planned(optimizer, learning_rate, usual, max_grad_norm)
        before = later if burn_in_rate is None else steps.planned(optimizer, burn_in_rate, usual, max_grad_norm)
        self._plans = before, later
        self.burn_in, self.every = _length("burn_in", burn_in, least=0), _length("every", every, least=1)
        self.plan(0)
        self.windows = bool(windows)
        self.temperature = None if temperature is None else positive("temperature", temperature)
        self._taken = 0
        self._collector: Collector | None = None

    @abstractmethod
    def collector(self, taken: int = 0, arrays: Arrays | None = None) -> Collector:
        """A collector that has seen nothing, or the one that a file holds."""

    def plan(self, total: int) -> None:
        """Turn the shares of the training's length into steps."""
        burn_in, every = self.burn_in, self.every
        self._counted = (
            round(burn_in * total) if isinstance(burn_in, float) else burn_in,
            max(1, round(every * total)) if isinstance(every, float) else every,
        )

    @property
    def _plan(self) -> steps.Plan:
        return self._plans[1]

    @property
    def rates(self) -> Document:
        """In the burn-in and after it."""
        before, later = (plan.known_by.get("params") for plan in self._plans)
        return {"burn_in_rate": before, "learning_rate": later}

    @property
    def _slots(self) -> int:
        return max(1, min(1024, _BUFFER // self.layout.dim))

    @property
    def longest_chunk(self) -> int:
        """As many steps as fill the buffer."""
        return 1 << ((self._slots * self._counted[1]).bit_length() - 1)

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
        schedules = tuple(dict(plan.steps.schedules).get("params") for plan in self._plans)
        plain = replace(self._plan.steps, schedules=())  # the rate is chosen before: two of them may be schedules
        return DescentProgram(self.log_likelihood, self.layout, plain, (schedules[0], schedules[1]), self.windows)

    def hyper(self, rows: int, size: int) -> Hyper:
        """The prior, the share of the data in a batch, rates before and after the burn-in."""
        dtype = self.layout.dtype
        temperature = self.usual_temperature(rows) if self.temperature is None else self.temperature
        return self.prior_and_scale(rows, size) | {
            "precision": temperature * self.prior_precision,  # rather than a larger loss: rates keep their meaning
            "rows": jnp.asarray(rows, dtype),
            "rates": tuple(jnp.asarray(plan.rates["params"], dtype) for plan in self._plans),
            "max_norm": jnp.asarray(self._plan.limit, dtype),
            "burn_in": jnp.asarray(self._counted[0], jnp.int32),
            "every": jnp.asarray(self._counted[1], jnp.int32),
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
            "temperature": self.temperature,
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

    def collected_arrays(self) -> Arrays:
        """How many samples there were, and what was made of them."""
        learned = {} if self._collector is None else self._collector.arrays()
        return {"taken": np.asarray(self._taken), "counted": np.asarray(self._counted)} | learned

    def recollect(self, arrays: Arrays) -> None:
        """The collector of a file."""
        schema.check(arrays, (schema.Part("taken", (), "whole", low=0),))
        self._taken = int(arrays["taken"])
        if "counted" in arrays:  # 0.1.0 had numbers of steps only
            schema.check(arrays, (schema.Part("counted", (2,), "whole", low=0),))
            self._counted = int(arrays["counted"][0]), max(1, int(arrays["counted"][1]))
        self._collector = self.collector(self._taken, arrays)

    def belief(self, inner: Inner) -> FactorGaussian:  # noqa: ARG002 - everything was collected
        """The Gaussian of the samples."""
        assert self._collector is not None
        if self._taken < self._collector.needed:
            burn_in, every = self._counted
            msg = (
                f"posterior: {self._taken} samples after {self.steps} steps (burn_in={burn_in}, "
                f"every={every}), at least {self._collector.needed} are needed; train longer"
            )
            raise ValueError(msg)
        return self._collector.belief()


def _length(name: str, value: float, least: int) -> int | float:
    """A number of steps, or as a float below one a share of the training."""
    if isinstance(value, float) and not value.is_integer():
        return between(name, value, 0, 1, "()", remedy="give a share of the training, or a whole number of steps")
    return whole(name, int(value) if isinstance(value, float) else value, least=least)
