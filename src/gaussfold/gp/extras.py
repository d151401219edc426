"""What rows bring besides inputs and labels: an offset of the latents, and a weight."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gaussfold.gp.weighted import weights_of
from gaussfold.rules import SiteRule
from gaussfold.types import Array, ArrayLike


class Extras(NamedTuple):
    """Of every row; None: zero, and one."""

    offset: Array | None = None
    """(N, D)"""
    weights: Array | None = None
    """(N,)"""

    @property
    def any(self) -> bool:
        """Whether there is something."""
        return self.offset is not None or self.weights is not None

    def of(self, rows: np.ndarray | slice) -> Extras:
        """Those of some rows."""
        return Extras(*(None if a is None else a[rows] for a in self))


NONE = Extras()


def offset_of(offset: ArrayLike | None, rows: int, latents: int) -> Array | None:
    """Offsets (N, D), checked; a vector is the first latent's."""
    if offset is None:
        return None
    try:
        given = np.asarray(offset, dtype=np.float64)
    except (TypeError, ValueError) as error:
        msg = f"offset is not numeric ({error}); give one number per row, such as the log of an exposure"
        raise ValueError(msg) from error
    if given.shape not in ((rows,), (rows, latents)):
        need = f"({rows},) or ({rows}, {latents})"
        msg = f"offset has shape {given.shape}; {rows} rows of X and {latents} latents need {need}"
        raise ValueError(msg)
    bad = ~np.isfinite(given.reshape(rows, -1)).all(axis=1)
    if bad.any():
        row = int(np.argmax(bad))
        msg = f"offset[{row}] = {given[row].tolist()!r}: offsets must be finite; an exposure of zero has no logarithm"
        raise ValueError(msg)
    if given.ndim == 2:
        return given
    out = np.zeros((rows, latents))
    out[:, 0] = given
    return out


def extras_of(
    offset: ArrayLike | None, sample_weight: ArrayLike | None, rows: int, latents: int, rule: SiteRule
) -> Extras:
    """Both, checked."""
    return Extras(offset_of(offset, rows, latents), weights_of(sample_weight, rows, rule))


def joined(parts: list[tuple[Extras, int]], latents: int) -> Extras:
    """Those of several parts, each with its number of rows, one after the other."""
    offset = weights = None
    if any(extras.offset is not None for extras, _ in parts):
        offset = np.concatenate([np.zeros((n, latents)) if e.offset is None else e.offset for e, n in parts])
    if any(extras.weights is not None for extras, _ in parts):
        weights = np.concatenate([np.ones(n) if e.weights is None else e.weights for e, n in parts])
    return Extras(offset, weights)
