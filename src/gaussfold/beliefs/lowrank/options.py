"""What can be asked of a low-rank belief, checked at the door and stored as numbers."""

from __future__ import annotations

from typing import NamedTuple, TypedDict

import numpy as np
from numpy.typing import DTypeLike

from gaussfold.checks import between, floating, one_of, positive_entries, whole
from gaussfold.factors import PROJECTIONS, resolve_projection
from gaussfold.factors.recursive_em import project_em
from gaussfold.types import Array, ArrayLike

CALIBRATED = "calibrated"
"""The projection whose error bars are held against the data."""
KEEP_A_LEDGER = (CALIBRATED,)
GAINS = ("exact", "projected")
MOST_LOOPS = 10_000
"""More steps of a projection than anybody needs: 1 to 3 are sensible."""
AUTO_BLOCK = 0
"""How ``block_size=None`` is stored."""
LARGEST_BLOCK = 128
"""Rows per projection at most, unless told otherwise."""
EARLY_BLOCK = 4
"""The same while directions are still met for the first time ..."""
EARLY_ROWS = 2
"""... which takes so many rows for each parameter ..."""
EARLY_DIM = 512
"""... and is of no account from so many parameters on, where small blocks would cost time."""
START_SHARE = 1e-8
"""What lrvga §5.1.2 calls ε."""


class Options(NamedTuple):
    """How a low-rank belief keeps its form."""

    projection: str = CALIBRATED
    inner_loops: int = 1
    gain: str = "exact"
    block_size: int = 1

    @property
    def automatic(self) -> bool:
        """Whether blocks have the size that suits."""
        return not self.block_size

    def block(self, dim: int, rank: int, taken: int) -> int:
        """Rows per projection after ``taken`` rows: as asked, or what suits.

        That is so many that a row costs least, but few among the first rows: under a wide prior each of them is sure
        of its own direction, many of these are dropped at once, and what is left of the mean is in their way.
        """
        if not self.automatic:
            return self.block_size
        if dim <= EARLY_DIM and taken < EARLY_ROWS * dim:
            return EARLY_BLOCK
        return max(8, min(2 * rank, 32), min(rank, LARGEST_BLOCK))

    @property
    def calibrated(self) -> bool:
        """Whether error bars are held against the data."""
        return self.projection in KEEP_A_LEDGER

    @property
    def fused(self) -> bool:
        """Whether one dense row is taken in a pass of its own."""
        return resolve_projection(self.projection) is not project_em


class Choices(TypedDict, total=False):
    """The same and the type of numbers, as keywords."""

    projection: str
    inner_loops: int
    gain: str
    block_size: int | None
    dtype: DTypeLike


def generator(rng: np.random.Generator | None) -> np.random.Generator:
    """Draws directions: the one given, or one of its own with a fixed seed."""
    return np.random.default_rng(0) if rng is None else rng


def check(projection: str, inner_loops: int, gain: str, block_size: int | None) -> Options:
    """Check the options of a low-rank belief."""
    resolve_projection(projection)
    one_of("gain", gain, GAINS)
    size = AUTO_BLOCK if block_size is None else whole("block_size", block_size)
    if gain == "projected" and size != 1:
        msg = f"block_size={block_size}: gain='projected' is the paper's algorithm, which projects every row: 1"
        raise ValueError(msg)
    return Options(projection, whole("inner_loops", inner_loops, most=MOST_LOOPS), gain, size)


def check_rank(rank: int, dim: int, fewest: int = 1) -> int:
    """Fewest ≤ rank ≤ dim."""
    if whole("rank", rank, fewest) > dim:
        msg = f"rank={rank}: more factors than the {dim} parameters; {fewest} to {dim} are allowed"
        raise ValueError(msg)
    return int(rank)


def check_arrays(
    mean: ArrayLike, W: ArrayLike, psi: ArrayLike, dtype: DTypeLike, name: str = "W", fewest: int = 1
) -> tuple[Array, Array, Array]:
    """Copies of the three arrays, of fitting shapes, finite, and psi positive; ``name`` is what W is called."""
    kind = floating(dtype)
    centre = np.array(mean, dtype=kind, ndmin=1)
    factors = np.array(W, dtype=kind, order="C")
    diagonal = np.array(psi, dtype=kind, ndmin=1)
    d = centre.size
    if centre.ndim != 1 or diagonal.shape != (d,) or factors.ndim != 2 or factors.shape[0] != d or d == 0:
        msg = (
            f"mean, {name}, psi: shapes {centre.shape}, {factors.shape}, {diagonal.shape}; "
            "(d,), (d, p) and (d,) with d >= 1 are needed"
        )
        raise ValueError(msg)
    check_rank(factors.shape[1], d, fewest)
    for label, array in (("mean", centre), (name, factors)):
        if not np.isfinite(array).all():
            msg = f"{label}: NaN or infinity found; only finite numbers are allowed"
            raise ValueError(msg)
    positive_entries("psi", diagonal)
    return centre, factors, diagonal


def check_start(projection: str, W: Array) -> None:
    """EM cannot leave W = 0: refuse it rather than learn nothing but the diagonal."""
    if projection == "em" and not W.any():
        msg = (
            "W: all zero, where projection='em' stays for ever; give it random columns, as isotropic() does with "
            "epsilon > 0, or take another projection"
        )
        raise ValueError(msg)


def share(epsilon: float | None, projection: str) -> float:
    """The share of the prior's precision that starts in W: EM cannot leave W = 0."""
    if epsilon is None:
        return START_SHARE if projection == "em" else 0.0
    return between("epsilon", epsilon, 0, 1, "[)")


def encode(options: Options) -> Array:
    """Options as numbers."""
    names = list(PROJECTIONS)
    return np.array(
        [names.index(options.projection), options.inner_loops, GAINS.index(options.gain), options.block_size],
        dtype=np.float64,
    )


def decode(numbers_: Array) -> Options:
    """Undo :func:`encode`; what no belief can have been made with is refused."""
    projection, loops, gain, size = (int(value) for value in numbers_)
    names = tuple(PROJECTIONS)
    for number, known in ((projection, names), (gain, GAINS)):
        whole("options", number, 0, len(known) - 1)
    return check(names[projection], loops, GAINS[gain], size or None)
