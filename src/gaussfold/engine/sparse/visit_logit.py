"""The default of sparse classification in lanes: a visit to one row, by the series and the solver of ``logit_series``.

K = 1: four features side by side. K = 4 or 8: the components of one feature side by side. A row is written back while
it is computed, and put back as it was if a number left the range of what is stored. Arrays are given by pointers
(``pointers.pointer``).
"""

from __future__ import annotations

import math

import numpy as np

from gaussfold.engine.compiled import compiled_fused
from gaussfold.engine.simd.lane_memory import (
    gather4,
    gather4_last,
    load4,
    load4_last,
    load_like,
    pick8,
    scatter4,
    scatter4_last,
    scatter8_at,
    store,
)
from gaussfold.engine.simd.lanes import (
    bits_of,
    first_half,
    first_lanes,
    join,
    lanes4,
    larger,
    magnitude,
    peak,
    second_half,
    total,
    width_of,
)
from gaussfold.engine.simd.pointers import offset
from gaussfold.engine.simd.types import Lanes, Pointer
from gaussfold.engine.sparse.cells import put
from gaussfold.engine.sparse.logit_series import (
    LONG_REACH,
    SHORT_REACH,
    gain_and_shrink,
    long_series,
    short_series,
    solve,
    update_long,
    update_short,
)

ALL4, ALL8 = 15, 255


# Long on purpose, in parameters and in branches: the pointers come one by one because a record of them would be taken
# apart again at every row, and all is one function because lanes stay in registers only inside one.
@compiled_fused
def visit_one(
    cells: Pointer, indices: Pointer, data: Pointer, start: int, stop: int, y: float, w: float, learn: bool, aged: bool,
    least_variance: float, largest_mean: float, xs: Pointer, ms: Pointer, vs: Pointer, old_m: Pointer, old_v: Pointer,
    gains: Pointer, room: Pointer, beyond: Pointer, mean: Pointer, variance: Pointer, row: int,
) -> bool:  # fmt: skip
    """Visit one row with K = 1: its marginal to ``mean[row]`` and ``variance[row]``; False if it cannot be learned.

    ``aged``: the cells are in ``ms`` and ``vs`` already, time applied; as they were they are kept in ``old_m`` and
    ``old_v``, which are ``ms`` and ``vs`` themselves otherwise. ``xs``, ``gains``, ``room`` (of `solve`) and
    ``beyond`` (the features that no series reaches) are working memory.
    """
    n = stop - start
    last = stop - 1
    full = (n - 1) & ~3  # all lanes but those of the last group, which has one to four features
    total4 = lanes4(0.0)
    spread4 = lanes4(0.0)
    top4 = lanes4(0.0)
    if n > 0:
        i = 0
        while i < full:
            m, v = gather4(cells, indices, start + i)
            store(old_m, i, m)
            store(old_v, i, v)
            if aged:
                m, v = load4(ms, i), load4(vs, i)
            x = load4(data, start + i)
            store(xs, i, x)
            own = x * x * v
            total4 = total4 + x * m
            spread4 = spread4 + own
            top4 = larger(top4, own)
            i += 4
        m, v = gather4_last(cells, indices, start + full, last)
        store(old_m, full, m)
        store(old_v, full, v)
        if aged:
            m, v = load4_last(ms, full, n - 1), load4_last(vs, full, n - 1)
            store(ms, full, m)
            store(vs, full, v)
        x = load4_last(data, start + full, last)
        store(xs, full, x)
        own = x * x * v
        total4 = total4 + first_lanes(n - full, x * m)
        spread4 = spread4 + first_lanes(n - full, own)
        top4 = larger(top4, own)
    f = total(total4)
    s = total(spread4)
    mean[row] = f
    variance[row] = s
    if not (abs(f) < math.inf and s < math.inf):
        return False
    if not learn or n == 0:
        return True
    share, steepness, g3, r3, rest = short_series(f, s, y, w)
    top = share * peak(top4) * steepness
    out_of_range = 0
    if top <= SHORT_REACH:
        i = 0
        while i < full:
            m, v = update_short(load4(xs, i), load4(ms, i), load4(vs, i), share, g3, r3)
            scatter4(cells, indices, start + i, m, v)
            out_of_range |= bits_of(magnitude(m) <= largest_mean) & bits_of(v >= least_variance) ^ ALL4
            i += 4
        m, v = update_short(load4(xs, full), load4(ms, full), load4(vs, full), share, g3, r3)
        scatter4_last(cells, indices, start + full, last, m, v)
        out_of_range |= bits_of(magnitude(m) <= largest_mean) & bits_of(v >= least_variance) ^ ALL4
    else:
        g, r = long_series(g3, r3, rest)
        n_beyond = 0
        i = 0
        while i <= full:
            x, m, v = load4(xs, i), load4(ms, i), load4(vs, i)
            xv = x * v
            u = share * (x * xv)
            gain, shrink = gain_and_shrink(u, g, r)
            m = m + xv * gain
            v = v * shrink
            if i < full:
                scatter4(cells, indices, start + i, m, v)
            else:
                scatter4_last(cells, indices, start + i, last, m, v)
            near = bits_of(steepness * u <= LONG_REACH)
            out_of_range |= near & (bits_of(magnitude(m) <= largest_mean) & bits_of(v >= least_variance) ^ ALL4)
            store(gains, i, gain)
            for lane in range(4):
                beyond[n_beyond] = min(i + lane, n - 1)  # lanes too many repeat the last feature
                n_beyond += 1 - (near >> lane & 1)
            i += 4
        for lane in range(8):
            beyond[n_beyond + lane] = beyond[0]  # the last group is filled up by repeating a feature
        for t in range(0, n_beyond, 8):
            x, m, v, gain = pick8(xs, beyond, t), pick8(ms, beyond, t), pick8(vs, beyond, t), pick8(gains, beyond, t)
            m, v = solve(x, m, v, gain, f, s, y, w, room)
            scatter8_at(cells, offset(indices, start), beyond, t, m, v)
            out_of_range |= bits_of(magnitude(m) <= largest_mean) & bits_of(v >= least_variance) ^ ALL8
    if out_of_range != 0:
        put(cells, 1, indices, start, stop, old_m, old_v)
        return False
    return True


@compiled_fused
def visit_several(
    zero: Lanes, cells: Pointer, indices: Pointer, data: Pointer, start: int, stop: int, y: float, w: float,
    learn: bool, aged: bool, least_variance: float, largest_mean: float, ms: Pointer, vs: Pointer, old_m: Pointer,
    old_v: Pointer, gains: Pointer, room: Pointer, beyond: Pointer, mean: Pointer, variance: Pointer, row: int,
) -> bool:  # fmt: skip
    """As ``visit_one`` for K components that see the same row, as many as ``zero`` has lanes."""
    k = width_of(zero)
    every = (1 << k) - 1
    f = zero + 0.0
    s = zero + 0.0
    top = zero + 0.0
    for q in range(start, stop):
        at = (q - start) * k
        if not aged:
            j = np.int64(indices[q]) * (2 * k)
            m, v = load_like(cells, j, zero), load_like(cells, j + k, zero)
            store(ms, at, m)
            store(vs, at, v)
        else:
            m, v = load_like(ms, at, zero), load_like(vs, at, zero)
        x = np.float64(data[q])
        own = x * x * v
        f = f + x * m
        s = s + own
        top = larger(top, own)
    store(mean, row * k, f)
    store(variance, row * k, s)
    if bits_of(magnitude(f) < math.inf) & bits_of(s < math.inf) != every:
        return False
    if not learn:
        return True
    share, steepness, g3, r3, rest = short_series(f, s, y, w)
    g, r = long_series(g3, r3, rest)
    out_of_range = 0
    if not aged and bits_of(steepness * (share * top) <= LONG_REACH) == every:
        for q in range(start, stop):
            at = (q - start) * k
            j = np.int64(indices[q]) * (2 * k)
            m, v = update_long(np.float64(data[q]), load_like(ms, at, zero), load_like(vs, at, zero), share, g, r)
            store(cells, j, m)
            store(cells, j + k, v)
            out_of_range |= bits_of(magnitude(m) <= largest_mean) & bits_of(v >= least_variance) ^ every
        if out_of_range != 0:
            put(cells, k, indices, start, stop, old_m, old_v)
            return False
        return True
    n_beyond = 0
    for q in range(start, stop):
        at = (q - start) * k
        j = np.int64(indices[q]) * (2 * k)
        if aged:
            store(old_m, at, load_like(cells, j, zero))
            store(old_v, at, load_like(cells, j + k, zero))
        x, m, v = np.float64(data[q]), load_like(ms, at, zero), load_like(vs, at, zero)
        xv = x * v
        u = share * (x * xv)
        gain, shrink = gain_and_shrink(u, g, r)
        store(gains, at, gain)
        m = m + xv * gain
        v = v * shrink
        store(cells, j, m)
        store(cells, j + k, v)
        near = bits_of(steepness * u <= LONG_REACH) == every
        beyond[n_beyond] = q - start
        n_beyond += not near
        out_of_range |= (bits_of(magnitude(m) <= largest_mean) & bits_of(v >= least_variance) ^ every) * near
    beyond[n_beyond] = beyond[0]  # two at a time; the last may be done twice
    for t in range(0, n_beyond, 2):
        q, p = beyond[t], beyond[t + 1]
        both_m, both_v = solve(
            join(zero + np.float64(data[start + q]), zero + np.float64(data[start + p])),
            join(load_like(ms, q * k, zero), load_like(ms, p * k, zero)),
            join(load_like(vs, q * k, zero), load_like(vs, p * k, zero)),
            join(load_like(gains, q * k, zero), load_like(gains, p * k, zero)), join(f, f), join(s, s), y, w, room,
        )  # fmt: skip
        in_range = bits_of(magnitude(both_m) <= largest_mean) & bits_of(both_v >= least_variance)
        out_of_range |= in_range ^ ((1 << 2 * k) - 1)
        j, i = np.int64(indices[start + q]) * (2 * k), np.int64(indices[start + p]) * (2 * k)
        store(cells, j, first_half(both_m))
        store(cells, j + k, first_half(both_v))
        store(cells, i, second_half(both_m))
        store(cells, i + k, second_half(both_v))
    if out_of_range != 0:
        put(cells, k, indices, start, stop, old_m, old_v)
        return False
    return True
