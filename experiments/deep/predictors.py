"""One way to fit each posterior to a regression problem, with the noise and the prior precision given."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

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


def vifa(model: Model, problem: Problem, precision: float, seed: int) -> Any:
    """The thesis's settings: K = 1, M = 10, L = 4, Adam; to be trained for 120 epochs."""
    return deep.VIFA(
        model.log_likelihood,
        model.params(problem.train.X.shape[1] - 1, seed),
        rank=1,
        prior_precision=precision,
        n_samples=4,
        batch_size=10,
        learning_rate=0.01,
        seed=seed,
    )


def slang(model: Model, problem: Problem, precision: float, seed: int) -> Any:
    """K = 1, two networks a step, batches of 32; the Gauss-Newton matrix in place of squared gradients."""
    return deep.SLANG(
        model.log_likelihood,
        model.params(problem.train.X.shape[1] - 1, seed),
        rank=1,
        prior_precision=precision,
        n_samples=2,
        batch_size=32,
        learning_rate=0.02,
        precision_rate=0.02,
        momentum=0.9,
        curvature="gauss-newton",
        seed=seed,
    )


def iterates(model: Model, problem: Problem, precision: float, seed: int, *, analysis: bool = False) -> Any:
    """SWAG, or the factor analysis of all samples: 50 epochs of training, 10 of collecting every eighth iterate."""
    options = {
        "prior_precision": precision,
        "batch_size": 10,
        "optimizer": "adam",
        "learning_rate": 3e-3,
        "burn_in": 50 * (len(problem.train.y) // 10),
        "every": 8,
        "seed": seed,
    }
    params = model.params(problem.train.X.shape[1] - 1, seed)
    if analysis:
        return deep.FactorIterates(model.log_likelihood, params, rank=5, **options)
    return deep.SWAG(model.log_likelihood, params, rank=10, **options)


def factor_analysis(model: Model, problem: Problem, precision: float, seed: int) -> Any:
    """Factor analysis of all iterates."""
    return iterates(model, problem, precision, seed, analysis=True)


def one_pass(model: Model, problem: Problem, precision: float, seed: int) -> Any:
    """L-RVGA: every row once, no learning rate; returns the posterior.

    Its prior is centred on the first weights. For the network it is ten times narrower than N(0, 1), and not searched:
    a wide prior makes one pass linearise where nothing is known yet. None where the factorisation fails.
    """
    std = 0.1 if model is MODELS["NN"] else precision**-0.5
    method = deep.LRVGA(
        model.apply,
        UNIT,
        model.params(problem.train.X.shape[1] - 1, seed),
        rank=10,
        prior_std=std,
        n_samples=10,
        block_size=10,
        seed=seed,
    )
    order = np.random.default_rng([seed, 3]).permutation(len(problem.train.y))
    try:
        return method.fit(problem.train.X[order], problem.train.y[order])
    except np.linalg.LinAlgError:
        return None


MAKERS: dict[str, tuple[Callable[[Model, Problem, float, int], Any], float]] = {
    "VIFA": (vifa, 120.0),
    "SLANG": (slang, 40.0),
    "SWAG": (iterates, 60.0),
    "online FA": (factor_analysis, 60.0),
}
"""How each is made, and for how many epochs it is trained."""


def fit_all(
    name: str,
    kind: str,
    problems: Sequence[Problem],
    precisions: Sequence[float],
    seeds: Sequence[int],
    epochs: float | None = None,
) -> list[Any]:
    """Posteriors of one method on several problems of one size, side by side."""
    model = MODELS[kind]
    each = list(zip(problems, precisions, seeds, strict=True))
    if name == "L-RVGA":
        return [one_pass(model, *given) for given in each]
    make, usual = MAKERS[name]
    data = [tuple(problem.train) for problem in problems]
    return deep.fit_together([make(model, *given) for given in each], data, epochs=epochs or usual, progress=False)
