"""``gaussfold convert``: tables as any format, sparse text as Vowpal Wabbit text or SVMlight."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np

from gaussfold.cli.errors import BAD_DATA, USAGE, Failure, fail
from gaussfold.cli.output import open_text
from gaussfold.cli.tables import convert_table
from gaussfold.data.chunks import Chunk
from gaussfold.data.naming import Named
from gaussfold.data.readers import Stream
from gaussfold.data.reading import FORMATS, Reading, Roles, format_of_name

SPARSE = ("vw", "svmlight")
_ALL_BITS = 30  # so many slots that names hardly ever share one


def convert(
    inputs: Sequence[str],
    out: str,
    target: str | None,
    reading: Reading,
    roles: Roles,
    skip_bad: int,
    bits_given: bool,
) -> int:
    """Write rows one by one: features by name in Vowpal Wabbit text, by slot in SVMlight, columns in tables."""
    kind = target or (format_of_name(out) if out != "-" else None)
    if kind not in FORMATS:
        msg = f"--to {kind}: allowed are {', '.join(FORMATS)} (or an output file with such a name)"
        raise Failure(msg, USAGE)
    if kind not in SPARSE:
        return convert_table(inputs, out, kind, reading, roles, skip_bad)
    if kind == "vw" and not bits_given:
        reading = dataclasses.replace(reading, bits=_ALL_BITS)
    reading = dataclasses.replace(reading, constant=False)
    names: dict[int, tuple[str, str]] = {}
    stream = Stream(inputs, reading, roles, max_bad=skip_bad, keep_names=kind == "vw", tags=kind == "vw")
    with open_text(out) as file:
        for chunk in stream:
            for record in chunk.bad if skip_bad else []:
                fail(f"skipped {record}", 0)
            names.update((named.slot, _split(named)) for named in chunk.names)
            file.writelines(_vw(chunk, names) if kind == "vw" else _svmlight(chunk))
    return 0


def _split(named: Named) -> tuple[str, str]:
    """Namespace and feature, fit for Vowpal Wabbit text: a column of numbers is a feature without a namespace."""
    if named.name == named.space:
        return "", vw_name(named.name)
    feature = named.name[len(named.space) + 1 :] if named.space and "*" not in named.space else named.name
    return vw_name(named.space) if named.space else "", vw_name(feature)


def vw_name(name: str) -> str:
    """Return a name without the characters that mean something in Vowpal Wabbit text."""
    for character in " :|\t\n\r":
        name = name.replace(character, "_")
    return name or "_"


def _number(value: float) -> str:
    return repr(int(value)) if value == int(value) and abs(value) < 1e15 else repr(value)


def _label(value: float) -> str:
    return {1.0: "1", 0.0: "-1"}.get(value) or _number(value)


def _vw(chunk: Chunk, names: dict[int, tuple[str, str]]) -> list[str]:
    lines = []
    for row in range(len(chunk)):
        label = float(chunk.label[row])
        head = "" if np.isnan(label) else f"{_label(label)} "
        if head and chunk.weight[row] != 1.0:
            head += f"{_number(float(chunk.weight[row]))} "
        if chunk.tags and chunk.tags[row]:
            head += f"'{vw_name(chunk.tags[row])}"
        spaces: dict[str, list[str]] = {}
        for slot, value in _entries(chunk, row):
            space, feature = names.get(slot, ("", str(slot)))
            spaces.setdefault(space, []).append(feature if value == 1.0 else f"{feature}:{_number(value)}")
        groups = " ".join(f"|{space} {' '.join(features)}" for space, features in spaces.items())
        lines.append(f"{head}{groups or '|'}\n")
    return lines


def _svmlight(chunk: Chunk) -> list[str]:
    unlabelled = np.isnan(chunk.label)
    for bad, reason in (
        (unlabelled, "SVMlight needs a label on every line"),
        (chunk.weight != 1.0, "SVMlight has no place for a weight other than 1"),
    ):
        if bad.any():
            msg = f"{chunk.source}:{chunk.line[int(np.argmax(bad))]}: {reason}"
            raise Failure(msg, BAD_DATA)
    return [
        " ".join(
            [
                _label(float(chunk.label[row])),
                *(f"{slot}:{_number(value)}" for slot, value in sorted(_entries(chunk, row))),
            ]
        )
        + "\n"
        for row in range(len(chunk))
    ]


def _entries(chunk: Chunk, row: int) -> list[tuple[int, float]]:
    a, b = int(chunk.indptr[row]), int(chunk.indptr[row + 1])
    return list(zip(chunk.indices[a:b].tolist(), chunk.data[a:b].tolist(), strict=True))
