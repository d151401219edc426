"""Cubature: ``E g(f) ≈ Σ wᵢ g(m + L xᵢ)`` for ``f ~ N(m, L L')`` of any dimension.

A rule is a small object that knows its nodes for N(0, I); the nodes are shared and cached.

- :class:`GaussHermite` of order n: the tensor product, exact for polynomials of degree 2n - 1 in every coordinate.
- :class:`EvenlySpaced`: of one dimension only, for log densities that may have kinks.
- :class:`QuasiRandom`: a lattice of equal weights, for many dimensions and functions that are no polynomials.
- :class:`Unscented` of order 3 (2d points) or 5 (2d² + 1 points): exact for polynomials of total degree 3 or 5.
  The weights of order 5 are negative on the axes for d ≥ 5, so sums of positive numbers can come out negative: a
  normaliser ``E p(y | f)`` can then have no logarithm (it is an error, never clipped), and an averaged matrix ``G'G``
  is only sure to be positive semi-definite where it is a polynomial that the rule integrates exactly.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from math import sqrt
from typing import ClassVar, TypeAlias

import numpy as np

from gaussfold.checks import whole
from gaussfold.expectations.gauss_hermite import check_order, even_nodes
from gaussfold.expectations.gauss_hermite import nodes as hermite_nodes
from gaussfold.expectations.quasi_random import enough_nodes, normal_nodes
from gaussfold.registry import Catalogue
from gaussfold.types import Array

MAX_POINTS = 10**6


@dataclass(frozen=True)
class GaussHermite:
    """Tensor product of one-dimensional Gauss-Hermite rules.

    Parameters
    ----------
    order
        Points per dimension, 1 to 256. ``order ** dim`` must not pass 10⁶.

    Examples
    --------
    >>> x, w = GaussHermite(3).nodes(2)
    >>> x.shape, float(w @ (x[:, 0] ** 4 * x[:, 1] ** 2))
    ((9, 2), 3.0)
    """

    order: int = 20
    name: ClassVar[str] = "gauss-hermite"

    def __post_init__(self) -> None:
        check_order(self.order)

    def size(self, dim: int) -> int:
        """Number of points in that dimension."""
        return int(int(self.order) ** dim)

    def nodes(self, dim: int) -> tuple[Array, Array]:
        """Points (n, dim) and weights (n,) for N(0, I); read-only."""
        return _tensor(int(self.order), _checked(dim))


@dataclass(frozen=True)
class Unscented:
    """Fully symmetric rules of McNamee and Stenger: order 3 (the cubature Kalman filter's) or 5.

    Weights of order 5 are negative from five dimensions on, where the expectation of a density may come out below zero
    and has no logarithm; use `QuasiRandom` there, whose weights are equal, or order 3.

    Parameters
    ----------
    order
        3 or 5.

    Examples
    --------
    >>> x, w = Unscented(5).nodes(8)
    >>> x.shape, float(w @ x[:, 2] ** 4)
    ((129, 8), 3.0)
    """

    order: int = 5
    name: ClassVar[str] = "unscented"

    def __post_init__(self) -> None:
        if self.order not in (3, 5):
            msg = (
                f"order={self.order!r}: unscented rules exist here of order 3 and 5; for others use GaussHermite(order)"
            )
            raise ValueError(msg)

    def size(self, dim: int) -> int:
        """Number of points in that dimension."""
        return 2 * dim if self.order == 3 else 2 * dim * dim + 1

    def nodes(self, dim: int) -> tuple[Array, Array]:
        """Points (n, dim) and weights (n,) for N(0, I); read-only."""
        return (_unscented3 if self.order == 3 else _unscented5)(_checked(dim))


@dataclass(frozen=True)
class QuasiRandom:
    """Points of a lattice through the normal quantile, with their mirror images: equal weights in any dimension.

    Exact for polynomials of total degree 3; see :mod:`gaussfold.expectations.quasi_random`.

    Parameters
    ----------
    points
        How many, an even number up to 10⁶; twice the dimension and eight more are the least that is taken.

    Examples
    --------
    >>> x, w = QuasiRandom(64).nodes(3)
    >>> x.shape, round(float(w @ x[:, 1] ** 2), 12)
    ((64, 3), 1.0)
    """

    points: int = 512
    name: ClassVar[str] = "quasi-random"

    def __post_init__(self) -> None:
        if whole("points", self.points, least=2, owner="QuasiRandom") % 2:
            msg = f"points={self.points!r}: QuasiRandom needs an even number, each point has a mirror image"
            raise ValueError(msg)
        if self.points > MAX_POINTS:
            msg = f"points={self.points!r}: QuasiRandom takes at most {MAX_POINTS}; a few thousand are plenty"
            raise ValueError(msg)

    def size(self, dim: int) -> int:
        """Number of points in that dimension."""
        return enough_nodes(dim, self.points)

    def nodes(self, dim: int) -> tuple[Array, Array]:
        """Points (n, dim) and weights (n,) for N(0, I); read-only."""
        points = normal_nodes(_checked(dim), self.size(dim)).T
        return points, np.full(points.shape[0], 1.0 / points.shape[0])


@dataclass(frozen=True)
class EvenlySpaced:
    """289 evenly spaced nodes in one dimension: as exact as Gauss-Hermite where log p is smooth, finer at its kinks.

    Examples
    --------
    >>> x, w = EvenlySpaced().nodes(1)
    >>> x.shape, round(float(w @ np.abs(x[:, 0]) - np.sqrt(2.0 / np.pi)), 3)
    ((289, 1), -0.0)
    """

    name: ClassVar[str] = "evenly-spaced"

    def size(self, dim: int) -> int:
        """Number of points."""
        return len(self.nodes(dim)[0])

    def nodes(self, dim: int) -> tuple[Array, Array]:
        """Points (n, 1) and weights (n,) for N(0, 1); read-only."""
        if dim != 1:
            msg = f"EvenlySpaced in {dim} dimensions: it is for one latent; use GaussHermite(order), or None"
            raise ValueError(msg)
        x, w = even_nodes()
        return x[:, None], w


Cubature: TypeAlias = GaussHermite | Unscented | QuasiRandom | EvenlySpaced
CUBATURES: Catalogue[Cubature] = Catalogue(
    "cubature",
    (GaussHermite, Unscented, QuasiRandom, EvenlySpaced),
    named={
        "gauss-hermite": GaussHermite(),
        "unscented-3": Unscented(3),
        "unscented-5": Unscented(5),
        "quasi-random": QuasiRandom(),
        "evenly-spaced": EvenlySpaced(),
    },
    also="GaussHermite(order), Unscented(order), QuasiRandom(points), or None to choose by dimension",
)


def resolve_cubature(cubature: str | Cubature | None, dim: int) -> Cubature:
    """A rule by name or as an object; None chooses by dimension.

    None is evenly spaced points in one dimension, Gauss-Hermite with 20, 10 or 6 points per dimension in 2, 3 or 4 (at
    most 1300 points), and the unscented rule of order 5 beyond.

    Examples
    --------
    >>> resolve_cubature(None, 2)
    GaussHermite(order=20)
    >>> resolve_cubature("unscented-5", 8)
    Unscented(order=5)
    """
    if cubature is None:
        if dim == 1:
            return EvenlySpaced()
        return GaussHermite((20, 10, 6)[dim - 2]) if dim <= 4 else Unscented(5)
    return CUBATURES.resolve(cubature)


def _checked(dim: int) -> int:
    return whole("dim", dim, owner="a cubature rule")


def _frozen(points: Array, weights: Array) -> tuple[Array, Array]:
    points.flags.writeable = False
    weights.flags.writeable = False
    return points, weights


@lru_cache(maxsize=32)
def _tensor(order: int, dim: int) -> tuple[Array, Array]:
    if order**dim > MAX_POINTS:
        most = int(MAX_POINTS ** (1.0 / dim))
        msg = (
            f"Gauss-Hermite of order {order} in {dim} dimensions has {order**dim:.3g} points, more than {MAX_POINTS}; "
            f"use order <= {most}" + (" or cubature='unscented-5'" if dim > 1 else "")
        )
        raise ValueError(msg)
    x, w = hermite_nodes(order)
    points = np.stack([axis.ravel() for axis in np.meshgrid(*[x] * dim, indexing="ij")], axis=-1)
    weights = np.ones(1)
    for _ in range(dim):
        weights = np.multiply.outer(weights, w).ravel()
    return _frozen(points, weights)


@lru_cache(maxsize=32)
def _unscented3(dim: int) -> tuple[Array, Array]:
    """±√d on every axis, equal weights: exact to total degree 3."""
    axes = sqrt(dim) * np.eye(dim)
    return _frozen(np.concatenate([axes, -axes]), np.full(2 * dim, 0.5 / dim))


@lru_cache(maxsize=32)
def _unscented5(dim: int) -> tuple[Array, Array]:
    """The centre, ±√3 on every axis, and (±√3, ±√3) on every pair of axes: exact to total degree 5.

    Matching E 1, E x², E x⁴ and E x²y² gives 1 + (d² - 7d)/18, (4 - d)/18 and 1/36.
    """
    far = sqrt(3.0)
    axes = far * np.eye(dim)
    points = [np.zeros((1, dim)), axes, -axes]
    pairs = [(i, j) for i in range(dim) for j in range(i)]
    for sign_i, sign_j in ((1.0, 1.0), (1.0, -1.0), (-1.0, 1.0), (-1.0, -1.0)):
        block = np.zeros((len(pairs), dim))
        for row, (i, j) in enumerate(pairs):
            block[row, i], block[row, j] = far * sign_i, far * sign_j
        points.append(block)
    weights = np.concatenate(
        [
            [1.0 + (dim * dim - 7.0 * dim) / 18.0],
            np.full(2 * dim, (4.0 - dim) / 18.0),
            np.full(4 * len(pairs), 1.0 / 36.0),
        ]
    )
    return _frozen(np.concatenate(points), weights)
