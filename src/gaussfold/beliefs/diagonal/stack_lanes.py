"""What a stack does with its lanes: let them learn side by side, draw from them, leave out what they predict with."""

from __future__ import annotations

import threading
from collections.abc import Callable

import numpy as np

from gaussfold.types import Array, Moments

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
