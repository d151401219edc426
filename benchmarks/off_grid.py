"""Weights as wide as no lane is: the regret of ``prior_std="auto"`` beside that of the right prior and of others.

Rows have 20 of 200 features, labels follow the logistic model with weights from N(0, std²). Regret is the total log
loss above that of the true weights, divided by log n.
"""

from __future__ import annotations

import numpy as np
from scipy import sparse

import gaussfold as gf
from benchmarks.report import Report

STDS = (0.05, 0.15, 0.5, 1.5, 2.8, 7.0, 20.0)
ROWS, FEATURES, ACTIVE = 1_000_000, 200, 20
BLOCK = 50_000


def _rows(n: int, std: float, seed: int) -> tuple[sparse.csr_array, np.ndarray, float]:
    rng = np.random.default_rng(seed)
    weight = rng.normal(0.0, std, FEATURES)
    parts = [np.argsort(rng.random((min(BLOCK, n - i), FEATURES)), axis=1)[:, :ACTIVE] for i in range(0, n, BLOCK)]
    columns = np.sort(np.concatenate(parts), axis=1)
    f = weight[columns].sum(axis=1)
    y = (rng.random(n) < 1.0 / (1.0 + np.exp(-f))).astype(float)
    ends = np.arange(0, n * ACTIVE + 1, ACTIVE)
    X = sparse.csr_array((np.ones(n * ACTIVE), columns.ravel(), ends), shape=(n, FEATURES))
    return X, y, float(np.logaddexp(0.0, np.where(y == 1.0, -f, f)).sum())


def run(*, quick: bool = False) -> Report:
    """One row a width: the right prior, eight priors mixed, the stack."""
    n = 2000 if quick else ROWS
    report = Report(f"off the grid: regret/log n, {n:,} rows", ("std", "right prior", "8 priors mixed", "stacked", "×"))
    for std in STDS:
        X, y, truth = _rows(n, std, seed=round(1000 * std))

        def regret(belief: gf.DiagonalGaussian | gf.DiagonalMixture | gf.DiagonalStack, X=X, y=y, truth=truth) -> float:
            result = gf.fold(belief, gf.likelihoods.Bernoulli("logit"), X, y, rule="newton")
            return (-result.log_predictive.sum() - truth) / np.log(n)

        right = regret(gf.DiagonalGaussian.isotropic(FEATURES, std))
        mixed = regret(gf.DiagonalMixture.isotropic(FEATURES))
        stacked = regret(gf.DiagonalStack.isotropic(FEATURES, dtype=np.float32))
        report.rows.append([std, right, mixed, stacked, stacked / right])
    return report
