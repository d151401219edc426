"""Skeleton of a likelihood: waiting times, ``y | f ~ Exponential(rate = e^f)``. Copy, rename, replace the formulas.

In the package: this file in ``likelihoods/`` and its entry in ``likelihoods/__init__.py``; there the engine's
modules are taken from ``engine.seam``, as ``likelihoods/poisson.py`` does, so that an import does not wait for Numba.
From outside: this file and ``gaussfold.registry.register("likelihood", WaitingTime)``. The upper half is enough: with
``record`` left out it runs in Python. The lower half lets the engine run it; what may be said there, and what holds
otherwise, is in ``gaussfold.engine.families`` and ``gaussfold.engine.scalar``.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from gaussfold.engine.scalar import special
from gaussfold.engine.seam import compiled_for
from gaussfold.likelihoods.base import ScalarLikelihood, floats
from gaussfold.types import Array, ArrayLike, Moments


@dataclass(frozen=True)  # parameters are fields: that is what model files hold
class WaitingTime(ScalarLikelihood):
    """``log p = f - y e^f``."""

    log_concave: ClassVar[bool] = True
    labels: ClassVar[str] = "numbers >= 0"

    @property
    def record(self) -> WaitingTimeRecord:
        """How the engine knows it; its fields are the parameters."""
        return WaitingTimeRecord()

    def explains(self, y: Array) -> np.ndarray:
        """Which labels are possible."""
        return np.asarray(y >= 0.0)

    def log_prob(self, y: ArrayLike, f: ArrayLike) -> Array:
        """Normalised over y; y and f broadcast."""
        y, f = floats(y, f)
        return np.asarray(f - y * np.exp(f))

    def derivatives(self, y: ArrayLike, f: ArrayLike) -> tuple[Array, Array]:
        """First and second, in f."""
        y, f = floats(y, f)
        return np.asarray(1.0 - y * np.exp(f)), np.asarray(-y * np.exp(f))

    def conditional(self, f: ArrayLike) -> Moments:
        """Mean and variance of y given f."""
        (f,) = floats(f)
        return Moments(np.exp(-f), np.exp(-2.0 * f))


class WaitingTimeRecord(NamedTuple):
    """The family in the engine."""


@compiled_for(WaitingTimeRecord)
def log_density(family: WaitingTimeRecord, y: float, f: float) -> float:
    """Must be said: one label, one latent."""
    return f - y * special.bounded_exp(f)


@compiled_for(WaitingTimeRecord)
def derivatives(family: WaitingTimeRecord, y: float, f: float) -> tuple[float, float, float, float]:
    """Must be said: the first four; the last two only steer Newton's method."""
    r = y * special.bounded_exp(f)
    return 1.0 - r, -r, -r, -r


@compiled_for(WaitingTimeRecord)
def is_label(family: WaitingTimeRecord, y: float) -> bool:
    """The twin of ``explains``."""
    return 0.0 <= y < math.inf


@compiled_for(WaitingTimeRecord)
def is_log_concave(family: WaitingTimeRecord) -> bool:
    """False, the default, is always safe."""
    return True


@compiled_for(WaitingTimeRecord)
def landmark(family: WaitingTimeRecord, y: float) -> tuple[float, float]:
    """Where log p bends as a function of f, and on what length: guides the quadrature."""
    return -math.log(max(y, 1e-300)), 1.0


@compiled_for(WaitingTimeRecord)
def conditional(family: WaitingTimeRecord, f: float) -> tuple[float, float]:
    """Mean and variance of y given f."""
    return special.bounded_exp(-f), special.bounded_exp(-2.0 * f)


@compiled_for(WaitingTimeRecord)
def expected_derivatives(family: WaitingTimeRecord, y: float, m: float, v: float) -> tuple[float, float, float, float]:
    """A closed form, where there is one; quadrature else."""
    r = y * special.bounded_exp(m + 0.5 * v)
    return 1.0 - r, -r, -r, -r
