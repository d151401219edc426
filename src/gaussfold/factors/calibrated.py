"""The projection whose error bars are held against the data: marginal variances kept, their scale learned.

What a projection loses is not seen in the belief that it leaves. Keeping every marginal variance (``marginal``) is
right if what was dropped lies anywhere. If rows keep coming from few directions, unseen ones are thought to be known:
errors are too large for their bars. With a flat prior, seen ones are thought to be unknown. Both show in the rows that
come next, before they are learned: they deviate too much or too little for the variances predicted.

So the belief keeps a ledger. Every row adds to the score and the information of the log scale of the variances
(``engine.lowrank.products.add_evidence``; only the row's site is looked at, so any likelihood will do, with a scale
that is known). At the next projection the scale makes a Kalman step, a factor 1 + score·U/(1 + information·U) with U
its uncertainty, and the part of Ψ above its base (the prior's, which no data have touched) is multiplied so that log ψ
falls by the log of that factor on average. U grows by what the projection cannot know: with strengths g dropped in d
dimensions, log ψ grows on average by

    up = -log(1 - Σ g/(1+g) / d)      if variances are kept,
    up + room = log(1 + Σ g / d)      if the precision's diagonal is kept (``eigen``),

and U by `UNSURE` times the latter. Where nothing is dropped nothing is in doubt: the projection is exact and the
ledger stays empty. The scale never takes Ψ below its base, nor above where ``eigen`` would have brought it (``room``).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from gaussfold.engine.lowrank.products import add_evidence, gram
from gaussfold.engine.lowrank.row import Rescaled
from gaussfold.factors import marginal
from gaussfold.factors.eigen import Sight
from gaussfold.factors.recursive_em import Seen
from gaussfold.rows import Matrix
from gaussfold.trace import Trace
from gaussfold.types import Array

UNSURE = 0.1
"""Variance of the log scale per unit of what a projection may have got wrong."""
LEAST, MOST = 0.1, 10.0
"""Factors of the scale at one projection."""


class Account(NamedTuple):
    """The numbers of a ledger, by name; in this order in model files."""

    score: float = 0.0
    """Since the last projection: slope of the rows' log evidence in the log scale ..."""
    information: float = 0.0
    """... and its information."""
    uncertainty: float = 0.0
    """U, the variance of the log scale."""
    scale: float = 0.0
    """Sum of the steps so far."""
    room: float = 0.0
    """How far below zero that sum may fall."""
    free: float = 1.0
    """Mean of the base over Ψ."""


@dataclass
class Ledger:
    """What a belief remembers of how true its error bars were."""

    base: Array
    """Ψ before any data."""
    numbers: Array
    """An `Account`."""

    @classmethod
    def start(cls, psi: Array) -> Ledger:
        """Nothing has been seen."""
        return cls(psi.copy(), np.array(Account()))

    def copy(self) -> Ledger:
        """The same numbers in memory of their own."""
        return Ledger(self.base.copy(), self.numbers.copy())

    def observe(self, trace: Trace) -> None:
        """Rows that were predicted and are learned now."""
        add_evidence(trace.site_precision, trace.site_shift, trace.mean, trace.variance, self.numbers)

    def move(self, strength: Array) -> float:
        """Take the step that is due when directions of these strengths are dropped; returns a factor for `settle`."""
        account, dim = Account(*self.numbers.tolist()), self.base.size
        up = -math.log1p(-float((strength / (1.0 + strength)).sum()) / dim)
        room = max(math.log1p(float(strength.sum()) / dim) - up, 0.0)
        free = account.free * math.exp(-up)
        sure = account.uncertainty / (1.0 + account.information * account.uncertainty)
        step = math.log1p(min(max(sure * account.score, LEAST - 1.0), MOST - 1.0))
        step = min(max(step, -account.room - account.scale), -math.log(free))
        self.numbers[:] = Account(
            0.0, 0.0, sure + UNSURE * (up + room), account.scale + step, account.room + room, account.free
        )
        return max(1.0 + math.expm1(-step) / (1.0 - free), 0.0) if free < 1.0 else 1.0

    def settle(self, psi: Array, factor: float) -> None:
        """Multiply what is above the base, in place."""
        if factor != 1.0:
            psi -= self.base
            psi *= psi.dtype.type(factor)
            psi += self.base
        self.recount(psi)

    def recount(self, psi: Array) -> None:
        """Ψ has changed: compare it with its base, which is never above it."""
        np.minimum(self.base, psi, out=self.base)
        self.kept(float(np.mean(self.base / psi, dtype=np.float64)))

    def kept(self, free: float) -> None:
        """Note the mean of the base over Ψ."""
        self.numbers[-1] = min(free, 1.0)

    def forget(self, factor: float, psi: Array) -> None:
        """Part of what was learned is forgotten, and as much of what was thought of it."""
        self.numbers[3:5] *= factor
        self.recount(psi)


def project(
    W: Array, psi: Array, G: Array, X: Matrix, weight: Array, inner_loops: int, seen: Seen | None, ledger: Ledger
) -> Array:
    """As :func:`gaussfold.factors.marginal.project_marginal`, with the scale that the ledger asks for."""
    if (weight < 0.0).any():  # no direction of a negative strength is counted
        G = marginal.project_marginal(W, psi, G, X, weight, 1.0, inner_loops, seen)
        ledger.recount(psi)
        return G
    strength = marginal.keep_variances(W, psi, G, X, weight, inner_loops, seen)
    ledger.settle(psi, ledger.move(strength))
    return gram(W, psi)


def project_row(
    W: Array,
    psi: Array,
    G: Array,
    mean: Array,
    x: Array,
    sight: Sight,
    precision: float,
    gain: float,
    ledger: Ledger,
) -> Array:
    """As :func:`gaussfold.factors.marginal.project_row`, with the scale that the ledger asks for."""
    passed = marginal.RowPass.of(G, sight, precision)
    rescaled = Rescaled(ledger.base, ledger.move(passed.strength))
    G, free = passed.fold(W, psi, mean, x, sight, gain, rescaled)
    ledger.kept(free)
    return G
