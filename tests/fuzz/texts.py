"""Pieces that the texts of the targets are made of: numbers as people and programs write them, names, ends of lines."""

from __future__ import annotations

import numpy as np

_NUMBERS = (
    "1", "0", "-1", "+1", "1.0", "2", "0.5", "-.5", "5.", "1e3", "1E-3", "1e30", "-1e30", "1e31", "1e308", "1e400",
    "nan", "inf", "-inf", "NaN", "", "-", "+", ".", "e", "1e", "1e+", "0x1", "1_0", "1,0", "007", "0.1e-320",
    "3.141592653589793238462643383279", "12345678901234567890", "9007199254740993", "1e22", "1e23", "--1", "1-1", "--",
)  # fmt: skip
_NAMES = (
    "a", "b", "x", "y1", "age", "user", "7", "007", "12345678", "123456789a", "99999999999999999999", "4294967296",
    "averyveryverylongfeaturename", "é", "日本", "\u0663", "#", "'", "a'b", "a\"b", "a,b", "_", "^", "*", "exactly8",
    "?",
)  # fmt: skip


_ODD = (
    b"\0", b'"', b"\r", b"|", b":", b"\xff", b"\xdc", b"\xef\xbb\xbf", b"\x0b", b"\x85", b"#", b" ", b"\t", b"\n",
)  # fmt: skip


def pick(rng: np.random.Generator, choices: tuple[str, ...]) -> str:
    """One of several texts."""
    return choices[int(rng.integers(len(choices)))]


def number(rng: np.random.Generator) -> str:
    """A number, mostly one that may be read."""
    kind = rng.random()
    if kind < 0.4:
        return str(int(rng.integers(-20, 20)))
    if kind < 0.7:
        return repr(round(float(rng.normal()), int(rng.integers(1, 17))))
    if kind < 0.8:
        return repr(float(rng.normal() * 10.0 ** rng.integers(-40, 40)))
    return pick(rng, _NUMBERS)


def label(rng: np.random.Generator) -> str:
    """A label, mostly one that is allowed."""
    return pick(rng, ("1", "-1", "0", "1", "0", "+1", "1.0")) if rng.random() < 0.9 else number(rng)


def name(rng: np.random.Generator) -> str:
    """The name of a feature, a namespace or a column."""
    return pick(rng, _NAMES) if rng.random() < 0.6 else f"f{int(rng.integers(0, 300))}"


def line_end(rng: np.random.Generator) -> str:
    """The end of a line, now and then with nothing on another."""
    return "\n" if rng.random() < 0.9 else pick(rng, ("\r\n", "\n\n", " \n", "\n\r\n", "\r\r\n", "\t\n"))


def noise(rng: np.random.Generator, text: bytes, often: float = 0.15) -> bytes:
    """The text, now and then with bytes in it that nobody meant."""
    if not text or rng.random() > often:
        return text
    found = bytearray(text)
    for _ in range(int(rng.integers(1, 4))):
        at = int(rng.integers(len(found)))
        odd = (
            b"\0",
            b'"',
            b"\r",
            b"|",
            b":",
            b"\xff",
            b"\xdc",
            b"\xef\xbb\xbf",
            b"\x0b",
            b"\x85",
            b"#",
            b" ",
            b"\t",
            b"\n",
        )
        found[at : at + int(rng.integers(0, 2))] = odd[int(rng.integers(len(odd)))]
    return bytes(found)
