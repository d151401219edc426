"""Classification, which the thesis left open: scikit-learn's digits, calibration, and inputs that are no digits."""

from __future__ import annotations

import time
from typing import Any, NamedTuple

import numpy as np
from sklearn.datasets import load_digits

from experiments import style
from experiments.deep import networks
from experiments.registry import Context, Result
from gaussfold import deep

BINS = np.linspace(0.0, 1.0, 11)


class Digits(NamedTuple):
    """Pixels in [-0.5, 0.5] and labels 0 to 9, shuffled."""

    X: np.ndarray
    y: np.ndarray
    X_test: np.ndarray
    y_test: np.ndarray

    def strangers(self) -> dict[str, np.ndarray]:
        """Inputs that are no digits: noise with the pixels' own values, and digits whose pixels were shuffled."""
        rng = np.random.default_rng(17)
        noise = rng.permuted(self.X_test, axis=0)
        order = rng.permutation(64)
        return {"pixels shuffled between images": noise, "pixels of an image reordered": self.X_test[:, order]}


def digits(quick: bool) -> Digits:
    """1000 to train (quick: 300), 797 to test."""
    X, y = load_digits(return_X_y=True)
    order = np.random.default_rng(5).permutation(len(y))
    X, y = (X[order] / 16.0 - 0.5).astype(np.float32), y[order].astype(np.int32)
    count = 300 if quick else 1000
    return Digits(X[:count], y[:count], X[1000:], y[1000:])


def methods(apply: Any, params: Any, rows: int, epochs: int) -> dict[str, Any]:
    """Posteriors under one interface: each a function of data."""
    function = deep.log_likelihood(apply, "softmax")
    steps = epochs * (rows // 50)
    shared = {"prior_precision": 1.0, "batch_size": 50, "seed": 1}
    descent = shared | {"optimizer": "adam", "learning_rate": 3e-3, "burn_in": steps * 3 // 4}
    return {
        "VIFA, K = 5": deep.VIFA(
            function, params, rank=5, n_samples=2, share_batch=True, learning_rate=0.01, init_std=0.03, **shared
        ),
        "mean field (K = 0)": deep.VIFA(
            function, params, rank=0, n_samples=2, share_batch=True, learning_rate=0.01, init_std=0.03, **shared
        ),
        "SLANG, K = 5": deep.SLANG(
            function, params, rank=5, n_samples=1, learning_rate=0.02, precision_rate=0.02, momentum=0.9, **shared
        ),
        "SWAG, K = 10": deep.SWAG(function, params, rank=10, every=max(1, rows // 50), **descent),
        "online FA, K = 10": deep.FactorIterates(function, params, rank=10, every=2, **descent),
    }


def one_network(posterior: Any, X: np.ndarray, apply: Any) -> np.ndarray:
    """Class probabilities of the network at the posterior mean: what one has without a posterior."""
    logits = np.asarray(apply(posterior.mean, X), dtype=float)
    p = np.exp(logits - logits.max(axis=1, keepdims=True))
    return p / p.sum(axis=1, keepdims=True)


def scores(p: np.ndarray, y: np.ndarray) -> dict[str, float]:
    """Error rate, log loss and expected calibration error."""
    confidence, right = p.max(axis=1), p.argmax(axis=1) == y
    where = np.clip(np.digitize(confidence, BINS) - 1, 0, 9)
    gaps = [
        abs(right[where == b].mean() - confidence[where == b].mean()) * (where == b).mean() for b in np.unique(where)
    ]
    return {
        "error": float(1.0 - right.mean()),
        "log_loss": float(-np.log(np.maximum(p[np.arange(len(y)), y], 1e-30)).mean()),
        "calibration_error": float(np.sum(gaps)),
    }


def entropy(p: np.ndarray) -> np.ndarray:
    """In nats."""
    return np.asarray(-(p * np.log(np.maximum(p, 1e-30))).sum(axis=1))


def auroc(inside: np.ndarray, outside: np.ndarray) -> float:
    """Probability that a stranger has a higher entropy than a digit."""
    ranks = np.concatenate([inside, outside]).argsort().argsort()
    n, m = len(inside), len(outside)
    return float((ranks[n:].sum() - m * (m - 1) / 2) / (n * m))


def measured(p: np.ndarray, strangers: dict[str, np.ndarray], y: np.ndarray) -> dict[str, Any]:
    """Scores on digits and how well entropy tells strangers."""
    own = entropy(p)
    return scores(p, y) | {
        "entropy_of_digits": float(own.mean()),
        "strangers": {
            name: {"entropy": float(entropy(other).mean()), "auroc": auroc(own, entropy(other))}
            for name, other in strangers.items()
        },
    }


def compare(context: Context) -> Result:
    """Five posteriors of one perceptron, beside its single network."""
    data = digits(context.quick)
    apply, params = networks.perceptron, networks.perceptron_params(0)
    epochs = 20 if context.quick else 100
    strangers = data.strangers()
    numbers: dict[str, Any] = {}
    shown: dict[str, tuple[np.ndarray, np.ndarray]] = {}
    for name, method in context.track(list(methods(apply, params, len(data.y), epochs).items()), "posteriors"):
        started = time.perf_counter()
        posterior = method.fit((data.X, data.y), steps=epochs * (len(data.y) // 50))
        seconds = time.perf_counter() - started
        p = posterior.predict(apply, data.X_test, 100).mean
        outside = {key: posterior.predict(apply, X, 100).mean for key, X in strangers.items()}
        numbers[name] = measured(p, outside, data.y_test) | {"seconds": seconds}
        shown[name] = p, next(iter(outside.values()))
        if name.startswith("SWAG"):
            single = one_network(posterior, data.X_test, apply)
            outside = {key: one_network(posterior, X, apply) for key, X in strangers.items()}
            numbers["one network (SWA)"] = measured(single, outside, data.y_test)
            shown["one network (SWA)"] = single, next(iter(outside.values()))
    return Result(_picture(shown, numbers, data.y_test), {"parameters": 2410, "posteriors": numbers})


COLORS = [style.BLUE, style.SKY, style.GREEN, style.ORANGE, style.GREY, style.PURPLE]
DASHES = ["-", (0, (1.2, 1.2)), (0, (5, 2)), (0, (5, 1.5, 1, 1.5)), (0, (3, 2)), (0, (1, 2))]


def _picture(shown: dict[str, Any], numbers: dict[str, Any], y: np.ndarray) -> Any:
    figure = style.canvas(12.5, 4.6)
    left, middle, right = figure.subplots(1, 3)
    left.plot([0.2, 1.0], [0.2, 1.0], color=style.LIGHT, lw=1.2)
    grid = np.linspace(0.0, np.log(10.0), 60)
    for (name, (p, outside)), color, dashes in zip(shown.items(), COLORS, DASHES, strict=False):
        _reliability(left, p, y, color, dashes, name)
        middle.plot(grid, [(entropy(p) <= g).mean() for g in grid], color=color, ls=dashes, lw=1.8)
        right.plot(grid, [(entropy(outside) <= g).mean() for g in grid], color=color, ls=dashes, lw=1.8, label=name)
    left.set(xlabel="confidence", ylabel="share that is right", title="Reliability, test digits")
    middle.set(xlabel="entropy of the prediction (nats)", ylabel="share of inputs below", title="Digits")
    right.set(
        xlabel="entropy of the prediction (nats)", ylabel="share of inputs below", title="Not digits: pixels shuffled"
    )
    for ax in (middle, right):
        ax.axvline(np.log(10.0), color=style.LIGHT, lw=1.2)
    labels = [
        f"{name}: error {100 * numbers[name]['error']:.1f} %, log loss {numbers[name]['log_loss']:.3f}"
        for name in shown
    ]
    figure.legend(right.get_lines()[: len(shown)], labels, loc="outside lower center", ncols=3)
    return figure


def _reliability(ax: Any, p: np.ndarray, y: np.ndarray, color: str, dashes: Any, name: str) -> None:
    confidence, right = p.max(axis=1), p.argmax(axis=1) == y
    order = np.argsort(confidence)
    groups = np.array_split(order, 8)  # of equal size, so that none is empty
    at = [confidence[group].mean() for group in groups]
    ax.plot(at, [right[group].mean() for group in groups], color=color, ls=dashes, lw=1.8, marker="o", ms=4, label=name)


def architectures(context: Context) -> Result:
    """VIFA on three architectures with the same lines of code."""
    data = digits(context.quick)
    strangers = data.strangers()
    cases = {
        "perceptron": (networks.perceptron, networks.perceptron_params(0)),
        "convolutional": (networks.convolutional, networks.convolutional_params(0)),
        "attention": (networks.attention, networks.attention_params(0)),
    }
    epochs = 10 if context.quick else 60
    numbers: dict[str, Any] = {}
    shown: dict[str, tuple[np.ndarray, np.ndarray]] = {}
    for name, (apply, params) in context.track(list(cases.items()), "networks"):
        method = methods(apply, params, len(data.y), epochs)["VIFA, K = 5"]
        started = time.perf_counter()
        posterior = method.fit((data.X, data.y), steps=epochs * (len(data.y) // 50))
        seconds = time.perf_counter() - started
        p = posterior.predict(apply, data.X_test, 50).mean
        outside = {key: posterior.predict(apply, X, 50).mean for key, X in strangers.items()}
        numbers[name] = measured(p, outside, data.y_test) | {"parameters": method.layout.dim, "seconds": seconds}
        shown[name] = p, next(iter(outside.values()))
    return Result(_picture(shown, numbers, data.y_test), {"networks": numbers, "epochs": epochs})
