"""What a format is: how its files are told, read and written. Nothing heavy is imported here (see the package)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from gaussfold.data.chunks import Chunk
    from gaussfold.data.intake import Intake
    from gaussfold.data.naming import Named
    from gaussfold.data.reading import Reading, Roles
    from gaussfold.data.sources import Source
    from gaussfold.data.tabular import Table

PACKED = (".gz", ".zst", ".zstd", ".bz2", ".xz")
"""Endings of the names of compressed files."""
SlotNames = dict[int, tuple[str, str]]
"""Namespace and feature of every slot that was named so far, fit for the format."""


class RowWriter(NamedTuple):
    """How sparse rows become lines of text."""

    lines: Callable[[Chunk, SlotNames], list[str]]
    name_of: Callable[[Named], tuple[str, str]] | None = None
    """How a feature's name is written; None: features are written by slot."""


def _never(_line: bytes) -> bool:
    return False


@dataclass(frozen=True)
class Format:
    """One file format.

    Parameters
    ----------
    name
        As users write it.
    read
        Rows of an open input, chunk by chunk. What is wanted of them, and what is known of them by now, is in the
        `Intake`; what the format finds out (columns of a table, bad records) it writes down there.
    endings
        Of file names, in lower case.
    magic
        First bytes of which each tells the format.
    looks_like
        Whether a first line (not empty, no comment) is of this format.
    from_pipe
        Whether it can be read without going back.
    open_table
        For formats with columns: the columns as they are, to convert them into another such format.
    separator
        For text with columns: what stands between two fields.
    writer
        For formats without columns: how rows are written, if they can be.
    namespaces
        Whether features have namespaces, which may be kept or ignored.
    """

    name: str
    read: Callable[[Source, Intake], Iterator[Chunk]]
    endings: tuple[str, ...] = ()
    magic: tuple[bytes, ...] = ()
    looks_like: Callable[[bytes], bool] = _never
    from_pipe: bool = True
    open_table: Callable[[Source, Reading, Roles], Table] | None = None
    separator: str | None = None
    writer: RowWriter | None = None
    namespaces: bool = False
