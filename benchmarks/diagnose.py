"""Can ``diagnose`` be believed? Two hundred cases of which the truth is known, and what it says of each.

The truth is found by other means than those of ``diagnose``: importance sampling from a wide Student-t distribution
around the mode, with many draws. A case is bad if the mean of some weight is more than half a posterior standard
deviation from the posterior's. ``GAUSSFOLD_SEED`` sets the seed; without it every run draws fresh cases.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

import gaussfold as gf
from benchmarks.report import Report
from gaussfold import likelihoods as lk
from gaussfold.metrics import diagnose, log_joint

HALF = 0.5
DRAWS = 60_000
DF = 5.0


class Case(NamedTuple):
    """A belief, and all that it is to be held against."""

    kind: str
    belief: gf.DenseGaussian
    prior: gf.DenseGaussian
    likelihood: lk.ScalarLikelihood
    X: np.ndarray
    y: np.ndarray


def _labels(likelihood: lk.ScalarLikelihood, f: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    if isinstance(likelihood, lk.Bernoulli):
        return (rng.random(f.size) < 1.0 / (1.0 + np.exp(-f))).astype(float)
    if isinstance(likelihood, lk.Poisson):
        return rng.poisson(np.exp(np.clip(f, -8.0, 6.0))).astype(float)
    return f + likelihood.std * rng.standard_normal(f.size)


def _problem(kind: str, rng: np.random.Generator) -> Case:
    family = rng.integers(3)
    likelihood = [lk.Bernoulli(), lk.Poisson(), lk.Gaussian(float(rng.uniform(0.2, 2.0)))][family]
    d = int(rng.integers(2, 13))
    n = {"tiny": int(rng.integers(5, 25)), "large": 4000}.get(kind, int(10 ** rng.uniform(1.7, 3.2)))
    X = rng.standard_normal((n, d))
    if kind == "collinear":
        X[:, 1] = X[:, 0] + 0.03 * rng.standard_normal(n)
    X = np.column_stack([X, np.ones(n)])
    theta = rng.standard_normal(d + 1) / np.sqrt(d) * rng.uniform(0.3, 2.5)
    y = _labels(likelihood, X @ theta, rng)
    if kind == "outliers" and isinstance(likelihood, lk.Gaussian):
        rows = rng.random(n) < 0.05
        y[rows] += 15.0 * likelihood.std * rng.standard_normal(rows.sum())
    elif kind == "outliers":
        y = rng.permutation(y)
    if kind == "scaled":
        X[:, :-1] *= 10.0 ** rng.uniform(3.0, 6.0) * (1.0 if rng.random() < 0.5 else 10.0 ** rng.uniform(-3, 0, d))
    if kind == "sorted":
        order = np.argsort(y, kind="stable")
        X, y = X[order], y[order]
    prior = gf.DenseGaussian.isotropic(d + 1, std=float(10.0 ** rng.uniform(-0.5, 0.7)))
    belief = prior.copy()
    gf.fold(belief, likelihood, X, y)
    return Case(kind, belief, prior, likelihood, X, y)


def _moved(case: Case, rng: np.random.Generator) -> Case:
    """The batch optimum with its mean moved by hand: one standard deviation off, or a fifth of one."""
    best = gf.batch.laplace(case.prior, case.likelihood, case.X, case.y)
    size = 1.0 if rng.random() < 0.5 else 0.2
    step = size * np.sqrt(best.variance()) * rng.choice([-1.0, 1.0], best.dim)
    return case._replace(belief=gf.DenseGaussian.from_factor(best.mean + step, best.factor))


KINDS = ("plain", "tiny", "large", "scaled", "collinear", "sorted", "outliers", "moved", "scaled and moved")


def cases(count: int, rng: np.random.Generator) -> Iterator[Case]:
    """So many, every kind in turn; what the fold itself refuses is drawn again."""
    made = 0
    while made < count:
        kind = KINDS[made % len(KINDS)]
        try:
            case = _problem({"moved": "plain", "scaled and moved": "scaled"}.get(kind, kind), rng)
            if kind.endswith("moved"):
                case = _moved(case, rng)._replace(kind=kind)
        except ValueError:
            continue
        made += 1
        yield case._replace(kind=kind)


def truth(case: Case, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray, float]:
    """Mean and standard deviations of the posterior, and the share of draws that this rests on."""
    mode = gf.batch.laplace(case.prior, case.likelihood, case.X, case.y)
    normals, stretch = rng.standard_normal((DRAWS, mode.dim)), np.sqrt(DF / rng.chisquare(DF, DRAWS))
    z = normals * (1.2 * stretch)[:, None]
    theta = mode.mean + z @ mode.factor.T
    square = np.einsum("ij,ij->i", z, z) / 1.2**2
    log_w = log_joint(theta, case.prior, case.likelihood, case.X, case.y)
    log_w += 0.5 * (DF + mode.dim) * np.log1p(square / DF)
    w = np.exp(log_w - log_w.max())
    w /= w.sum()
    mean = w @ theta
    return mean, np.sqrt(w @ (theta - mean) ** 2), float(1.0 / (w @ w) / DRAWS)


def run(*, quick: bool = False) -> Report:
    """Draw the cases, look at each twice."""
    seed = int(os.environ.get("GAUSSFOLD_SEED") or time.time_ns() % 2**32)
    rng = np.random.default_rng(seed)
    columns = ("kind", "bad", "flagged", "share", "good", "flagged ", "share ")
    report = Report(f"Diagnosis of {20 if quick else 200} cases, seed {seed}", columns)
    tally = {kind: [0, 0, 0, 0] for kind in (*KINDS, "all")}
    weak = 0
    for case in cases(20 if quick else 200, rng):
        mean, std, share = truth(case, rng)
        weak += share < 0.01
        off = float(np.max(np.abs(case.belief.mean - mean) / std))
        found = diagnose(case.belief, case.prior, case.likelihood, case.X, case.y, rng=rng)
        flagged = not found.reliable
        for kind in (case.kind, "all"):
            bad = off > HALF
            tally[kind][0 if bad else 2] += 1
            tally[kind][1 if bad else 3] += flagged
        if flagged != (off > HALF) and os.environ.get("GAUSSFOLD_VERBOSE"):
            print(case.kind, case.likelihood, case.X.shape, f"off {off:.2f} shift {found.shift:.2f}", found)
    for kind, (bad, caught, good, alarms) in tally.items():
        shares = (f"{caught / bad:.0%}" if bad else "", f"{alarms / good:.0%}" if good else "")
        report.rows.append([kind, bad, caught, shares[0], good, alarms, shares[1]])
    report.notes.append(f"truth resting on fewer than one draw in a hundred: {weak} cases")
    return report
