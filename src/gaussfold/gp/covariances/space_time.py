"""A covariance in time times one in space: on a Markov time axis its cost is linear in time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np

from gaussfold.checks import whole
from gaussfold.gp.covariances.base import Covariance, Product, Sum, refuse_unknown
from gaussfold.gp.covariances.columns import Columns
from gaussfold.gp.covariances.state_space import StateSpace
from gaussfold.types import Array


@dataclass(frozen=True)
class SpaceTime(Covariance):
    """``k((t, s), (t', s')) = time(t, t') · space(s, s')``, t one input column and s all others.

    With ``structure="markov"`` every place is a process in time and all of them make one state: linear in the number
    of times, cubic in the number of places (`gaussfold.gp.space_time`). Sums of several have a state for each. Both
    parts have a variance, of which only the product counts: learn one, ``fixed=["covariance.space.variance"]``.

    Parameters
    ----------
    time : Covariance
        Of the time column; one with a state-space form for the Markov structure.
    space : Covariance
        Of the other columns.
    column : int, default=0
        Which input column is time.

    Examples
    --------
    >>> from gaussfold.gp import GaussianProcess, Matern32, Matern52
    >>> t, s = (grid.ravel() for grid in np.meshgrid(np.arange(40.0), [0.0, 0.5, 2.0], indexing="ij"))
    >>> kernel = SpaceTime(Matern32(1.0, 5.0), Matern52(1.0, 1.0))
    >>> up = (np.sin(t / 5.0) * np.cos(s) > 0.0).astype(float)
    >>> gp = GaussianProcess(kernel, "bernoulli", structure="markov").fit(np.c_[t, s], up)
    >>> gp.predict([[7.5, 0.2], [7.5, 2.5]]) > 0.5
    array([ True, False])
    """

    time: Covariance
    space: Covariance
    column: int = 0

    def __post_init__(self) -> None:
        for name in ("time", "space"):
            part: object = vars(self)[name]
            if not isinstance(part, Covariance):
                msg = f"{name}={part!r} of SpaceTime is not a covariance; give an object such as Matern32()"
                raise TypeError(msg)
        object.__setattr__(self, "column", whole("column", self.column, least=0, owner="SpaceTime"))

    def parameters(self) -> dict[str, float]:
        """Those of both parts, "time." and "space." in front."""
        parts = {"time": self.time, "space": self.space}
        return {f"{where}.{k}": v for where, part in parts.items() for k, v in part.parameters().items()}

    def replace(self, values: Mapping[str, float]) -> Self:
        """By name."""
        refuse_unknown(values, self.parameters())
        mine = {
            where: {k.partition(".")[2]: v for k, v in values.items() if k.partition(".")[0] == where}
            for where in ("time", "space")
        }
        return type(self)(self.time.replace(mine["time"]), self.space.replace(mine["space"]), self.column)

    def scaled(self, factor: float) -> Covariance:
        """The part in time takes the factor."""
        return SpaceTime(self.time.scaled(factor), self.space, self.column)

    def seen_by(self, name: str, X: Array) -> Array:
        """Time, or the other columns."""
        where, _, rest = name.partition(".")
        times, others = self.split(X)
        return self.time.seen_by(rest, times) if where == "time" else self.space.seen_by(rest, others)

    def split(self, X: Array) -> tuple[Array, Array]:
        """The time column (n, 1) and the others (n, d - 1)."""
        self._refuse_narrow(X)
        return X[:, [self.column]], np.delete(X, self.column, axis=1)

    def _refuse_narrow(self, X: Array) -> None:
        if not 2 <= X.shape[1] > self.column:
            msg = (
                f"X has {X.shape[1]} columns: SpaceTime(column={self.column}) takes time from column {self.column}, "
                "counted from 0, and places from at least one other; give such columns"
            )
            raise ValueError(msg)

    def _product(self, X: Array) -> Product:
        """The same on inputs of so many columns, as a product of covariances of some of them."""
        self._refuse_narrow(X)
        others = tuple(c for c in range(X.shape[1]) if c != self.column)
        return Product((Columns(self.time, (self.column,)), Columns(self.space, others)))

    def __call__(self, X: Array, Z: Array | None = None) -> Array:
        """Values for all pairs of rows."""
        return self._product(X)(X, Z)

    def diagonal(self, X: Array) -> Array:
        """Variance of every row."""
        return self._product(X).diagonal(X)

    def vjp(self, X: Array, Z: Array | None, bar: Array) -> Array:
        """As a product."""
        return self._product(X).vjp(X, Z, bar)

    def diagonal_vjp(self, X: Array, bar: Array) -> Array:
        """As a product."""
        return self._product(X).diagonal_vjp(X, bar)

    def input_vjp(self, X: Array, Z: Array, bar: Array) -> Array:
        """As a product."""
        return self._product(X).input_vjp(X, Z, bar)

    def state_space(self) -> StateSpace:
        """Refused: there is one for every set of places, and `gaussfold.gp.space_time` makes it."""
        msg = (
            f"{self!r} has no state-space form without its places; give it alone, or a sum of SpaceTime alone, to "
            "structure='markov'"
        )
        raise ValueError(msg)


def space_time_terms(covariance: Covariance) -> tuple[SpaceTime, ...]:
    """The terms of a sum of `SpaceTime`, or of one alone; none if it is anything else."""
    parts: Sequence[Covariance] = covariance.parts if isinstance(covariance, Sum) else (covariance,)
    found = tuple(part for part in parts if isinstance(part, SpaceTime))
    return found if len(found) == len(parts) else ()
