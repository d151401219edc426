"""Networks and data of the benchmark of posteriors of networks."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import jax
import numpy as np
from sklearn.datasets import load_digits

import gaussfold as gf
from gaussfold import deep

UCI = Path(__file__).resolve().parents[2] / "shared" / "data" / "uci"


def mlp(params: Any, X: Any) -> Any:
    """One hidden layer."""
    return jax.nn.relu(X @ params["w1"] + params["b1"]) @ params["w2"] + params["b2"]


def line(params: Any, X: Any) -> Any:
    """Linear regression."""
    return X @ params["w"] + params["b"]


class Task(NamedTuple):
    """Rows in training and test, the likelihood, the first weights and what counts as good."""

    name: str
    train: tuple[np.ndarray, np.ndarray]
    test: tuple[np.ndarray, np.ndarray]
    likelihood: Any
    params: Any
    precision: float
    batch: int
    offset: float
    goal: float


def boston(rows: int | None = None) -> Task:
    """Split 0; the NMLL is in the targets' own units. Random numbers of the same shape where the data are absent."""
    path = UCI / "bostonHousing.npz"
    if path.is_file():
        data = dict(np.load(path))
        X, y, train, test = data["X"], data["y"], data["train_idx"][0], data["test_idx"][0]
    else:
        rng = np.random.default_rng(0)
        X, train, test = rng.standard_normal((506, 13)), np.arange(455), np.arange(455, 506)
        y = X[:, 0] * X[:, 1] + X[:, 2] + 0.3 * rng.standard_normal(506)
    train = train[:rows]
    shift, scale, centre, unit = X[train].mean(axis=0), X[train].std(axis=0), y[train].mean(), y[train].std()
    X, y = ((X - shift) / scale).astype(np.float32), ((y - centre) / unit).astype(np.float32)
    name = "Boston" if path.is_file() else "synthetic of Boston's shape"
    return Task(
        name, (X[train], y[train]), (X[test], y[test]), gf.likelihoods.Gaussian(std=0.2),
        _mlp_params(13, 50, None), 1.0, 10, float(np.log(unit)), 2.6,
    )  # fmt: skip


def digits(rows: int | None = None) -> Task:
    """1000 training rows."""
    X, y = load_digits(return_X_y=True)
    order = np.random.default_rng(5).permutation(len(y))
    X, y = (X[order] / 16.0 - 0.5).astype(np.float32), y[order].astype(np.int32)
    count = rows or 1000
    return Task(
        "digits", (X[:count], y[:count]), (X[1000:], y[1000:]), deep.Softmax(), _mlp_params(64, 32, 10),
        1.0, 50, 0.0, 0.3,
    )  # fmt: skip


def _mlp_params(inputs: int, units: int, outputs: int | None) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(0)
    last = (units,) if outputs is None else (units, outputs)
    found = {
        "w1": rng.standard_normal((inputs, units)) / np.sqrt(inputs),
        "b1": np.zeros(units),
        "w2": rng.standard_normal(last) / np.sqrt(units),
        "b2": np.zeros(last[1:]),
    }
    return {name: np.asarray(value, np.float32) for name, value in found.items()}
