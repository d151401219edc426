"""One pass in order beside rounds of 4, 16 and 64 shards: what learning apart costs, in loss on fresh rows.

Two laws of clicks are drawn anew with every seed: ``valued`` (5000 named features, 22 a row, real values, as
``../shared/bench/valued.py`` writes them) and ``zipf`` (six columns of categories whose frequencies fall as 1/rank).
Beliefs: diagonal (marginal and joint), eight priors mixed, the default's stack, and dense with d = 300. Printed are
losses relative to one pass in percent, for the dense belief also the KL divergence to it and how often 90 % intervals
of the weights cover the truth, processor time against one pass, and what 1000 touched cells of 2^24 cost to send.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import NamedTuple, TypeAlias

import numpy as np
from scipy import sparse

import gaussfold as gf
from benchmarks.report import Report
from gaussfold.distributed import Scheme
from gaussfold.distributed.arrays import scheme_for
from gaussfold.types import Array

LOGIT = gf.likelihoods.Bernoulli("logit")
BOUND = 1.6448536269514722
"""Of a 90 % interval."""
PIECE = 1 << 17


class Law(NamedTuple):
    """Rows to learn and fresh ones."""

    X: sparse.csr_matrix | Array
    y: Array
    fresh: sparse.csr_matrix | Array
    labels: Array
    theta: Array


def valued(n: int, seed: int) -> Law:
    """5000 features of falling popularity with values of a gamma law, 22 draws a row, and a constant."""
    rng, features = np.random.default_rng(seed), 5000
    popularity = 1.0 / np.arange(1, features + 1) ** 0.9
    theta = np.append(rng.normal(0.0, 1.2, features), -0.5)
    popularity /= popularity.sum()

    def rows(count: int) -> tuple[np.ndarray, Array]:
        which = rng.choice(features, size=(count, 22), p=popularity).astype(np.int32)
        value = np.round(rng.gamma(2.0, 0.4, which.shape), 4)
        order = np.argsort(which, axis=1, kind="stable")
        which, value = np.take_along_axis(which, order, 1), np.take_along_axis(value, order, 1)
        value[:, 1:][which[:, 1:] == which[:, :-1]] = 0.0  # the first of several counts
        return which, value

    return _law(rows, n, features, theta, rng)


def zipf(n: int, seed: int) -> Law:
    """Six columns of up to 100000 categories, the k-th as frequent as 1/k, and a constant."""
    rng, features = np.random.default_rng(seed), 1 << 18
    theta = np.append(rng.normal(0.0, 0.5, features), -1.0)
    sizes = (10, 100, 1000, 10000, 30000, 100000)
    starts = np.cumsum([0, *sizes[:-1]])

    def rows(count: int) -> tuple[np.ndarray, Array]:
        ranks = [np.floor((size + 1.0) ** rng.random(count)).astype(np.int32) - 1 for size in sizes]
        return np.stack([np.minimum(r, s - 1) + a for r, s, a in zip(ranks, sizes, starts, strict=True)], 1), np.ones(
            (count, len(sizes))
        )

    return _law(rows, n, features, theta, rng)


def _law(
    rows: Callable[[int], tuple[np.ndarray, Array]], n: int, features: int, theta: Array, rng: np.random.Generator
) -> Law:
    def drawn(count: int) -> tuple[sparse.csr_matrix, Array]:
        X = sparse.vstack([_matrix(*rows(min(PIECE, count - a)), features) for a in range(0, count, PIECE)], "csr")
        return X, (rng.random(count) < 1.0 / (1.0 + np.exp(-(X @ theta)))).astype(float)

    return Law(*drawn(n), *drawn(max(20000, n // 10)), theta)


def _matrix(which: np.ndarray, value: Array, features: int) -> sparse.csr_matrix:
    """Sorted columns, zeros left out, and the constant last."""
    n = len(which)
    which = np.hstack([which, np.full((n, 1), features, which.dtype)])
    value = np.hstack([value, np.ones((n, 1))])
    kept = value != 0.0
    indptr = np.append(0, np.cumsum(kept.sum(axis=1)))
    return sparse.csr_matrix((value[kept], which[kept], indptr), shape=(n, features + 1))


def dense(n: int, seed: int, d: int = 300) -> Law:
    """Correlated columns, weights of a size that leaves labels in doubt."""
    rng = np.random.default_rng(seed)
    mix = rng.normal(size=(d, d)) * (np.arange(1, d + 1) ** -0.5)
    mix /= np.linalg.norm(mix, axis=1)[:, None]
    theta = rng.normal(size=d) * 1.5 / np.sqrt(d)

    def drawn(count: int) -> tuple[Array, Array]:
        X = rng.normal(size=(count, d)) @ mix.T
        return X, (rng.random(count) < 1.0 / (1.0 + np.exp(-(X @ theta)))).astype(float)

    return Law(*drawn(n), *drawn(20000), theta)


Sparse: TypeAlias = gf.DiagonalGaussian | gf.DiagonalMixture | gf.DiagonalStack
BELIEFS: dict[str, Callable[[int], Sparse]] = {
    "marginal": lambda d: gf.DiagonalGaussian.isotropic(d, std=1.0),
    "joint": lambda d: gf.DiagonalGaussian.isotropic(d, std=1.0, coupling="joint"),
    "mixture": lambda d: gf.DiagonalMixture.isotropic(d),
    "stack": lambda d: gf.DiagonalStack.isotropic(d, dtype="float32"),
}


def loss(belief: Sparse | gf.DenseGaussian, law: Law) -> float:
    """Mean log loss on fresh rows, weights integrated out."""
    if isinstance(belief, gf.DenseGaussian):
        return -float(LOGIT.log_predictive(law.labels, belief.marginal(law.fresh)).mean())
    scores = LOGIT.log_predictive(law.labels[:, None], belief.marginals(law.fresh))
    return -float(np.logaddexp.reduce(belief.log_weights + scores, axis=1).mean())


def timed(work: Callable[[], object]) -> float:
    """Processor time."""
    began = time.process_time()
    work()
    return time.process_time() - began


def run(quick: bool = False) -> Report:
    """Measure."""
    report = Report(
        "Learning apart: loss on fresh rows against one pass in order",
        ["law", "rows", "belief", "shards", "one pass", "rounds, %", "time / one pass", "KL", "coverage, points"],
    )
    seed = int(np.random.SeedSequence().generate_state(1)[0])
    report.numbers["seed"] = seed
    report.notes.append(
        f"seed {seed}, drawn for this run; KL to one pass in nats; coverage of 90 % intervals of weights"
    )
    sizes = {"valued": 60_000, "zipf": 60_000} if quick else {"valued": 2_000_000, "zipf": 6_000_000}
    for name, make in (("valued", valued), ("zipf", zipf)):
        law = make(sizes[name], seed)
        for kind, prior in BELIEFS.items():
            for row in _diagonal(law, prior, quick):
                report.rows.append([name, sizes[name], kind, *row, "", ""])
                print(report.rows[-1], flush=True)
    n, d = (6000, 20) if quick else (300_000, 300)
    for row in _dense(dense(n, seed, d), d):
        report.rows.append(["dense", n, f"d = {d}", *row])
        print(report.rows[-1], flush=True)
    report.notes.append(_sending())
    return report


def _diagonal(law: Law, prior: Callable[[int], Sparse], quick: bool) -> Iterator[list[object]]:
    one = prior(law.theta.size)
    gf.fold(prior(law.theta.size), LOGIT, law.X[:100], law.y[:100], rule="newton")  # compiled
    plain = timed(lambda: gf.fold(one, LOGIT, law.X, law.y, rule="newton"))
    known = loss(one, law)
    for shards in (4, 16, 64):
        belief = prior(law.theta.size)
        scheme = Scheme(head=1024, most=shards) if quick else Scheme(most=shards)
        took = timed(
            lambda belief=belief, scheme=scheme: gf.distributed.fold(
                belief, LOGIT, law.X, law.y, rule="newton", scheme=scheme
            )
        )
        yield [shards, known, 100.0 * (loss(belief, law) / known - 1.0), took / plain]


def _dense(law: Law, d: int) -> Iterator[list[object]]:
    def covered(belief: gf.DenseGaussian) -> float:
        away = np.abs(belief.mean - law.theta) / np.sqrt(belief.variance())
        return 100.0 * float((away < BOUND).mean())

    one = gf.DenseGaussian.isotropic(d, std=1.0)
    plain = timed(lambda: gf.fold(one, LOGIT, law.X, law.y))
    known = loss(one, law)
    for shards in (4, 16, 64):
        belief = gf.DenseGaussian.isotropic(d, std=1.0)
        scheme = scheme_for(belief)._replace(most=shards)
        took = timed(
            lambda belief=belief, scheme=scheme: gf.distributed.fold(belief, LOGIT, law.X, law.y, scheme=scheme)
        )
        change = 100.0 * (loss(belief, law) / known - 1.0)
        yield [shards, known, change, took / plain, belief.kl(one), covered(belief) - covered(one)]


def _sending() -> str:
    """Delta, merge and apply of 1000 touched cells of 2^24; and merging many."""
    dim, rng = 1 << 24, np.random.default_rng(1)
    base = gf.DiagonalGaussian.isotropic(dim, std=0.7)
    shards = []
    for _ in range(2):
        columns = np.sort(rng.choice(dim, 1000, replace=False))
        X = sparse.csr_matrix((np.ones(1000), columns, np.arange(0, 1001, 10)), shape=(100, dim))
        shard = base.copy()
        gf.fold(shard, LOGIT, X, (rng.random(100) < 0.5).astype(float), rule="newton")
        shards.append(shard)
    best = min(timed(lambda: base.copy().apply(shards[0].delta(base).merge(shards[1].delta(base)))) for _ in range(9))
    n = 1_000_000
    wide = gf.DiagonalGaussian(np.full(n, 0.1), np.full(n, 0.5)).delta(gf.DiagonalGaussian(np.zeros(n), np.ones(n)))
    merging = min(timed(lambda: wide.merge(wide)) for _ in range(5)) / n
    together = min(timed(lambda: gf.DiagonalGaussian.combine(base, shards)) for _ in range(3))
    return (
        f"1000 cells of 2^24: two deltas, merge and apply {1e3 * best:.1f} ms, combine {1e3 * together:.1f} ms; "
        f"merging {1e9 * merging:.1f} ns a cell (processor time, best of several)"
    )
