"""Names of slots, from where the parser saw them first."""

from __future__ import annotations

import re
from typing import NamedTuple

import numpy as np

from gaussfold.data.reading import Column

_END = re.compile(rb"[ \t\r\n:|]")


class Named(NamedTuple):
    """A slot seen for the first time: the feature's name, and its namespace or column (of a pair: ``a*b``, sorted)."""

    slot: int
    name: str
    space: str


def name_slots(named: np.ndarray, buffer: bytearray, columns: tuple[Column, ...] | None) -> list[Named]:
    """Slots and names: ``namespace^feature``, ``column=value``, and ``left*right`` for a pair."""
    names = []
    for slot, space, start, stop, space2, start2, stop2 in named.tolist():
        side = _side(space, start, stop, buffer, columns)
        other = _side(space2, start2, stop2, buffer, columns) if start2 >= 0 else None
        names.append(Named(slot, *side) if other is None else Named(slot, *pair_name(side, other)))
    return names


def pair_name(left: tuple[str, str], right: tuple[str, str]) -> tuple[str, str]:
    """Name and namespace of a product of two features; the order of the namespaces does not matter."""
    return f"{left[0]}*{right[0]}", "*".join(sorted((left[1], right[1])))


def _side(space: int, start: int, stop: int, buffer: bytearray, columns: tuple[Column, ...] | None) -> tuple[str, str]:
    raw = bytes(buffer[start : max(start, stop)])
    if space <= -2:
        column = columns[-2 - space].name if columns is not None else f"c{-2 - space}"
        if stop < start:
            return column, column
        value = raw.rstrip(b"\r").decode("utf-8", "replace")
        if value[:1] == '"':
            value = value[1:-1].replace('""', '"')
        return f"{column}={value}", column
    name = raw.decode("utf-8", "replace")
    if space < 0:
        return name, ""
    end = _END.search(buffer, space)
    namespace = bytes(buffer[space : end.start() if end else None]).decode("utf-8", "replace")
    return f"{namespace}^{name}" if namespace else name, namespace
