"""Posteriors of a network that classifies, all under one interface: rows in, probabilities of classes out."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax

from gaussfold import deep

Predict = Callable[[np.ndarray], np.ndarray]
BATCH, DRAWS = 50, 100


def fitted(name: str, apply: Any, params: Any, data: Any, precision: float, epochs: int, seed: int) -> Predict:
    """Fit the posterior of that name; what it predicts is an average over networks drawn from it."""
    if name == "one network":
        theta = point_estimate(apply, params, data, precision, epochs, seed)
        return lambda X: np.asarray(jax.nn.softmax(apply(theta, X)), dtype=float)
    method = METHODS[name](apply, params, precision=precision, steps=epochs * (len(data[1]) // BATCH), seed=seed)
    posterior = method.fit(*data) if name == "L-RVGA" else method.fit(data, epochs=epochs)
    return lambda X: np.asarray(posterior.predict(apply, X, DRAWS, rng=seed).mean)


def _vifa(
    apply: Any,
    params: Any,
    *,
    precision: float,
    steps: int,  # noqa: ARG001 - one signature
    seed: int,
    rank: int,
    factor_rate: float = 0.01,
) -> Any:
    rates = {"mean": 0.01, "factors": factor_rate, "log_psi": 0.01}
    return deep.VIFA(
        _likelihood(apply), params, rank, precision, n_samples=2, share_batch=True, learning_rate=rates, init_std=0.03,
        average=0.0, temperature=1.0, batch_size=BATCH, seed=seed,
    )  # fmt: skip


def _slang(apply: Any, params: Any, *, precision: float, steps: int, seed: int) -> Any:  # noqa: ARG001
    return deep.SLANG(
        _likelihood(apply), params, 5, precision, n_samples=1, learning_rate=0.02, precision_rate=0.02, momentum=0.9,
        batch_size=BATCH, seed=seed,
    )  # fmt: skip


def _iterates(apply: Any, params: Any, *, precision: float, steps: int, seed: int, kind: Any) -> Any:
    burn_in = steps * 3 // 4
    every = max(1, (steps - burn_in) // 24) if kind is deep.SWAG else 2
    return kind(
        _likelihood(apply), params, 10, precision, optimizer="adam", learning_rate=3e-3, burn_in=burn_in, every=every,
        temperature=1.0, batch_size=BATCH, seed=seed,
    )  # fmt: skip


def _lrvga(apply: Any, params: Any, *, precision: float, steps: int, seed: int) -> Any:  # noqa: ARG001
    return deep.LRVGA(
        apply,
        "softmax",
        params,
        linearise="samples",
        rank=10,
        prior_std=precision**-0.5,
        n_samples=2,
        block_size=5,
        seed=seed,
    )


def _likelihood(apply: Any) -> Any:
    return deep.log_likelihood(apply, "softmax")


METHODS: dict[str, Any] = {
    "VIFA": partial(_vifa, rank=5),
    "mean field": partial(_vifa, rank=0),
    "SLANG": _slang,
    "SWAG": partial(_iterates, kind=deep.SWAG),
    "FA of iterates": partial(_iterates, kind=deep.FactorIterates),
    "L-RVGA": _lrvga,
}
NAMES = ("one network", *METHODS)
# With two networks a step, gradients of factors are noisier than those of the mean: at the mean's rate their noise
# widens the posterior, and an attention network diverges.
METHODS["VIFA, slow factors"] = partial(_vifa, rank=5, factor_rate=0.001)


def point_estimate(apply: Any, params: Any, data: Any, precision: float, epochs: int, seed: int) -> Any:
    """The most probable network, by Adam on minibatches: what one has without a posterior."""
    X, y = map(jnp.asarray, data)
    rows = len(y) // BATCH * BATCH
    optimizer = optax.adam(3e-3)

    def loss(theta: Any, index: Any) -> Any:
        fit = optax.softmax_cross_entropy_with_integer_labels(apply(theta, X[index]), y[index]).mean()
        return fit + 0.5 * precision / len(y) * sum((leaf**2).sum() for leaf in jax.tree.leaves(theta))

    def step(state: Any, index: Any) -> tuple[Any, None]:
        theta, memory = state
        moves, memory = optimizer.update(jax.grad(loss)(theta, index), memory)
        return (optax.apply_updates(theta, moves), memory), None

    rng = np.random.default_rng([seed, 3])
    order = np.stack([rng.permutation(len(y))[:rows] for _ in range(epochs)]).reshape(-1, BATCH)
    start = jax.tree.map(jnp.asarray, params)
    (theta, _), _ = jax.jit(partial(jax.lax.scan, step))((start, optimizer.init(start)), order)
    return theta
