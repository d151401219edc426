"""How a gradient becomes a step: optax, with a learning rate and a clipped norm per group of variables."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import jax.numpy as jnp
import optax

from gaussfold.checks import one_of, positive, refuse_name

Rate = float | Callable[[Any], Any]
"""A learning rate, or a schedule: its value at a step."""

NAMED: dict[str, Any] = {"adam": optax.scale_by_adam(), "sgd": optax.identity(), "rmsprop": optax.scale_by_rms()}
"""Single objects, so that every training with the same name shares one compilation."""


@dataclass(frozen=True)
class Steps:
    """An optimiser for named groups; the learning rates and the limit of the norm are arguments of :meth:`step`."""

    transform: Any
    schedules: tuple[tuple[str, Callable[[Any], Any]], ...]
    scaled: bool
    """Whether learning rates are to be applied; a given optax object has its own."""
    clipped: bool
    """Whether norms are limited at all."""

    @property
    def elementwise(self) -> bool:
        """Whether a slice of the variables can be moved without the rest; nobody knows of a given optax object."""
        return self.scaled

    def init(self, variables: Mapping[str, Any]) -> Any:
        """The optimiser's memory."""
        return self.transform.init(dict(variables))

    def shares(self, squares: Mapping[str, Any], hyper: Any) -> dict[str, Any]:
        """By what each group's gradient is multiplied, from its squared norm, so that the norm keeps to the limit.

        Each group is clipped on its own, as the thesis's program does.
        """
        return {name: jnp.minimum(1.0, hyper["max_norm"] / jnp.sqrt(square)) for name, square in squares.items()}

    def step(
        self, gradient: dict[str, Any], memory: Any, variables: dict[str, Any], hyper: Any, step: Any
    ) -> tuple[dict[str, Any], Any]:
        """Variables after the step, and the memory."""
        moves, memory = self.transform.update(gradient, memory, variables)
        if self.scaled:
            rates = dict(hyper["rates"]) | {name: schedule(step) for name, schedule in self.schedules}
            moves = {name: -rates[name] * move for name, move in moves.items()}
        after = {name: (variables[name] + move).astype(variables[name].dtype) for name, move in moves.items()}
        return after, memory


def squares(gradient: Mapping[str, Any]) -> dict[str, Any]:
    """Squared norm of each group."""
    return {name: (part * part).sum() for name, part in gradient.items()}


def scaled(gradient: Mapping[str, Any], shares: Mapping[str, Any] | None) -> dict[str, Any]:
    """Each group times its share."""
    return dict(gradient) if shares is None else {name: part * shares[name] for name, part in gradient.items()}


def resolve(
    optimizer: Any, learning_rate: Any, groups: tuple[str, ...], clipped: bool = False
) -> tuple[Steps, dict[str, float]]:
    """Turn the optimiser's name or object and the rates into something to step with."""
    if not isinstance(optimizer, str):
        if not (hasattr(optimizer, "init") and hasattr(optimizer, "update")):
            refuse_name("optimizer", optimizer, NAMED, also="a gradient transformation of optax")
        if learning_rate is not None:
            msg = f"learning_rate={learning_rate!r}: an optax object has its own; give an optimiser by name, or None"
            raise ValueError(msg)
        return Steps(optimizer, (), False, clipped), dict.fromkeys(groups, 0.0)
    one_of("optimizer", optimizer, NAMED, also="a gradient transformation of optax")
    given = 1e-2 if learning_rate is None else learning_rate
    table = dict(given) if isinstance(given, Mapping) else dict.fromkeys(groups, given)
    if table.keys() != set(groups):
        msg = f"learning_rate: groups {sorted(table)}; {', '.join(groups)} are needed"
        raise ValueError(msg)
    schedules = tuple((name, rate) for name, rate in table.items() if callable(rate))
    rates = {name: 0.0 if callable(rate) else positive("learning_rate", rate) for name, rate in table.items()}
    return Steps(NAMED[optimizer], schedules, True, clipped), rates


def norm_limit(max_grad_norm: float | None) -> float:
    """The largest norm of a group's gradient; infinite if there is no limit."""
    return math.inf if max_grad_norm is None else positive("max_grad_norm", max_grad_norm)
