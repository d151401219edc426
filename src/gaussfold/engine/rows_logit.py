"""The default of sparse classification in lanes: a visit to one row, by the series and the solver of ``logit_series``.

K = 1: four features side by side. K = 8: the eight components of one feature side by side. A row of features that are
all known well is written back while it is computed, and put back as it was if a number left the range of what is
stored. Arrays are given by pointers (``lane_memory.pointer``).
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from gaussfold.engine.cells import put
from gaussfold.engine.compiled import compiled_fused
from gaussfold.engine.lane_memory import (
    gather4,
    gather4_last,
    load4,
    load4_last,
    load8,
    scatter4,
    scatter4_last,
    store,
)
from gaussfold.engine.lanes import bits_of, first_lanes, lanes4, lanes8, larger, magnitude, peak, total
from gaussfold.engine.logit_series import factors, moved, row_series, solve

ALL4, ALL8 = 15, 255


@compiled_fused
def visit_one(
    cells: Any, indices: Any, data: Any, start: Any, stop: Any, y: Any, w: Any, learn: Any, taken: Any, tiny: Any,
    huge: Any, xs: Any, ms: Any, vs: Any, new_m: Any, new_v: Any, gains: Any, spare: Any, hard: Any, mean: Any,
    variance: Any, row: Any,
) -> Any:  # fmt: skip
    """Visit one row with K = 1: its marginal to ``mean[row]`` and ``variance[row]``; False if it cannot be learned.

    ``taken``: the cells are in ``ms`` and ``vs`` already, time applied.
    """
    n = stop - start
    last = stop - 1
    whole = (n - 1) & ~3  # all lanes but those of the last group, which has one to four features
    total4 = lanes4(0.0)
    spread4 = lanes4(0.0)
    top4 = lanes4(0.0)
    if n > 0:
        i = 0
        while i < whole:
            if not taken:
                m, v = gather4(cells, indices, start + i)
                store(ms, i, m)
                store(vs, i, v)
            else:
                m, v = load4(ms, i), load4(vs, i)
            x = load4(data, start + i)
            store(xs, i, x)
            own = x * x * v
            total4 = total4 + x * m
            spread4 = spread4 + own
            top4 = larger(top4, own)
            i += 4
        if not taken:
            m, v = gather4_last(cells, indices, start + whole, last)
        else:
            m, v = load4_last(ms, whole, n - 1), load4_last(vs, whole, n - 1)
        x = load4_last(data, start + whole, last)
        store(ms, whole, m)
        store(vs, whole, v)
        store(xs, whole, x)
        own = x * x * v
        total4 = total4 + first_lanes(n - whole, x * m)
        spread4 = spread4 + first_lanes(n - whole, own)
        top4 = larger(top4, own)
    f = total(total4)
    s = total(spread4)
    mean[row] = f
    variance[row] = s
    if not (abs(f) < math.inf and s < math.inf):
        return False
    if not learn or n == 0:
        return True
    share, largest, g, r = row_series(f, s, y, w)
    wild: Any = 0
    if not taken and share * peak(top4) <= largest:
        i = 0
        while i < whole:
            m, v = moved(load4(xs, i), load4(ms, i), load4(vs, i), share, g, r)
            scatter4(cells, indices, start + i, m, v)
            wild |= bits_of(magnitude(m) <= huge) & bits_of(v >= tiny) ^ ALL4
            i += 4
        m, v = moved(load4(xs, whole), load4(ms, whole), load4(vs, whole), share, g, r)
        scatter4_last(cells, indices, start + whole, last, m, v)
        wild |= bits_of(magnitude(m) <= huge) & bits_of(v >= tiny) ^ ALL4
        if wild != 0:
            put(cells, 1, indices, start, stop, ms, vs)
            return False
        return True
    n_hard = 0
    i = 0
    while i <= whole:
        x, m, v = load4(xs, i), load4(ms, i), load4(vs, i)
        xv = x * v
        u = share * (x * xv)
        near = bits_of(u <= largest)
        gain, shrink = factors(u, g, r)
        store(gains, i, gain)
        store(new_m, i, m + xv * gain)
        store(new_v, i, v * shrink)
        for lane in range(4):
            hard[n_hard] = i + lane
            n_hard += 1 - (near >> lane & 1)
        i += 4
    for lane in range(8):
        hard[n_hard + lane] = hard[0]  # the last group is filled up by repeating a feature
    for t in range(0, n_hard, 8):
        for lane in range(8):
            i = hard[t + lane]
            spare[lane] = xs[i]
            spare[8 + lane] = ms[i]
            spare[16 + lane] = vs[i]
            spare[24 + lane] = gains[i]
        m, v = solve(
            load8(spare, 0), load8(spare, 8), load8(spare, 16), load8(spare, 24), f, s, y, w, spare
        )  # fmt: skip
        store(spare, 0, m)
        store(spare, 8, v)
        for lane in range(8):
            i = hard[t + lane]
            new_m[i] = spare[lane]
            new_v[i] = spare[8 + lane]
    i = 0
    while i <= whole:
        wild |= bits_of(magnitude(load4(new_m, i)) <= huge) & bits_of(load4(new_v, i) >= tiny) ^ ALL4
        i += 4
    if wild != 0:
        return False
    i = 0
    while i < whole:
        scatter4(cells, indices, start + i, load4(new_m, i), load4(new_v, i))
        i += 4
    scatter4_last(cells, indices, start + whole, last, load4(new_m, whole), load4(new_v, whole))
    return True


@compiled_fused
def visit_eight(
    cells: Any, indices: Any, data: Any, start: Any, stop: Any, y: Any, w: Any, learn: Any, taken: Any, tiny: Any,
    huge: Any, ms: Any, vs: Any, new_m: Any, new_v: Any, spare: Any, mean: Any, variance: Any, row: Any,
) -> Any:  # fmt: skip
    """As ``visit_one`` for K = 8 components that see the same row."""
    f = lanes8(0.0)
    s = lanes8(0.0)
    top = lanes8(0.0)
    for q in range(start, stop):
        at = (q - start) * 8
        if not taken:
            j = np.int64(indices[q]) * 16
            m, v = load8(cells, j), load8(cells, j + 8)
            store(ms, at, m)
            store(vs, at, v)
        else:
            m, v = load8(ms, at), load8(vs, at)
        x = np.float64(data[q])
        own = x * x * v
        f = f + x * m
        s = s + own
        top = larger(top, own)
    store(mean, row * 8, f)
    store(variance, row * 8, s)
    if bits_of(magnitude(f) < math.inf) & bits_of(s < math.inf) != ALL8:
        return False
    if not learn:
        return True
    share, largest, g, r = row_series(f, s, y, w)
    wild: Any = 0
    if not taken and bits_of(share * top <= largest) == ALL8:
        for q in range(start, stop):
            at = (q - start) * 8
            j = np.int64(indices[q]) * 16
            m, v = moved(np.float64(data[q]), load8(ms, at), load8(vs, at), share, g, r)
            store(cells, j, m)
            store(cells, j + 8, v)
            wild |= bits_of(magnitude(m) <= huge) & bits_of(v >= tiny) ^ ALL8
        if wild != 0:
            put(cells, 8, indices, start, stop, ms, vs)
            return False
        return True
    for q in range(start, stop):
        at = (q - start) * 8
        x, m, v = np.float64(data[q]), load8(ms, at), load8(vs, at)
        xv = x * v
        u = share * (x * xv)
        gain, shrink = factors(u, g, r)
        if bits_of(u <= largest) == ALL8:
            m, v = m + xv * gain, v * shrink
        else:
            m, v = solve(x, m, v, gain, f, s, y, w, spare)
        wild |= bits_of(magnitude(m) <= huge) & bits_of(v >= tiny) ^ ALL8
        store(new_m, at, m)
        store(new_v, at, v)
    if wild != 0:
        return False
    for q in range(start, stop):
        at = (q - start) * 8
        j = np.int64(indices[q]) * 16
        store(cells, j, load8(new_m, at))
        store(cells, j + 8, load8(new_v, at))
    return True
