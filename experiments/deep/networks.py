"""Networks in plain JAX, as functions of trees, and their first weights."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

Tree = dict[str, np.ndarray]


def noisy_linear(params: Any, X: Any) -> Any:
    """A linear model in units of the noise: the last column of X is 1 / (noise std).

    Whatever the noise, the likelihood is then N(y / std; f / std, 1), so that one compiled program serves all.
    """
    return (X[..., :-1] @ params["w"] + params["b"]) * X[..., -1]


def noisy_network(params: Any, X: Any) -> Any:
    """One hidden layer of rectified linear units, in units of the noise as :func:`noisy_linear`."""
    hidden = jax.nn.relu(X[..., :-1] @ params["w1"] + params["b1"])
    return (hidden @ params["w2"] + params["b2"]) * X[..., -1]


def linear_params(inputs: int, seed: int) -> Tree:  # noqa: ARG001 - one signature
    """Zeros."""
    return {"w": np.zeros(inputs, np.float32), "b": np.zeros((), np.float32)}


def hidden_params(inputs: int, seed: int, units: int = 50) -> Tree:
    """Random weights of variance 1 / (inputs of the layer)."""
    rng = np.random.default_rng([seed, 50])
    return {
        "w1": _normal(rng, inputs, units),
        "b1": np.zeros(units, np.float32),
        "w2": _normal(rng, units),
        "b2": np.zeros((), np.float32),
    }


def perceptron(params: Any, X: Any) -> Any:
    """Rows of 64 pixels to ten logits through one hidden layer."""
    return jax.nn.relu(X @ params["w1"] + params["b1"]) @ params["w2"] + params["b2"]


def perceptron_params(seed: int, units: int = 32) -> Tree:
    """Random weights."""
    rng = np.random.default_rng([seed, 64])
    return {
        "w1": _normal(rng, 64, units),
        "b1": np.zeros(units, np.float32),
        "w2": _normal(rng, units, 10),
        "b2": np.zeros(10, np.float32),
    }


def convolutional(params: Any, X: Any) -> Any:
    """8×8 pixels, two 3×3 convolutions (the second with stride 2), ten logits."""
    images = X.reshape((-1, 8, 8, 1))
    for number, stride in ((1, 1), (2, 2)):
        images = jax.nn.relu(convolution(images, params[f"k{number}"], stride) + params[f"c{number}"])
    return images.reshape((len(images), -1)) @ params["w"] + params["b"]


def convolution(images: Any, kernel: Any, stride: int) -> Any:
    """Convolve (n, height, width, channels) with a kernel (rows, columns, channels, outputs), zeros around.

    Equal to ``lax.conv_general_dilated`` with padding "SAME", as a product of patches and a matrix: networks side by
    side then are one batched product, where XLA has only a slow grouped convolution on a CPU.
    """
    rows, columns, _, outputs = kernel.shape
    # where the last patch begins in the padded image, and how many zeros that image has more than the given one
    lasts = [(length - 1) // stride * stride for length in images.shape[1:3]]
    zeros = [max(0, last + size - n) for last, size, n in zip(lasts, (rows, columns), images.shape[1:3], strict=True)]
    padded = jnp.pad(images, [(0, 0), *((count // 2, count - count // 2) for count in zeros), (0, 0)])
    shifted = [
        padded[:, i : i + lasts[0] + 1 : stride, j : j + lasts[1] + 1 : stride]
        for i in range(rows)
        for j in range(columns)
    ]
    return jnp.concatenate(shifted, axis=-1) @ kernel.reshape((-1, outputs))


def convolutional_params(seed: int) -> Tree:
    """Random weights."""
    rng = np.random.default_rng([seed, 33])
    return {
        "k1": _normal(rng, 3, 3, 1, 8, fan=9),
        "c1": np.zeros(8, np.float32),
        "k2": _normal(rng, 3, 3, 8, 16, fan=72),
        "c2": np.zeros(16, np.float32),
        "w": _normal(rng, 256, 10),
        "b": np.zeros(10, np.float32),
    }


def attention(params: Any, X: Any) -> Any:
    """The eight rows of pixels as tokens: one layer of attention with two heads, a residual, the mean token."""
    tokens = X.reshape((-1, 8, 8)) @ params["embed"] + params["place"]
    query, key, value = ((tokens @ params[name]).reshape((len(tokens), 8, 2, -1)) for name in ("query", "key", "value"))
    score = jnp.einsum("nihd,njhd->nhij", query, key) / np.sqrt(query.shape[-1])
    mixed = jnp.einsum("nhij,njhd->nihd", jax.nn.softmax(score, axis=-1), value)
    tokens = tokens + mixed.reshape(tokens.shape) @ params["out"]
    hidden = jax.nn.relu(tokens @ params["up"] + params["up_bias"])
    return hidden.reshape((len(tokens), -1)) @ params["w"] + params["b"]


def attention_params(seed: int, width: int = 16) -> Tree:
    """Random weights."""
    rng = np.random.default_rng([seed, 8])
    square = {name: _normal(rng, width, width) for name in ("query", "key", "value", "out", "up")}
    return square | {
        "embed": _normal(rng, 8, width),
        "place": 0.3 * _normal(rng, 8, width, fan=1),
        "up_bias": np.zeros(width, np.float32),
        "w": _normal(rng, 8 * width, 10),
        "b": np.zeros(10, np.float32),
    }


def _normal(rng: np.random.Generator, *shape: int, fan: int | None = None) -> np.ndarray:
    return (rng.standard_normal(shape) / np.sqrt(fan or shape[0])).astype(np.float32)
