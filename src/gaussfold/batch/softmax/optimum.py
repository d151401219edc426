"""Steps to the optimum, and the width of the prior that leave-one-out prefers."""

from __future__ import annotations

import math
from typing import TypeVar

import numpy as np

from gaussfold.batch.softmax.blocks import Blocks
from gaussfold.batch.softmax.joint import Joint
from gaussfold.batch.softmax.rows import ClassRows, Seen
from gaussfold.types import Array

Posterior = TypeVar("Posterior", Blocks, Joint)
MOST_STEPS, FEW_STEPS = 120, 30
"""To the end, and while widths are compared."""
SEARCHED, SEARCHED_CLASSES = 1000, 20_000
"""Rows among which widths are compared: so many at least, and with so many latents in all; others only learn."""
MEMORY = 6
"""Steps that the next one is made of."""
SLACK = 1e-4
"""Part of F that may be lost near by, where nodes make it less exact than its slopes, which they average apart."""
SETTLED = 1e-6
"""Part of its standard deviation by which a weight may still move."""
NEAR = 0.3
"""Standard deviations that are near by."""
ROUGH = 1e-2
"""The same while widths are compared."""
QUICKER = 1.3
"""Times as far the next step may go, after one that did well."""
SHORTEST = 1e-3
"""Part of a step below which none is cut shorter."""
LEAST, MOST, MOST_OF_BLOCKS = -10, 3, 2
"""Widths from 2⁻¹⁰ to 2³ are looked at: of latents that a feature may move by 8 for each of its standard deviations.

Blocks, which leave out what classes have in common, find no end under priors as wide, nor predict better there.
"""


def optimum(
    start: Posterior, rows: ClassRows, settled: float = SETTLED, most: int = MOST_STEPS
) -> tuple[Posterior, Seen, float]:
    """The optimum of F, what it says of the rows, and how far it still was from there.

    Mean and precision may swing about each other, or creep: the next point is that mixture of the last few steps' ends
    whose steps all but cancel (Anderson's acceleration). If F falls there, half of a plain step, or less, is gone, and
    of blocks the mixtures after it go no farther than that, until some have done well; one Gaussian needs no such care.
    """
    now = type(start).of(rows, start.mean, start.curvature)
    seen, move, past, units, pace = now.seen(rows), math.inf, Past(), now.units(rows), 1.0
    for count in range(most):
        there, step = now.after(rows, seen)
        move = float(np.abs(step).max())
        if move <= settled:
            break
        if count % 4 == 0:
            units = now.units(rows)
        least = seen.value - (SLACK if move < NEAR else 0.0) * (1.0 + abs(seen.value))
        past.add(now.mean, now.curvature, there.mean, there.curvature)
        part, found = _tried(now, past.mixed(*units, pace), rows)
        share = min(1.0, QUICKER * pace)
        while found is None or not found.value >= least:
            past = Past()
            share *= 0.5
            halfway = now.mean + share * (there.mean - now.mean)
            part, found = _tried(now, (halfway, now.curvature + share * (there.curvature - now.curvature)), rows)
            if share < SHORTEST and found is not None:
                break
        now, seen, pace = part, found, share if isinstance(now, Blocks) else 1.0
    return now, seen, move


def _tried(now: Posterior, where: tuple[Array, Array], rows: ClassRows) -> tuple[Posterior, Seen | None]:
    """The posterior there and what it says, if there is one."""
    try:
        part = type(now).of(rows, *where)
    except np.linalg.LinAlgError:  # curvatures that no mixture of likelihoods has
        return now, None
    return part, part.seen(rows)


class Past:
    """The last few points, and where a step from each led."""

    def __init__(self) -> None:
        self._kept: list[tuple[Array, Array, Array, Array]] = []

    def add(self, mean: Array, curvature: Array, next_mean: Array, next_curvature: Array) -> None:
        """One more."""
        self._kept = [*self._kept[1 - MEMORY :], (mean, curvature, next_mean, next_curvature)]

    def mixed(self, mean_unit: Array, curvature_unit: Array, pace: float) -> tuple[Array, Array]:
        """Mean and curvature where, as far as steps are linear, the next step is shortest in these units.

        ``pace`` is the part of each step that is gone.
        """
        steps = np.stack([
            np.concatenate([((there - mean) / mean_unit).ravel(), ((bent - curvature) / curvature_unit).ravel()])
            for mean, curvature, there, bent in self._kept
        ])  # fmt: skip
        away = steps[:-1] - steps[-1]
        share = np.linalg.lstsq(away.T, -steps[-1], rcond=1e-8)[0]
        shares = np.append(share, 1.0 - share.sum())
        means, bends = zip(
            *((mean + pace * (there - mean), bend + pace * (bent - bend)) for mean, bend, there, bent in self._kept),
            strict=True,
        )
        mixed = [sum(part * each for part, each in zip(shares, many, strict=True)) for many in (means, bends)]
        return np.asarray(mixed[0]), np.asarray(mixed[1])


def best_width(
    start: Posterior, rows: ClassRows, reach: float | None, *, apart: bool
) -> tuple[Posterior, float, float]:
    """Posterior, width and last move under the prior of that width τ which has the best leave-one-out score.

    ``log τ ~ N(0, reach²)`` before the data speak; all weights but, if ``apart``, the last of each class have a prior τ
    times as wide as ``rows`` says. Uphill by factors of two, then to the top of a parabola, by some of the rows
    where they are many. No reach: it is 1.
    """
    if reach is None:
        posterior, _, move = optimum(start, rows)
        return posterior, 1.0, move
    every, rows = rows, rows.some(max(SEARCHED, SEARCHED_CLASSES // rows.classes))
    start = type(start).start(rows)
    scores: dict[int, float] = {}
    found: dict[int, Posterior] = {}

    def look(power: int, near: Posterior) -> float:
        if power not in scores:
            width = 2.0**power
            wide = rows.widened(width, apart=apart)
            found[power], seen, _ = optimum(near, wide, ROUGH, FEW_STEPS)
            scores[power] = found[power].left_out(wide, seen) - 0.5 * (math.log(width) / reach) ** 2
        return scores[power]

    place, top, most = 0, look(0, start), MOST if isinstance(start, Joint) else MOST_OF_BLOCKS
    while LEAST < place < most:
        low, high = look(place - 1, found[place]), look(place + 1, found[place])
        if max(low, high) <= top:
            break
        place += 1 if high > low else -1
        top = scores[place]
    low, high = scores.get(place - 1, top), scores.get(place + 1, top)
    bend = low + high - 2.0 * top
    # in whole thousandths: what rough steps and rounding leave must not show, nor whether a row counts or comes twice
    width = 2.0 ** round(place + (0.5 * (low - high) / bend if max(low, high) < top else 0.0), 3)
    near = found[place]
    if rows is not every:  # which what some rows have taught sees as far as it has learned, not as the prior would
        near = type(near).of(every, near.mean, near.seen(every).curvature)
    posterior, _, move = optimum(near, every.widened(width, apart=apart))
    return posterior, float(width), move
