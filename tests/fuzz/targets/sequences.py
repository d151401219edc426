"""Random sequences of calls on one model, beside a twin that learns the same rows in the plainest way."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from tests.property.sequences import FORMS, REFUSED, SETTINGS, WAYS, Walk


def case(rng: np.random.Generator, folder: Path) -> None:
    """One setting, up to eight calls."""

    def some(names):
        return str(rng.choice(list(names)))

    def seed():
        return int(rng.integers(2**32))

    def size():
        return int(rng.choice([1, 2, 5, 20, 70]))

    walk = Walk(some(SETTINGS), int(rng.choice([1, 3, 6])), folder)
    n = size()
    walk.learn(seed(), n, some(FORMS), int(rng.integers(1, n + 1)))
    for _ in range(rng.integers(1, 8)):
        n = size()
        call = rng.integers(8)
        if call <= 1:
            walk.learn(seed(), n, some(FORMS), int(rng.integers(max(1, n // 5), n + 1)))
        elif call == 2:
            walk.through(some(WAYS))
        elif call == 3:
            walk.say_nothing(seed(), n, missing=bool(rng.integers(2)))
        elif call == 4:
            walk.refuse(seed(), n, some(REFUSED))
        elif call == 5:
            walk.forget(float(rng.choice([0.5, 1.0, 30.0, 1e6])))
        elif call == 6:
            walk.combine()
        walk.look(seed(), size(), some(FORMS))
        walk.check()
