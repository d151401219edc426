"""Rows in memory, folded in rounds by several workers: dense and diagonal beliefs, mixtures and stacks."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Executor
from typing import Any, NamedTuple, Protocol, Self

import numpy as np
from threadpoolctl import threadpool_limits

from gaussfold.beliefs.dense.belief import DenseGaussian
from gaussfold.beliefs.diagonal.base import DiagonalBelief
from gaussfold.beliefs.diagonal.belief import DiagonalGaussian
from gaussfold.beliefs.diagonal.mixture import DiagonalMixture
from gaussfold.beliefs.diagonal.stack import DiagonalStack
from gaussfold.data.units import Unit
from gaussfold.distributed.plan import Scheme, Shard, rounds_of
from gaussfold.folding import fold as fold_in_order
from gaussfold.folding import recipe_of
from gaussfold.likelihoods.base import ScalarLikelihood
from gaussfold.observations import Observations
from gaussfold.observations import check as check_rows
from gaussfold.protocols import Belief
from gaussfold.rows import AnyRows, Rows
from gaussfold.types import ArrayLike

UNITS = 2
"""So many make a head; shards are cut no finer."""


class Delta(Protocol):
    """What was learned: see ``belief.delta``."""

    def merge(self, other: Self) -> Self:
        """Both together, in any order."""
        ...


class Part(NamedTuple):
    """The rows of one shard, and what they begin with."""

    base: Any
    place: int
    shards: int
    least: float
    likelihood: ScalarLikelihood
    rule: str
    at: str
    data: Observations


LEAST_HEAD = 4096
"""Rows that a dense belief learns in order at least: of few parameters these cost nothing."""


def scheme_for(belief: Belief) -> Scheme:
    """How rounds grow: dense beliefs know correlations, so a head of ten rows a parameter is enough.

    Rounds of three times what was known before are as good on rows in random order, and up to 26 % worse on rows that
    were sorted by how likely their label is (54 small problems); rounds of half: .3 %.
    """
    return Scheme(head=max(LEAST_HEAD, 10 * belief.dim)) if isinstance(belief, DenseGaussian) else Scheme()


def fold(
    belief: DenseGaussian | DiagonalGaussian | DiagonalMixture | DiagonalStack,
    likelihood: ScalarLikelihood,
    X: ArrayLike,
    y: ArrayLike,
    rule: str = "vi",
    at: str = "posterior",
    *,
    sample_weight: ArrayLike | None = None,
    executor: Executor | None = None,
    scheme: Scheme | None = None,
) -> None:
    """Fold rows into a belief by rounds of shards, in place: the same bits with any number of workers.

    Up to 64 shards of a round begin with one belief and are added up; see `gaussfold.distributed`. For normal noise
    and a dense belief that is the posterior of one pass to rounding; elsewhere nearly so (benchmarks/RESULTS.md).

    Parameters
    ----------
    belief
        A dense or diagonal Gaussian, a mixture or a stack; changed in place, whole or not at all.
    likelihood, X, y, rule, at, sample_weight
        As for `gaussfold.fold`.
    executor
        Who learns the shards, as ``concurrent.futures`` has them (``ProcessPoolExecutor``, Dask's
        ``client.get_executor()``); None: this process, one after the other.
    scheme
        How rounds grow; None: as fits the belief.

    Examples
    --------
    >>> import numpy as np
    >>> import gaussfold as gf
    >>> rng = np.random.default_rng(1)
    >>> X = rng.normal(size=(500, 2))
    >>> y = X @ [1.0, -2.0] + 0.5 * rng.normal(size=500)
    >>> one, many = gf.DenseGaussian.isotropic(2), gf.DenseGaussian.isotropic(2)
    >>> noise = gf.likelihoods.Gaussian(0.5)
    >>> result = gf.fold(one, noise, X, y)
    >>> gf.distributed.fold(many, noise, X, y)
    >>> many.kl(one) < 1e-12
    True
    """
    adds_up = isinstance(belief, DenseGaussian | DiagonalGaussian | DiagonalMixture | DiagonalStack)
    if not adds_up:
        msg = (
            f"belief: a {type(belief).__name__} cannot be added up; give a dense or diagonal one, a mixture or a stack"
        )
        raise ValueError(msg)
    recipe_of(likelihood, rule, at)  # refuses what is not defined, before any row
    data = check_rows(likelihood, X, y, belief.dim, sample_weight)
    scheme = scheme_for(belief) if scheme is None else scheme
    now: Any = belief.copy()
    least = scheme.least * _size(data.part(slice(0, scheme.head)).X)
    for shards in rounds_of(_units(data.y.size, scheme), scheme):
        parts = [
            Part(now, shard.index, shard.count, least, likelihood, rule, at, data.part(_rows(shard)))
            for shard in shards
        ]
        found: Iterable[Delta] = _one_by_one(parts) if executor is None else executor.map(learn_part, parts)
        total = functools.reduce(lambda one, other: one.merge(other), found)
        with threadpool_limits(1):  # with more threads matrices are multiplied in another order
            now.apply(total)
    belief.become(now)


def learn_part(part: Part) -> Delta:
    """One shard's work."""
    return next(_one_by_one([part]))


def _one_by_one(parts: Sequence[Part]) -> Iterator[Delta]:
    """The work of some shards of a round."""
    base, shards = parts[0].base, parts[0].shards
    program = recipe_of(parts[0].likelihood, parts[0].rule, parts[0].at).program
    if isinstance(base, DiagonalBelief) and program is not None:
        apart = base.apart(shards, parts[0].least)
        for part in parts:
            apart.begin(part.place)
            apart.learn(part.data, program)
            yield apart.delta(last=part.place == shards - 1)
        return
    start = base.tempered(shards, parts[0].least) if isinstance(base, DiagonalBelief) else base
    for part in parts:
        with threadpool_limits(1) if isinstance(base, DenseGaussian) else contextlib.nullcontext():
            shard = start.copy()
            fold_in_order(
                shard, part.likelihood, part.data.X, part.data.y, part.rule, part.at, sample_weight=part.data.weight
            )
            yield shard.delta(start)


def _units(n: int, scheme: Scheme) -> list[Unit]:
    size = max(1, scheme.head // UNITS)
    return [Unit("X", "array", min(size, n - a), (a, min(a + size, n))) for a in range(0, n, size)]


def _rows(shard: Shard) -> slice:
    """From the first row of its first unit to the last of its last."""
    first, last = shard.units[0].span, shard.units[-1].span
    return slice(first and first[0], last and last[1])


def _size(X: AnyRows) -> float:
    """Geometric mean of x², zeros left out: how large features are."""
    values = np.abs(X.data if isinstance(X, Rows) else X)
    values = np.asarray(values[values != 0.0])
    return float(np.exp(2.0 * np.log(values).mean())) if values.size else 1.0
