"""Weights for ``scalar.jets``: of averages, and of log p, from four derivatives at three or five places.

They solve small systems of whole numbers, exactly, and are rounded once.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

KNOWN = 4
"""Derivatives at each place."""
AVERAGES = 8
UNIT = 256
PLACES = ((0, -641, 641), (0, -498, 498, -1052, 1052))
"""In standard deviations / 256, the middle first: Turán's, rounded. The weights are made for these very numbers."""
STARTS = (0, 3, 8)
SUM_NODES, SUM_WEIGHTS = np.polynomial.hermite_e.hermegauss(7)
SUM_NODES = np.delete(SUM_NODES, 3)  # the middle, from where log p is measured
SUM_WEIGHTS = SUM_WEIGHTS / SUM_WEIGHTS.sum()
MANY_NODES, MANY_WEIGHTS = np.polynomial.hermite_e.hermegauss(14)
MANY_WEIGHTS = MANY_WEIGHTS / MANY_WEIGHTS.sum()
FLAT = (0.03, 0.008, 2e-3, 2e-4)
"""Up to where seven nodes suffice: of the square of s times the first derivative, of s² times the second, and so on."""
NEARLY_FLAT = (0.5, 0.1, 0.03, 0.005)
"""The same for fourteen."""
REACHES = (0.030, 0.077)
"""Up to what ratio of the standard deviation to the likelihood's length: for n places and singularities at distance L
the relative error of E l'' is (4n + 1) E π(z)⁴ (s/L)^4n with π the polynomial whose roots they are; 1e-14 here."""


def _gaussian_moment(k: int) -> int:
    return 0 if k % 2 else math.prod(range(3, k, 2))


def _inverse(rows: list[list[int]], scale: int) -> tuple[list[list[int]], int]:
    """``scale`` times the inverse of a matrix of whole numbers, as whole numbers and their common denominator.

    Gauss and Jordan without fractions (Bareiss): every division comes out even.
    """
    n = len(rows)
    full = [row + [scale * int(i == j) for j in range(n)] for i, row in enumerate(rows)]
    last = 1
    for k in range(n):
        swap = next(i for i in range(k, n) if full[i][k] != 0)
        full[k], full[swap] = full[swap], full[k]
        pivot = full[k]
        for i in range(n):
            if i != k:
                lead = full[i][k]
                full[i] = [(x * pivot[k] - lead * y) // last for x, y in zip(full[i], pivot, strict=True)]
        last = pivot[k]
    return [row[n:] for row in full], last


def _interpolation(
    places: tuple[int, ...], first: int
) -> list[tuple[range, list[tuple[int, int]], list[list[int]], int]]:
    """Coefficients of the polynomial of l^(first), from the data (place, derivative from ``first`` on).

    Even powers see the even part of an even derivative and the odd part of an odd one, odd powers the others: two
    systems of half the size, for the places that are not negative. Each comes as its powers, its data, a matrix and a
    denominator.
    """
    known = KNOWN + 1 - first
    size = known * len(places)
    systems = []
    for parity in (0, 1):
        data = [
            (i, d) for i, k in enumerate(places) for d in range(known) if k > 0 or (k == 0 and (d + parity) % 2 == 0)
        ]
        powers = range(parity, size, 2)
        rows = [
            [math.perm(p, d) * places[i] ** (p - d) * UNIT ** (size - p + d) if p >= d else 0 for p in powers]
            for i, d in data
        ]
        matrix, denominator = _inverse(rows, UNIT**size)
        systems.append((powers, data, matrix, denominator))
    return systems


def _spread(out: np.ndarray, places: tuple[int, ...], parity: int, place: int, column: int, weight: float) -> None:
    """Enter the weight of one datum: half of it, with its sign, at the mirrored place, which stands before this one."""
    if places[place] == 0:
        out[place, column] += weight
        return
    out[place, column] += 0.5 * weight
    out[place - 1, column] += 0.5 * weight * (-1.0 if parity else 1.0)


def _average(among: range, coefficients: list[int], order: int) -> int:
    """E of the derivative of that order of a polynomial with these powers."""
    return sum(
        c * math.perm(p, order) * _gaussian_moment(p - order)
        for p, c in zip(among, coefficients, strict=True)
        if p >= order
    )


def _columns(places: tuple[int, ...], first: int) -> Iterator[tuple[range, int, int, int, list[int], int]]:
    """Of `_interpolation`, datum by datum: powers, parity, place, derivative, coefficients and their denominator."""
    for among, data, matrix, denominator in _interpolation(places, first):
        for column, (i, d) in enumerate(data):
            yield among, (d + among.start) % 2, i, d, [row[column] for row in matrix], denominator


def _tables() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """By place and derivative: weights of the averages, and of log p at the nodes of a sum, relative to the middle."""
    averages = np.zeros((STARTS[-1], AVERAGES, KNOWN))
    powers = np.zeros((STARTS[-1], KNOWN * len(PLACES[-1]), KNOWN))
    for start, places in zip(STARTS, PLACES, strict=False):
        rows = slice(start, start + len(places))
        for among, parity, i, d, found, denominator in _columns(places, 1):
            for k in (1, *range(3, AVERAGES + 1)):
                _spread(averages[rows, k - 1], places, parity, i, d, _average(among, found, k - 1) / denominator)
            for p, c in zip(among, found, strict=True):
                _spread(powers[rows, p], places, parity, i, d, c / (denominator * (p + 1)))
        for among, parity, i, d, found, denominator in _columns(places, 2):
            _spread(averages[rows, 1], places, parity, i, d + 1, _average(among, found, 0) / denominator)
    degrees = np.arange(1, powers.shape[1] + 1)
    few, many = (np.einsum("np,ipd->ind", nodes[:, None] ** degrees, powers) for nodes in (SUM_NODES, MANY_NODES))
    return averages, few, many


NODES = np.array([k / UNIT for places in PLACES for k in places])
AVERAGE_WEIGHTS, VALUE_WEIGHTS, MANY_VALUES = _tables()
