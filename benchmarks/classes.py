"""Classes by a softmax: losses beside one-vs-rest and multinomial LogisticRegression, coverage, pace; issue 15's table.

No option is given but ``multi_class``. Losses are means of -log p over fresh rows, the mean of several splits;
LogisticRegression sees standardised features, ours raw ones. ``GAUSSFOLD_SEED`` sets the seed.
"""

from __future__ import annotations

import os
import time
import warnings
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import scipy.sparse
from scipy.special import log_softmax
from sklearn.datasets import load_digits, load_iris, load_wine
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler

import gaussfold as gf
from benchmarks.report import Report

SIMULATED = ((3, 5, 600, 1.0), (5, 20, 2000, 0.5), (10, 10, 3000, 1.0), (30, 20, 4000, 0.7), (100, 20, 2000, 0.5))
"""Classes, features, rows, standard deviation of the weights."""
TOPICS = (8, 2000, 4000)
COVERED = ((3, 5, 500, 100), (5, 8, 1000, 100), (10, 10, 2000, 40))
"""Classes, features, rows, data sets: of few, coverage is a matter of luck (ten of 3 x 5 gave 76 and 97 %)."""


class Data(NamedTuple):
    """A set of rows."""

    name: str
    X: np.ndarray
    y: np.ndarray


def _sets(rng: np.random.Generator, quick: bool) -> Iterator[Data]:
    for name, load in (("iris", load_iris), ("wine", load_wine), ("digits", load_digits)):
        if not (quick and name == "digits"):
            yield Data(name, *load(return_X_y=True))
    for K, d, n, std in SIMULATED[:1] if quick else SIMULATED:
        X, W = rng.standard_normal((2 * n, d)), std * rng.standard_normal((K, d + 1))
        f = X @ W[:, :-1].T + W[:, -1]
        yield Data(f"simulated {K} x {d}", X, np.argmax(f + rng.gumbel(size=f.shape), axis=1))


def _loss(log_p: np.ndarray, classes: np.ndarray, y: np.ndarray) -> float:
    known = np.searchsorted(classes, y)
    return float(-log_p[np.arange(len(y)), np.minimum(known, len(classes) - 1)].mean())


def _losses(data: Data, seed: int) -> dict[str, float]:
    """Of one split."""
    train, new, y, truth = train_test_split(data.X, data.y, test_size=0.3, random_state=seed)
    fresh = np.isin(truth, y)
    new, truth = new[fresh], truth[fresh]
    scaler = StandardScaler().fit(train)
    peer = LogisticRegression(max_iter=2000).fit(scaler.transform(train), y)
    found = {"peer": _loss(peer.predict_log_proba(scaler.transform(new)), peer.classes_, truth)}
    for way, refine in (("fit", "auto"), ("pass", 0)):
        for kind in ("softmax", "ovr"):
            model = gf.StreamingClassifier(multi_class=kind).fit(train, y, refine=refine)
            found[f"{way} {kind}"] = _loss(model.predict_log_proba(new), model.classes_, truth)
    return found


def _text(rng: np.random.Generator, quick: bool) -> list[object]:
    """Sparse rows of words: a diagonal posterior, one pass."""
    K, d, n = (4, 300, 600) if quick else TOPICS
    topics, y = rng.dirichlet(np.full(d, 0.02), size=K + 1), rng.integers(0, K, n)
    rows = [np.unique(rng.choice(d, size=rng.poisson(20) + 3, p=0.5 * topics[k] + 0.5 * topics[K])) for k in y]
    ptr = np.concatenate([[0], np.cumsum([len(row) for row in rows])])
    X = scipy.sparse.csr_array((np.ones(ptr[-1]), np.concatenate(rows), ptr), shape=(n, d))
    cut, loss = int(0.7 * n), {}
    for kind in ("softmax", "ovr"):
        model = gf.StreamingClassifier(covariance="diagonal", multi_class=kind)
        model.fit(X[:cut], y[:cut], refine=0)
        loss[kind] = _loss(model.predict_log_proba(X[cut:]), model.classes_, y[cut:])
    peer = LogisticRegression(max_iter=500).fit(X[:cut], y[:cut])
    there = _loss(peer.predict_log_proba(X[cut:]), peer.classes_, y[cut:])
    return [f"text {K} x {d}, diagonal", "pass", loss["softmax"], loss["ovr"], there, loss["softmax"] / there, ""]


def _coverage(K: int, d: int, n: int, way: str, seeds: int, rng: np.random.Generator) -> tuple[float, float]:
    """Of 90 % intervals: weights less their mean over classes, and probabilities of fresh rows."""
    weights, shares = [], []
    for _ in range(seeds):
        W, X = rng.standard_normal((K, d)), rng.standard_normal((n + 50, d))
        f = X @ W.T
        y = np.argmax(f + rng.gumbel(size=f.shape), axis=1)
        model = gf.StreamingClassifier(class_covariance=way, fit_intercept=False, scale=False, prior_std=1.0)
        model.partial_fit(X[:n], y[:n], classes=np.arange(K))
        draws = model.sample_posterior(2000, rng=rng)
        draws -= draws.mean(axis=1, keepdims=True)
        low, high = np.quantile(draws, [0.05, 0.95], axis=0)
        weights.append(np.mean((low < W - W.mean(axis=0)) & (W - W.mean(axis=0) < high)))
        low, high = np.quantile(model.sample_proba(X[n:], 1000, rng=rng), [0.05, 0.95], axis=0)
        true = np.exp(log_softmax(f[n:], axis=1))
        shares.append(np.mean((low < true) & (true < high)))
    return float(np.mean(weights)), float(np.mean(shares))


def _pace(quick: bool, rng: np.random.Generator) -> float:
    """Rows a second of processor time, ten classes of 64 features, a block each."""
    n = 500 if quick else 20_000
    X, W = rng.standard_normal((n, 64)), 0.3 * rng.standard_normal((10, 64))
    y = np.argmax(X @ W.T + rng.gumbel(size=(n, 10)), axis=1).astype(float)
    likelihood, best = gf.likelihoods.Softmax(10), np.inf
    for _ in range(3):
        belief, start = gf.BlockGaussian.isotropic(10, 64), time.process_time()
        gf.fold(belief, likelihood, X, y)
        best = min(best, time.process_time() - start)
    return n / best


def run(*, quick: bool = False) -> Report:
    """All of it."""
    rng = np.random.default_rng(int(os.environ.get("GAUSSFOLD_SEED", "15")))
    columns = ("data", "learned by", "softmax", "one-vs-rest", "LogisticRegression", "ratio", "worse than one-vs-rest")
    report = Report("Classes by a softmax, no option given: log loss of fresh rows", columns)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        for data in _sets(rng, quick):
            count = len(np.unique(data.y))
            splits = 2 if quick else 1 if count > 50 else 3 if count > 5 else 5  # ten minutes of one core in all
            found = [_losses(data, int(rng.integers(1 << 30))) for _ in range(splits)]
            mean = {name: float(np.mean([each[name] for each in found])) for name in found[0]}
            for way in ("fit", "pass"):
                worse = sum(each[f"{way} softmax"] > each[f"{way} ovr"] for each in found)
                ours, apart = mean[f"{way} softmax"], mean[f"{way} ovr"]
                report.rows.append([
                    data.name, way, ours, apart, mean["peer"], ours / mean["peer"], f"{worse} of {splits}",
                ])  # fmt: skip
            print(report.rows[-2], report.rows[-1], flush=True)
    report.rows.append(_text(rng, quick))
    report.notes.append(f"{_pace(quick, rng):.0f} rows a second of processor time, 10 x 64, block-diagonal")
    for K, d, n, sets in COVERED[:1] if quick else COVERED:
        for way in ("joint", "block"):
            weights, shares = _coverage(K, d, n, way, 2 if quick else sets, rng)
            report.notes.append(
                f"90 % intervals, one pass, {K} classes x {d}, {n} rows, {sets} data sets, {way}: weights between "
                f"classes {100 * weights:.0f} %, probabilities {100 * shares:.0f} %"
            )
    return report
