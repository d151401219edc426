"""Error bars of a diagonal belief that correlated features cannot fool: copies that start apart.

A diagonal belief takes every row as if it told each weight something of its own. Where features are correlated the rows
tell the same thing again and again: what they leave open stays near the prior mean, while its variance shrinks as if it
were known. So copies start at N(μ₀ ± √v₀, v₀/2), a sign for each weight and copy, and every copy learns all rows. What
the data decide, the copies agree on; where they still differ, the data have not decided, and the variance of their
mixture, within and between them, says so. The starts alone have the prior's variance: what is left of them in a
direction that the rows do not tell is what is left of the truth's own distance from μ₀. Before the first rows the
mixture is therefore wider than the prior, by 1.5 in the variance; that is gone when a weight has been seen a few times.
"""

from __future__ import annotations

import numpy as np

from gaussfold.beliefs.bank.belief import Bank
from gaussfold.beliefs.diagonal.belief import DiagonalGaussian
from gaussfold.dynamics import Dynamics

ALIKE = (1.0,)
"""All weight is handed out anew after each row: copies stay equally likely, whatever they predict."""


def spread(prior: DiagonalGaussian, count: int, dynamics: Dynamics | None, *, per_row: bool) -> Bank:
    """So many copies of a prior, whose mixture has its mean and 1.5 times its variance (of an odd number: nearly)."""
    mean, variance = prior.mean, prior.var
    away = np.sqrt(variance) * _signs(count, prior.dim)
    members = [DiagonalGaussian(mean + each, 0.5 * variance, prior.coupling, prior.dtype) for each in away]
    return Bank(members, [dynamics] * count, shares=ALIKE, per_row=per_row)


def _signs(count: int, dim: int) -> np.ndarray:
    """Signs (count, dim), as many of each for every weight, in an order that is random but always the same."""
    halves = np.where(np.arange(count) < count // 2, 1.0, -1.0)
    return np.random.default_rng(0).permuted(np.tile(halves, (dim, 1)), axis=1).T
