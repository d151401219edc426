"""Vowpal Wabbit text: ``[label [weight]] ['tag]|namespace feature[:value] ...``."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from gaussfold.data.chunks import Chunk
from gaussfold.data.formats.base import Format, RowWriter, SlotNames
from gaussfold.data.intake import Intake
from gaussfold.data.naming import Named
from gaussfold.data.plain_numbers import label_text, number_text
from gaussfold.data.sources import Source
from gaussfold.data.text import TextReader
from gaussfold.engine.text.parse_vw import parse_vw


def _read(source: Source, intake: Intake) -> Iterator[Chunk]:
    return TextReader(intake).read_lines(source, "vw", parse_vw, squares=intake.reading.squares)


def _lines(chunk: Chunk, names: SlotNames) -> list[str]:
    return [f"{_head(chunk, row)}{_features(chunk, row, names)}\n" for row in range(len(chunk))]


def _head(chunk: Chunk, row: int) -> str:
    label = float(chunk.label[row])
    head = "" if np.isnan(label) else f"{label_text(label)} "
    if head and chunk.weight[row] != 1.0:
        head += f"{number_text(float(chunk.weight[row]))} "
    if chunk.tags and chunk.tags[row]:
        head += f"'{_clean(chunk.tags[row])}"
    return head


def _features(chunk: Chunk, row: int, names: SlotNames) -> str:
    spaces: dict[str, list[str]] = {}
    for slot, value in chunk.entries(row):
        space, feature = names.get(slot, ("", str(slot)))
        spaces.setdefault(space, []).append(feature if value == 1.0 else f"{feature}:{number_text(value)}")
    return " ".join(f"|{space} {' '.join(features)}" for space, features in spaces.items()) or "|"


def _name_of(named: Named) -> tuple[str, str]:
    """Namespace and feature; a column of numbers is a feature without a namespace."""
    if named.name == named.space:
        return "", _clean(named.name)
    feature = named.name[len(named.space) + 1 :] if named.space and "*" not in named.space else named.name
    return _clean(named.space) if named.space else "", _clean(feature)


def _clean(name: str) -> str:
    """Return a name without the characters that mean something in this format."""
    for character in " :|\t\n\r":
        name = name.replace(character, "_")
    return name or "_"


FORMATS = (
    Format(
        name="vw",
        read=_read,
        endings=(".vw",),
        looks_like=lambda line: b"|" in line,
        writer=RowWriter(_lines, _name_of),
        namespaces=True,
    ),
)
