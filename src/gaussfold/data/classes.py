"""Labels that are classes: texts or numbers, announced beforehand, so that one pass over a stream is enough."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from gaussfold.data.plain_numbers import is_float

MOST = 1000
"""As many as a softmax takes."""


class Packed(NamedTuple):
    """Classes as parsers compare them: texts one after the other, where each ends, and what numbers they are."""

    texts: np.ndarray
    ends: np.ndarray
    values: np.ndarray


def pack(classes: Sequence[str]) -> Packed:
    """Pack them; refuse what cannot be told apart."""
    if len(classes) == 1 or len(classes) > MOST:
        shown = repr(tuple(classes)) if len(classes) == 1 else f"{len(classes)} of them"
        msg = f"classes={shown}: 2 to {MOST} are needed; leave out what need not be told apart"
        raise ValueError(msg)
    raw = [_text(name) for name in classes]
    values = [float(text) if is_float(text) else np.nan for text in raw]
    _refuse_twice(classes, values)
    texts = np.frombuffer(bytearray(b"".join(raw)) or bytearray(1), np.uint8)
    return Packed(texts, np.cumsum([len(text) for text in raw], dtype=np.int64), np.array(values, dtype=np.float64))


def _refuse_twice(classes: Sequence[str], values: Sequence[float]) -> None:
    seen: set[str | float] = set()
    for name, value in zip(classes, values, strict=True):
        if name in seen or value in seen:
            msg = f"classes: {name!r} is there twice (as a text or a number); give each class once"
            raise ValueError(msg)
        seen |= {name} if np.isnan(value) else {name, value}


def places(labels: Sequence[str], classes: Sequence[str]) -> np.ndarray:
    """The place of each label among the classes: as a text, or else as a number; -1 if it is none of them."""
    by_text = {name: k for k, name in enumerate(classes)}
    by_value = {float(name): k for k, name in enumerate(classes) if is_float(name.encode())}

    def place(label: str) -> int:
        text = label.strip()
        found = by_text.get(label, by_text.get(text))
        return found if found is not None else by_value.get(float(text), -1) if is_float(text.encode()) else -1

    return np.array([place(label) for label in labels], dtype=np.int64)


def _text(name: str) -> bytes:
    if not isinstance(name, str) or not name or name != name.strip() or any(c in name for c in "|\n\r\t\0"):
        msg = f"classes: {name!r}; texts without blanks around them, bars, tabs or line ends are needed"
        raise ValueError(msg)
    return name.encode()
