import math
import random
import struct

import numpy as np
import pytest

from gaussfold.engine.text.numbers import parse_number, scan_number
from gaussfold.engine.text.parse_vw import VW_ENDS


def read(text):
    buffer = np.frombuffer(bytearray(b"#" + text.encode() + b" " * 16), np.uint8)
    value, ok = parse_number(buffer, 1, 1 + len(text.encode()))
    scanned, stop, found = scan_number(buffer, 1, VW_ENDS)
    if not set(text) & set(" :|"):
        assert found == ok
        assert stop == 1 + len(text.encode())
        assert not ok or scanned == value
    return value if ok else None


def test_numbers_of_up_to_19_digits_are_read_as_python_reads_them():
    draw = random.Random(3)
    for _ in range(20_000):
        text = draw.choice(
            [
                lambda: repr(struct.unpack("d", struct.pack("Q", draw.getrandbits(64)))[0]),
                lambda: f"{draw.gauss(0, 10):.6g}",
                lambda: f"{draw.randint(0, 10**19 - 1)}e{draw.randint(-320, 300)}",
                lambda: f"-{draw.randint(0, 999999)}.{draw.randint(0, 999999):06d}",
            ]
        )()
        want = float(text)
        if math.isfinite(want) and (want == 0.0 or abs(want) > 1e-300):
            assert read(text) == want, text


def test_more_digits_cost_at_most_the_last_bit():
    draw = random.Random(4)
    for _ in range(2000):
        text = (
            "".join(draw.choice("0123456789") for _ in range(30))
            + "."
            + "".join(draw.choice("0123456789") for _ in range(20))
        )
        assert abs(read(text) - float(text)) <= math.ulp(float(text))


@pytest.mark.parametrize(
    "text", ["", ".", "-", "+", "1e", "1e+", "nan", "inf", "-inf", "1.2.3", "0x1", "1_0", "1e5e5", "--1", "é"]
)
def test_what_is_no_number_is_refused(text):
    assert read(text) is None


@pytest.mark.parametrize(
    ("text", "want"),
    [("1e309", math.inf), ("-1e400", -math.inf), ("1e-400", 0.0), (".5", 0.5), ("5.", 5.0), ("+3", 3.0)],
)
def test_edges(text, want):
    assert read(text) == want
