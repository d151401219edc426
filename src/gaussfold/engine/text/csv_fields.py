"""Fields of comma- (or tab-, or anything-) separated values."""

from __future__ import annotations

import numpy as np

from gaussfold.engine.compiled import compiled
from gaussfold.engine.simd.types import Pointer
from gaussfold.engine.text.byte_scan import field_stop

_NEWLINE, _RETURN, _QUOTE = 10, 13, 34


@compiled
def _is_word(text: Pointer, start: int, stop: int, word: np.ndarray) -> bool:
    """Whether the text is a (lower-case) word, in any case."""
    if stop - start != word.size:
        return False
    for i in range(word.size):
        c = text[start + i]
        if (c | 32 if 65 <= c <= 90 else c) != word[i]:
            return False
    return True


_WORDS = tuple(np.frombuffer(word, np.uint8) for word in (b"na", b"nan", b"null", b"none", b"n/a", b"?"))
_NA, _NAN, _NULL, _NONE, _NSA, _ASK = _WORDS


@compiled
def is_missing(text: Pointer, start: int, stop: int) -> bool:
    """Whether a numeric field has no number: empty, NA, N/A, NaN, null, none or a question mark."""
    if start == stop:
        return True
    if stop - start > 4 or text[start] < 63:  # digits, signs and the point come before the question mark
        return False
    return (
        _is_word(text, start, stop, _NA)
        or _is_word(text, start, stop, _NAN)
        or _is_word(text, start, stop, _NULL)
        or _is_word(text, start, stop, _NONE)
        or _is_word(text, start, stop, _NSA)
        or _is_word(text, start, stop, _ASK)
    )


@compiled
def _closing_quote(buffer: Pointer, at: int, stop: int) -> tuple[int, bool]:
    """Where the quote that opened before ``at`` is closed (-1: not before ``stop``), and if there are doubled ones."""
    doubled = False
    while at < stop:
        if buffer[at] == _QUOTE:
            if buffer[at + 1] != _QUOTE:
                return at, doubled
            doubled = True
            at += 1
        at += 1
    return -1, doubled


@compiled
def _undouble(buffer: Pointer, begin: int, end: int, text: Pointer) -> int:
    """Copy a field, doubled quotes once; returns its length."""
    size = 0
    k = begin
    while k < end:
        text[size] = buffer[k]
        k += 2 if buffer[k] == _QUOTE else 1
        size += 1
    return size


@compiled
def next_field(buffer: Pointer, at: int, stop: int, separators: np.uint64, text: Pointer) -> tuple[int, int, int, int]:
    """Read one field.

    Returns where it begins and ends, 1 if that is in ``text`` (doubled quotes undone) rather than in the buffer,
    and the position of the separator or newline after it; that is -1 if the quote is not closed yet, -2 if
    something follows a closing quote.
    """
    if buffer[at] != _QUOTE:
        begin = at
        at = field_stop(buffer, at, separators)
        end = at
        if buffer[at] == _NEWLINE and end > begin and buffer[end - 1] == _RETURN:
            end -= 1
        return begin, end, 0, at
    begin = at + 1
    end, doubled = _closing_quote(buffer, begin, stop)
    if end < 0:
        return begin, max(begin, stop), 0, -1
    at = end + 1
    if buffer[at] == _RETURN and buffer[at + 1] == _NEWLINE:
        at += 1
    if buffer[at] != np.uint8(separators) and buffer[at] != _NEWLINE:
        return begin, end, 0, -2
    if not doubled:
        return begin, end, 0, at
    return 0, _undouble(buffer, begin, end, text), 1, at


@compiled
def trim(text: Pointer, begin: int, end: int) -> tuple[int, int]:
    """Leave out blanks on both sides."""
    while begin < end and (text[begin] == 32 or text[begin] == 9):
        begin += 1
    while end > begin and (text[end - 1] == 32 or text[end - 1] == 9):
        end -= 1
    return begin, end
