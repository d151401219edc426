"""Nine tasks for posteriors of networks with no option given: data, splits, networks and their first weights."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from sklearn.datasets import load_breast_cancer, load_diabetes, load_digits, make_friedman1

UCI = Path(__file__).resolve().parents[2] / "shared" / "data" / "uci"
UNITS = 50


class Task(NamedTuple):
    """A split of a data set, inputs standardised (targets too) by the training rows alone."""

    name: str
    train: tuple[np.ndarray, np.ndarray]
    test: tuple[np.ndarray, np.ndarray]
    stranger: np.ndarray
    """Inputs of another law, for which a posterior should be less sure."""
    apply: Callable[..., Any]
    start: Callable[[int], Any]
    """First weights, from a seed."""
    classes: int
    """0: regression."""


def network(params: Any, X: Any) -> Any:
    """Two hidden layers; one number or one per class."""
    hidden = jax.nn.relu(X @ params["w1"] + params["b1"])
    hidden = jax.nn.relu(hidden @ params["w2"] + params["b2"])
    found = hidden @ params["w3"] + params["b3"]
    return found[..., 0] if found.shape[-1] == 1 else found


def convolutional(params: Any, X: Any) -> Any:
    """Two convolutions of 3×3 with strides on 8×8 images, and a dense layer."""
    found = X.reshape(-1, 8, 8, 1)
    for name in ("1", "2"):
        found = jax.lax.conv_general_dilated(
            found, params["k" + name], (2, 2) if name == "2" else (1, 1), "SAME",
            dimension_numbers=("NHWC", "HWIO", "NHWC"),
        )  # fmt: skip
        found = jax.nn.relu(found + params["b" + name])
    return found.reshape(len(found), -1) @ params["w3"] + params["b3"]


def _weights(shapes: dict[str, tuple[int, ...]]) -> Callable[[int], Any]:
    def start(seed: int) -> Any:
        rng = np.random.default_rng([seed, 77])
        return {
            name: jnp.asarray(
                rng.standard_normal(shape) * np.sqrt(2.0 / np.prod(shape[:-1])) if len(shape) > 1 else np.zeros(shape),
                jnp.float32,
            )
            for name, shape in shapes.items()
        }

    return start


def _dense(inputs: int, outputs: int) -> Callable[[int], Any]:
    sizes = (inputs, UNITS, UNITS, outputs)
    shapes: dict[str, tuple[int, ...]] = {}
    for number in range(3):
        shapes |= {f"w{number + 1}": sizes[number : number + 2], f"b{number + 1}": (sizes[number + 1],)}
    return _weights(shapes)


_KERNELS = {"k1": (3, 3, 1, 8), "b1": (8,), "k2": (3, 3, 8, 16), "b2": (16,), "w3": (256, 10), "b3": (10,)}


def _friedman() -> tuple[np.ndarray, np.ndarray]:
    return make_friedman1(2000, noise=1.0, random_state=0)  # type: ignore[no-any-return]


def _uci(name: str) -> Callable[[], tuple[np.ndarray, np.ndarray]]:
    def load() -> tuple[np.ndarray, np.ndarray]:
        data = np.load(UCI / f"{name}.npz")
        return data["X"], data["y"].ravel()

    return load


SOURCES: dict[str, tuple[Callable[[], tuple[np.ndarray, np.ndarray]], int]] = {
    "cancer": (lambda: load_breast_cancer(return_X_y=True), 2),
    "digits": (lambda: load_digits(return_X_y=True), 10),
    "diabetes": (lambda: load_diabetes(return_X_y=True), 0),
    "friedman1": (_friedman, 0),
    "boston": (_uci("bostonHousing"), 0),
    "concrete": (_uci("concrete"), 0),
    "energy": (_uci("energy"), 0),
    "yacht": (_uci("yacht"), 0),
    "conv": (lambda: load_digits(return_X_y=True), 10),
}


def task(name: str, split: int) -> Task:
    """70 % of the rows to learn from, at random; the rest to be asked about."""
    load, classes = SOURCES[name]
    X, y = load()
    order = np.random.default_rng([split, 18]).permutation(len(y))
    cut = round(0.7 * len(y))
    train, test = order[:cut], order[cut:]
    pixels = name in ("digits", "conv")
    shift, scale = (8.0, 8.0) if pixels else (X[train].mean(axis=0), X[train].std(axis=0) + 1e-9)
    X = ((X - shift) / scale).astype(np.float32)
    y = y.astype(np.int32) if classes else ((y - y[train].mean()) / y[train].std()).astype(np.float32)
    rng = np.random.default_rng([split, 19])
    # strangers: every column shuffled on its own, so that each looks ordinary and their company does not
    stranger = np.stack([rng.permutation(column) for column in X[test].T], axis=1)
    apply, start = network, _dense(X.shape[1], classes if classes > 2 else 1)
    if name == "conv":
        apply, start = convolutional, _weights(_KERNELS)
    return Task(name, (X[train], y[train]), (X[test], y[test]), stranger, apply, start, classes)
