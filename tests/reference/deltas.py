"""Changes of cells in fixed point, by exact fractions: the twin of ``gaussfold.engine.sparse.deltas``."""

from fractions import Fraction
from math import floor, log2


def half_exponent(variance):
    """⌊e/2⌋ where 1/v = f 2^e, ½ <= f < 1."""
    precision = Fraction(1.0 / variance)
    e = floor(log2(precision)) + 1
    while precision >= Fraction(2) ** e:
        e += 1
    while precision < Fraction(2) ** (e - 1):
        e -= 1
    return e // 2


def change(before, after):
    """Exponent, precision and shift gained by a cell (mean, variance): whole numbers of units."""
    h = half_exponent(before[1])
    precision = 1.0 / after[1] - 1.0 / before[1]
    shift = (1.0 / after[1]) * after[0] - (1.0 / before[1]) * before[0]
    return h, round(Fraction(precision) * Fraction(2) ** (20 - 2 * h)), round(Fraction(shift) * Fraction(2) ** (20 - h))


def summed(changes):
    """Changes by slot, added up: dictionaries of (h, precision, shift)."""
    out = {}
    for one in changes:
        for slot, (h, precision, shift) in one.items():
            known = out.get(slot, (h, 0, 0))
            assert known[0] == h
            out[slot] = (h, known[1] + precision, known[2] + shift)
    return out


def added(before, one):
    """A cell after a change."""
    h, precision, shift = one
    after = Fraction(1.0 / before[1]) + precision * Fraction(2) ** (2 * h - 20)
    moved = Fraction(1.0 / before[1]) * Fraction(before[0]) + shift * Fraction(2) ** (h - 20)
    return float(moved / after), float(1 / after)


def tempered(mean, variance, shards, least):
    """The base of one of so many shards."""
    precision = 1.0 / variance
    return mean, 1.0 / max(precision / shards, min(precision, least))
