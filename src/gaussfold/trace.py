"""What a pass over rows leaves behind: the marginals it met and the sites it made."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from gaussfold.types import Array, Moments

if TYPE_CHECKING:
    from gaussfold.dynamics import Dynamics
    from gaussfold.observations import Observations


class Trace(NamedTuple):
    """Per row of a pass: the marginal before learning, its score, and the site that was absorbed.

    Rows that see D latents have a mean and a shift (n, D), covariances in place of the variance (n, D, D) and matrices
    in place of the precision; of beliefs without covariances between the latents both are (n, D).
    """

    mean: Array
    variance: Array
    log_predictive: Array
    site_precision: Array
    site_shift: Array

    @classmethod
    def empty(cls, n: int) -> Trace:
        """Room for n rows, no sites yet."""
        return cls(np.empty(n), np.empty(n), np.empty(n), np.zeros(n), np.zeros(n))

    @classmethod
    def several(cls, n: int, latents: int, before: Trace | None = None, *, independent: bool = False) -> Trace:
        """Room for n rows of several latents, with the sites of an earlier pass if there was one."""
        shape = (n, latents) if independent else (n, latents, latents)
        trace = cls(np.empty((n, latents)), np.empty(shape), np.empty(n), np.zeros(shape), np.zeros((n, latents)))
        if before is not None:
            trace.site_precision[:] = before.site_precision[:n]
            trace.site_shift[:] = before.site_shift[:n]
        return trace

    @classmethod
    def joined(cls, parts: Sequence[Trace]) -> Trace:
        """The rows of several passes, one after the other; one at least."""
        return parts[0] if len(parts) == 1 else cls(*(np.concatenate(columns) for columns in zip(*parts, strict=True)))

    def rows(self, start: int, stop: int) -> Trace:
        """Views of some rows: writing to them writes here."""
        mean, variance, score, precision, shift = self
        part = slice(start, stop)
        return Trace(mean[part], variance[part], score[part], precision[part], shift[part])


class Pass(NamedTuple):
    """How rows are to pass through a belief."""

    dynamics: Dynamics | None = None
    """What ticks before each learned row."""
    sites: Trace | None = None
    """Of an earlier pass: taken out row by row before they are made anew."""
    block_size: int | None = None
    """Rows per matrix product or projection, where the belief has such."""
    whole: bool = True
    """Whether an error undoes the pass; else the rows before the one that failed stay learned (``RowError.trace``)."""


ONCE = Pass()
"""Rows that are new, in a world that stands still; all or none."""


class RowError(ValueError):
    """A row whose update would leave the finite, positive definite world; ``row`` counts within the call.

    ``trace`` is that of the rows before it, where they stay learned.
    """

    def __init__(self, row: int, trace: Trace | None = None) -> None:
        super().__init__(
            f"X: row {row} drives the posterior out of range (overflow, or a site that is not finite); "
            f"{'nothing' if trace is None else 'nothing from it on'} was learned from this call. "
            "Scale the features, or drop the row"
        )
        self.row, self.trace = row, trace


def check_moments(moments: Moments) -> Moments:
    """Refuse predictions that are no numbers: rows so large that a product with them overflows."""
    mean, variance = moments
    # one sum finds out about all; where the sum alone overflows, the entries are looked at
    with np.errstate(over="ignore", invalid="ignore"):
        good = math.isfinite(mean.sum() + variance.sum())
    if not good:
        bad = ~(np.isfinite(mean) & np.isfinite(variance))
        if bad.any():
            row = int(np.argmax(bad.reshape(len(bad), -1).any(axis=1)))
            msg = f"X: row {row} is too large for a prediction, which overflows; scale the features, or drop the row"
            raise ValueError(msg)
    return moments


def learn_before_failure(learn: Callable[[Observations], Trace], data: Observations) -> Trace:
    """Learn rows by something that learns all or none, and those before the one that fails if one does."""
    try:
        return learn(data)
    except RowError as error:
        raise RowError(error.row, learn(data.part(slice(error.row)))) from error
