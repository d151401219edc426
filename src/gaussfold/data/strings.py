"""Hashes of Python strings, by the compiled loop that the parsers use."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from gaussfold.engine.text.byte_scan import PADDING
from gaussfold.engine.text.murmur import murmur, murmur_each

if TYPE_CHECKING:
    import pyarrow as pa


def murmur_of(text: str | bytes, seed: int = 0) -> int:
    """32-bit MurmurHash3 of a string's UTF-8 bytes, not negative.

    Examples
    --------
    >>> from sklearn.utils import murmurhash3_32
    >>> murmur_of("site", seed=3) == murmurhash3_32("site", seed=3, positive=True)
    True
    """
    encoded = text.encode() if isinstance(text, str) else text
    raw = np.frombuffer(bytearray(encoded) + bytearray(PADDING), np.uint8)
    return int(murmur(raw, 0, len(encoded), np.uint32(seed)))


def murmur_all(texts: Sequence[str], seed: int) -> np.ndarray:
    """Hash many strings with one seed; uint32."""
    encoded = [text.encode() for text in texts]
    offsets = np.zeros(len(encoded) + 1, np.int64)
    np.cumsum([len(raw) for raw in encoded], out=offsets[1:])
    return murmur_spans(np.frombuffer(bytearray(b"".join(encoded)) + bytearray(PADDING), np.uint8), offsets, seed)


def murmur_texts(texts: pa.StringArray, seed: int) -> np.ndarray:
    """Hash the texts of an Arrow array (of which none is missing), where they lie; uint32."""
    _, offsets, raw = texts.buffers()
    ends = np.frombuffer(offsets, np.int32)[texts.offset : texts.offset + len(texts) + 1].astype(np.int64)
    first, last = (int(ends[0]), int(ends[-1])) if len(texts) else (0, 0)
    padded = np.empty(last - first + PADDING, np.uint8)
    if last > first:
        padded[: last - first] = np.frombuffer(raw, np.uint8)[first:last]
    padded[last - first :] = 0
    return murmur_spans(padded, ends - first, seed) if len(texts) else np.empty(0, np.uint32)


def murmur_spans(buffer: np.ndarray, offsets: np.ndarray, seed: int) -> np.ndarray:
    """Hash ``buffer[offsets[i]:offsets[i + 1]]`` for every i (the buffer has padding after the last); uint32."""
    hashes = np.empty(len(offsets) - 1, np.uint32)
    murmur_each(buffer, offsets, np.uint32(seed), hashes)
    return hashes


def collision_rate(used: int, bits: int) -> float:
    """Estimate the share of features that share their slot with another, from the number of slots in use.

    n features in M slots use M (1 - exp(-n/M)) of them on average, which tells n; a feature is alone in its slot
    with probability exp(-n/M), the share of empty slots. So the rate is the share of slots in use.

    Examples
    --------
    >>> collision_rate(used=2**16, bits=18)
    0.25
    """
    return used / 2.0**bits
