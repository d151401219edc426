"""Skeleton of a file format: JSON lines, ``{"label": 1, "weight": 2.5, "features": {"7": 0.5}}``. Copy and replace.

In the package: this file in ``data/formats/`` and one line in its ``__init__.py`` (``_HOMES``). From outside: this file
and ``gaussfold.data.formats.register(JSON_LINES)``. Where lines are many, parse them in ``engine/text`` instead, as
``gaussfold.data.formats.svmlight`` does.
"""

from __future__ import annotations

import json
from collections.abc import Iterator

import numpy as np

from gaussfold.data.chunks import Chunk
from gaussfold.data.formats.base import Format
from gaussfold.data.intake import Intake
from gaussfold.data.messages import DataError
from gaussfold.data.reading import Reading
from gaussfold.data.sources import Source


def _lines(source: Source, size: int) -> Iterator[list[bytes]]:
    """Whole lines, a chunk of bytes at a time: memory stays bounded."""
    block, rest, ended = memoryview(bytearray(size)), b"", False
    while not ended:
        filled, ended = source.fill(block)
        *lines, rest = (rest + bytes(block[:filled])).split(b"\n")
        yield [*lines, rest] if ended else lines


def _read(source: Source, intake: Intake) -> Iterator[Chunk]:
    first = 1
    for lines in _lines(source, intake.chunk_bytes):
        yield _chunk(lines, first, source.name, intake.reading)
        first += len(lines)


def _chunk(lines: list[bytes], first: int, source: str, reading: Reading) -> Chunk:
    indptr, indices, data, labels, weights, numbers = [0], [], [], [], [], []
    for number, line in enumerate(lines, first):
        if not line.strip():
            continue
        try:
            record = json.loads(line)
            features = {int(slot) % (1 << reading.bits): float(value) for slot, value in record["features"].items()}
        except (ValueError, KeyError) as error:
            msg = f"{source}:{number}: expected an object with features, numbered: {error}"
            raise DataError(msg) from error
        if reading.constant:
            features[1 << reading.bits] = 1.0
        indices += features.keys()
        data += features.values()
        indptr.append(len(indices))
        labels.append(record.get("label", np.nan))  # NaN: none
        weights.append(record.get("weight", 1.0))
        numbers.append(number)
    return Chunk(
        indptr=np.array(indptr, np.int32),
        indices=np.array(indices, np.int32),
        data=np.array(data, float),
        label=np.array(labels, float),
        weight=np.array(weights, float),
        width=reading.width,
        source=source,
        line=np.array(numbers, np.int32),
    )


JSON_LINES = Format(
    name="jsonl", read=_read, endings=(".jsonl", ".ndjson"), looks_like=lambda line: line.lstrip().startswith(b"{")
)
FORMATS = (JSON_LINES,)
"""What the package looks for in the module."""
