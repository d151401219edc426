"""Comma- and tab-separated tables, beside the textbook parser."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from gaussfold.data.reading import Reading, Roles
from tests.fuzz.reading import assert_rows, is_plain, same_however_it_comes
from tests.fuzz.texts import label, line_end, name, noise, number, pick
from tests.reference import parsers


def _quoted(rng: np.random.Generator, text: str) -> str:
    kind = rng.random()
    if kind < 0.8:
        return text
    if kind < 0.95:
        return '"' + text.replace('"', '""') + pick(rng, ("", "", "\n", " ", '""', "\r\n")) + '"'
    return pick(rng, (f'"{text}', f'{text}"', f'"{text}"x', f'"{text}" ', f' "{text}"'))


def _table(rng: np.random.Generator, separator: str, n_columns: int) -> str:
    makers = [label] + [(number, name)[int(rng.integers(2))] for _ in range(n_columns - 1)]
    lines = []
    if rng.random() < 0.6:
        header = [f"{name(rng)}{k}" for k in range(n_columns)]
        lines.append(separator.join(_quoted(rng, text) for text in header) + line_end(rng))
    for _ in range(rng.integers(0, 10)):
        fields = [_quoted(rng, make(rng) if rng.random() < 0.95 else "") for make in makers]
        if rng.random() < 0.05:
            fields = fields[: int(rng.integers(1, n_columns + 1))] + [""] * int(rng.integers(0, 2))
        lines.append(separator.join(fields) + line_end(rng))
    return "".join(lines)


def case(rng: np.random.Generator, folder: Path) -> None:
    """A table from the grammar, now and then disturbed; read under several settings."""
    kind, separator = (("csv", ","), ("tsv", "\t"))[int(rng.integers(2))]
    n_columns = int(rng.integers(1, 6))
    raw = noise(rng, _table(rng, separator, n_columns).encode(), 0.2)
    if rng.random() < 0.2:
        raw = raw.removesuffix(b"\n")
    path = folder / f"input.{kind}"
    path.write_bytes(raw)
    reading = Reading(bits=int(rng.choice([3, 9])), interact=((), ("::",), ("a:",))[int(rng.integers(3))])
    roles = Roles(header=(None, None, True, False)[int(rng.integers(4))], tag="1" if rng.random() < 0.2 else None)
    options = {"keep_names": bool(rng.random() < 0.3)}
    found = same_however_it_comes(rng, path, reading, roles, few=int(rng.integers(0, 3)), **options)
    text = raw.removeprefix(b"\xef\xbb\xbf").decode("utf-8", "replace")
    if found.error is not None or "\ufffd" in text or not is_plain(text):
        return
    columns = [(column.name, column.kind) for column in found.columns]
    if [name for name, _ in columns] != [f"c{k}" for k in range(len(columns))]:
        text = _without_header(text)
    if text is None or reading.interact == ("a:",):
        return
    wanted = list(
        parsers.csv_rows(text, columns, reading.bits, separator, (lambda *_: True) if reading.interact else None)
    )
    assert len(wanted) == len(found.rows)
    assert_rows(found, [(*row, ours[3]) for row, ours in zip(wanted, found.rows, strict=True)])


def _without_header(text: str) -> str | None:
    """What follows the first line that is not empty; None if a quote in it makes that hard to tell."""
    rest = text
    while rest:
        line, _, rest = rest.partition("\n")
        if line.removesuffix("\r"):
            return None if '"' in line else rest
    return rest
