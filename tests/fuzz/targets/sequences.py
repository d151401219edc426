"""Random sequences of calls on one model, beside a twin that learns the same rows in the plainest way."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from tests.property.sequences import FORMS, REFUSED, SETTINGS, WAYS, Walk

SIZES = (1, 2, 5, 20, 70)
"""Numbers of rows of a call."""


def case(rng: np.random.Generator, folder: Path) -> None:
    """One setting, up to eight calls."""
    walk(rng, folder)


def walk(rng: np.random.Generator, folder: Path, often: tuple[float, ...] | None = None) -> None:
    """One sequence; ``often`` says how often each size comes."""

    def some(names):
        return str(rng.choice(list(names)))

    def seed():
        return int(rng.integers(2**32))

    def size():
        return int(rng.choice(SIZES, p=often))

    one = Walk(some(SETTINGS), int(rng.choice([1, 3, 6])), folder)
    n = size()
    one.learn(seed(), n, some(FORMS), int(rng.integers(1, n + 1)))
    for _ in range(rng.integers(1, 8)):
        n = size()
        call = rng.integers(8)
        if call <= 1:
            one.learn(seed(), n, some(FORMS), int(rng.integers(max(1, n // 5), n + 1)))
        elif call == 2:
            one.through(some(WAYS))
        elif call == 3:
            one.say_nothing(seed(), n, missing=bool(rng.integers(2)))
        elif call == 4:
            one.refuse(seed(), n, some(REFUSED))
        elif call == 5:
            one.forget(float(rng.choice([0.5, 1.0, 30.0, 1e6])))
        elif call == 6:
            one.combine()
        one.look(seed(), size(), some(FORMS))
        one.check()
