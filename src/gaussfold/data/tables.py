"""What the columns of a table mean: by what the user says, by their names, by their first values."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence

from gaussfold.data.messages import DataError
from gaussfold.data.reading import Column, Roles

_LABELS = ("label", "target", "y", "click", "clicked", "class")
_MISSING = {"", "na", "nan", "null", "none", "n/a", "?"}
SAMPLE = 1000


def sample_records(text: str, separator: str, *, whole: bool) -> list[list[str]]:
    """Return the first records of a text; the last one is left out unless the text is whole."""
    records: list[list[str]] = []
    try:
        for record in csv.reader(io.StringIO(text, newline=""), delimiter=separator):
            if record:
                records.append(record)
            if len(records) > SAMPLE + 1:
                return records[: SAMPLE + 1]
    except csv.Error:  # a field too long, as after a quote that never closes: what came before is enough
        return records
    return (records if whole else records[:-1] or records)[: SAMPLE + 1]


def describe(records: list[list[str]], roles: Roles, name: str) -> tuple[tuple[Column, ...], bool]:
    """Columns of a text table, and whether its first record is a header."""
    if not records:
        msg = f"{name}: it has no record; a table needs at least one"
        raise DataError(msg)
    header = roles.header if roles.header is not None else _has_header(records)
    names = records[0] if header else [f"c{k}" for k in range(len(records[0]))]
    body = records[1:] if header else records
    values = [[record[k] for record in body if k < len(record)] for k in range(len(names))]
    numeric = [is_numeric(column) for column in values]
    return assign(names, numeric, roles, name), header


def assign(names: Sequence[str], numeric: Sequence[bool], roles: Roles, source: str) -> tuple[Column, ...]:
    """Give every column its meaning; ``numeric`` says which ones hold numbers."""
    for name in names:
        if list(names).count(name) > 1:
            msg = f"{source}: more than one column is named {name!r}; column names must differ"
            raise DataError(msg)
    label = roles.label if roles.label is not None else _find_label(names)
    wanted = {"label": label, "weight": roles.weight, "tag": roles.tag}
    lists = {"ignored": roles.ignore, "number": roles.numeric, "category": roles.categorical}
    kinds = {_find(one, names, source): kind for kind, one in wanted.items() if one is not None}
    kinds.update({_find(one, names, source): kind for kind, several in lists.items() for one in several})
    return tuple(Column(name, kinds.get(k, "number" if numeric[k] else "category")) for k, name in enumerate(names))


def match(columns: Sequence[Column], names: Sequence[str], source: str) -> tuple[Column, ...]:
    """Known columns in the order of another file; a missing label is no error, a missing feature is."""
    known = {column.name: column for column in columns}
    for column in columns:
        if column.name not in names and column.kind in ("number", "category"):
            msg = f"{source}: column {column.name!r} is missing, which the model was trained with"
            raise DataError(msg)
    return tuple(known.get(name, Column(name, "ignored")) for name in names)


def _find(wanted: str, names: Sequence[str], source: str) -> int:
    if wanted in names:
        return list(names).index(wanted)
    if wanted.isdigit() and int(wanted) < len(names):
        return int(wanted)
    shown = ", ".join(names[:20]) + (", ..." if len(names) > 20 else "")
    msg = f"{source}: there is no column {wanted!r}; the columns are {shown}"
    raise DataError(msg)


def _find_label(names: Sequence[str]) -> str:
    lower = [name.lower() for name in names]
    return next((names[lower.index(usual)] for usual in _LABELS if usual in lower), names[0])


def _has_header(records: list[list[str]]) -> bool:
    """Names are never numbers or empty; with one record only, that is data."""
    first = records[0]
    return len(records) > 1 and not any(is_number(field) or not field.strip() for field in first)


def is_missing(text: str) -> bool:
    """Whether a field of a numeric column has no number."""
    return text.strip().lower() in _MISSING


def is_numeric(values: list[str]) -> bool:
    """Whether a column holds numbers: all that is not missing is one, and there is one."""
    there = [value for value in values if not is_missing(value)]
    return bool(there) and all(is_number(value) for value in there)


def is_number(text: str) -> bool:
    """Whether a text is a finite number."""
    try:
        float(text)
    except ValueError:
        return False
    return "_" not in text and text.strip().lower().lstrip("+-") not in ("nan", "inf", "infinity")
