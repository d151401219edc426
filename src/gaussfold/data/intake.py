"""One run over inputs: what is wanted of them, and what is known of them by now."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Self

from gaussfold.data.chunks import Workspace
from gaussfold.data.reading import Reading, Roles


@dataclass
class Intake:
    """What formats are given to read by (see `gaussfold.data.readers.Stream`), and where they write what they find.

    ``reading`` gets the columns of the first table, ``n_bad`` counts the bad records of all inputs. ``ring`` says how
    many chunks may be alive at a time before their memory is used again. ``refuse_nul`` says that a nul byte in a text
    is an error rather than a blank.
    """

    reading: Reading
    roles: Roles = field(default_factory=Roles)
    max_bad: int = 0
    keep_names: bool = False
    tags: bool = False
    ring: int = 1
    chunk_bytes: int = 1 << 20
    n_bad: int = 0
    refuse_nul: bool = False

    def again(self, reading: Reading, max_bad: int) -> Self:
        """Another run, as if it were the first, in the memory of this one, which is over."""
        new = replace(self, reading=reading, max_bad=max_bad, n_bad=0)
        vars(new)["workspace"] = self.workspace
        new.workspace.forget_names()
        return new

    @cached_property
    def workspace(self) -> Workspace:
        """Memory for text, made when the first input of that kind comes, and kept for the next."""
        entries = self.chunk_bytes * (4 if self.reading.interact else 1) + 64
        return Workspace(self.chunk_bytes, entries, 1 << self.reading.bits if self.keep_names else 0, self.ring)
