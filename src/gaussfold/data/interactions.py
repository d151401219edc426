"""Which namespaces are multiplied with which: ``ab``, ``::``, ``site,advertiser``."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from gaussfold.data.strings import murmur_of
from gaussfold.engine.text.row_memory import ANY, FIRST_BYTE, NAME_HASH


def compile_interactions(pairs: Iterable[str]) -> np.ndarray:
    """Translate pairs for the parsers: rows of (kind, key) of the left side, then of the right one.

    Parameters
    ----------
    pairs
        Two characters are the first letters of two namespaces, as in Vowpal Wabbit; ``:`` stands for any.
        Full names go with a comma, ``site,advertiser``; a side may be ``:``.

    Examples
    --------
    >>> compile_interactions(["ab", ":c"])
    array([[ 1, 97,  1, 98],
           [ 0,  0,  1, 99]])
    """
    rows = []
    for pair in pairs:
        if "," in pair:
            left, _, right = pair.partition(",")
            sides = [_by_name(left, pair), _by_name(right, pair)]
        elif len(pair) == 2 and pair.isascii():
            sides = [(ANY, 0) if letter == ":" else (FIRST_BYTE, ord(letter)) for letter in pair]
        else:
            msg = (
                f"interact={pair!r}: allowed are two letters (first letters of two namespaces, ':' for any) or "
                "two names with a comma, such as 'site,advertiser'"
            )
            raise ValueError(msg)
        rows.append([*sides[0], *sides[1]])
    return np.array(rows, np.int64).reshape(len(rows), 4)


def compile_spaces(names: Iterable[str]) -> np.ndarray:
    """Translate namespaces for the parsers: rows of (kind, key); one character is the first of a name.

    Examples
    --------
    >>> compile_spaces(["a", " "])
    array([[ 1, 97],
           [ 1, 32]])
    """
    rows = [
        (FIRST_BYTE, ord(name)) if len(name) == 1 and name.isascii() else (NAME_HASH, murmur_of(name)) for name in names
    ]
    return np.array(rows, np.int64).reshape(len(rows), 2)


def _by_name(name: str, pair: str) -> tuple[int, int]:
    if not name or "," in name:
        msg = f"interact={pair!r}: a name is missing or there is a comma too many; write 'site,advertiser'"
        raise ValueError(msg)
    return (ANY, 0) if name == ":" else (NAME_HASH, murmur_of(name))
