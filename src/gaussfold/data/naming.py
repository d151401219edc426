"""Names of slots, from where the parser saw them first."""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from gaussfold.data.reading import Column

_END = re.compile(rb"[ \t\r\n:|]")


def name_slots(
    named: np.ndarray[Any, Any], buffer: bytearray, columns: tuple[Column, ...] | None
) -> list[tuple[int, str]]:
    """Slots and names: ``namespace^feature``, ``column=value``, and ``left*right`` for a pair."""
    names = []
    for slot, space, start, stop, space2, start2, stop2 in named.tolist():
        name = _side(space, start, stop, buffer, columns)
        if start2 >= 0:
            name += "*" + _side(space2, start2, stop2, buffer, columns)
        names.append((slot, name))
    return names


def _side(space: int, start: int, stop: int, buffer: bytearray, columns: tuple[Column, ...] | None) -> str:
    raw = bytes(buffer[start : max(start, stop)])
    if space <= -2:
        column = columns[-2 - space].name if columns is not None else f"c{-2 - space}"
        if stop < start:
            return column
        value = raw.rstrip(b"\r").decode("utf-8", "replace")
        if value[:1] == '"':
            value = value[1:-1].replace('""', '"')
        return f"{column}={value}"
    name = raw.decode("utf-8", "replace")
    if space < 0:
        return name
    end = _END.search(buffer, space)
    namespace = bytes(buffer[space : end.start() if end else None]).decode("utf-8", "replace")
    return f"{namespace}^{name}" if namespace else name
