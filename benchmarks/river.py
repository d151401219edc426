"""A row at a time beside River's own linear models: processor time per row, and how well each predicts."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable

import numpy as np
from river import base, datasets, linear_model, metrics, preprocessing

from benchmarks.report import Report
from gaussfold.estimators.river import RiverClassifier, RiverMulticlassClassifier, RiverRegressor

Rows = list[tuple[dict[str, float], object]]


def _scaled(model: base.Estimator) -> base.Estimator:
    return preprocessing.StandardScaler() | model


def _simulated(d: int, n: int, *, numbers: bool) -> Rows:
    rng = np.random.default_rng(0)
    X, names = rng.normal(size=(n, d)), [f"f{i}" for i in range(d)]
    f = X @ rng.normal(size=d) + rng.normal(size=n)
    y = f.tolist() if numbers else (f > 0).tolist()
    return [(dict(zip(names, row.tolist(), strict=True)), label) for row, label in zip(X, y, strict=True)]


def _run(model: base.Estimator, rows: Rows, score: metrics.base.Metric) -> float:
    """Predict, then learn, every row; seconds a row."""
    ask: Callable[[dict[str, float]], object]
    ask = model.predict_one if isinstance(score, metrics.MAE) else model.predict_proba_one
    start = time.process_time()
    told = []
    for x, y in rows:
        told.append(ask(x))
        model.learn_one(x, y)
    seconds = time.process_time() - start
    for (_, y), answer in zip(rows, told, strict=True):
        score.update(y, answer)
    return seconds / len(rows)


def run(*, quick: bool = False) -> Report:
    """Ours and River's in turn, the best of several."""
    n = 200 if quick else 2000
    data: dict[str, tuple[Rows, type, type, Callable[[], base.Estimator]]] = {
        "Phishing": (list(itertools.islice(datasets.Phishing(), n)), metrics.LogLoss, RiverClassifier, _logistic),
        "Trump approval": (list(itertools.islice(datasets.TrumpApproval(), n)), metrics.MAE, RiverRegressor, _linear),
    }
    for d in (5, 30, 100):
        data[f"{d} features, classes"] = (_simulated(d, n, numbers=False), metrics.LogLoss, RiverClassifier, _logistic)
    data["30 features, numbers"] = (_simulated(30, n, numbers=True), metrics.MAE, RiverRegressor, _linear)
    columns = ("data", "ours, µs", "River's scaled, µs", "×", "ours: loss", "River's: loss")
    report = Report("River: predict and learn one row", columns)
    for name, (rows, score, ours, theirs) in data.items():
        best, losses = [np.inf, np.inf], [0.0, 0.0]
        for _ in range(2 if quick else 5):
            for i, model in enumerate((_scaled(ours()), _scaled(theirs()))):
                found = score()
                best[i] = min(best[i], _run(model, rows, found))
                losses[i] = found.get()
        report.rows.append([name, 1e6 * best[0], 1e6 * best[1], best[0] / best[1], *losses])
    rows = list(itertools.islice(datasets.ImageSegments(), n))
    score = metrics.CrossEntropy()
    seconds = _run(_scaled(RiverMulticlassClassifier()), rows, score)
    report.rows.append(["Image segments, 7 classes", 1e6 * seconds, "", "", score.get(), ""])
    report.notes.append("both behind River's StandardScaler; loss: log loss of predict-then-learn, or absolute error")
    return report


def _logistic() -> base.Estimator:
    return linear_model.LogisticRegression()


def _linear() -> base.Estimator:
    return linear_model.LinearRegression()
