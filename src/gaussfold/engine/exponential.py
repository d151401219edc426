"""The exponential function as arithmetic, so that loops around it vectorise.

e^t = 2^n e^r with n = round(t/log 2). Adding and subtracting 1.5·2⁵² rounds (AVX2 has no conversion from doubles
to 64-bit integers), and leaves n in the low bits of the sum, from where one shift moves it into the exponent.
e^r on |r| ≤ log(2)/2 is 1 + r + r² q(r), q of degree 9 interpolated at Chebyshev points: relative error 2e-17 before
rounding. The plain equivalent is ``math.exp``.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from gaussfold.engine.compiled import compiled_inline

LOWEST = -708.0
"""Below this e^t leaves the normal numbers; arguments are clipped, so the smallest result is 3e-308."""
ROUNDER = 1.5 * 2.0**52
LOG2_E = 1.0 / math.log(2.0)
LN2_HIGH = 6.93147180369123816490e-01
LN2_LOW = 1.90821492927058770002e-10
EXPONENT_BITS = np.int64(52)
C0, C1, C2, C3, C4 = (
    0.5000000000000001,
    0.16666666666666669,
    0.04166666666662399,
    0.008333333333330051,
    0.0013888888917281794,
)
C5, C6, C7, C8, C9 = (
    0.00019841269863105968,
    2.480152119021773e-05,
    2.7557268378684192e-06,
    2.7620138719733994e-07,
    2.5100424157005067e-08,
)


@compiled_inline
def exp_nonpositive(t: Any) -> Any:
    """e^t for t ≤ 0, to two units in the last place; no branch, no call."""
    t = max(t, LOWEST)
    z = t * LOG2_E + ROUNDER
    n = z - ROUNDER
    r = (t - n * LN2_HIGH) - n * LN2_LOW
    r2 = r * r
    r4 = r2 * r2
    low = (C0 + C1 * r) + (C2 + C3 * r) * r2
    high = (C4 + C5 * r) + (C6 + C7 * r) * r2
    p = 1.0 + (r + r2 * (low + high * r4 + (C8 + C9 * r) * (r4 * r4)))
    bits = np.float64(p).view(np.int64) + (np.float64(z).view(np.int64) << EXPONENT_BITS)
    return np.int64(bits).view(np.float64)
