"""One step of nonlinear L-RVGA: look at samples, condition, look again from there.

With the mean gradient g and the Gauss-Newton rows C of K samples of the belief (C'C stands for the expected Hessian)
and P⁻¹ = WW' + Ψ + C'C,

    μ̂ = μ + P g,      μ ← μ + P (ĝ + C'C(μ̂ - μ)),

ĝ the mean gradient at samples of N(μ̂, P). The last term says that ĝ was taken at μ̂, not at μ: in natural parameters
the step is exact for linear models. lrvga (143) leaves it out, which costs up to a quarter of the KL on logistic
regression.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import jax
import numpy as np

from gaussfold.beliefs.lowrank.belief import LowRankGaussian
from gaussfold.checks import one_of
from gaussfold.deep.fisher import Model, look, look_at_gradient
from gaussfold.factors.woodbury import Precision
from gaussfold.rules import Extragradient, Prior
from gaussfold.types import Array

Draw = Callable[[Precision, Array], Array]
"""``draw(precision, mean)``: fresh samples (K, D)."""
Block = tuple[Array, Array, Array]
"""Rows, labels, weights."""


class Scheme(NamedTuple):
    """Which belief a step looks at."""

    at: Prior | Extragradient
    keep_covariance: bool = False
    """Of the first look, although the second gradient enters in natural parameters: half the work of mirror-prox."""

    @property
    def again(self) -> bool:
        """Whether it looks from the trial belief, too."""
        return isinstance(self.at, Extragradient)

    @property
    def covariance_again(self) -> bool:
        """Whether it takes the Gauss-Newton rows of the second look (full mirror-prox)."""
        return isinstance(self.at, Extragradient) and self.at.form != "mean-only" and not self.keep_covariance

    @property
    def natural(self) -> bool:
        """Whether it accounts for where the second gradient was taken."""
        return isinstance(self.at, Extragradient) and self.at.form == "natural"


SCHEMES = {
    "explicit": Scheme(Prior()),
    "extragradient": Scheme(Extragradient("natural"), keep_covariance=True),
    "mirror-prox": Scheme(Extragradient("natural")),
    "extragradient-printed": Scheme(Extragradient("mean-only")),  # lrvga (141)-(143)
    "mirror-prox-printed": Scheme(Extragradient("printed")),  # lrvga (137)-(140)
}


def scheme_name(scheme: str | Prior | Extragradient) -> str:
    """The name of a scheme, or of the one that an ``at`` of :mod:`gaussfold.rules` stands for."""
    for name, known in SCHEMES.items():
        if isinstance(scheme, Prior | Extragradient) and known == Scheme(scheme):
            return name
    return one_of("scheme", scheme, SCHEMES, also="Prior() or Extragradient(form) of gaussfold.rules")


class Task(NamedTuple):
    """What the steps of a pass have in common."""

    model: Model
    stacked: bool
    """Whether the network takes rows stacked."""
    scheme: Scheme
    size: int
    """Rows of a full block."""


def step(belief: LowRankGaussian, task: Task, block: Block, draw: Draw) -> Array | None:
    """Learn a block of rows, in place; returns the samples' log probabilities of its labels (K, rows).

    None, and the belief as it was, if anything is not finite.
    """
    count = len(block[2])
    padded = _padded(*block, task.size)
    mean, before = belief.mean, belief.precision()
    gradient, rows, values = look(task.model, task.stacked, draw(before, mean), *padded)
    C = _factors(rows, gradient, count)
    if C is None:
        return None
    after = _conditioned(belief, before, C)
    fresh = trial = mean + after.covariance_times(np.asarray(gradient, dtype=np.float64)[None])[0]
    if task.scheme.again:
        samples = draw(after, trial)
        if task.scheme.covariance_again:
            gradient, rows, _ = look(task.model, task.stacked, samples, *padded)
            C = _factors(rows, gradient, count)
            if C is None:
                return None
            after = _conditioned(belief, before, C)
        else:
            gradient = look_at_gradient(task.model, task.stacked, samples, *padded)
        pull = np.asarray(gradient, dtype=np.float64)
        if task.scheme.natural:
            pull = pull + (C @ (trial - mean)) @ C
        if not np.isfinite(pull).all():
            return None
        fresh = mean + after.covariance_times(pull[None])[0]
    if not np.isfinite(fresh).all():
        return None
    belief.absorb_factors(C, fresh)
    return np.asarray(values, dtype=np.float64)[:, :count]


def _factors(rows: jax.Array, gradient: jax.Array, count: int) -> Array | None:
    """The Gauss-Newton rows as (·, D), no more of them than parameters; None if anything is not finite."""
    C = np.asarray(rows, dtype=np.float64)[:, :count]
    C = C.reshape(-1, C.shape[-1])
    if not (np.isfinite(C).all() and np.isfinite(np.asarray(gradient)).all()):
        return None
    return np.asarray(np.linalg.qr(C, mode="r")) if len(C) > C.shape[1] else C


def _conditioned(belief: LowRankGaussian, before: Precision, C: Array) -> Precision:
    """The precision with C'C added: exactly, or projected already (lrvga as printed)."""
    if belief.options.gain == "exact":
        return before.plus(C)
    twin = belief.copy()
    twin.absorb_factors(C, belief.mean)
    return twin.precision()


def _padded(x: Array, y: Array, weight: Array, size: int) -> tuple[Array, Array, Array]:
    """A block of ``size`` rows, the last ones of weight zero: one shape to compile."""
    lack = size - len(weight)
    if not lack:
        return x, y, weight
    x, y = (np.concatenate([array, np.repeat(array[-1:], lack, axis=0)]) for array in (x, y))
    return x, y, np.append(weight, np.zeros(lack))
