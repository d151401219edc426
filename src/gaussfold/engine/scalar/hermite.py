"""Nodes and weights of Gauss and Hermite, of a few sizes one after the other."""

from __future__ import annotations

import math

import numpy as np

HERMITE_SIZES = (3, 5, 7, 10, 14, 20)
HERMITE_STARTS = (0, 3, 8, 15, 25, 39, 59)
HERMITE_REACHES = (0.0013, 0.015, 0.038, 0.071, 0.104, 0.133)
"""Up to what ratio of s to the likelihood's length each size integrates l' and l'' to rounding: the error of n points,
for singularities at distance L, is (2n + 1) n! (s/L)^2n of l''."""
HERMITE_NODES = np.concatenate([np.polynomial.hermite_e.hermegauss(n)[0] for n in HERMITE_SIZES])
HERMITE_WEIGHTS = np.concatenate(
    [np.polynomial.hermite_e.hermegauss(n)[1] / math.sqrt(2.0 * math.pi) for n in HERMITE_SIZES]
)
HERMITE_HALF_SQUARES = 0.5 * HERMITE_NODES**2
