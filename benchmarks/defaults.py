"""What a newcomer meets: no option given, raw data, beside LogisticRegression and BayesianRidge on scaled data.

``python -m benchmarks defaults`` prints the losses of `fit` and of one pass (`partial_fit`, rows shuffled) as ratios to
the peer's (classification), or as differences in nats (regression), with the coverage of 90 % intervals; what was tried
first and went wrong; whether order matters to `fit`; and the cost per row. Data sets marked * were looked at while the
defaults were chosen, the others were not. Rows of many sets (`defaults_many`) hold geometric means of the ratios, and
in the place of coverage the share of sets within 2 % of the peer, or within .005 nats.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from functools import partial

import numpy as np
from scipy.stats import norm
from sklearn.datasets import load_iris, load_wine
from sklearn.linear_model import BayesianRidge, LogisticRegression
from sklearn.metrics import log_loss
from sklearn.preprocessing import StandardScaler

import gaussfold as gf
from benchmarks import defaults_many
from benchmarks.defaults_data import Task, classifications, regressions
from benchmarks.report import Report

BOUND = 1.6448536269514722
"""Of a 90 % interval."""


def _once(
    model: gf.StreamingClassifier | gf.StreamingRegressor, X: np.ndarray, y: np.ndarray, **classes: object
) -> None:
    order = np.random.default_rng(0).permutation(len(y))
    model.partial_fit(X[order], y[order], **classes)


def classified(task: Task) -> list[float]:
    """Log loss of the peer, and ours by it: `fit`, one pass."""
    found, names = [], np.unique(task.y)
    for train, test in task.splits:
        X, y, scaler = task.X[train], task.y[train], StandardScaler().fit(task.X[train])
        peer = LogisticRegression(max_iter=2000).fit(scaler.transform(X), y)
        fitted, once = gf.StreamingClassifier().fit(X, y), gf.StreamingClassifier()
        _once(once, X, y, classes=names)
        shown = [peer.predict_proba(scaler.transform(task.X[test]))]
        shown += [model.predict_proba(task.X[test]) for model in (fitted, once)]
        found.append([log_loss(task.y[test], probability, labels=names) for probability in shown])
    peers, fit, once_ = np.mean(found, axis=0)
    return [peers, fit / peers, once_ / peers]


def many(count: int, step: int) -> list[list[object]]:
    """Many small sets, by group: geometric means of the ratios, and the share within 2 % (or .005 nats) of the peer."""
    found: dict[str, list[list[float]]] = {}
    for place, (group, task) in enumerate(defaults_many.tasks(count)):
        if place % step == 0:
            found.setdefault(f"{group} {'*' if task.tuned else ''}", []).append(classified(task))
    rows: list[list[object]] = []
    for name, each in found.items():
        peer, *ratios = np.array(each).T
        within = [np.mean((ratio <= 1.02) | (peer * (ratio - 1.0) <= 0.005)) for ratio in ratios]
        rows.append([f"{len(each)} sets: {name}", peer.mean(), *np.exp(np.log(ratios).mean(axis=1)), *within])
    return rows


def regressed(task: Task) -> list[float]:
    """NLPD of the peer, ours above it, coverage: `fit`, one pass."""
    found = []
    for train, test in task.splits:
        X, y, scaler = task.X[train], task.y[train], StandardScaler().fit(task.X[train])
        peer = BayesianRidge().fit(scaler.transform(X), y)
        fitted, once = gf.StreamingRegressor().fit(X, y), gf.StreamingRegressor()
        _once(once, X, y)
        shown = [peer.predict(scaler.transform(task.X[test]), return_std=True)]
        shown += [model.predict(task.X[test], return_std=True) for model in (fitted, once)]
        losses = [-norm.logpdf(task.y[test], mean, std).mean() for mean, std in shown]
        covers = [np.mean(np.abs(task.y[test] - mean) < BOUND * std) for mean, std in shown[1:]]
        found.append([*losses, *covers])
    peers, fit, once_, cover, cover_once = np.mean(found, axis=0)
    return [peers, fit - peers, once_ - peers, cover, cover_once]


def _seconds(run: Callable[[], object], repeats: int = 3) -> float:
    times = []
    for _ in range(repeats):
        start = time.process_time()
        run()
        times.append(time.process_time() - start)
    return min(times)


def _stream(make: Callable[[], gf.StreamingClassifier], X: np.ndarray, y: np.ndarray) -> None:
    make().partial_fit(X, y)


def costs(n: int) -> list[list[object]]:
    """Microseconds a row in a stream, of the defaults and of what they were."""
    rng, rows = np.random.default_rng(0), []
    for d in (10, 100):
        X = rng.standard_normal((n, d))
        for kind, y in (
            (gf.StreamingClassifier, (X[:, 0] + rng.standard_normal(n) > 0).astype(int)),
            (gf.StreamingRegressor, X[:, 0] + rng.standard_normal(n)),
        ):
            old = partial(kind, scale=False, prior_std=1.0)
            for make in (kind, old):
                make().partial_fit(X[:300], y[:300])
            now, was = (_seconds(partial(_stream, make, X, y)) for make in (kind, old))
            batch = _seconds(partial(kind().fit, X, y), 1)
            rows.append([f"{kind.__name__}, d = {d}", 1e6 * now / n, 1e6 * was / n, now / was, 1e6 * batch / n])
    return rows


def run(quick: bool = False) -> Report:
    """All of it."""
    count = 1 if quick else 5
    report = Report("Defaults on raw data", ["data", "peer", "fit", "one pass", "covers (fit)", "covers (one pass)"])
    late = {"late": [0, 0], "tuned": [0, 0]}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for task in classifications(count):
            if quick and len(task.y) > 600:
                continue
            row = classified(task)
            report.rows.append([f"{task.name} {'*' if task.tuned else ''}", *row, "", ""])
            part = late["tuned" if task.tuned else "late"]
            part[0] += row[1] <= 1.02
            part[1] += 1
        for task in regressions(count):
            if quick and len(task.y) > 600:
                continue
            row = regressed(task)
            report.rows.append([f"{task.name} {'*' if task.tuned else ''}", *row])
            part = late["tuned" if task.tuned else "late"]
            part[0] += row[1] <= 0.02 * max(abs(row[0]), 1.0)
            part[1] += 1
        report.rows += many(1 if quick else 2, 20 if quick else 1)
    report.notes.append(
        f"fit within 2 % of the peer: {late['tuned'][0]} of {late['tuned'][1]} looked at before (*), "
        f"{late['late'][0]} of {late['late'][1]} others"
    )
    for name, load in (("wine", load_wine), ("iris", load_iris)):
        X, y = load(return_X_y=True)
        order = np.random.default_rng(1).permutation(len(y))
        one, other = gf.StreamingClassifier().fit(X, y), gf.StreamingClassifier().fit(X[order], y[order])
        pairs = zip(_beliefs(one), _beliefs(other), strict=True)
        apart = max(a.kl(b) for a, b in pairs)
        report.notes.append(
            f"{name}, sorted by class: accuracy {one.score(X, y):.3f}; {apart:.1e} nats from shuffled rows"
        )
    for row in costs(2000 if quick else 20_000):
        report.notes.append("{}: {:.2f} µs a row, was {:.2f} ({:.2f} times); fit {:.2f}".format(*row))
    return report


def _beliefs(model: gf.StreamingClassifier) -> list[gf.DenseGaussian]:
    found = model.posterior_
    return found if isinstance(found, list) else [found]
