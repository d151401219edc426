"""How a file is to be read: settings that a model keeps, so that later files are read the same way."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any, Self, TypeAlias

from gaussfold.checks import one_of, whole
from gaussfold.data import formats
from gaussfold.data.classes import pack

Document: TypeAlias = dict[str, Any]
"""What JSON holds."""
HASHES = ("strings", "all")
LABELS = ("binary", "real", "count", "class")
KINDS = ("ignored", "label", "weight", "number", "category", "tag")


@dataclass(frozen=True)
class Column:
    """A column of a table and what it means, one of `KINDS`."""

    name: str
    kind: str


@dataclass(frozen=True)
class Roles:
    """What the user says about the columns of a table; the rest is looked up in the first rows."""

    label: str | None = None
    weight: str | None = None
    tag: str | None = None
    ignore: tuple[str, ...] = ()
    numeric: tuple[str, ...] = ()
    categorical: tuple[str, ...] = ()
    header: bool | None = None
    keep: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Refuse a column with two roles."""
        single = [name for name in (self.label, self.weight, self.tag) if name is not None]
        named = [*single, *self.ignore, *self.numeric, *self.categorical]
        for name in named:
            if named.count(name) > 1:
                msg = f"column {name!r} was given more than one role; give it one"
                raise ValueError(msg)


@dataclass(frozen=True)
class Reading:
    """Everything that decides which features a line has.

    Parameters
    ----------
    format
        One of `gaussfold.data.formats.names`; None looks at the file's name, then at its first line.
    bits
        Features are hashed into 2^bits slots.
    interact
        Pairs of namespaces to multiply, see `gaussfold.data.interactions`.
    constant
        Whether every row has the constant feature, in slot 2^bits.
    labels
        One of `LABELS`: "binary" (-1, 0 or 1; -1 and 0 are the same), "real", "count" (0, 1, 2, ...) or "class".
    classes
        For "class": all labels there are, texts or numbers; a row has the place of its own among them.
    positive
        For tables: the text of the label that is 1; any other is 0.
    hash
        For Vowpal Wabbit text. "strings": a feature's name of nothing but digits is a number that is added to the hash
        of its namespace, so that numbered features do not collide; "all": every name is hashed.
    keep, ignore
        For Vowpal Wabbit text: namespaces that are read, or that are not, by their first letter or their name.
    squares
        For Vowpal Wabbit text: whether a namespace that is multiplied by itself has the square of a feature of value 1
        too, as it has there; not in models from before that.
    columns
        For tables: the columns and what they mean; None until a first file has been seen.
    """

    format: str | None = None
    bits: int = 18
    interact: tuple[str, ...] = ()
    constant: bool = True
    labels: str = "binary"
    positive: str | None = None
    separator: str | None = None
    columns: tuple[Column, ...] | None = None
    hash: str = "strings"
    keep: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    squares: bool = True
    classes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Check the numbers and names."""
        whole("bits", self.bits, most=30, remedy="2^bits slots of about 16 bytes each are kept")
        if self.format is not None:
            one_of("format", self.format, formats.names())
        one_of("hash", self.hash, HASHES)
        one_of("labels", self.labels, LABELS)
        self._check_labels()
        if self.keep and self.ignore:
            msg = f"keep={self.keep!r} and ignore={self.ignore!r}: what is not kept is ignored; give one of them"
            raise ValueError(msg)
        separator = self.separator
        if separator is not None and (len(separator) != 1 or separator in '"\r\n' or not separator.isascii()):
            msg = f"separator={separator!r}: one ASCII character is needed, not a quote or newline"
            raise ValueError(msg)

    def _check_labels(self) -> None:
        """Refuse classes or a positive label where labels are something else."""
        if (self.labels == "class") != bool(self.classes):
            msg = f"labels={self.labels!r}, classes={self.classes!r}: classes go with labels='class'; give both or none"
            raise ValueError(msg)
        if self.classes:
            pack(self.classes)
        if self.positive is not None and self.labels != "binary":
            msg = f"positive={self.positive!r}: labels that are {self.labels} have no positive one; leave it out"
            raise ValueError(msg)

    @property
    def width(self) -> int:
        """Number of slots, with the constant's."""
        return (1 << self.bits) + self.constant

    def to_json(self) -> Document:
        """Return it as JSON can hold it."""
        return dataclasses.asdict(self)

    @classmethod
    def from_json(cls, document: Document) -> Self:
        """Undo `to_json`."""
        values = {"hash": "all", "squares": False, **document}  # as it was before there was a choice
        values |= {name: tuple(values.get(name, ())) for name in ("keep", "ignore", "classes")}
        values["interact"] = tuple(values["interact"])
        if "binary" in values:  # files written before counts could be read
            values["labels"] = "binary" if values.pop("binary") else "real"
        if values["columns"] is not None:
            values["columns"] = tuple(Column(**column) for column in values["columns"])
        return cls(**values)
