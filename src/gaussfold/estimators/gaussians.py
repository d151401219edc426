"""The full Gaussians of an estimator's beliefs, one after the other: of a bank several, of classes one or one each."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from gaussfold.beliefs.bank.belief import Bank
from gaussfold.beliefs.dense.belief import DenseGaussian
from gaussfold.dynamics import Dynamics, RandomWalk
from gaussfold.estimators.coordinates import Coordinates, members, with_members
from gaussfold.estimators.pace import OwnPace
from gaussfold.estimators.priors import AnyBelief
from gaussfold.types import Array


def moved(new: DenseGaussian, old: DenseGaussian) -> float:
    """The largest move of a mean in its standard deviations, or of a variance as a part of it."""
    variance = old.variance()
    steps = np.abs(new.mean - old.mean) / np.sqrt(variance), np.abs(new.variance() - variance) / variance
    return float(np.max(steps))


def farthest(new: Sequence[DenseGaussian], old: Sequence[DenseGaussian]) -> float:
    """The largest of these among several."""
    return max(moved(after, before) for after, before in zip(new, old, strict=True))


def dense(beliefs: Sequence[AnyBelief]) -> list[DenseGaussian]:
    """The Gaussians of all beliefs, one after the other."""
    return [each for belief in beliefs for each in members(belief) if isinstance(each, DenseGaussian)]


def groups(beliefs: Sequence[AnyBelief]) -> list[tuple[int, ...]]:
    """For each of these Gaussians the places of those that speak for it: in a bank what counts most, of classes all."""
    found: list[tuple[int, ...]] = []
    for belief in beliefs:
        first, count = len(found), len(members(belief))
        if isinstance(belief, Bank):
            found += [(first + int(np.argmax(belief.weights)),)] * count
        else:
            found += [tuple(range(first, first + count))] * count
    return found


def steps(beliefs: Sequence[AnyBelief], own: Dynamics | OwnPace | None) -> list[Array | float]:
    """What a tick adds to the variances of each Gaussian; ``own`` are the dynamics of beliefs that are no banks."""
    moves: list[Dynamics | None] = []
    for belief in beliefs:
        alone: list[Dynamics | None] = [None if isinstance(own, OwnPace) else own]
        moves += belief.dynamics if isinstance(belief, Bank) else alone * len(members(belief))
    dim = dense(beliefs)[0].dim
    return [move.variance(dim) if isinstance(move, RandomWalk) else 0.0 for move in moves]


def unlearned(beliefs: Sequence[AnyBelief], coordinates: Coordinates) -> list[AnyBelief]:
    """Beliefs that know their priors only."""
    return put_back(beliefs, [prior.belief() for prior in coordinates.priors], coordinates)


def put_back(beliefs: Sequence[AnyBelief], found: Sequence[DenseGaussian], coordinates: Coordinates) -> list[AnyBelief]:
    """Beliefs of other Gaussians, given one after the other."""
    parts, start = [], 0
    for belief in beliefs:
        stop = start + len(members(belief))
        parts.append(with_members(belief, found[start:stop], coordinates.priors[start:stop]))
        start = stop
    return parts
