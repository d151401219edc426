"""How a gradient becomes a step: optax, with a learning rate and a clipped norm per group of variables."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import NamedTuple, Protocol, TypeAlias, runtime_checkable

import jax
import jax.numpy as jnp
import optax

from gaussfold.checks import one_of, positive, refuse_name
from gaussfold.deep.types import Hyper, Rates, Schedule, Tree, Variables


@runtime_checkable
class Transformation(Protocol):
    """What optax calls a gradient transformation."""

    def init(self, params: Tree, /) -> Tree:
        """The memory before the first step."""
        ...

    def update(self, updates: Tree, state: Tree, params: Tree, /) -> tuple[Tree, Tree]:
        """Moves from gradients, and the memory after them."""
        ...


Optimiser: TypeAlias = str | Transformation
"""A name of :data:`NAMED`, or an object of optax."""

NAMED: dict[str, Transformation] = {
    "adam": optax.scale_by_adam(),
    "sgd": optax.identity(),
    "rmsprop": optax.scale_by_rms(),
}
"""Single objects, so that every training with the same name shares one compilation."""


@dataclass(frozen=True)
class Steps:
    """An optimiser for named groups; the learning rates and the limit of the norm are arguments of :meth:`step`."""

    transform: Transformation
    schedules: tuple[tuple[str, Schedule], ...]
    scaled: bool
    """Whether learning rates are to be applied; a given optax object has its own."""
    clipped: bool
    """Whether norms are limited at all."""

    @property
    def elementwise(self) -> bool:
        """Whether a slice of the variables can be moved without the rest; nobody knows of a given optax object."""
        return self.scaled

    @property
    def at_given_rates(self) -> Steps:
        """The same, for whoever looks up schedules himself."""
        return replace(self, schedules=())

    def init(self, variables: Variables) -> Tree:
        """The optimiser's memory."""
        return self.transform.init(dict(variables))

    def shares(self, squares: Variables, hyper: Hyper) -> Variables:
        """By what each group's gradient is multiplied, from its squared norm, so that the norm keeps to the limit.

        Each group is clipped on its own, as the thesis's program does.
        """
        return {name: jnp.minimum(1.0, hyper["max_norm"] / jnp.sqrt(square)) for name, square in squares.items()}

    def step(
        self, gradient: Variables, memory: Tree, variables: Variables, hyper: Hyper, step: jax.Array
    ) -> tuple[Variables, Tree]:
        """Variables after the step, and the memory."""
        moves, memory = self.transform.update(gradient, memory, variables)
        if self.scaled:
            rates = dict(hyper["rates"]) | {name: schedule(step) for name, schedule in self.schedules}
            moves = {name: -rates[name] * move for name, move in moves.items()}
        after = {name: (variables[name] + move).astype(variables[name].dtype) for name, move in moves.items()}
        return after, memory


class Plan(NamedTuple):
    """How to step: the optimiser with its name in model files, a rate per group, and the largest norm of a gradient."""

    name: str
    steps: Steps
    rates: dict[str, float]
    """0 where there is a schedule, or where an optax object has its own."""
    limit: float

    @property
    def described(self) -> dict[str, float | str]:
        """The rates, by which a saved training knows what it was begun with; functions cannot be told apart."""
        known: dict[str, float | str] = dict(self.rates)
        return known | dict.fromkeys(dict(self.steps.schedules), "schedule")


def squares(gradient: Variables) -> Variables:
    """Squared norm of each group."""
    return {name: (part * part).sum() for name, part in gradient.items()}


def scaled(gradient: Variables, shares: Variables | None) -> Variables:
    """Each group times its share."""
    return dict(gradient) if shares is None else {name: part * shares[name] for name, part in gradient.items()}


def planned(optimizer: Optimiser, learning_rate: Rates, usual: dict[str, float], max_grad_norm: float | None) -> Plan:
    """Turn the optimiser's name or object, the rates and the limit of the norm into something to step with.

    ``usual`` has the names of the groups, and the rate of each where none is given.
    """
    groups = tuple(usual)
    clipped = max_grad_norm is not None
    limit = math.inf if max_grad_norm is None else positive("max_grad_norm", max_grad_norm)
    if isinstance(optimizer, str):
        one_of("optimizer", optimizer, NAMED, also="a gradient transformation of optax")
        schedules, rates = _by_group(usual if learning_rate is None else learning_rate, groups)
        return Plan(optimizer, Steps(NAMED[optimizer], schedules, True, clipped), rates, limit)
    if not isinstance(optimizer, Transformation):
        refuse_name("optimizer", optimizer, NAMED, also="a gradient transformation of optax")
    if learning_rate is not None:
        msg = f"learning_rate={learning_rate!r}: an optax object has its own; give an optimiser by name, or None"
        raise ValueError(msg)
    return Plan("optax", Steps(optimizer, (), False, clipped), dict.fromkeys(groups, 0.0), limit)


def _by_group(given: Rates, groups: tuple[str, ...]) -> tuple[tuple[tuple[str, Schedule], ...], dict[str, float]]:
    """Schedules and constant rates of the groups."""
    table = dict(given) if isinstance(given, Mapping) else dict.fromkeys(groups, given)
    if table.keys() != set(groups):
        msg = f"learning_rate: groups {sorted(table)}; {', '.join(groups)} are needed"
        raise ValueError(msg)
    schedules = tuple((name, rate) for name, rate in table.items() if callable(rate))
    return schedules, {n: 0.0 if callable(rate) else positive("learning_rate", rate) for n, rate in table.items()}
