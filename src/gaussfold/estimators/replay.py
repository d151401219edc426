"""The width of a softmax's prior in a stream: the first rows are learned again under some, the best foreteller stays.

The sites of a stream of classes are made once, each as wide as the belief was. Among few rows a weight they say that
the prior was right, whatever it was, and the width of most evidence runs away from there (100 classes, 20 features,
1024 rows, weights with a standard deviation of 0.5: to 1.5). How well a row is predicted before it is learned depends
on no site of its own. So the rows that are kept (`gaussfold.estimators.early`) are learned anew, from the prior on,
under the present width, half and twice of it, and so on uphill; what counts is the second half, for which the first
one is the training. Another width is taken only if it is better by more than a standard error.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from gaussfold.estimators import gaussians
from gaussfold.estimators.coordinates import Coordinates, Ways
from gaussfold.estimators.folded import FoldOptions
from gaussfold.estimators.priors import AnyBelief
from gaussfold.estimators.settling import FARTHEST, STEP, is_better, summit
from gaussfold.folding import fold
from gaussfold.likelihoods import Softmax
from gaussfold.protocols import Likelihood
from gaussfold.rows import Block
from gaussfold.types import Array

FEWEST = 8
"""Rows below which the halves are too small to say anything."""


class Rows(NamedTuple):
    """The rows that are kept, as they are folded."""

    likelihood: Likelihood | Softmax
    design: Block
    target: Array
    options: FoldOptions
    weight: Array


class Replay(NamedTuple):
    """The same, learned under a prior of some width."""

    belief: AnyBelief
    coordinates: Coordinates
    scores: Array
    """Of each row: log predictive density before it was learned, and its share of the width's log prior."""


def best(rows: Rows, belief: AnyBelief, coordinates: Coordinates, ways: Ways) -> Replay:
    """The replay under the width that predicts the second half best, uphill from the present one.

    Of too few rows: ``belief`` as it is.
    """
    weight = rows.weight
    if weight.size < FEWEST:
        return Replay(belief, coordinates, np.zeros(0))
    width, late = coordinates.width(ways), slice(weight.size // 2, None)
    found: dict[int, Replay] = {}

    def scores(step: int) -> Array:
        if step not in found:
            found[step] = _learned(rows, belief, coordinates, ways, width * math.exp(step * STEP), late)
        return found[step].scores

    def better(step: int, than: int) -> bool:
        return is_better(scores(step), scores(than), weight[late])

    return found[summit(better, math.floor(FARTHEST / STEP))]


def _learned(rows: Rows, belief: AnyBelief, coordinates: Coordinates, ways: Ways, width: float, late: slice) -> Replay:
    there = coordinates.of_width(ways, width)
    (again,) = gaussians.unlearned([belief], there)
    found = fold(again, rows.likelihood, rows.design, rows.target, **rows.options).log_predictive[late]
    share = -0.5 * (math.log(width) / ways.reach) ** 2 / rows.weight[late].sum()
    return Replay(again, there, found + share)
