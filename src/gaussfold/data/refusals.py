"""What is said about an input that does not fit it: refused in words, never passed over."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from gaussfold.data.chunks import Chunk
from gaussfold.data.formats.base import Format
from gaussfold.data.intake import Intake
from gaussfold.data.messages import DataError
from gaussfold.data.reading import Column, Roles

_SHOWN = 6


def refuse_unused(found: Format, intake: Intake, source: str) -> None:
    """Refuse what is said about columns or fields of a format that has none."""
    reading, roles = intake.reading, intake.roles
    of_text: dict[str, object] = {"separator": reading.separator, "header": roles.header}
    if found.open_table is None:
        said, what = {**vars(roles), "positive": reading.positive, **of_text}, "has no columns"
        if found.namespaces:
            said |= dict.fromkeys(("keep", "ignore"))
    elif found.separator is None and reading.columns is None:  # a model remembers what the text before looked like
        said, what = of_text, "is no text"
    else:
        return
    for name, value in said.items():
        if value not in (None, ()):
            msg = f"{source}: {found.name} {what}, so {name}={value!r} means nothing there; leave it out"
            raise ValueError(msg)


def refuse_mistyped(labels: Iterable[str], positive: str | None, source: str) -> None:
    """Refuse a positive label that none of the first rows has, though they have several others.

    Where all of them have the same one the positive one may be rare; then the end of the input tells, see
    `PositiveLabel`.
    """
    seen = list(dict.fromkeys(label for label in labels if label))
    if positive is None or positive in seen or len(seen) < 2:
        return
    shown = ", ".join(map(repr, seen[:_SHOWN])) + (", ..." if len(seen) > _SHOWN else "")
    msg = f"{source}: no label of the first rows is {positive!r} (positive); they are {shown}; name one of them"
    raise DataError(msg)


class PositiveLabel:
    """Whether the label that counts as 1 occurs in an input; None: there is none to look for."""

    def __init__(self, positive: str | None) -> None:
        self._positive, self._labelled, self._occurs = positive, False, False

    def look(self, chunk: Chunk) -> None:
        """Take note of the labels of a chunk."""
        if self._positive is not None and not self._occurs:
            self._labelled |= bool((chunk.label == 0.0).any())
            self._occurs = bool((chunk.label == 1.0).any())

    def refuse_unmatched(self, sources: Sequence[str]) -> None:
        """Refuse, at the end of the inputs, a label that no row had."""
        if self._labelled and not self._occurs:
            place, what = ", ".join(sources[:_SHOWN]), f"no label is {self._positive!r} (positive)"
            msg = f"{place}: {what}, so there is nothing to tell apart; name one that occurs"
            raise DataError(msg)


def refuse_other_roles(columns: Sequence[Column], roles: Roles, source: str) -> None:
    """What columns mean is known from the first table; saying otherwise of a later one is an error."""
    known = {column.name: column.kind for column in columns}
    single = (("label", roles.label), ("weight", roles.weight))
    lists = (("ignored", roles.ignore), ("number", roles.numeric), ("category", roles.categorical))
    said = [(kind, name) for kind, name in single if name is not None]
    said += [(kind, name) for kind, names in lists for name in names]
    for kind, name in said:
        at = columns[int(name)].name if name not in known and name.isdigit() and int(name) < len(columns) else name
        if known.get(at, "ignored") != kind:
            has = f"has it as {known[at]}" if at in known else "does not know it"
            msg = f"{source}: column {name!r} as {kind}: the model was begun without that, and {has}; leave it out"
            raise ValueError(msg)
