"""Decimal numbers from bytes. Reference twin: Python's ``float``.

Up to 15 digits and small powers of ten are exact in doubles (one multiplication or division, correctly rounded).
The rest is computed with twice the digits of a double, which rounds as ``float`` does up to 19 digits; further ones
are dropped, and then the last bit may differ.
"""

from __future__ import annotations

import numpy as np

from gaussfold.engine.compiled import compiled
from gaussfold.engine.text.byte_scan import digits_value, load64, without_point

_LOWEST, _HIGHEST = -360, 310


def _power_table() -> tuple[np.ndarray, np.ndarray]:
    """10^k = (high + low) 2^e with 1 <= high < 2: rows (high, low), and e. Python divides whole numbers exactly."""
    parts = np.empty((_HIGHEST - _LOWEST + 1, 2))
    exponents = np.empty(len(parts), np.int64)
    for row, k in enumerate(range(_LOWEST, _HIGHEST + 1)):
        over, under = 10 ** max(k, 0), 10 ** max(-k, 0)
        e = over.bit_length() - under.bit_length()
        if over << max(-e, 0) < under << max(e, 0):
            e -= 1
        over, under = over << max(-e, 0), under << max(e, 0)
        high = over / under
        rest = (over << 52) - int(high * 2.0**52) * under
        parts[row] = high, rest / (under << 52)
        exponents[row] = e
    return parts, exponents


_PARTS, _EXPONENTS = _power_table()
_EXACT = 10.0 ** np.arange(23)
_SPLIT = 134217729.0  # 2^27 + 1
_FULL = np.uint64(1844674407370955160)  # one more digit still fits into 64 bits


@compiled
def _product(a: float, b: float) -> tuple[float, float]:
    """A b = p + e exactly (Dekker)."""
    p = a * b
    c = _SPLIT * a
    a1 = c - (c - a)
    a2 = a - a1
    c = _SPLIT * b
    b1 = c - (c - b)
    b2 = b - b1
    return p, ((a1 * b1 - p) + a1 * b2 + a2 * b1) + a2 * b2


@compiled
def _scale(digits: np.uint64, power: int) -> float:
    """Digits times a power of ten, rounded once."""
    if digits == np.uint64(0) or power < _LOWEST:
        return 0.0
    if power > _HIGHEST:
        return np.inf
    top = float(np.int64(digits >> np.uint64(32))) * 4294967296.0
    bottom = float(np.int64(digits & np.uint64(0xFFFFFFFF)))
    high = top + bottom
    low = bottom - (high - top)
    row = power - _LOWEST
    p, e = _product(high, _PARTS[row, 0])
    e += high * _PARTS[row, 1] + low * _PARTS[row, 0]
    value = p + e
    shift = _EXPONENTS[row]
    half = shift // 2  # two steps: 2^shift itself may be out of range
    return float(value * 2.0**half * 2.0 ** (shift - half))


@compiled
def _value(digits: np.uint64, power: int) -> float:
    """Digits times a power of ten: one operation where both are exact."""
    if digits <= np.uint64(9007199254740992) and -22 <= power <= 22:
        value = float(np.int64(digits))
        return float(value / _EXACT[-power] if power < 0 else value * _EXACT[power])
    return _scale(digits, power)


@compiled
def _is_sign(byte: int) -> bool:
    return byte == 43 or byte == 45


@compiled
def _mantissa(buffer: np.ndarray, at: int, stop: int) -> tuple[np.uint64, int, int, int]:
    """Digits with a point among them: as a whole number, times which power of ten, how many, and where they end."""
    digits = np.uint64(0)
    power = 0
    seen = 0
    point = False
    while at < stop:
        c = buffer[at]
        if 48 <= c <= 57:
            seen += 1
            if digits < _FULL:
                digits = np.uint64(digits * np.uint64(10) + np.uint64(c - 48))
                if point:
                    power -= 1
            elif not point:
                power += 1
        elif c == 46 and not point:
            point = True
        else:
            break
        at += 1
    return digits, power, seen, at


@compiled
def _exponent(buffer: np.ndarray, at: int, stop: int) -> tuple[int, bool]:
    """The power of ten after an "e", and whether it is one."""
    down = False
    if at < stop and _is_sign(buffer[at]):
        down = buffer[at] == 45
        at += 1
    ok = at < stop
    exponent = 0
    while at < stop:
        c = buffer[at]
        if c < 48 or c > 57:
            return 0, False
        if exponent < 100000:
            exponent = exponent * 10 + int(c) - 48
        at += 1
    return (-exponent if down else exponent), ok


@compiled
def parse_number(buffer: np.ndarray, start: int, stop: int) -> tuple[float, bool]:
    """Return the number in ``buffer[start:stop]`` and whether it is one; inf and nan are not."""
    at = start
    negative = False
    if at < stop and _is_sign(buffer[at]):
        negative = buffer[at] == 45
        at += 1
    digits, power, seen, at = _mantissa(buffer, at, stop)
    if seen == 0:
        return 0.0, False
    if at < stop:
        if buffer[at] != 101 and buffer[at] != 69:
            return 0.0, False
        exponent, ok = _exponent(buffer, at + 1, stop)
        if not ok:
            return 0.0, False
        power += exponent
    value = _value(digits, power)
    return (-value if negative else value), True


@compiled
def short_number(buffer: np.ndarray, start: int, stop: int) -> tuple[float, bool]:
    """The number in ``buffer[start:stop]`` if it has up to eight bytes, a minus before them, and no exponent.

    All bytes at once, without a loop; whether it is such a number is told, and if not, `parse_number` knows.
    """
    negative = buffer[start] == 45
    start += negative
    length = stop - start
    digits, count, decimals = without_point(load64(buffer, start), length)
    number, ok = digits_value(digits, count)
    if not ok or length > 8:
        return 0.0, False
    value = float(np.int64(number)) / _EXACT[decimals]
    return (-value if negative else value), True


@compiled
def _scan_digits(buffer: np.ndarray, at: int, digits: int) -> tuple[int, int, int]:
    """Append decimal digits to a whole number; returns it, where they end, and the byte there less 48."""
    c = int(np.int64(buffer[at])) - 48
    while 0 <= c <= 9:
        digits = digits * 10 + c
        at += 1
        c = int(np.int64(buffer[at])) - 48
    return digits, at, c


@compiled
def scan_number(buffer: np.ndarray, start: int, ends: np.ndarray) -> tuple[float, int, bool]:
    """Read a number without knowing where it ends: its value, its end, and whether it is one.

    ``ends`` marks the bytes (of 256) that may follow a number.
    """
    at = start
    sign = 1.0
    if buffer[at] == 45:
        sign = -1.0
        at += 1
    begin = at
    digits, at, c = _scan_digits(buffer, at, 0)
    count = at - begin
    decimals = 0
    if c == -2:
        begin = at + 1
        digits, at, c = _scan_digits(buffer, begin, digits)
        decimals = at - begin
    if 0 < count + decimals <= 15 and ends[buffer[at]]:
        return sign * (float(digits) / _EXACT[decimals]), at, True
    at = start  # long, with an exponent, or no number at all
    while not ends[buffer[at]]:
        at += 1
    value, ok = parse_number(buffer, start, at)
    return value, at, ok
