"""Two ways for the world to move while we watch; both tick once before each learned row, or on a clock."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from gaussfold.checks import between, doubles, finite_vector, not_negative, positive, scales
from gaussfold.protocols import Belief
from gaussfold.types import Array


@dataclass(frozen=True)
class Forgetting:
    """Stabilised forgetting: natural parameters relax geometrically towards the prior's.

    One tick: Λ ← γΛ + (1-γ)Λ₀ and Λμ ← γΛμ + (1-γ)Λ₀μ₀. Old data fade with memory 1/(1-γ). As long as no site
    has negative precision (never with a log-concave likelihood) Λ ≥ Λ₀ is kept, so the covariance does not exceed the
    prior's: forgetting cannot wind up.

    Parameters
    ----------
    factor
        γ in (0, 1]; 1 forgets nothing.
    prior
        The belief to return to; it is not changed.

    Examples
    --------
    >>> import gaussfold as gf
    >>> prior = gf.DenseGaussian.isotropic(1, std=2.0)
    >>> belief = gf.DenseGaussian.isotropic(1, std=0.1)
    >>> gf.dynamics.Forgetting(0.9, prior).tick(belief, 20)
    >>> belief.variance().round(3)
    array([0.081])
    """

    factor: float
    prior: Belief

    def __post_init__(self) -> None:
        between("forgetting", self.factor, 0, 1, "(]", remedy="1 forgets nothing, 0.999 remembers about 1000 rows")

    def tick(self, belief: Belief, ticks: float = 1.0) -> None:
        """Let ``ticks`` units of time pass (fractions allowed)."""
        belief.relax(self.factor ** not_negative("ticks", ticks), self.prior)


@dataclass(frozen=True, eq=False)
class RandomWalk:
    """A random walk of the parameters: P ← P + std² diag(scale²) per tick.

    Parameters
    ----------
    std
        Standard deviation of one step, > 0.
    scale
        What one step is counted in, one unit per parameter (> 0), where parameters differ in their size; None: all
        take steps of the same size. Not for diagonal beliefs, whose features share a clock.

    Examples
    --------
    >>> import gaussfold as gf
    >>> belief = gf.DenseGaussian.isotropic(1, std=0.1)
    >>> gf.dynamics.RandomWalk(0.3).tick(belief, 4)
    >>> belief.variance().round(3)
    array([0.37])
    """

    std: float
    scale: Array | None = None

    def __post_init__(self) -> None:
        scales("drift_std", np.asarray(positive("drift_std", self.std, remedy="leave it out for no drift")))
        if self.scale is not None:
            units = doubles("scale", self.scale, "one per parameter")
            scales("scale", units)
            object.__setattr__(self, "scale", units)

    def variance(self, dim: int) -> Array:
        """What one tick adds to the variance of each of ``dim`` parameters."""
        units = np.ones(dim) if self.scale is None else finite_vector("scale", self.scale, dim)
        return self.std**2 * units**2

    def tick(self, belief: Belief, ticks: float = 1.0) -> None:
        """Let ``ticks`` units of time pass (fractions allowed)."""
        not_negative("ticks", ticks)
        step = self.std**2 if self.scale is None else self.variance(belief.dim)
        belief.diffuse(step * ticks)


Dynamics: TypeAlias = Forgetting | RandomWalk


def moving(dynamics: Dynamics | None) -> Dynamics | None:
    """The dynamics if anything moves under it: forgetting by a factor of 1 does nothing."""
    return None if isinstance(dynamics, Forgetting) and dynamics.factor == 1.0 else dynamics
