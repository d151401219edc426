"""What rows have added to cells, as whole numbers: sums of these do not depend on their order, to the last bit.

A cell's natural parameters are its precision 1/v and its shift m/v; what a worker learns is their change since the
belief it began with. Floating-point sums of such changes differ with the order in which workers finish. So they are
written in fixed point, in units that depend on the cell they began with alone, hence are the same for all workers:
with ``1/v = f · 2^e``, ``½ <= f < 1`` and ``h = ⌊e/2⌋`` (so that 2^h is about the square root of the precision)

    unit of precision 2^(2h - 20),    unit of shift 2^(h - 20),

a millionth of what was known, and of a standard deviation. That leaves a factor of 2^42 above it; what does not fit is
told, never cut. Reference twin: ``tests/reference/deltas.py``.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from gaussfold.engine.compiled import compiled, compiled_inline

BITS = 20
"""Binary digits after the point."""
MANY = 2.0**BITS
LIMIT = 2.0**62
"""No number may be as large: the sum of two that are smaller is one of 64 bits."""


class FixedCells(NamedTuple):
    """Changes of some cells: the slots in increasing order, then one number per slot and component."""

    slots: np.ndarray
    """(n,), uint32."""
    exponent: np.ndarray
    """(n, K), int16: h above."""
    precision: np.ndarray
    """(n, K), int64."""
    shift: np.ndarray
    """(n, K), int64."""


@compiled
def list_changed(
    cells: np.ndarray, base: np.ndarray, marked: np.ndarray, page: int, start: int, stop: int, changed: np.ndarray
) -> int:
    """List the cells from ``start`` to ``stop`` that differ from the base's, on marked pages of 2^``page`` cells.

    ``base`` has a cell each, or one for all. Returns how many; ``changed`` takes a place more.
    """
    count = 0
    own = base.shape[0] > 1
    for p in range(start >> page, (stop - 1 >> page) + 1):
        if marked[p]:
            for j in range(max(start, p << page), min(stop, (p + 1) << page)):
                b = j if own else 0
                differs = False
                for c in range(cells.shape[2]):
                    differs |= (cells[j, 0, c] != base[b, 0, c]) | (cells[j, 1, c] != base[b, 1, c])
                changed[count] = j
                count += differs
    return count


@compiled
def mark_pages(marked: np.ndarray, page: int, indices: np.ndarray) -> None:
    """Mark the pages of 2^``page`` cells that these features lie on."""
    for q in range(indices.size):
        marked[np.int64(indices[q]) >> page] = True


@compiled
def temper(cells: np.ndarray, least: np.ndarray, shards: float) -> None:
    """1/v ← max(1/(v s), min(1/v, least)), the means kept; ``least`` is a precision per component."""
    for j in range(cells.shape[0]):
        for c in range(cells.shape[2]):
            precision = 1.0 / np.float64(cells[j, 1, c])
            wanted = max(precision / shards, min(precision, least[c]))
            if wanted < precision:
                cells[j, 1, c] = 1.0 / wanted


class _Bits(NamedTuple):
    """The same two words as numbers and as whole numbers: exponents are read and written much faster as bits."""

    number: np.ndarray
    whole: np.ndarray


@compiled_inline
def _room() -> _Bits:
    number = np.zeros(2)
    return _Bits(number, number.view(np.int64))


@compiled_inline
def _half_exponent(precision: float, bits: _Bits) -> int:
    """The h of a precision."""
    bits.number[0] = precision
    e: int = (bits.whole[0] >> 52) - 1022
    if e == -1022:  # too small to have all digits
        _, e = math.frexp(precision)
    return e >> 1


@compiled_inline
def _write_fixed(cells: np.ndarray, i: int, base: np.ndarray, b: int, out: FixedCells, n: int, bits: _Bits) -> bool:
    """What cell i has gained over the base's cell b to place n; whether it fits."""
    for c in range(cells.shape[2]):
        before = 1.0 / np.float64(base[b, 1, c])
        after = 1.0 / np.float64(cells[i, 1, c])
        h = _half_exponent(before, bits)
        bits.whole[1] = (1023 - h) << 52
        scale = bits.number[1]  # 2^-h: a power of two, no digit is lost by it
        gained = (after - before) * scale * (scale * MANY)
        moved = (after * np.float64(cells[i, 0, c]) - before * np.float64(base[b, 0, c])) * (scale * MANY)
        if not (abs(gained) < LIMIT and abs(moved) < LIMIT):
            return False
        out.exponent[n, c] = h
        out.precision[n, c] = np.int64(np.rint(gained))
        out.shift[n, c] = np.int64(np.rint(moved))
    return True


@compiled
def to_fixed(cells: np.ndarray, base: np.ndarray, out: FixedCells) -> int:
    """What cells have gained over the base's, cell by cell; the first that does not fit, or -1."""
    bits = _room()
    for t in range(cells.shape[0]):
        if not _write_fixed(cells, t, base, t, out, t, bits):
            return t
    return -1


@compiled
def note_slots(met: np.ndarray, indices: np.ndarray, slots: np.ndarray, count: int) -> int:
    """List features that rows meet for the first time; ``slots`` has ``count`` of them, and is long enough."""
    for q in range(indices.size):
        j = indices[q]
        if not met[j]:
            met[j] = True
            slots[count] = j
            count += 1
    return count


@compiled
def list_met(met: np.ndarray, slots: np.ndarray) -> int:
    """List the features that were met in increasing order, and count them; it takes a place more."""
    count = 0
    for j in range(met.size):
        slots[count] = j  # no branch: it would often be guessed wrong
        count += met[j]
    return count


@compiled
def take_changes(
    cells: np.ndarray, base: np.ndarray, slots: np.ndarray, met: np.ndarray, out: FixedCells
) -> tuple[int, int]:
    """Write down what the cells of these slots, in order, have gained, and make them the base's again, not met.

    ``base`` has a cell each, or one for all; ``slots`` are int64. Returns how many differed, and the first slot that
    does not fit, or -1.
    """
    own = base.shape[0] > 1
    bits = _room()
    n = 0
    for t in range(slots.size):
        j = int(slots[t])
        b = j if own else 0
        met[j] = False
        differs = False
        for c in range(cells.shape[2]):
            differs |= (cells[j, 0, c] != base[b, 0, c]) | (cells[j, 1, c] != base[b, 1, c])
        if differs:
            if not _write_fixed(cells, j, base, b, out, n, bits):
                return n, j
            out.slots[n] = j
            n += 1
            for c in range(cells.shape[2]):
                cells[j, 0, c] = base[b, 0, c]
                cells[j, 1, c] = base[b, 1, c]
    return n, -1


@compiled_inline
def _copy(source: FixedCells, i: int, out: FixedCells, n: int) -> None:
    out.slots[n] = source.slots[i]
    for c in range(out.exponent.shape[1]):
        out.exponent[n, c] = source.exponent[i, c]
        out.precision[n, c] = source.precision[i, c]
        out.shift[n, c] = source.shift[i, c]


@compiled_inline
def _add(a: FixedCells, i: int, b: FixedCells, j: int, out: FixedCells, n: int) -> tuple[bool, bool]:
    """Add up the changes of one slot; whether both are of one base, and whether the sum fits."""
    out.slots[n] = a.slots[i]
    alike, fits = True, True
    for c in range(out.exponent.shape[1]):
        alike = alike and int(a.exponent[i, c]) == int(b.exponent[j, c])
        precision = a.precision[i, c] + b.precision[j, c]
        shift = a.shift[i, c] + b.shift[j, c]
        fits = fits and abs(float(precision)) < LIMIT and abs(float(shift)) < LIMIT
        out.exponent[n, c] = a.exponent[i, c]
        out.precision[n, c] = precision
        out.shift[n, c] = shift
    return alike, fits


@compiled
def merge_fixed(a: FixedCells, b: FixedCells, out: FixedCells) -> tuple[int, bool, bool]:
    """Add up two changes slot by slot.

    Returns how many slots there are then, whether both are of one base and whether the sums fit; it ends at the first
    slot of which that is not so.
    """
    i, j, n = 0, 0, 0
    while i < a.slots.size and j < b.slots.size:
        if a.slots[i] < b.slots[j]:
            _copy(a, i, out, n)
            i += 1
        elif b.slots[j] < a.slots[i]:
            _copy(b, j, out, n)
            j += 1
        else:
            alike, fits = _add(a, i, b, j, out, n)
            if not (alike and fits):
                return n, alike, fits
            i += 1
            j += 1
        n += 1
    for rest in range(i, a.slots.size):
        _copy(a, rest, out, n)
        n += 1
    for rest in range(j, b.slots.size):
        _copy(b, rest, out, n)
        n += 1
    return n, True, True


@compiled
def add_fixed(cells: np.ndarray, change: FixedCells, limits: tuple[float, float]) -> int:
    """Add a change to cells, which stand in the order of its slots; the first that is no Gaussian then, or -1."""
    for t in range(cells.shape[0]):
        for c in range(cells.shape[2]):
            h = int(change.exponent[t, c])
            before = 1.0 / cells[t, 1, c]
            precision = before + math.ldexp(np.float64(change.precision[t, c]), 2 * h - BITS)
            shift = before * cells[t, 0, c] + math.ldexp(np.float64(change.shift[t, c]), h - BITS)
            v = 1.0 / precision
            if not (limits[0] <= v <= limits[1] and abs(shift * v) <= limits[1]):
                return t
            cells[t, 0, c] = shift * v
            cells[t, 1, c] = v
    return -1
