"""Rows of any shape, from none to 10⁶ features, through diagonal beliefs: every loop and any chunking must agree.

Lanes take four or eight features at a time and have an end to get right; a long row needs more working memory than the
rows around it. What a case gives is compared with the same rows cut into other chunks (bit for bit) and, where it is
small, with the loop that has no lanes and with the textbook (``tests/reference/diagonal.py``).
"""

from __future__ import annotations

import math
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import numpy as np
from scipy.sparse import csr_array

import gaussfold as gf
from gaussfold.beliefs import DiagonalGaussian, DiagonalMixture
from tests.reference import diagonal as textbook

LOGIT = gf.likelihoods.Bernoulli("logit", "probit")
MOST = 2_000_000
"""Entries of a case."""
FEW = 300


class Shape(NamedTuple):
    """Rows with labels and weights."""

    X: csr_array
    y: np.ndarray
    weight: np.ndarray

    def part(self, start: int, stop: int) -> Shape:
        """Some of the rows."""
        return Shape(self.X[start:stop], self.y[start:stop], self.weight[start:stop])


def lengths(rng: np.random.Generator) -> np.ndarray:
    """How long the rows are: log-uniform, most of them short, every hundredth case with one of up to 10⁶."""
    longest = rng.choice([8, 40, 300, 10_000, 1_000_000], p=[0.3, 0.4, 0.2, 0.09, 0.01])
    drawn = np.exp(rng.uniform(0.0, math.log(longest + 1), rng.integers(1, 13))).astype(np.int64)
    drawn[rng.random(drawn.size) < 0.1] = 0
    if rng.random() < 0.3:  # around a full lane
        drawn[:] = rng.integers(0, 18, drawn.size)
    return drawn[: max(1, np.searchsorted(np.cumsum(drawn), MOST))]


def rows(rng: np.random.Generator) -> Shape:
    """Rows with columns in any order, some of them more than once, and labels of every kind."""
    counts = lengths(rng)
    dim = int(counts.max() * rng.choice([1.0, 1.3, 20.0])) + 1
    if dim > MOST or rng.random() < 0.2:  # repeats
        dim = max(1, int(counts.max() * 0.7))
        columns = rng.integers(0, dim, counts.sum())
    else:
        start = rng.integers(0, dim, counts.size)
        step = int(rng.choice([p for p in (1, 3, 7, 11) if dim % p or p == 1]))  # coprime: no column twice
        columns = np.concatenate([(s + step * np.arange(n)) % dim for s, n in zip(start, counts, strict=True)])
    values = rng.normal(size=columns.size) * rng.choice([0.01, 1.0, 5.0])
    values[rng.random(values.size) < 0.05] = 0.0
    index = rng.choice([np.int32, np.int64])
    X = csr_array((values, columns.astype(index), np.r_[0, np.cumsum(counts)].astype(index)), shape=(counts.size, dim))
    y = rng.integers(0, 2, counts.size).astype(float)
    y[rng.random(y.size) < 0.1] = rng.choice([0.3, math.nan])
    weight = rng.choice([0.0, 0.5, 1.0, 2.5], y.size) if rng.random() < 0.3 else np.ones(y.size)
    return Shape(X, y, weight)


def belief(rng: np.random.Generator, dim: int) -> DiagonalGaussian | DiagonalMixture:
    """Any prior, of either precision."""
    dtype = rng.choice([np.float64, np.float32], p=[0.8, 0.2])
    if rng.random() < 0.4:
        return DiagonalMixture.isotropic(dim, dtype=dtype)
    if rng.random() < 0.1:
        return DiagonalMixture.isotropic(dim, stds=(0.1, 0.7, 2.0), dtype=dtype)
    return DiagonalGaussian.isotropic(
        dim, float(rng.choice([0.1, 0.7, 3.0])), float(rng.choice([0.0, 0.3])), dtype=dtype
    )


def fold(into: DiagonalGaussian | DiagonalMixture, shape: Shape, rule: str, **settings: object) -> np.ndarray:
    """Learn the rows; what was predicted for them."""
    return gf.fold(into, LOGIT, shape.X, shape.y, rule=rule, sample_weight=shape.weight, **settings).log_predictive


def case(rng: np.random.Generator, _folder: Path) -> None:
    """Whole, in chunks, without lanes, by the textbook."""
    shape = rows(rng)
    dim = shape.X.shape[1]
    rule = str(rng.choice(["newton", "taylor", "vi"], p=[0.8, 0.1, 0.1] if shape.X.nnz < 10_000 else [1.0, 0.0, 0.0]))
    prior = belief(rng, dim)
    moves = [None, gf.dynamics.Forgetting(0.97, prior.copy()), gf.dynamics.RandomWalk(0.1)]
    dynamics = moves[rng.choice(3, p=[0.8, 0.1, 0.1])]
    whole, chunked = prior.copy(), prior.copy()
    told = fold(whole, shape, rule, dynamics=dynamics, whole=bool(rng.random() < 0.5))
    seen = ~np.isnan(shape.y)
    assert np.isfinite(told[seen]).all()
    ends = np.unique(np.r_[0, rng.integers(0, shape.y.size + 1, 2), shape.y.size])
    again = [fold(chunked, shape.part(start, stop), rule, dynamics=dynamics) for start, stop in pairwise(ends)]
    np.testing.assert_array_equal(told, np.concatenate(again))
    for name, array in whole.state().items():
        assert np.isfinite(array).all(), name
        np.testing.assert_array_equal(array, chunked.state()[name], err_msg=name)
    _look(whole, chunked, shape)
    if rng.random() < 0.1:
        _estimator(shape._replace(y=np.round(np.nan_to_num(shape.y))), ends)
    if rule == "newton" and dynamics is None and shape.X.nnz <= 20 * FEW:
        _without_lanes(prior, whole, shape, told)


def _look(whole: DiagonalGaussian | DiagonalMixture, chunked: DiagonalGaussian | DiagonalMixture, shape: Shape) -> None:
    """Marginals are those of one row after the other, and positive."""
    told = whole.marginal(shape.X)
    assert (told.variance >= 0.0).all()
    for r in range(min(3, shape.y.size)):
        one = chunked.marginal(shape.X[[r]])
        wanted = [told.mean[r], told.variance[r]]  # the components are averaged in any order
        np.testing.assert_allclose([one.mean[0], one.variance[0]], wanted, rtol=1e-12, atol=1e-14 * np.abs(wanted[1]))


def _estimator(shape: Shape, ends: np.ndarray) -> None:
    """An estimator learns the same from chunks as from the whole."""
    whole, chunked = (
        gf.StreamingClassifier(
            covariance="diagonal", rule="newton", coupling="marginal", expectation="probit", prior_std=1.0, scale=False
        )
        for _ in range(2)
    )
    whole.partial_fit(shape.X, shape.y, classes=[0.0, 1.0], sample_weight=shape.weight)
    for start, stop in pairwise(ends):
        part = shape.part(start, stop)
        chunked.partial_fit(part.X, part.y, classes=[0.0, 1.0], sample_weight=part.weight)
    told = whole.predict_proba(shape.X)
    np.testing.assert_array_equal(told, chunked.predict_proba(shape.X))
    assert np.isfinite(told).all()


def _without_lanes(
    prior: DiagonalGaussian | DiagonalMixture,
    whole: DiagonalGaussian | DiagonalMixture,
    shape: Shape,
    told: np.ndarray,
) -> None:
    """For the logit taylor is newton, in the general loop; and if rows are few, plain Python says the same."""
    plain = prior.copy()
    single = plain.dtype == np.float32
    tolerance = 3e-4 if single else 1e-8
    np.testing.assert_allclose(fold(plain, shape, "taylor"), told, rtol=tolerance, atol=tolerance)
    for one, other in zip(_cells(plain), _cells(whole), strict=True):
        np.testing.assert_allclose(one, other, rtol=tolerance, atol=tolerance)
    hard = np.isin(shape.y, (0.0, 1.0)).all()
    if isinstance(plain, DiagonalGaussian) and hard and not single and shape.X.nnz <= FEW:
        means, variances = prior.mean.tolist(), prior.var.tolist()
        for r, (label, weight) in enumerate(zip(shape.y, shape.weight, strict=True)):
            here = slice(shape.X.indptr[r], shape.X.indptr[r + 1])
            row: dict[int, float] = {}
            for j, x in zip(shape.X.indices[here], shape.X.data[here], strict=True):
                row[int(j)] = row.get(int(j), 0.0) + float(x)
            row = {j: x for j, x in row.items() if x != 0.0}
            if weight:
                textbook.marginal_logit(means, variances, row, 2 * label - 1, weight)
        np.testing.assert_allclose(whole.mean, means, rtol=1e-8, atol=1e-10)
        np.testing.assert_allclose(whole.var, variances, rtol=1e-8, atol=1e-300)


def _cells(of: DiagonalGaussian | DiagonalMixture) -> tuple[np.ndarray, np.ndarray]:
    parts = of.components if isinstance(of, DiagonalMixture) else [of]
    return np.array([part.mean for part in parts]), np.array([part.var for part in parts])
