"""What every covariance function offers, and how they add and multiply.

A covariance is immutable. Its hyperparameters are positive, have names, and are learned on the log scale: every
derivative here is with respect to ``log θ``. Derivatives come as vector-Jacobian products: given the adjoint
``bar = ∂E/∂K`` the methods return ``∂E/∂log θ``, so that no N x N x p array is ever made.
"""

from __future__ import annotations

import dataclasses
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, ClassVar, Self, cast

import numpy as np

from gaussfold import registry
from gaussfold.checks import positive
from gaussfold.gp.covariances.state_space import ProductSpace, StateSpace, SumSpace
from gaussfold.gp.differences import by_log_parameter, five_point
from gaussfold.types import Array

if TYPE_CHECKING:
    from _typeshed import DataclassInstance


class Covariance(ABC):
    """A covariance function k(x, x'); the parent of all of them.

    A new one says :meth:`__call__`; what else it knows (its diagonal, derivatives, a state-space form) saves work or
    opens a structure. Leaves are frozen dataclasses whose learned fields are named in ``learned``; a field is a
    positive number or, for one number per input column, a tuple of them.
    """

    learned: ClassVar[tuple[str, ...]] = ()

    # Hyperparameters

    def parameters(self) -> dict[str, float]:
        """Names and values of the hyperparameters, in the order of every gradient.

        Examples
        --------
        >>> from gaussfold.gp import Matern32
        >>> Matern32(variance=1.3, lengthscale=(0.5, 2.0)).parameters()
        {'variance': 1.3, 'lengthscale[0]': 0.5, 'lengthscale[1]': 2.0}
        """
        found: dict[str, float] = {}
        for name in self.learned:
            value = vars(self)[name]
            if isinstance(value, tuple):
                found |= {f"{name}[{i}]": float(v) for i, v in enumerate(value)}
            else:
                found[name] = float(value)
        return found

    def replace(self, values: Mapping[str, float]) -> Self:
        """The same covariance with these hyperparameters, by name; those not named keep their value."""
        refuse_unknown(values, self.parameters())
        changed: dict[str, object] = {}
        for name in self.learned:
            old = vars(self)[name]
            if isinstance(old, tuple):
                changed[name] = tuple(values.get(f"{name}[{i}]", v) for i, v in enumerate(old))
            else:
                changed[name] = values.get(name, old)
        leaf = cast("DataclassInstance", self)  # as every leaf is
        return cast("Self", dataclasses.replace(leaf, **changed))

    def config(self) -> dict[str, object]:
        """Name and parameters, as JSON can hold them."""
        return dict(registry.config(self))

    # Values, and derivatives by differences where a covariance does not know them

    @abstractmethod
    def __call__(self, X: Array, Z: Array | None = None) -> Array:
        """``k(x, z)`` for all rows of X (n, d) and Z (m, d); Z = X if None."""

    def diagonal(self, X: Array) -> Array:
        """``k(x, x)`` for every row."""
        return np.array([float(self(row[None])[0, 0]) for row in X])

    def vjp(self, X: Array, Z: Array | None, bar: Array) -> Array:
        """``Σ bar_ij ∂k(x_i, z_j)/∂log θ``, one number per hyperparameter."""
        slopes = by_log_parameter(lambda values: self.replace(values)(X, Z), self.parameters())
        return np.array([float(np.vdot(bar, slope)) for slope in slopes.values()])

    def with_vjp(self, X: Array) -> tuple[Array, Callable[[Array], Array]]:
        """``k(X, X)`` and what `vjp` says of an adjoint there; a covariance may share the work."""
        return self(X), lambda bar: self.vjp(X, None, bar)

    def diagonal_vjp(self, X: Array, bar: Array) -> Array:
        """``Σ bar_i ∂k(x_i, x_i)/∂log θ``."""
        slopes = by_log_parameter(lambda values: self.replace(values).diagonal(X), self.parameters())
        return np.array([float(np.vdot(bar, slope)) for slope in slopes.values()])

    def input_vjp(self, X: Array, Z: Array, bar: Array) -> Array:
        """``Σ_j bar_ij ∂k(x_i, z_j)/∂x_i`` with Z held, shape of X."""

        def along(axis: Array) -> Array:
            return five_point(lambda h: np.asarray((bar * self(X + h * axis, Z)).sum(axis=1)))

        return np.stack([along(axis) for axis in np.eye(X.shape[1])], axis=1)

    def pullback(self, X: Array, Z: Array, bar: Array) -> tuple[Array, Array]:
        """Both :meth:`vjp` and :meth:`input_vjp`; a covariance may share the work."""
        return self.vjp(X, Z, bar), self.input_vjp(X, Z, bar)

    def check_columns(self, columns: int) -> None:
        """Refuse inputs of so many columns if this covariance is defined on others."""
        self.diagonal(np.zeros((1, columns)))
        self(np.zeros((1, columns)))

    def seen_by(self, name: str, X: Array) -> Array:
        """The input columns that the hyperparameter of this name measures: all, or those of the part that has it."""
        if name.endswith("]"):
            column = int(name.rpartition("[")[2][:-1])
            return X[:, [column]]
        return X

    def state_space(self) -> StateSpace:
        """The linear stochastic differential equation with this covariance, for inputs in one column."""
        msg = (
            f"{self!r} has no state-space form; the Markov structure takes Matérn, squared exponential, cosine, "
            "periodic, constant, linear, white, Brownian and given ones, their sums, and their products (not with "
            "linear or Brownian); "
            "use structure='dense' or 'sparse'"
        )
        raise ValueError(msg)

    def __add__(self, other: Covariance) -> Sum:
        return Sum(_flatten(Sum, self) + _flatten(Sum, other))

    def __radd__(self, other: object) -> Covariance:
        """``sum([...])`` starts from 0."""
        return self if other == 0 else NotImplemented

    def __mul__(self, other: Covariance | float) -> Covariance:
        if isinstance(other, int | float):
            return self.scaled(positive("a factor of a covariance", float(other)))
        return Product(_flatten(Product, self) + _flatten(Product, other))

    __rmul__ = __mul__

    def __truediv__(self, divisor: float) -> Covariance:
        if not isinstance(divisor, int | float):
            return NotImplemented
        return self.scaled(1.0 / positive("a divisor of a covariance", float(divisor)))

    def on(self, *columns: int) -> Covariance:
        """The same covariance of these input columns only (its active dimensions); see `Columns`."""
        from gaussfold.gp.covariances.columns import Columns  # which is a covariance itself

        return Columns(self, columns)

    def scaled(self, factor: float) -> Covariance:
        """``factor · k``: a larger variance, for a covariance that has one.

        Examples
        --------
        >>> from gaussfold.gp import Matern32
        >>> 2 * Matern32(1.5, lengthscale=0.7)
        Matern32(variance=3.0, lengthscale=0.7)
        """
        known = self.parameters()
        if "variance" not in known:
            msg = f"{self!r} has no variance to multiply by {factor!r}; multiply it by Constant({factor!r}) instead"
            raise ValueError(msg)
        return self.replace({"variance": factor * known["variance"]})


@dataclasses.dataclass(frozen=True)
class _Composite(Covariance):
    """Several covariances; hyperparameters are named ``part.name`` with the part's position."""

    parts: tuple[Covariance, ...]

    def __post_init__(self) -> None:
        given: tuple[object, ...] = self.parts
        for part in given:
            if not isinstance(part, Covariance):
                msg = f"{part!r} is not a covariance; add and multiply objects of gaussfold.gp, such as Matern32()"
                raise TypeError(msg)

    def parameters(self) -> dict[str, float]:
        """Those of every part, with the part's position in front."""
        return {f"{i}.{k}": v for i, part in enumerate(self.parts) for k, v in part.parameters().items()}

    def replace(self, values: Mapping[str, float]) -> Self:
        """By name, as in :meth:`parameters`."""
        refuse_unknown(values, self.parameters())
        parts = []
        for i, part in enumerate(self.parts):
            mine = {k.split(".", 1)[1]: v for k, v in values.items() if k.split(".", 1)[0] == str(i)}
            parts.append(part.replace(mine))
        return type(self)(tuple(parts))

    def seen_by(self, name: str, X: Array) -> Array:
        """Of the part."""
        part, _, rest = name.partition(".")
        return self.parts[int(part)].seen_by(rest, X)


class Sum(_Composite):
    """``k(x, z) = Σ kᵢ(x, z)``; in state space the states are stacked.

    Examples
    --------
    >>> from gaussfold.gp import Constant, Matern32
    >>> kernel = Constant(1.0) + Matern32(1.0, 2.0)
    >>> list(kernel.parameters())
    ['0.variance', '1.variance', '1.lengthscale']
    """

    def scaled(self, factor: float) -> Covariance:
        """Every part takes the factor."""
        return Sum(tuple(part.scaled(factor) for part in self.parts))

    def __call__(self, X: Array, Z: Array | None = None) -> Array:
        """Sum of the parts."""
        return np.asarray(sum(part(X, Z) for part in self.parts))

    def diagonal(self, X: Array) -> Array:
        """Sum of the parts."""
        return np.asarray(sum(part.diagonal(X) for part in self.parts))

    def vjp(self, X: Array, Z: Array | None, bar: Array) -> Array:
        """Part by part."""
        return np.concatenate([part.vjp(X, Z, bar) for part in self.parts])

    def with_vjp(self, X: Array) -> tuple[Array, Callable[[Array], Array]]:
        """Part by part."""
        found = [part.with_vjp(X) for part in self.parts]
        value = np.asarray(sum(K for K, _ in found))
        return value, lambda bar: np.concatenate([vjp(bar) for _, vjp in found])

    def diagonal_vjp(self, X: Array, bar: Array) -> Array:
        """Part by part."""
        return np.concatenate([part.diagonal_vjp(X, bar) for part in self.parts])

    def input_vjp(self, X: Array, Z: Array, bar: Array) -> Array:
        """Sum of the parts."""
        return np.asarray(sum(part.input_vjp(X, Z, bar) for part in self.parts))

    def state_space(self) -> StateSpace:
        """Block-diagonal."""
        return SumSpace([part.state_space() for part in self.parts])


class Product(_Composite):
    """``k(x, z) = Π kᵢ(x, z)``; in state space the states are multiplied (Kronecker)."""

    def scaled(self, factor: float) -> Covariance:
        """The first part takes the factor."""
        return Product((self.parts[0].scaled(factor), *self.parts[1:]))

    def __call__(self, X: Array, Z: Array | None = None) -> Array:
        """Product of the parts."""
        return np.asarray(np.prod([part(X, Z) for part in self.parts], axis=0))

    def diagonal(self, X: Array) -> Array:
        """Product of the parts."""
        return np.asarray(np.prod([part.diagonal(X) for part in self.parts], axis=0))

    def vjp(self, X: Array, Z: Array | None, bar: Array) -> Array:
        """Part by part, the others as factors of the adjoint."""
        values = [part(X, Z) for part in self.parts]
        return np.concatenate([p.vjp(X, Z, bar * _without(values, i)) for i, p in enumerate(self.parts)])

    def diagonal_vjp(self, X: Array, bar: Array) -> Array:
        """Part by part, the others as factors of the adjoint."""
        values = [part.diagonal(X) for part in self.parts]
        return np.concatenate([p.diagonal_vjp(X, bar * _without(values, i)) for i, p in enumerate(self.parts)])

    def input_vjp(self, X: Array, Z: Array, bar: Array) -> Array:
        """Product rule."""
        values = [part(X, Z) for part in self.parts]
        return np.asarray(sum(p.input_vjp(X, Z, bar * _without(values, i)) for i, p in enumerate(self.parts)))

    def state_space(self) -> StateSpace:
        """Kronecker product."""
        return ProductSpace([part.state_space() for part in self.parts])


def _without(values: list[Array], i: int) -> Array:
    """The product of all but one."""
    return np.asarray(np.prod([v for j, v in enumerate(values) if j != i], axis=0))


def _flatten(kind: type[_Composite], covariance: Covariance) -> tuple[Covariance, ...]:
    return covariance.parts if isinstance(covariance, kind) else (covariance,)


def refuse_unknown(values: Mapping[str, float], names: Mapping[str, float]) -> None:
    """Raise for a hyperparameter that is not one of these names."""
    for name in values:
        if name not in names:
            msg = f"hyperparameter {name!r} is not one of {', '.join(map(repr, names))}"
            raise ValueError(msg)


def one_column(owner: Covariance, X: Array) -> Array:
    """The only input column."""
    if X.shape[1] != 1:
        msg = f"X has {X.shape[1]} columns: {type(owner).__name__} is defined on one; give it that column alone, .on(0)"
        raise ValueError(msg)
    return X[:, 0]


def difference(owner: Covariance, X: Array, Z: Array | None) -> Array:
    """``x - z`` for all pairs of rows, on one input column."""
    left = one_column(owner, X)
    return np.asarray(left[:, None] - (left if Z is None else Z[:, 0]))
