"""The first rows of a stream, kept for a while: they were learned when little was known.

A row's site is made at the belief of its time: too sharp under a narrow belief, too flat under a wide one. That is
worst among the first rows, the more so while the width of the prior is still being found. So these (`ROOM` of them) are
kept, and visited again whenever the scales are looked at: once under the new width, or, where the width is given, until
they have roughly settled. Rows of a softmax are kept without their sites, and learned again (`replay`). That is some
times the work for these rows and nothing afterwards.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple, Self

import numpy as np

from gaussfold import schema
from gaussfold.estimators.folded import Call
from gaussfold.folding import FoldResult
from gaussfold.rows import dense_rows
from gaussfold.trace import Trace
from gaussfold.types import Array

ROOM = 1024
"""How many rows are kept: a power of two, as the counts at which one looks."""


class Kept(NamedTuple):
    """Rows as they came, with labels and sites of each belief."""

    X: Array
    weight: Array
    targets: tuple[Array, ...]
    precisions: tuple[Array, ...]
    shifts: tuple[Array, ...]

    def sites(self, k: int) -> FoldResult:
        """Of belief ``k``, for `sweep`."""
        nothing = np.zeros(len(self.X))
        return Trace(nothing, nothing, nothing, self.precisions[k], self.shifts[k])


class Early(NamedTuple):
    """All that is kept, in pieces as they came."""

    pieces: tuple[Kept, ...] = ()

    def add(self, X: Array, weight: Array, targets: Sequence[Array], results: Sequence[FoldResult]) -> Self:
        """More rows, all of them learned; without ``results`` there are no sites to keep."""
        kept = Kept(
            X.copy(), weight.copy(), tuple(target.copy() for target in targets),
            tuple(each.site_precision.copy() for each in results), tuple(each.site_shift.copy() for each in results),
        )  # fmt: skip
        return type(self)((*self.pieces, kept))

    def with_piece(self, piece: Call, weight: Array, results: Sequence[FoldResult]) -> Self:
        """Those rows of a piece that were learned, of these weights."""
        rows = piece.learned
        sites = [Trace(*(column[rows] for column in each)) for each in results]
        return self.add(dense_rows(piece.X)[rows], weight, [target[rows] for target in piece.targets], sites)

    def whole(self) -> Kept:
        """In one piece; there is at least one."""
        if len(self.pieces) == 1:
            return self.pieces[0]
        first, *_ = self.pieces
        X, weight = (np.concatenate(column) for column in list(zip(*self.pieces, strict=True))[:2])
        several = [
            tuple(np.concatenate(column) for column in zip(*(piece[part] for piece in self.pieces), strict=True))
            for part in range(2, len(first))
        ]
        return Kept(X, weight, *several)

    def state(self) -> dict[str, np.ndarray]:
        """Named arrays that hold everything; none before the first row."""
        if not self.pieces:
            return {}
        kept = self.whole()
        arrays = {"X": kept.X.copy(), "weight": kept.weight.copy()}
        for name, columns in (("target", kept.targets), ("precision", kept.precisions), ("shift", kept.shifts)):
            arrays |= {f"{name}{k}": column.copy() for k, column in enumerate(columns)}
        return arrays

    @classmethod
    def from_state(cls, arrays: Mapping[str, np.ndarray], width: int, n_beliefs: int) -> Self:
        """Undo `state`."""
        if not arrays:
            return cls()
        parts = [schema.Part("X", ("n", "d"), "double"), schema.Part("weight", ("n",), "double", positive=True)]
        sites = n_beliefs if "precision0" in arrays else 0
        counts = {"target": n_beliefs, "precision": sites, "shift": sites}
        parts += [schema.Part(f"{name}{k}", ("n",), "double") for name, many in counts.items() for k in range(many)]
        sizes = schema.check(arrays, parts)
        schema.equal("X", sizes["d"], width, "one column for each feature")
        columns = [tuple(arrays[f"{name}{k}"].copy() for k in range(many)) for name, many in counts.items()]
        return cls((Kept(arrays["X"].copy(), arrays["weight"].copy(), *columns),))
