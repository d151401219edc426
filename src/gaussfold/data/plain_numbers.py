"""Numbers as people write them, in the formats that are text."""

from __future__ import annotations


def number_text(value: float) -> str:
    """Write a finite number: whole ones without a point, any other with all its digits.

    >>> number_text(3.0), number_text(0.1)
    ('3', '0.1')
    """
    return repr(int(value)) if value == int(value) and abs(value) < 1e15 else repr(value)


def label_text(label: float) -> str:
    """Write 1 and 0 as 1 and -1, any other label as it is."""
    return {1.0: "1", 0.0: "-1"}.get(label) or number_text(label)


def is_float(word: bytes) -> bool:
    """Whether Python would read the word as a number."""
    try:
        float(word)
    except ValueError:
        return False
    return True
