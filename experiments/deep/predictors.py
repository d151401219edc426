"""One way to fit each posterior to a regression problem, with the noise and the other settings given."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
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

    def start(self, model: Model, seed: int) -> Any:
        """The first weights."""
        return model.params(self.train.X.shape[1] - 1, seed)

    def score(self, posterior: Any, apply: Any, X: np.ndarray, y: np.ndarray, samples: int = 100) -> np.ndarray:
        """Negative log predictive density and squared error of each row, in the targets' own units: (B.7), (B.8)."""
        inputs, targets = self.scaled(X, y)
        found = posterior.predict(apply, inputs, samples)
        unit = self.unit * self.noise
        return np.array([np.log(unit) - found.log_prob(targets), (unit * (found.mean - targets)) ** 2])


Settings = Mapping[str, Any]
"""``noise``, and ``precision`` and ``rate`` (VIFA), or ``epochs``, ``rate`` and ``decay`` (descent)."""


def vifa(model: Model, problem: Problem, settings: Settings, seed: int) -> Any:
    """The thesis's settings: K = 1, M = 10, L = 4, Adam; to be trained for 120 epochs."""
    return _factor(deep.VIFA, model, problem, settings, seed)(
        n_samples=4,
        share_batch=False,
        batch_size=10,
        learning_rate=settings["rate"],
        init_std=0.1,
        average=0.0,
        temperature=1.0,
    )


def slang(model: Model, problem: Problem, settings: Settings, seed: int) -> Any:
    """K = 1, two networks a step, batches of 32; the Gauss-Newton matrix in place of squared gradients."""
    rates = {"learning_rate": 0.02, "precision_rate": 0.02, "momentum": 0.9}
    make = _factor(deep.SLANG, model, problem, settings, seed)
    return make(n_samples=2, batch_size=32, curvature="gauss-newton", **rates)


def _factor(kind: Any, model: Model, problem: Problem, settings: Settings, seed: int) -> Callable[..., Any]:
    """A method with one factor, its other options still to be given."""
    return partial(
        kind, model.log_likelihood, problem.start(model, seed), 1, prior_precision=settings["precision"], seed=seed
    )


def swag(model: Model, problem: Problem, settings: Settings, seed: int) -> Any:
    """The Gaussian of the samples of a descent."""
    return deep.SWAG(model.log_likelihood, problem.start(model, seed), rank=10, **_descent(problem, settings, seed))


def factor_analysis(model: Model, problem: Problem, settings: Settings, seed: int) -> Any:
    """Factor analysis of the same samples."""
    return deep.FactorIterates(
        model.log_likelihood, problem.start(model, seed), rank=5, **_descent(problem, settings, seed)
    )


def _descent(problem: Problem, settings: Settings, seed: int) -> dict[str, Any]:
    """Adam with a constant rate; the last sixth of the training is collected, about as many samples in each."""
    rows = len(problem.train.y)
    return {
        "prior_precision": settings["decay"] * rows / problem.noise**2,  # a weight decay in units of the noise
        "batch_size": 10,
        "optimizer": "adam",
        "learning_rate": settings["rate"],
        "burn_in": settings["epochs"] * 5 // 6 * (rows // 10),
        "every": max(1, settings["epochs"] * 8 // 60),
        "temperature": 1.0,
        "seed": seed,
    }


def one_pass(model: Model, problem: Problem, settings: Settings, seed: int) -> Any:
    """L-RVGA: every row once, no learning rate; returns the posterior.

    Its prior is centred on the first weights. For the network it is ten times narrower than N(0, 1), and not searched:
    a wide prior makes one pass linearise where nothing is known yet. None where the factorisation fails or the networks
    overflow.
    """
    std = 0.1 if model is MODELS["NN"] else settings["precision"] ** -0.5
    method = deep.LRVGA(
        model.apply,
        UNIT,
        problem.start(model, seed),
        linearise="samples",
        rank=10,
        prior_std=std,
        n_samples=10,
        block_size=10,
        seed=seed,
    )
    order = np.random.default_rng([seed, 3]).permutation(len(problem.train.y))
    try:
        return method.fit(problem.train.X[order], problem.train.y[order])
    except (np.linalg.LinAlgError, ValueError):  # ValueError: the networks overflow
        return None


MAKERS: dict[str, tuple[Callable[[Model, Problem, Settings, int], Any], float | None]] = {
    "VIFA": (vifa, 30.0),  # the thesis's 120, which count the batches of each of the four networks
    "SLANG": (slang, 40.0),
    "SWAG": (swag, None),
    "online FA": (factor_analysis, None),
}
"""How each is made, and for how many epochs it is trained; None: as its settings say."""


def fit_all(
    name: str,
    kind: str,
    problems: Sequence[Problem],
    settings: Sequence[Settings],
    seeds: Sequence[int],
    epochs: float | None = None,
) -> list[Any]:
    """Posteriors of one method on several problems of one size, side by side; None where one failed."""
    model = MODELS[kind]
    if name == "L-RVGA":
        return [one_pass(model, *given) for given in zip(problems, settings, seeds, strict=True)]
    make, usual = MAKERS[name]
    lengths = [epochs or usual or float(each["epochs"]) for each in settings]
    found: dict[int, Any] = {}
    for length in dict.fromkeys(lengths):
        numbers = [number for number, each in enumerate(lengths) if each == length]
        methods = [make(model, problems[number], settings[number], seeds[number]) for number in numbers]
        data = [tuple(problems[number].train) for number in numbers]
        fits = deep.fit_many(methods, data, epochs=length, progress=False)
        found |= dict(zip(numbers, fits, strict=True))
    return [found[number] for number in range(len(settings))]
