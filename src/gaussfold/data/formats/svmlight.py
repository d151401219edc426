"""LIBSVM/SVMlight: ``label index:value ... # comment``."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from gaussfold.data.chunks import Chunk
from gaussfold.data.formats.base import Format, RowWriter, SlotNames
from gaussfold.data.intake import Intake
from gaussfold.data.messages import DataError
from gaussfold.data.plain_numbers import is_float, label_text, number_text
from gaussfold.data.sources import Source
from gaussfold.data.text import TextReader
from gaussfold.engine.text.parse_svm import parse_svmlight


def _read(source: Source, intake: Intake) -> Iterator[Chunk]:
    return TextReader(intake).read_lines(source, "svmlight", parse_svmlight)


def _looks_like(line: bytes) -> bool:
    words = line.split(b"#")[0].split()
    if len(words) == 1:  # a label without features, unless it is one of a table
        return b"\t" not in line and b"," not in line and is_float(words[0])
    return all(b":" in word for word in words[1:]) and b"," not in words[0]


def _lines(chunk: Chunk, _names: SlotNames) -> list[str]:
    for bad, reason in (
        (np.isnan(chunk.label), "SVMlight needs a label on every line"),
        (chunk.weight != 1.0, "SVMlight has no place for a weight other than 1"),
    ):
        if bad.any():
            msg = f"{chunk.source}:{chunk.line[int(np.argmax(bad))]}: {reason}"
            raise DataError(msg)
    return [f"{_line(chunk, row)}\n" for row in range(len(chunk))]


def _line(chunk: Chunk, row: int) -> str:
    features = (f"{slot}:{number_text(value)}" for slot, value in sorted(chunk.entries(row)))
    return " ".join([label_text(float(chunk.label[row])), *features])


FORMATS = (
    Format(
        name="svmlight",
        read=_read,
        endings=(".svm", ".libsvm", ".svmlight"),
        looks_like=_looks_like,
        writer=RowWriter(_lines),
    ),
)
