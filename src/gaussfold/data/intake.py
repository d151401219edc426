"""One run over inputs: what is wanted of them, and what is known of them by now."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

from gaussfold.data.reading import Reading, Roles
from gaussfold.data.text import TextReader


@dataclass
class Intake:
    """What formats are given to read by (see `gaussfold.data.readers.Stream`), and where they write what they find.

    ``reading`` gets the columns of the first table, ``n_bad`` counts the bad records of all inputs. ``ring`` says how
    many chunks may be alive at a time before their memory is used again.
    """

    reading: Reading
    roles: Roles = field(default_factory=Roles)
    max_bad: int = 0
    keep_names: bool = False
    tags: bool = False
    ring: int = 1
    chunk_bytes: int = 1 << 20
    n_bad: int = 0

    @cached_property
    def text(self) -> TextReader:
        """Buffers for text, made when the first input of that kind comes, and kept for the next."""
        return TextReader(self)
