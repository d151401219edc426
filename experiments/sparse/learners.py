"""The methods of the paper's comparison, each with the setting that is tuned."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
from scipy.special import expit

import gaussfold as gf
from experiments.sparse.baselines import AdaGrad
from experiments.sparse.sampled_vb import SampledVB
from experiments.style import BLACK, BLUE, GREEN, GREY, LIGHT, ORANGE, PURPLE, SKY, VERMILION, YELLOW
from gaussfold.beliefs import Joint, Marginal
from gaussfold.dynamics import Forgetting
from gaussfold.likelihoods import Bernoulli
from gaussfold.rows import Rows
from gaussfold.types import Array


class Learner(Protocol):
    """Predicts each row, then learns it."""

    def learn(self, rows: Rows, y: Array) -> Array:
        """Return the log losses before learning."""
        ...


class Belief:
    """A belief of this library under a rule, as a learner."""

    def __init__(self, belief: Any, rule: str, at: str = "posterior", forgetting: float = 1.0) -> None:
        self.belief = belief
        self.likelihood, self.rule, self.at = Bernoulli("logit", "probit"), rule, at
        self.dynamics = Forgetting(forgetting, belief.copy()) if forgetting < 1.0 else None

    def learn(self, rows: Rows, y: Array) -> Array:
        """Return the log losses before learning."""
        trace = gf.fold(self.belief, self.likelihood, rows, y, self.rule, self.at, dynamics=self.dynamics)
        return -np.asarray(trace.log_predictive)


class ClosedFormADF:
    """ADF with the moments in closed form, as Minka has them for Φ; (5) makes σ(f) into Φ(√(π/8) f)."""

    def __init__(self, dim: int, std: float) -> None:
        self.belief = gf.DiagonalGaussian.isotropic(dim, std, coupling="joint")

    def learn(self, rows: Rows, y: Array) -> Array:
        """Return the log losses before learning."""
        scaled = replace(rows, data=math.sqrt(math.pi / 8.0) * rows.data)
        return -np.asarray(gf.fold(self.belief, Bernoulli("probit"), scaled, y, "ep", "prior").log_predictive)


class Batches:
    """DimGauss in mini-batches, (47) and (48): one step for all rows of a batch, then the diagonal is kept.

    Rows are predicted with what was known when their batch began. Only features that the batch has met are inverted.
    """

    def __init__(self, dim: int, std: float, size: int) -> None:
        self.mean, self.variance, self.size = np.zeros(dim), np.full(dim, std * std), size

    def learn(self, rows: Rows, y: Array) -> Array:
        """Return the log losses before learning."""
        loss = np.empty(y.size)
        for start in range(0, y.size, self.size):
            part = slice(start, min(start + self.size, y.size))
            loss[part] = self._batch(rows[part], y[part])
        return loss

    def _batch(self, rows: Rows, y: Array) -> Array:
        columns, place = np.unique(rows.indices, return_inverse=True)
        X = np.zeros((y.size, columns.size))
        X[np.repeat(np.arange(y.size), np.diff(rows.indptr)), place] = rows.data
        mean, variance = self.mean[columns], self.variance[columns]
        sign, f = np.where(y > 0.5, 1.0, -1.0), X @ mean
        loss = np.logaddexp(0.0, -sign * f / np.sqrt(1.0 + math.pi / 8.0 * (X * X @ variance)))
        q = expit(-sign * f)
        temporary = np.diag(1.0 / variance) + X.T @ (X * (q * (1.0 - q))[:, None])
        mean = mean + np.linalg.solve(temporary, X.T @ (sign * q))
        q = expit(-sign * (X @ mean))
        precision = np.diag(1.0 / variance) + X.T @ (X * (q * (1.0 - q))[:, None])
        self.mean[columns], self.variance[columns] = mean, np.diag(np.linalg.inv(precision))
        return loss


@dataclass(frozen=True)
class Method:
    """A name, how to build it from its tuned numbers (prior std, or what a step size needs), and how it is drawn."""

    label: str
    tuned: tuple[str, ...]
    make: Callable[..., Learner]
    color: str
    dashes: Any

    def candidates(self, name: str, std: float) -> list[dict[str, float]]:
        """Settings to choose from where the true weights have this standard deviation."""
        if self.tuned != (PRIOR,):
            return [dict(zip(self.tuned, numbers, strict=True)) for numbers in GRIDS.get(name, [()])]
        return [{PRIOR: std * factor} for (factor,) in GRIDS.get(name, [(1.0,)])]


PRIOR = "prior std"


def _diagonal(coupling: Any) -> Callable[[int, float], Any]:
    return lambda dim, std: gf.DiagonalGaussian.isotropic(dim, std, coupling=coupling)


_SOLVED, _ONE_STEP, _JOINT = _diagonal(Marginal()), _diagonal(Marginal("one-step")), _diagonal(Joint())
_HEIGHT, _ONE_STEP_HEIGHT = _diagonal(Marginal(variance="height")), _diagonal(Marginal("one-step", "height"))
_JOINT_STEP = _diagonal(Joint("one-step"))
_PRIOR = (PRIOR,)
METHODS: dict[str, Method] = {
    "sgd": Method("SGD (AdaGrad, power tuned)", ("rate", "power", "start"), AdaGrad, ORANGE, (0, (5, 2))),
    "sgd-root": Method("SGD (AdaGrad)", ("rate",), AdaGrad, GREY, (0, (5, 2))),
    "adf": Method("ADF", _PRIOR, ClosedFormADF, GREEN, (0, (1.2, 1.2))),
    "adf-exact": Method("ADF, exact moments", _PRIOR, lambda d, s: Belief(_JOINT(d, s), "ep", "prior"), GREEN, "-"),
    "dimgauss": Method("DimGauss", _PRIOR, lambda d, s: Belief(_JOINT(d, s), "newton"), SKY, (0, (5, 1.5, 1, 1.5))),
    "gauss": Method("Gauss (marginal)", _PRIOR, lambda d, s: Belief(_SOLVED(d, s), "newton"), BLUE, "-"),
    "forgetting": Method(
        "Gauss, forgetting tuned",
        (PRIOR, "forgetting"),
        lambda d, s, f: Belief(_SOLVED(d, s), "newton", forgetting=f),
        VERMILION,
        "-",
    ),
    "approx": Method("Gauss, one step", _PRIOR, lambda d, s: Belief(_ONE_STEP(d, s), "newton"), BLACK, (0, (1, 3))),
    "auto": Method(
        "Gauss, 8 priors mixed", (), lambda d: Belief(gf.DiagonalMixture.isotropic(d), "newton"), PURPLE, (0, (3, 2))
    ),
    "stack": Method(
        "Gauss, stack of lanes (auto)", (), lambda d: Belief(gf.DiagonalStack.isotropic(d), "newton"), PURPLE, "-"
    ),
    "height": Method(
        "Gauss, peak height (18)", _PRIOR, lambda d, s: Belief(_HEIGHT(d, s), "newton"), YELLOW, (0, (4, 4))
    ),
    "approx-height": Method(
        "Gauss, one step, (18)", _PRIOR, lambda d, s: Belief(_ONE_STEP_HEIGHT(d, s), "newton"), VERMILION, (0, (1, 4))
    ),
    "dimgauss-step": Method(
        "DimGauss, one step", _PRIOR, lambda d, s: Belief(_JOINT_STEP(d, s), "newton"), GREEN, (0, (1.2, 1.2))
    ),
    "batches-10": Method("DimGauss, batches of 10", _PRIOR, lambda d, s: Batches(d, s, 10), LIGHT, "-"),
    "batches-100": Method("DimGauss, batches of 100", _PRIOR, lambda d, s: Batches(d, s, 100), GREY, "-"),
    "vb1000-taylor": Method(
        "VB, 1000 samples, Taylor", _PRIOR, lambda d, s: SampledVB(d, s, 1000, taylor=True), ORANGE, (0, (5, 2))
    ),
    "vb": Method("VB, quadrature", _PRIOR, lambda d, s: Belief(_SOLVED(d, s), "vi"), LIGHT, "-"),
    "vb100": Method("VB, 100 samples", _PRIOR, lambda d, s: SampledVB(d, s, 100), VERMILION, "-"),
    "vb1000": Method("VB, 1000 samples", _PRIOR, lambda d, s: SampledVB(d, s, 1000), YELLOW, "-"),
}
GRIDS: dict[str, list[tuple[float, ...]]] = {
    "sgd": [
        *((rate, 0.5, start) for rate in (0.1, 0.2, 0.4, 0.8) for start in (0.0, 10.0)),
        *((rate, 0.75, start) for rate in (0.4, 0.8, 1.6) for start in (1.0, 10.0)),
        *(
            (rate, 1.0, start)
            for rate in (1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0)
            for start in (1.0, 3.0, 10.0, 30.0, 100.0)
        ),
    ],
    "sgd-root": [(rate,) for rate in (0.1, 0.15, 0.2, 0.3, 0.5)],
    "adf": [(0.5,), (1.0,), (2.0,), (4.0,)],
    "dimgauss": [(1.0,), (2.0,), (3.0,), (4.0,), (8.0,), (16.0,), (32.0,), (64.0,)],
}
"""Numbers tried, priors times the std of the true weights; methods that are not here take the true std."""
GRIDS |= {
    "dimgauss-step": GRIDS["dimgauss"],
    "batches-10": [(1.0,), (2.0,), (4.0,)],
    "batches-100": [(1.0,), (2.0,), (4.0,)],
}
