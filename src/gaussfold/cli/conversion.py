"""``gaussfold convert``: any format that can be read, as Vowpal Wabbit text, SVMlight or Parquet."""

from __future__ import annotations

from collections.abc import Sequence
from typing import IO

import numpy as np

from gaussfold.cli.errors import BAD_DATA, USAGE, Failure
from gaussfold.cli.output import standard_output
from gaussfold.data.chunks import Chunk
from gaussfold.data.readers import Stream
from gaussfold.data.reading import Reading, Roles, format_of_name

TARGETS = ("vw", "svmlight")


def convert(inputs: Sequence[str], out: str, target: str | None, reading: Reading, roles: Roles, skip_bad: int) -> int:
    """Write rows one by one: features by name in Vowpal Wabbit text, by slot in SVMlight."""
    kind = target or (format_of_name(out) if out != "-" else None)
    if kind not in TARGETS:
        msg = f"--to {kind}: allowed are {', '.join(TARGETS)} (or an output file named .vw or .svmlight)"
        raise Failure(msg, USAGE)
    names: dict[int, str] = {}
    stream = Stream(inputs, reading, roles, max_bad=skip_bad, keep_names=kind == "vw", tags=kind == "vw")
    file: IO[str] = standard_output() if out == "-" else open(out, "w", encoding="utf-8", newline="\n")  # noqa: SIM115
    try:
        for chunk in stream:
            names.update((slot, vw_name(name)) for slot, name in chunk.names)
            file.write("".join(_vw(chunk, names) if kind == "vw" else _svmlight(chunk)))
        file.flush()
    finally:
        if out != "-":
            file.close()
    return 0


def vw_name(name: str) -> str:
    """Return a name without the characters that mean something in Vowpal Wabbit text."""
    for character, stand_in in ((" ", "_"), (":", "_"), ("|", "_"), ("\t", "_"), ("\n", "_"), ("\r", "_")):
        name = name.replace(character, stand_in)
    return name or "_"


def _number(value: float) -> str:
    return repr(int(value)) if value == int(value) and abs(value) < 1e15 else repr(value)


def _vw(chunk: Chunk, names: dict[int, str]) -> list[str]:
    lines = []
    for row in range(len(chunk)):
        label = chunk.label[row]
        head = "" if np.isnan(label) else "1 " if label == 1.0 else "-1 " if label == 0.0 else f"{_number(label)} "
        if head and chunk.weight[row] != 1.0:
            head += f"{_number(float(chunk.weight[row]))} "
        if chunk.tags and chunk.tags[row]:
            head += f"'{vw_name(chunk.tags[row])}"
        spaces: dict[str, list[str]] = {}
        for slot, value in _entries(chunk, row):
            name = names.get(slot, str(slot))
            space, caret, rest = name.partition("^")
            if not caret:
                space, caret, rest = name.partition("=")
            space, feature = (space, rest or "_") if caret else ("", name)
            spaces.setdefault(space, []).append(feature if value == 1.0 else f"{feature}:{_number(value)}")
        lines.append(head + " ".join(f"|{space} {' '.join(features)}" for space, features in spaces.items()) + "\n")
    return [line if "|" in line else line.rstrip("\n") + "|\n" for line in lines]


def _svmlight(chunk: Chunk) -> list[str]:
    if np.isnan(chunk.label).any():
        row = int(np.argmax(np.isnan(chunk.label)))
        msg = f"{chunk.source}:{chunk.line[row]}: SVMlight needs a label on every line"
        raise Failure(msg, BAD_DATA)
    if (chunk.weight != 1.0).any():
        row = int(np.argmax(chunk.weight != 1.0))
        msg = f"{chunk.source}:{chunk.line[row]}: SVMlight has no place for a weight other than 1"
        raise Failure(msg, BAD_DATA)
    lines = []
    for row in range(len(chunk)):
        label = {1.0: "1", 0.0: "-1"}.get(float(chunk.label[row])) or _number(float(chunk.label[row]))
        lines.append(
            " ".join([label, *(f"{slot}:{_number(value)}" for slot, value in sorted(_entries(chunk, row)))]) + "\n"
        )
    return lines


def _entries(chunk: Chunk, row: int) -> list[tuple[int, float]]:
    a, b = int(chunk.indptr[row]), int(chunk.indptr[row + 1])
    return list(zip(chunk.indices[a:b].tolist(), chunk.data[a:b].tolist(), strict=True))
