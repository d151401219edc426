"""One way to fit each posterior to a regression problem, with the noise and the prior precision given."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np

import gaussfold as gf
from experiments.deep.networks import hidden_params, linear_params, noisy_linear, noisy_network
from gaussfold import deep

UNIT = gf.likelihoods.Gaussian(std=1.0)


class Model(NamedTuple):
    """A network in units of the noise, its first weights, and its log likelihood."""

    apply: Callable[[Any, Any], Any]
    params: Callable[[int, int], Any]
    log_likelihood: Any


MODELS = {
    "NN": Model(noisy_network, hidden_params, deep.log_likelihood(noisy_network, UNIT)),
    "LR": Model(noisy_linear, linear_params, deep.log_likelihood(noisy_linear, UNIT)),
}


class Scaled(NamedTuple):
    """Inputs and targets of zero mean and unit variance on the training rows, in units of the noise."""

    X: np.ndarray
    y: np.ndarray


class Problem:
    """Training rows, scaled by themselves; ``noise`` is in units of the targets' standard deviation."""

    def __init__(self, X: np.ndarray, y: np.ndarray, noise: float) -> None:
        spread = X.std(axis=0)
        self.shift, self.scale = X.mean(axis=0), np.where(spread > 0.0, spread, 1.0)
        self.centre, self.unit, self.noise = y.mean(), y.std(), noise
        self.train = self.scaled(X, y)

    def scaled(self, X: np.ndarray, y: np.ndarray) -> Scaled:
        """Rows as the networks see them."""
        inputs = np.column_stack([(X - self.shift) / self.scale, np.full(len(X), 1.0 / self.noise)])
        return Scaled(inputs.astype(np.float32), ((y - self.centre) / self.unit / self.noise).astype(np.float32))

    def score(self, posterior: Any, apply: Any, X: np.ndarray, y: np.ndarray, samples: int = 100) -> np.ndarray:
        """Negative log predictive density and squared error of each row, in the targets' own units: (B.7), (B.8)."""
        inputs, targets = self.scaled(X, y)
        found = posterior.predict(apply, inputs, samples)
        unit = self.unit * self.noise
        return np.array([np.log(unit) - found.log_prob(targets), (unit * (found.mean - targets)) ** 2])


def vifa(model: Model, problem: Problem, precision: float, seed: int, epochs: float = 120.0, rate: float = 0.01) -> Any:
    """The thesis's settings: K = 1, M = 10, L = 4, 120 epochs, Adam."""
    params = model.params(problem.train.X.shape[1] - 1, seed)
    method = deep.VIFA(
        model.log_likelihood,
        params,
        rank=1,
        prior_precision=precision,
        n_samples=4,
        batch_size=10,
        learning_rate=rate,
        seed=seed,
    )
    return method.fit(tuple(problem.train), epochs=epochs)


def slang(model: Model, problem: Problem, precision: float, seed: int, epochs: float = 120.0) -> Any:
    """K = 1, four networks a step, batches of 32."""
    params = model.params(problem.train.X.shape[1] - 1, seed)
    total = max(1, round(epochs * (len(problem.train.y) // 32)))
    method = deep.SLANG(
        model.log_likelihood,
        params,
        rank=1,
        prior_precision=precision,
        n_samples=4,
        batch_size=32,
        learning_rate=_Decay(0.05, total),
        precision_rate=0.05,
        momentum=0.9,
        seed=seed,
    )
    return method.fit(tuple(problem.train), steps=total)


class _Decay(NamedTuple):
    """From a rate down to a hundredth of it, over so many steps; equal ones share a compilation."""

    rate: float
    steps: int

    def __call__(self, step: Any) -> Any:
        return self.rate * jnp.exp(-4.6 * step / self.steps)


def iterates(model: Model, problem: Problem, precision: float, seed: int, *, analysis: bool = False) -> Any:
    """SWAG, or the factor analysis of all iterates: 100 epochs of training, 20 of collecting."""
    params = model.params(problem.train.X.shape[1] - 1, seed)
    per_epoch = len(problem.train.y) // 10
    options = {
        "prior_precision": precision,
        "batch_size": 10,
        "optimizer": "adam",
        "learning_rate": 3e-3,
        "burn_in": 100 * per_epoch,
        "seed": seed,
    }
    if analysis:
        found = deep.FactorIterates(model.log_likelihood, params, rank=5, every=4, **options)
    else:
        found = deep.SWAG(model.log_likelihood, params, rank=10, every=per_epoch, **options)
    return found.fit(tuple(problem.train), steps=120 * per_epoch)


def one_pass(model: Model, problem: Problem, precision: float, seed: int) -> Any:
    """L-RVGA: every row once, no learning rate."""
    params = model.params(problem.train.X.shape[1] - 1, seed)
    method = deep.LRVGA(
        model.apply, UNIT, params, rank=10, prior_std=precision**-0.5, n_samples=10, block_size=10, seed=seed
    )
    order = np.random.default_rng([seed, 3]).permutation(len(problem.train.y))
    return method.fit(problem.train.X[order], problem.train.y[order])
