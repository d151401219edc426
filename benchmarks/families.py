"""What a row costs under each likelihood, in rows of a Gaussian one: the fold of ten thousand rows of ten features."""

from __future__ import annotations

import time

import numpy as np

import gaussfold as gf
from benchmarks.report import Report
from gaussfold import likelihoods as lk

FEATURES = 10


def _cases(n: int) -> dict[str, tuple[lk.ScalarLikelihood, np.ndarray]]:
    """Every family with labels of its own, drawn from the model."""
    rng = np.random.default_rng(0)
    f = _rows(n) @ rng.normal(size=FEATURES)
    g = 1.0 / (1.0 + np.exp(-f))
    shares = np.clip(rng.beta(5.0 * g, 5.0 * (1.0 - g)), 1e-6, 1.0 - 1e-6)
    grades = np.digitize(f + rng.logistic(size=n), [-1.0, 0.0, 1.0]).astype(float)
    return {
        "Gaussian(0.3)": (lk.Gaussian(0.3), f + 0.3 * rng.normal(size=n)),
        "StudentT(3, 0.3)": (lk.StudentT(3.0, 0.3), f + 0.3 * rng.standard_t(3, size=n)),
        "StudentT(8, 1)": (lk.StudentT(8.0, 1.0), f + rng.standard_t(8, size=n)),
        "Bernoulli, logit": (lk.Bernoulli(), (rng.random(n) < g).astype(float)),
        "Bernoulli, probit": (lk.Bernoulli("probit"), (f + rng.normal(size=n) > 0).astype(float)),
        "Poisson": (lk.Poisson(), rng.poisson(np.exp(f)).astype(float)),
        "NegativeBinomial(2)": (lk.NegativeBinomial(2.0), rng.negative_binomial(2, 2 / (2 + np.exp(f))).astype(float)),
        "Gamma(2)": (lk.Gamma(2.0), rng.gamma(2.0, np.exp(f) / 2.0)),
        "Beta(5)": (lk.Beta(5.0), shares),
        "Ordinal, logit": (lk.Ordinal([-1.0, 0.0, 1.0]), grades),
        "Ordinal, probit": (lk.Ordinal([-1.0, 0.0, 1.0], link="probit"), grades),
    }


def _rows(n: int) -> np.ndarray:
    return np.random.default_rng(1).normal(size=(n, FEATURES)) / np.sqrt(FEATURES)


def _fold(likelihood: lk.ScalarLikelihood, X: np.ndarray, y: np.ndarray) -> float:
    belief = gf.DenseGaussian.isotropic(FEATURES)
    start = time.process_time()
    gf.fold(belief, likelihood, X, y)
    return time.process_time() - start


def run(*, quick: bool = False) -> Report:
    """Processor time, the best of several, every family in turn."""
    n = 500 if quick else 10_000
    X, cases = _rows(n), _cases(n)
    best = dict.fromkeys(cases, np.inf)
    for _ in range(2 if quick else 6):
        for name, (likelihood, y) in cases.items():
            best[name] = min(best[name], _fold(likelihood, X, y))
    base = best["Gaussian(0.3)"]
    report = Report(f"The fold of {n} rows of {FEATURES} features, rule vi at the posterior", ("likelihood", "µs", "×"))
    report.rows = [[name, 1e6 * seconds / n, seconds / base] for name, seconds in best.items()]
    return report
