"""What a stack does with its lanes: let them learn side by side, draw from them, leave out what they predict with."""

from __future__ import annotations

import threading
from collections.abc import Callable

import numpy as np

from gaussfold.beliefs.diagonal import passes
from gaussfold.beliefs.diagonal.base import NO_SECOND_VISIT
from gaussfold.beliefs.diagonal.belief import DiagonalGaussian
from gaussfold.beliefs.diagonal.coupling import Coupling
from gaussfold.beliefs.diagonal.state import State
from gaussfold.dynamics import moving
from gaussfold.engine.programs import can_be_marginalised
from gaussfold.trace import Pass
from gaussfold.types import Array, ArrayLike, Moments, Program

SIDE_BY_SIDE = 1 << 14
"""So many entries are worth a thread of their own."""


def away(cells: Array, k: int, rng: np.random.Generator) -> Array:
    """How far a draw of some parameters is from their means, under lane k or the stack."""
    return np.asarray(np.sqrt(cells[:, 1, k]) * rng.standard_normal(len(cells)))


def without_predictions(mean: Array, variance: Array) -> Moments:
    """Lanes, and of the stack what it reports."""
    return Moments(np.delete(mean, -2, axis=1), np.delete(variance, -2, axis=1))


def side_by_side(one: Callable[[], None], other: Callable[[], None], entries: int) -> None:
    """Run both, at the same time where that is worth a thread."""
    if entries < SIDE_BY_SIDE:
        one()
        other()
        return
    errors: list[BaseException] = []

    def run() -> None:
        try:
            one()
        except BaseException as error:
            errors.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    try:
        other()
    finally:
        thread.join()
    if errors:
        raise errors[0]


def log_density(cells: Array, log_weights: Array, coupling: Coupling, theta: ArrayLike) -> Array:
    """Log density of a mixture of diagonal Gaussians, whose cells are given, at each row of theta."""
    parts = [
        log_weights[k] + DiagonalGaussian(cells[:, 0, k], cells[:, 1, k], coupling).log_prob(theta)
        for k in range(cells.shape[2])
    ]
    return np.asarray(np.logaddexp.reduce(parts, axis=0))


def check_pass(state: State, program: Program, how: Pass) -> None:
    """Refuse what lanes cannot learn by."""
    if how.sites is not None:
        raise ValueError(NO_SECOND_VISIT)
    if moving(how.dynamics) is not None:
        msg = "dynamics: the lanes of a DiagonalStack stand still or forget as they were told; use a DiagonalMixture"
        raise ValueError(msg)
    if not can_be_marginalised(program):
        msg = "belief: a DiagonalStack averages likelihoods over Gaussians, which a Student-t has no form for"
        raise ValueError(msg)
    passes.check(state, program)
