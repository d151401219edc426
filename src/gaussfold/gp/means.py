"""Mean functions: ``m(x) = φ(x)'w`` with weights that are learned with the hyperparameters, bayes-newton (1)."""

from __future__ import annotations

import dataclasses
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, Self, cast

import numpy as np

from gaussfold.checks import number
from gaussfold.registry import Catalogue
from gaussfold.types import Array


class Mean(ABC):
    """A mean function that is linear in its weights; the parent of all of them. Objects are immutable."""

    @abstractmethod
    def features(self, X: Array) -> Array:
        """φ at every row, (n, p)."""

    @property
    @abstractmethod
    def weights(self) -> tuple[float, ...]:
        """W."""

    @abstractmethod
    def having(self, weights: Sequence[float]) -> Self:
        """The same with other weights."""

    def __call__(self, X: Array) -> Array:
        """``φ(x)'w`` for every row."""
        return np.asarray(self.features(X) @ np.asarray(self.weights))

    def on(self, columns: int) -> Self:
        """The same for inputs of so many columns; refuses if it is made for another number."""
        del columns
        return self

    def named(self) -> dict[str, float]:
        """Names and values of the weights."""
        return {f"weight[{i}]": w for i, w in enumerate(self.weights)}


@dataclasses.dataclass(frozen=True)
class ConstantMean(Mean):
    """The same everywhere.

    Parameters
    ----------
    value : float
        Where learning starts.
    """

    value: float = 0.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "value", number("value", self.value, owner="ConstantMean"))

    @property
    def weights(self) -> tuple[float, ...]:
        """The value."""
        return (self.value,)

    def features(self, X: Array) -> Array:
        """One."""
        return np.ones((len(X), 1))

    def having(self, weights: Sequence[float]) -> Self:
        """With another value."""
        return dataclasses.replace(self, value=float(weights[0]))

    def named(self) -> dict[str, float]:
        """Its value."""
        return {"value": self.value}


@dataclasses.dataclass(frozen=True)
class LinearMean(Mean):
    """``intercept + slopes'x``.

    Parameters
    ----------
    intercept : float
        Where learning starts.
    slopes : float or tuple of float
        One per input column; one number stands for all columns.

    Examples
    --------
    >>> LinearMean(0.5, 2.0)(np.array([[1.0], [3.0]]))
    array([2.5, 6.5])
    """

    intercept: float = 0.0
    slopes: float | tuple[float, ...] = 0.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "intercept", number("intercept", self.intercept, owner="LinearMean"))
        if np.ndim(self.slopes):
            each = tuple(number("slopes", s, owner="LinearMean") for s in np.ravel(self.slopes))
            object.__setattr__(self, "slopes", each)
        else:
            object.__setattr__(self, "slopes", number("slopes", self.slopes, owner="LinearMean"))

    @property
    def weights(self) -> tuple[float, ...]:
        """The intercept, then the slopes."""
        return (self.intercept, *(self.slopes if isinstance(self.slopes, tuple) else (self.slopes,)))

    def features(self, X: Array) -> Array:
        """One, and the columns."""
        mine = self.on(X.shape[1])
        return np.hstack([np.ones((len(X), 1)), X]) if mine is self else mine.features(X)

    def __call__(self, X: Array) -> Array:
        """``intercept + slopes'x`` for every row."""
        mine = self.on(X.shape[1])
        return np.asarray(mine.features(X) @ np.asarray(mine.weights))

    def on(self, columns: int) -> Self:
        """With one slope for each column."""
        if not isinstance(self.slopes, tuple):
            return dataclasses.replace(self, slopes=(self.slopes,) * columns)
        if len(self.slopes) != columns:
            msg = (
                f"slopes has {len(self.slopes)} entries and X has {columns} columns; give one number, or one per column"
            )
            raise ValueError(msg)
        return self

    def having(self, weights: Sequence[float]) -> Self:
        """With other numbers."""
        return dataclasses.replace(self, intercept=float(weights[0]), slopes=tuple(float(w) for w in weights[1:]))

    def named(self) -> dict[str, float]:
        """The intercept, then the slopes."""
        return dict(
            zip(("intercept", *(f"slope[{i}]" for i in range(len(self.weights) - 1))), self.weights, strict=True)
        )


@dataclasses.dataclass(frozen=True)
class BasisMean(Mean):
    """Any basis: a function of the inputs (n, d) with values (n, p). A function cannot be saved.

    Examples
    --------
    >>> mean = BasisMean(lambda X: np.hstack([np.sin(X), np.cos(X)]), (1.0, 2.0))
    >>> mean(np.zeros((1, 1)))
    array([2.])
    """

    basis: Callable[[Array], Any]
    weights: tuple[float, ...] = ()

    def features(self, X: Array) -> Array:
        """What the function says, checked."""
        found = np.asarray(self.basis(X), dtype=np.float64)
        if found.ndim != 2 or len(found) != len(X) or not np.isfinite(found).all():
            msg = f"basis gives shape {found.shape} for {len(X)} rows; it must give finite numbers (rows, p)"
            raise ValueError(msg)
        if len(self.weights) not in (0, found.shape[1]):
            msg = f"weights has {len(self.weights)} entries and basis gives {found.shape[1]} columns; give one each"
            raise ValueError(msg)
        return found

    def __call__(self, X: Array) -> Array:
        """``φ(x)'w`` for every row; zero before weights have been given or learned."""
        found = self.features(X)
        return np.asarray(found @ np.asarray(self.weights)) if self.weights else np.zeros(len(X))

    def having(self, weights: Sequence[float]) -> Self:
        """With other weights."""
        return dataclasses.replace(self, weights=tuple(float(w) for w in weights))


MEANS: Catalogue[Mean] = Catalogue(
    "mean", (ConstantMean, LinearMean), accepts=Mean, also="an object such as gaussfold.gp.LinearMean()"
)
"""Every mean function that can be stored."""

Means = tuple[Mean | None, ...]


def means_of(mean: object, latents: int) -> Means | None:
    """One mean function (or None) per latent; a single one serves each of them. None where there is none at all."""
    if mean is None:
        return None
    given = (mean,) * latents if isinstance(mean, Mean) else mean
    if not isinstance(given, Sequence) or not all(m is None or isinstance(m, Mean) for m in given):
        msg = f"mean={mean!r}: give a mean function such as gaussfold.gp.LinearMean(), or a list with one per latent"
        raise ValueError(msg)
    if len(given) != latents:
        msg = f"mean is a list of {len(given)}: there are {latents} latents; give one (or None) for each"
        raise ValueError(msg)
    return cast("Means", tuple(given)) if any(m is not None for m in given) else None


def values(means: Means, X: Array) -> Array:
    """All of them, (n, D)."""
    return np.stack([np.zeros(len(X)) if m is None else m(X) for m in means], axis=1)
