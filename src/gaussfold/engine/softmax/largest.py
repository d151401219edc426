"""The softmax averaged over K independent latents, as integrals over one number: exact for any number of classes.

With standard Gumbel noise G the probability of class k is that of f_k + G_k being the largest. Let
Φ_k(t) = P(f_k + G_k ≤ t), H_k = -log Φ_k and h_k = -H_k'. Given that the largest is t,

    E p_k = ∫ h_k exp(-Σ_j H_j) dt.

H_k = exp A, A from the table of ``expectations.largest``: cubic in the share of the noise, of degree five in the
place. The line is cut into panels with eight Gauss-Legendre nodes, as wide as the narrowest class that still matters
there; 50 to 100 nodes give p to 1e-7 or better. A probability below `SMALL` is an integral of what is large only in the
tails of both factors: the same in the log, over more of the line, log p to 1e-4 of itself.
Reference twin: ``tests/reference/largest.py``.
"""

from __future__ import annotations

import math
from typing import TypeAlias

import numpy as np

from gaussfold.engine.compiled import compiled
from gaussfold.engine.scalar.exponential import exp_nonpositive

EULER = 0.5772156649015329
GUMBEL_STD = math.pi / math.sqrt(6.0)
LOWEST, STEP = -14.0, 0.5
"""Places of the table."""
FULL, DEEP_FULL = math.log(36.0), math.log(2000.0)
"""A of a class whose Φ is nothing, and the same where tails are looked at."""
DONE, DEEP = math.log(1e-11), 26.0
"""A of a class that is certain not to be above t, and the same where tails are looked at, in standard deviations."""
WIDE, WIDER, WIDEST = 2.0, 3.0, 5.0
"""Standard deviations of a panel: where a class may be the largest, hardly and next to never."""
MOST = 8.0
EXP_MOST = math.exp(MOST)
SMALL = 1e-6
NODES = np.array([
    -0.9602898564975363, -0.7966664774136267, -0.5255324099163290, -0.1834346424956498,
    0.1834346424956498, 0.5255324099163290, 0.7966664774136267, 0.9602898564975363,
])  # fmt: skip
WEIGHTS = np.array([
    0.1012285362903763, 0.2223810344533745, 0.3137066458778873, 0.3626837833783620,
    0.3626837833783620, 0.3137066458778873, 0.2223810344533745, 0.1012285362903763,
])  # fmt: skip
MOST_PANELS = 20000
PLACE, STD, NEAR = 0, 1, 2
"""Of a class that is `looked` at: centre, standard deviation, A at the last node."""
Room: TypeAlias = tuple[np.ndarray, np.ndarray, np.ndarray]
"""What is looked at, (K, 3); rows of the table for each class's share, (K, places, 6); work, (2K + 1, 8)."""


@compiled
def _value(row: np.ndarray, std: float, r: float) -> tuple[float, float]:
    """A and -dA/dt of one class at the place r in standard units; beyond the table as its ends go on."""
    last = row.shape[0] - 1
    x = (r - LOWEST) / STEP
    cell = min(int(max(x, 0.0)), last)
    x = min(max(x - cell, 0.0), 1.0)
    c = row[cell]
    value = c[0] + x * (c[1] + x * (c[2] + x * (c[3] + x * (c[4] + x * c[5]))))
    slope = (c[1] + x * (2.0 * c[2] + x * (3.0 * c[3] + x * (4.0 * c[4] + x * 5.0 * c[5])))) / STEP
    if r > LOWEST + STEP * (last + 1):
        value += slope * (r - LOWEST - STEP * (last + 1))
    elif r < LOWEST:  # a power of the distance, as a normal number's
        value += slope * LOWEST * math.log(r / LOWEST)
        slope *= LOWEST / r
    return value, -slope / std


@compiled
def _beginning(row: np.ndarray, level: float) -> float:
    """A place in standard units where A is above the level, or the table begins."""
    for cell in range(1, row.shape[0]):
        if row[cell, 0] < level:
            if cell > 1:
                return LOWEST + STEP * (cell - 1)
            break
    return float(LOWEST * math.exp((level - row[0, 0]) * STEP / (row[0, 1] * LOWEST)))


@compiled
def _look(mean: np.ndarray, variance: np.ndarray, table: np.ndarray, room: Room) -> bool:
    """Where each class stands, and its row of the table; False where a number is not finite."""
    looked, rows, _ = room
    top = -math.inf
    for k in range(mean.size):
        if not (math.isfinite(mean[k]) and 0.0 <= variance[k] < math.inf):
            return False
        top = max(top, mean[k])
    columns = table.shape[0] - 1
    for k in range(mean.size):
        std = math.sqrt(variance[k] + GUMBEL_STD * GUMBEL_STD)
        looked[k, STD] = std
        looked[k, PLACE] = mean[k] - top + EULER
        # the share of the noise, GUMBEL_STD / std, is 1 - (1 - i/n)²
        x = columns * (1.0 - math.sqrt(variance[k] / (std * (std + GUMBEL_STD))))
        first = min(max(int(x) - 1, 0), columns - 3)
        u = x - first
        a, b = -(u - 1.0) * (u - 2.0) * (u - 3.0) / 6.0, u * (u - 2.0) * (u - 3.0) / 2.0
        c, d = -u * (u - 1.0) * (u - 3.0) / 2.0, u * (u - 1.0) * (u - 2.0) / 6.0
        t0, t1, t2, t3 = table[first], table[first + 1], table[first + 2], table[first + 3]
        row = rows[k]
        for i in range(row.shape[0]):
            for j in range(6):
                row[i, j] = a * t0[i, j] + b * t1[i, j] + c * t2[i, j] + d * t3[i, j]
    return True


@compiled
def _panel(start: float, looked: np.ndarray, deep: bool) -> float:
    """How wide the panel from here on is; 0 where nothing matters any more."""
    width = math.inf
    for k in range(looked.shape[0]):
        std, a = looked[k, STD], looked[k, NEAR]
        if deep:
            if start < looked[k, PLACE] + DEEP * std:
                width = min(width, WIDE * std)
        elif a > DONE:
            wide = WIDE if a > -4.0 else (WIDER if a > -10.0 else WIDEST)
            width = min(width, wide * std)
    return width if width < math.inf else 0.0


@compiled
def _start(looked: np.ndarray, rows: np.ndarray, level: float) -> float:
    """Where the integral begins: below it some Φ_k is nothing."""
    start = -math.inf
    for k in range(looked.shape[0]):
        looked[k, NEAR] = level
        start = max(start, looked[k, PLACE] + looked[k, STD] * _beginning(rows[k], level))
    return start


@compiled
def _rates(start: float, width: float, room: Room) -> None:
    """At the panel's nodes H_k to ``work[k]``, h_k/H_k to ``work[K + k]`` and Σ H_k to ``work[2K]``."""
    looked, rows, work = room
    k = looked.shape[0]
    total = work[2 * k]
    total[:] = 0.0
    for c in range(k):
        row, std, rate, slope = rows[c], looked[c, STD], work[c], work[k + c]
        first, step = (start - looked[c, PLACE]) / std, 0.5 * width / std
        for j in range(8):
            value, slope[j] = _value(row, std, first + step * (1.0 + NODES[j]))
            rate[j] = min(value, MOST) - MOST
        looked[c, NEAR] = rate[7] + MOST
        for j in range(8):
            rate[j] = exp_nonpositive(rate[j]) * EXP_MOST
        for j in range(8):
            total[j] += rate[j]


@compiled
def _probabilities(room: Room, p: np.ndarray) -> float:
    """E p_k to ``p``, and their sum: 1 but for the error."""
    looked, rows, work = room
    k = looked.shape[0]
    p[:] = 0.0
    start = _start(looked, rows, FULL)
    total = work[2 * k]
    for _ in range(MOST_PANELS):
        width = _panel(start, looked, False)
        if width == 0.0:
            break
        _rates(start, width, room)
        for j in range(8):
            total[j] = 0.5 * width * WEIGHTS[j] * exp_nonpositive(-total[j])
        for c in range(k):
            rate, slope = work[c], work[k + c]
            part = 0.0
            for j in range(8):
                part += rate[j] * slope[j] * total[j]
            p[c] += part
        start += width
    return float(p.sum())


@compiled
def _log_tails(room: Room, highest: np.ndarray, mass: np.ndarray) -> None:
    """Log E p_k as ``highest`` + log ``mass``, however small."""
    looked, rows, work = room
    k = looked.shape[0]
    highest[:] = -math.inf
    mass[:] = 0.0
    start = _start(looked, rows, DEEP_FULL)
    total = work[2 * k]
    for _ in range(MOST_PANELS):
        width = _panel(start, looked, True)
        if width == 0.0:
            break
        _rates(start, width, room)
        for c in range(k):
            std = looked[c, STD]
            first, step = (start - looked[c, PLACE]) / std, 0.5 * width / std
            for j in range(8):
                value, slope = _value(rows[c], std, first + step * (1.0 + NODES[j]))
                part = value + math.log(max(slope, 1e-300)) - total[j]
                if part > highest[c]:
                    mass[c] *= math.exp(highest[c] - part)
                    highest[c] = part
                mass[c] += 0.5 * width * WEIGHTS[j] * math.exp(part - highest[c])
        start += width


@compiled
def room_for(k: int, table: np.ndarray) -> Room:
    """Where functions below work: made once."""
    return np.empty((k, 3)), np.empty((k, table.shape[1], 6)), np.empty((2 * k + 1, 8))


@compiled
def class_log_averages(mean: np.ndarray, variance: np.ndarray, table: np.ndarray, out: np.ndarray) -> None:
    """Log E p_k (n, K) to ``out`` of latents N(mean, variance), (n, K); NaN where a number is not finite."""
    n, k = mean.shape
    room = room_for(k, table)
    p, highest, mass = np.empty(k), np.empty(k), np.empty(k)
    for r in range(n):
        if not _look(mean[r], variance[r], table, room):
            out[r] = math.nan
            continue
        whole = _probabilities(room, p)
        if not p.min() > SMALL:
            _log_tails(room, highest, mass)
        for c in range(k):
            out[r, c] = math.log(p[c] / whole) if p[c] > SMALL else highest[c] + math.log(mass[c])


@compiled
def class_log_average(
    mean: np.ndarray, variance: np.ndarray, label: int, table: np.ndarray, room: Room, small: np.ndarray
) -> float:
    """Log E p of one row's label, as :func:`class_log_averages`. ``small``: (3, K)."""
    if not _look(mean, variance, table, room):
        return math.nan
    whole = _probabilities(room, small[0])
    if small[0, label] > SMALL:
        return math.log(small[0, label] / whole)
    _log_tails(room, small[1], small[2])
    return float(small[1, label] + math.log(small[2, label]))
