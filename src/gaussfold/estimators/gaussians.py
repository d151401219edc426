"""The full Gaussians of an estimator's beliefs, one after the other: a bank has several, a class one of its own."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from gaussfold.beliefs.bank.belief import Bank
from gaussfold.beliefs.dense.belief import DenseGaussian
from gaussfold.estimators.coordinates import Coordinates, members, with_members
from gaussfold.estimators.priors import AnyBelief


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


def leaders(beliefs: Sequence[AnyBelief]) -> list[int]:
    """For each of these Gaussians the place of the one that speaks for its belief: in a bank, what counts most."""
    leaders: list[int] = []
    for belief in beliefs:
        best = int(np.argmax(belief.weights)) if isinstance(belief, Bank) else 0
        leaders += [len(leaders) + best] * len(members(belief))
    return leaders


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
