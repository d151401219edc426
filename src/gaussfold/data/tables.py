"""What the columns of a table mean: by what the user says, by their names, by their first values."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from gaussfold.data.messages import DataError
from gaussfold.data.reading import Column, Roles

_LABELS = ("label", "target", "y", "click", "clicked", "class")
_MISSING = {"", "na", "nan", "null", "none", "n/a", "?"}
SAMPLE = 1000


class Sample(NamedTuple):
    """The first records of a table of text, as the compiled parser would cut them."""

    records: list[list[str]]
    first: int | None
    """Where the first line that is not empty ends, if it is a record (a quote may be wrong in it)."""


def sample_records(head: bytes, separator: str, *, whole: bool) -> Sample:
    """Return the first records of a text, without what is not complete (unless the text is whole) or not a record."""
    records: list[list[str]] = []
    first: int | None = None
    at, begun = 0, False
    text = head + b"\n" if whole and not head.endswith(b"\n") else head
    while len(records) <= SAMPLE and (end := text.find(b"\n", at)) >= 0:
        line, next_line = text[at:end].removesuffix(b"\r"), end + 1
        if line:
            fields, after = (
                (line.split(separator.encode()), next_line)
                if b'"' not in line
                else _quoted(text, at, separator.encode())
            )
            if fields is None and after < 0 and not whole:
                break  # the quote may be closed by what follows
            if fields is not None:
                records.append([field.decode("utf-8", "replace") for field in fields])
                first, next_line = (first if begun else after), after
            begun = True
        at = next_line
    return Sample(records, first)


def _quoted(text: bytes, at: int, separator: bytes) -> tuple[list[bytes] | None, int]:
    """Fields of the record that begins here, and where the next one does.

    None and -1 if a quote is not closed, None and 0 if something follows a quote that is.
    """
    fields = []
    while True:
        if text[at : at + 1] == b'"':
            field, at = _quoted_field(text, at + 1)
            if at < 0:
                return None, -1
            if text[at : at + 2] == b"\r\n":
                at += 1
            if text[at : at + 1] not in (separator, b"\n"):
                return None, 0
        else:
            newline = text.find(b"\n", at)
            stop = text.find(separator, at, newline)
            stop = newline if stop < 0 else stop
            field, at = text[at:stop].removesuffix(b"\r") if stop == newline else text[at:stop], stop
        fields.append(field)
        at += 1
        if text[at - 1 : at] == b"\n":
            return fields, at


def _quoted_field(text: bytes, at: int) -> tuple[bytes, int]:
    """The text from here to the closing quote, doubled quotes once, and what comes after it; -1 if nothing does."""
    begin = at
    while True:
        at = text.find(b'"', at)
        if at < 0 or at + 1 >= len(text):
            return b"", -1
        if text[at + 1 : at + 2] != b'"':
            return text[begin:at].replace(b'""', b'"'), at + 1
        at += 2


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
    usual = _usual(numeric, {_find(one, names, source) for one in roles.keep})
    return tuple(Column(name, kinds.get(k, usual[k])) for k, name in enumerate(names))


def _usual(numeric: Sequence[bool], kept: set[int]) -> list[str]:
    """What columns mean of which nothing is said; if some are to be kept, the others are not."""
    kinds = ["number" if each else "category" for each in numeric]
    return [kind if k in kept or not kept else "ignored" for k, kind in enumerate(kinds)]


def match(columns: Sequence[Column], names: Sequence[str], source: str, tag: str | None) -> tuple[Column, ...]:
    """Known columns in the order of another file; a missing label is no error, a missing feature is.

    Any column that is no feature may be the tag.
    """
    known = {column.name: column for column in columns}
    if tag is not None:
        tag = names[_find(tag, names, source)]
        if tag in known and known[tag].kind not in ("ignored", "tag"):
            msg = f"{source}: column {tag!r} is a {known[tag].kind} of the model, so it cannot be the tag; copy it"
            raise DataError(msg)
        others = {name: Column(name, "ignored") for name, column in known.items() if column.kind == "tag"}
        known |= others | {tag: Column(tag, "tag")}
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
