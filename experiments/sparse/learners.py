"""The methods of the paper's comparison, each with the setting that is tuned."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

import gaussfold as gf
from experiments.sparse.baselines import AdaGrad, SampledVB
from experiments.style import BLACK, BLUE, GREEN, ORANGE, PURPLE, SKY, VERMILION
from gaussfold.beliefs import Joint, Marginal
from gaussfold.beliefs.cellular import Rows
from gaussfold.folding import recipe_of
from gaussfold.likelihoods import Bernoulli
from gaussfold.types import Array


class Learner(Protocol):
    """Predicts each row, then learns it."""

    def learn(self, rows: Rows, y: Array) -> Array:
        """Return the log losses before learning."""
        ...


class Belief:
    """A belief of this library under a rule, as a learner."""

    def __init__(self, belief: Any, rule: str, at: str = "posterior") -> None:
        self.belief = belief
        self.program = recipe_of(Bernoulli("logit", "probit"), rule, at).program

    def learn(self, rows: Rows, y: Array) -> Array:
        """Return the log losses before learning."""
        return -np.asarray(self.belief.absorb_rows(rows, y, np.ones(y.size), self.program).log_predictive)


class ClosedFormADF:
    """ADF with the moments in closed form, as Minka has them for Φ; (5) makes σ(f) into Φ(√(π/8) f)."""

    def __init__(self, dim: int, std: float) -> None:
        self.belief = gf.DiagonalGaussian.isotropic(dim, std, coupling="joint")
        self.program = recipe_of(Bernoulli("probit"), "ep", "prior").program

    def learn(self, rows: Rows, y: Array) -> Array:
        """Return the log losses before learning."""
        scaled = rows._replace(data=math.sqrt(math.pi / 8.0) * rows.data)
        return -np.asarray(self.belief.absorb_rows(scaled, y, np.ones(y.size), self.program).log_predictive)


@dataclass(frozen=True)
class Method:
    """A name, how to build it from its tuned number (prior std or learning rate), and how it is drawn."""

    label: str
    tuned: str
    make: Callable[[int, float], Learner]
    color: str
    dashes: Any
    slow: int = 1  # how many times fewer examples it is given


def _diagonal(coupling: Any) -> Callable[[int, float], Any]:
    return lambda dim, std: gf.DiagonalGaussian.isotropic(dim, std, coupling=coupling)


_SOLVED, _ONE_STEP, _JOINT = _diagonal(Marginal()), _diagonal(Marginal("one-step")), _diagonal(Joint())
METHODS: dict[str, Method] = {
    "sgd": Method("SGD (AdaGrad)", "rate", AdaGrad, ORANGE, (0, (5, 2))),
    "adf": Method("ADF", "prior std", ClosedFormADF, GREEN, (0, (1.2, 1.2))),
    "adf-exact": Method(
        "ADF, exact moments", "prior std", lambda d, s: Belief(_JOINT(d, s), "ep", "prior"), GREEN, "-", 10
    ),
    "dimgauss": Method(
        "DimGauss", "prior std", lambda d, s: Belief(_JOINT(d, s), "newton"), SKY, (0, (5, 1.5, 1, 1.5))
    ),
    "gauss": Method("Gauss (marginal)", "prior std", lambda d, s: Belief(_SOLVED(d, s), "newton"), BLUE, "-"),
    "approx": Method(
        "Gauss, one step", "prior std", lambda d, s: Belief(_ONE_STEP(d, s), "newton"), BLACK, (0, (1, 3))
    ),
    "auto": Method(
        "Gauss, 8 priors mixed", "", lambda d, _: Belief(gf.DiagonalMixture.isotropic(d), "newton"), PURPLE, (0, (3, 2))
    ),
    "vb100": Method("VB, 100 samples", "prior std", lambda d, s: SampledVB(d, s, 100), VERMILION, "-", 20),
    "vb1000": Method("VB, 1000 samples", "prior std", lambda d, s: SampledVB(d, s, 1000), VERMILION, (0, (3, 1)), 200),
}
GRIDS: dict[str, tuple[float, ...]] = {
    "sgd": (0.1, 0.15, 0.2, 0.3),
    "adf": (0.5, 1.0, 2.0, 4.0),
    "adf-exact": (1.0,),
    "dimgauss": (1.0, 2.0, 3.0, 4.0),
    "auto": (0.0,),
}
"""Numbers tried for the tuned setting, times the std of the true weights for priors; others take the true std."""
