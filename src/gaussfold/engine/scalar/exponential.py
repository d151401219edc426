"""The exponential function and the logarithm as arithmetic, of plain numbers or of lanes, so that they vectorise.

e^t = 2^n e^r with n = round(t/log 2). Adding and subtracting 1.5·2⁵² rounds (AVX2 has no conversion from doubles
to 64-bit integers), and leaves n in the low bits of the sum, from where one shift moves it into the exponent.
e^r on |r| ≤ log(2)/2 is 1 + r + r² q(r), q of degree 9 interpolated at Chebyshev points: relative error 2e-17 before
rounding. The plain equivalent is ``math.exp``.

log a = n log 2 + log f with √½ ≤ f < √2, and with s = (f - 1)/(f + 1) log f = 2 artanh s = 2s + s³ q(s²), q of degree
6 as in fdlibm: relative error 3e-18 before rounding. The plain equivalents are ``math.log`` and ``math.log1p``.
"""

from __future__ import annotations

import math
from typing import Any

from gaussfold.engine.compiled import compiled_inline
from gaussfold.engine.simd.lanes import add_exponent, choose, larger, split_exponent

LOWEST = -708.0
"""Below this e^t leaves the normal numbers; arguments are clipped, so the smallest result is 3e-308."""
ROUNDER = 1.5 * 2.0**52
LOG2_E = 1.0 / math.log(2.0)
LN2_HIGH = 6.93147180369123816490e-01
LN2_LOW = 1.90821492927058770002e-10
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
L0, L1, L2, L3 = 6.666666666666735130e-01, 3.999999999940941908e-01, 2.857142874366239149e-01, 2.222219843214978396e-01
L4, L5, L6 = 1.818357216161805012e-01, 1.531383769920937332e-01, 1.479819860511658591e-01
NEAR_ONE = 1.0 - math.sqrt(0.5)


@compiled_inline
def exp_nonpositive(t: Any) -> Any:
    """e^t for t ≤ 0, to two units in the last place; no branch, no call."""
    t = larger(t, LOWEST)
    z = t * LOG2_E + ROUNDER
    n = z - ROUNDER
    r = (t - n * LN2_HIGH) - n * LN2_LOW
    r2 = r * r
    r4 = r2 * r2
    low = (C0 + C1 * r) + (C2 + C3 * r) * r2
    high = (C4 + C5 * r) + (C6 + C7 * r) * r2
    p = 1.0 + (r + r2 * (low + high * r4 + (C8 + C9 * r) * (r4 * r4)))
    return add_exponent(p, z)


@compiled_inline
def _log_of_ratio(top: Any, bottom: Any, n: Any) -> Any:
    """2 artanh(top/bottom) + n log 2."""
    s = top / bottom
    z = s * s
    z2 = z * z
    q = (L0 + L1 * z) + z2 * ((L2 + L3 * z) + z2 * ((L4 + L5 * z) + z2 * L6))
    return n * LN2_HIGH + (s * (2.0 + z * q) + n * LN2_LOW)


@compiled_inline
def log_positive(a: Any) -> Any:
    """Log a for normal numbers a > 0."""
    f, n = split_exponent(a)
    return _log_of_ratio(f - 1.0, f + 1.0, n)


@compiled_inline
def log_one_minus(t: Any) -> Any:
    """log(1 - t) for 0 ≤ t ≤ ½, also where 1 - t is 1 to rounding."""
    near = t <= NEAR_ONE
    return _log_of_ratio(
        choose(near, 0.0 - t, 1.0 - 2.0 * t), choose(near, 2.0 - t, 3.0 - 2.0 * t), choose(near, 0.0, -1.0)
    )
