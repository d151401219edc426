"""Small immutable records that travel between the four nouns."""

from __future__ import annotations

from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

Array: TypeAlias = NDArray[np.float64]
ArrayLike: TypeAlias = Any
"""Whatever ``numpy.asarray`` takes, a SciPy CSR matrix or a dataframe."""


Record: TypeAlias = "tuple[float | tuple[float, ...], ...]"
"""A NamedTuple of parameters, by whose type the engine knows a likelihood family or a rule."""


class Program(NamedTuple):
    """A likelihood, a rule and an at as the compiled engine reads them; opaque to what lies between it and ``fold``."""

    family: Record
    """The likelihood's record: its type chooses the compiled functions, its fields are the parameters."""
    rule: Record
    """The rule's record."""
    at: int


class ClassProgram(NamedTuple):
    """The same for rows with classes and rule vi at the posterior: nodes of the K latents, over which loops average."""

    nodes: Array
    """(K, S), for N(0, I), of equal weight."""
    scoring: Array
    """More of them, for the score of a row before it is learned, of latents with covariances: those of predictions."""
    largest: Array
    """The table of ``expectations.largest``: for the score where there are no covariances."""


class Moments(NamedTuple):
    """Mean and variance (never a standard deviation) of a scalar per row, usually of ``f = x'θ``."""

    mean: Array
    variance: Array


class Site(NamedTuple):
    """The Gaussian that stands in for one likelihood, as seen from a point ``m``.

    ``gradient`` is J and ``curvature`` is H ≤ 0 (for a log-concave likelihood) of the surrogate
    log likelihood at ``m``: precision ``-H``, shift ``J - H m``.
    """

    gradient: Array
    curvature: Array


class VectorSite(NamedTuple):
    """The same for N observations that see R^D each: ``gradient`` (N, D) and ``curvature`` (N, D, D)."""

    gradient: Array
    curvature: Array


class Sites(NamedTuple):
    """Natural parameters of N Gaussian sites on R^D: ``t(f) = exp(shift'f - f' precision f/2)``, unnormalised."""

    precision: Array
    """(N, D, D): -H"""
    shift: Array
    """(N, D): J - H m"""
