"""Small problems that several tests share, with the functions that compile once."""

import jax.numpy as jnp
import numpy as np

import gaussfold as gf

NOISE, ALPHA = 0.7, 2.0


def straight(params, X):
    return X @ params["w"]


LINEAR = gf.deep.log_likelihood(straight, gf.likelihoods.Gaussian(NOISE))


def linear(n=60, d=3, seed=0):
    """Rows, labels, and the exact posterior for prior precision ALPHA."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d)).astype(np.float32)
    y = (X @ rng.standard_normal(d) + NOISE * rng.standard_normal(n)).astype(np.float32)
    precision = X.T.astype(float) @ X / NOISE**2 + ALPHA * np.eye(d)
    return X, y, gf.DenseGaussian.from_natural(precision, X.T.astype(float) @ y / NOISE**2)


def start(d=3):
    return {"w": np.zeros(d, np.float32)}


def hidden(params, X):
    return jnp.tanh(X @ params["a"]["w"] + params["a"]["b"]) @ params["v"]


def hidden_start(inputs=2, units=4, outputs=None, seed=0):
    rng = np.random.default_rng(seed)
    last = (units,) if outputs is None else (units, outputs)
    shapes = {"a": {"w": (inputs, units), "b": (units,)}, "v": last}
    draw = lambda shape: 0.5 * rng.standard_normal(shape).astype(np.float32)  # noqa: E731
    return {"a": {name: draw(shape) for name, shape in shapes["a"].items()}, "v": draw(shapes["v"])}


def relative(found, exact):
    return np.linalg.norm(found - exact) / np.linalg.norm(exact)
