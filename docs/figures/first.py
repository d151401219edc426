"""The picture of the README: a stream of rows, what is known after each, and what can be said of a new one."""

from __future__ import annotations

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer

import gaussfold as gf


def breast_cancer(path: Path) -> None:
    """Loss, weights and calibration of the default classifier, one pass over unscaled rows."""
    data = load_breast_cancer()
    order = np.random.default_rng(0).permutation(len(data.target))
    X, y = data.data[order], data.target[order]
    model, seen, loss, weights, stds = gf.StreamingClassifier(), [], [], [], []
    for stop in np.unique(np.geomspace(5, 400, 40).astype(int)):
        start = seen[-1] if seen else 0
        model.partial_fit(X[start:stop], y[start:stop], classes=[0, 1])
        seen.append(int(stop))
        loss.append(model.progressive_log_loss_)
        spread = X[:400].std(axis=0)
        weights.append(model.coef_[0] * spread)
        stds.append(model.coef_std_[0] * spread)
    rows, middle, width = np.array(seen), np.array(weights), np.array(stds)
    figure, (left, right) = plt.subplots(1, 2, figsize=(10, 3.4), layout="constrained")
    left.axhline(np.log(2.0), color="0.7", lw=1)
    left.plot(rows, loss)
    left.text(rows[-1], np.log(2.0) + 0.015, "a coin", color="0.4", ha="right")
    left.set(xscale="log", xlabel="rows seen", ylabel="log loss so far (predict, then learn)", ylim=(0, 0.8))
    for i in np.argsort(-np.abs(middle[-1]) / width[-1])[:4]:
        line = right.plot(rows, middle[:, i], label=data.feature_names[i])[0]
        right.fill_between(
            rows, middle[:, i] - width[:, i], middle[:, i] + width[:, i], alpha=0.2, color=line.get_color()
        )
    right.axhline(0.0, color="0.7", lw=1)
    right.set(xscale="log", xlabel="rows seen", ylabel="weight ± its standard deviation")
    right.legend(fontsize=8, frameon=False)
    figure.savefig(path)
    plt.close(figure)
