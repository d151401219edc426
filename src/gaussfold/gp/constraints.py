"""What is known of hyperparameters before they are learned: limits, distributions, and which are the same number."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol, runtime_checkable

import numpy as np

from gaussfold.checks import number, positive
from gaussfold.types import Array


@runtime_checkable
class HyperPrior(Protocol):
    """A distribution of a positive hyperparameter θ."""

    def log_density(self, log_value: float) -> tuple[float, float]:
        """``log p(θ)`` up to a constant at ``log θ``, and its derivative in ``log θ``."""
        ...


@dataclass(frozen=True)
class LogNormal:
    """``log θ ~ N(log median, std²)``.

    Parameters
    ----------
    median : float
        Positive.
    std : float
        Of the logarithm: 0.7 is a factor of two.
    """

    median: float = 1.0
    std: float = 1.0

    def __post_init__(self) -> None:
        positive("median", self.median, owner="LogNormal")
        positive("std", self.std, owner="LogNormal")

    def log_density(self, log_value: float) -> tuple[float, float]:
        """As a density of θ: ``-z²/2 - log θ``."""
        z = (log_value - np.log(self.median)) / self.std
        return float(-0.5 * z * z - log_value), float(-z / self.std - 1.0)


@dataclass(frozen=True)
class GammaPrior:
    """``θ ~ Gamma(shape, rate)``, of mean ``shape/rate``.

    Parameters
    ----------
    shape, rate : float
        Positive; a shape above one keeps θ away from zero.
    """

    shape: float = 2.0
    rate: float = 1.0

    def __post_init__(self) -> None:
        positive("shape", self.shape, owner="GammaPrior")
        positive("rate", self.rate, owner="GammaPrior")

    def log_density(self, log_value: float) -> tuple[float, float]:
        """``(shape - 1) log θ - rate θ``."""
        value = float(np.exp(log_value))
        return (self.shape - 1.0) * log_value - self.rate * value, self.shape - 1.0 - self.rate * value


class Constraints(NamedTuple):
    """By name, as `GaussianProcess.parameters` says them."""

    bounds: Mapping[str, tuple[float, float]] = {}
    priors: Mapping[str, HyperPrior] = {}
    tied: Sequence[Sequence[str]] = ()
    """Groups of names that keep the same value; the first leads."""

    def checked(self, values: Mapping[str, float]) -> Constraints:
        """Refuse names that are not there, limits that are none, and values outside of them."""
        tied = [name for group in self.tied for name in group]
        for what, names in (("bounds", list(self.bounds)), ("priors", list(self.priors)), ("tied", tied)):
            for name in names:
                if name not in values:
                    msg = f"{what}: {name!r} is not one of {', '.join(map(repr, values))}"
                    raise ValueError(msg)
        for name, prior in self.priors.items():
            _check_prior(name, prior)
        for name, limits in self.bounds.items():
            _check_limits(name, limits, values[name])
        return self

    def follows(self) -> dict[str, str]:
        """Every tied name but the first of its group, and whom it follows."""
        return {name: group[0] for group in self.tied for name in group[1:]}

    def limits(self, names: Sequence[str], widest: float, logs: Array, room: float) -> tuple[Array, Array]:
        """Of the logarithms of these hyperparameters: as given, else so wide, with some room around where they are."""
        given = [self.bounds.get(name) for name in names]
        low, high = np.minimum(-widest, logs - room), np.maximum(widest, logs + room)
        low = np.array([each if b is None else np.log(b[0]) for b, each in zip(given, low, strict=True)])
        return low, np.array([each if b is None else np.log(b[1]) for b, each in zip(given, high, strict=True)])

    def penalty(self, names: Sequence[str], logs: Array) -> tuple[float, Array]:
        """Minus the log density of all priors, and its slopes in the logarithms."""
        total, slopes = 0.0, np.zeros(len(names))
        for i, name in enumerate(names):
            if name in self.priors:
                value, slope = self.priors[name].log_density(float(logs[i]))
                total -= value
                slopes[i] -= slope
        return total, slopes

    def inside(self, start: Mapping[str, float]) -> dict[str, float]:
        """A start within the limits, tied values alike."""
        out = {n: float(np.clip(v, *self.bounds[n])) if n in self.bounds else v for n, v in start.items()}
        return {name: out.get(self.follows().get(name, name), value) for name, value in out.items()}


def _check_prior(name: str, prior: object) -> None:
    if isinstance(prior, HyperPrior):
        return
    msg = f"priors[{name!r}]={prior!r}: give a distribution, such as LogNormal(median=1.0, std=0.7)"
    raise ValueError(msg)


def _check_limits(name: str, limits: tuple[float, float], value: float) -> None:
    low, high = (number(f"bounds[{name!r}]", each) for each in limits) if np.size(limits) == 2 else (0.0, 0.0)
    if not 0.0 < low < high:
        msg = f"bounds[{name!r}]={limits!r}: give two positive numbers, the smaller one first"
        raise ValueError(msg)
    if not low <= value <= high:
        msg = (
            f"{name} = {value:.6g} lies outside bounds[{name!r}]={limits!r}; widen them, or call "
            "set_parameters with a value inside first"
        )
        raise ValueError(msg)
