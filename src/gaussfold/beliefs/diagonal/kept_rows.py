"""The rows of a diagonal belief that are due for a second look, and what each of them has said."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from gaussfold.checks import whole
from gaussfold.engine.sparse.second_look import Kept
from gaussfold.schema import Part, equal
from gaussfold.schema import check as check_parts

MOST = 100_000_000
"""Rows that anybody may want to keep."""
SHARE = 4
"""No more rows are kept than one of so many that were learned: of early rows more is known soon."""
REMEDY = "so many rows are kept and visited once more; 0 visits each row once"
MARK = "look.rows"
"""The array of a model file that says that rows are kept."""
PARTS = (
    Part(MARK, (1,), "whole", low=1, high=MOST),
    Part("look.learned", (1,), "whole", low=0),
    Part("look.ends", ("kept_ends",), "whole", low=0, pointers="kept_entries"),
    Part("look.y", ("kept",), "double"),
    Part("look.weight", ("kept",), "double", low=0.0),
    Part("look.indices", ("kept_entries",), "whole", low=0, high="d"),
    Part("look.data", ("kept_entries",), "double"),
    Part("look.sites", ("kept_entries", 2, "K"), "double", free=True),
)
"""What a model file holds of them."""


@dataclass(frozen=True)
class KeptRows:
    """At most so many ``rows``, and a quarter of those ``learned``, from ``first`` up to ``last`` of ``room``.

    What is behind ``last`` is room to write to; what is before it is never written to again. So rows are let go, and
    others come, by another record over the same arrays, and the one before is how that is taken back.
    """

    rows: int
    room: Kept
    first: int = 0
    last: int = 0
    learned: int = 0
    """How many rows have been learned since rows are kept."""

    @classmethod
    def start(cls, rows: int, components: int) -> Self:
        """Nothing kept yet."""
        return cls(whole("second_look", rows, most=MOST, remedy=REMEDY), _room(0, 0, components))

    def __len__(self) -> int:
        return self.last - self.first

    def after(self, first: int, last: int) -> Self:
        """Those that are kept after a pass."""
        return replace(self, first=first, last=last, learned=self.learned + last - self.last)

    @property
    def entries(self) -> int:
        """How many features all kept rows have together."""
        ends = self.room.ends
        return int(ends[self.last] - ends[self.first])

    @property
    def longest(self) -> int:
        """Most features of a kept row."""
        return int(np.diff(self.room.ends[self.first : self.last + 1]).max(initial=0))

    def with_room(self, rows: int, entries: int) -> Self:
        """The same rows, with room for so many more; other arrays if these are full."""
        room = self.room
        end = int(room.ends[self.last])
        if self.last + rows <= room.y.size and end + entries <= room.indices.size:
            return self
        # room for as much again, so that rows that come one at a time are not copied every time
        wider = _room(len(self) * 2 + rows, self.entries * 2 + entries, room.sites.shape[2])
        return replace(self, room=self._copied_to(wider), first=0, last=len(self))

    def _copied_to(self, wider: Kept) -> Kept:
        room, (first, last) = self.room, (self.first, self.last)
        start, stop = int(room.ends[first]), int(room.ends[last])
        wider.ends[: last - first + 1] = room.ends[first : last + 1] - start
        for new, old in ((wider.y, room.y), (wider.weight, room.weight)):
            new[: last - first] = old[first:last]
        for new, old in ((wider.indices, room.indices), (wider.data, room.data), (wider.sites, room.sites)):
            new[: stop - start] = old[start:stop]
        return wider

    def copy(self) -> Self:
        """The same in memory of its own."""
        return replace(
            self,
            room=self._copied_to(_room(len(self), self.entries, self.room.sites.shape[2])),
            first=0,
            last=len(self),
        )

    def in_other_units(self, factor: float, shift: float, constant: int | None) -> Self:
        """Labels, and what was said of means, times a factor; then labels and the constant feature's mean moved."""
        moved = self.copy()
        room = moved.room
        room.y[:] = factor * room.y + shift
        room.sites[:, 1] *= factor
        if constant is not None:
            at = room.indices == constant
            room.sites[at, 1] += shift * room.sites[at, 0]
        return moved

    def arrays(self) -> dict[str, np.ndarray]:
        """Named arrays that hold everything."""
        ends, y, weight, indices, data, sites = self.copy().room
        told = {"ends": ends, "y": y, "weight": weight, "indices": indices, "data": data, "sites": sites}
        return {MARK: np.array([self.rows]), "look.learned": np.array([self.learned])} | {
            f"look.{name}": array for name, array in told.items()
        }

    @classmethod
    def from_arrays(cls, arrays: dict[str, np.ndarray]) -> Self:
        """Undo :meth:`arrays`, which were checked."""
        kinds = (np.int64, np.float64, np.float64, np.int32, np.float64, np.float64)
        room = Kept(
            *(
                np.ascontiguousarray(arrays[part.name], dtype=kind).copy()
                for part, kind in zip(PARTS[2:], kinds, strict=True)
            )
        )
        return cls(int(arrays[MARK][0]), room, 0, room.y.size, int(arrays["look.learned"][0]))


def there(arrays: dict[str, np.ndarray]) -> bool:
    """Whether a file keeps rows."""
    return MARK in arrays


def check(arrays: dict[str, np.ndarray], sizes: dict[str, int]) -> None:
    """Refuse arrays that :meth:`KeptRows.arrays` cannot have made; ``sizes`` are those of the belief."""
    known = check_parts(arrays, PARTS, sizes | {"kept_entries": len(arrays.get("look.indices", ()))})
    equal("look.ends", known["kept_ends"], known["kept"] + 1, "one more than there are rows")
    if known["kept"] > int(arrays[MARK][0]):
        equal(MARK, int(arrays[MARK][0]), known["kept"], "so many rows are kept")


def _room(rows: int, entries: int, components: int) -> Kept:
    return Kept(
        np.zeros(rows + 1, np.int64), np.empty(rows), np.empty(rows), np.empty(entries, np.int32), np.empty(entries),
        np.empty((entries, 2, components)),
    )  # fmt: skip
