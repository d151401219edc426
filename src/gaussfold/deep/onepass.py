"""A belief that learns rows in one compiled pass, with its prior and what it was told; ``linearised`` has the step."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Self

import jax
import jax.numpy as jnp
import numpy as np

from gaussfold import likelihoods, schema
from gaussfold.beliefs.lowrank.belief import LowRankGaussian
from gaussfold.checks import between, not_negative, positive, refuse
from gaussfold.deep import factored, linearised, scales, temperature
from gaussfold.deep.extragradient import Block
from gaussfold.deep.families import Likelihood
from gaussfold.deep.fisher import Model, interface
from gaussfold.deep.noise import LearnedGaussian, is_with_noise, parted
from gaussfold.deep.posterior import Posterior
from gaussfold.deep.stepping import Stepper
from gaussfold.deep.trees import Layout
from gaussfold.deep.types import Arrays, Batch, Tree
from gaussfold.types import Array

WIDTH = 2.0
"""Standard deviation of the usual prior, in units of a leaf's scale: chosen on splits 0 and 1 of nine tasks."""
PARTS = (
    schema.Part("pass_mean", ("d",), "stored", free=True),
    schema.Part("pass_W", ("factors", "d"), "stored", free=True),
    schema.Part("pass_psi", ("d",), "stored", low=0.0),
    schema.Part("pass_gram", ("factors", "factors"), "stored", free=True),
    schema.Part("pass_filled", (), "double", low=0.0),
    schema.Part("pass_prior_mean", ("d",), "stored", free=True),
    schema.Part("pass_prior", ("d",), "stored", low=0.0),
    schema.Part("pass_noise", (), "double", low=0.0),
    schema.Part("pass_count", (), "double", low=0.0),
    schema.Part("pass_gains", (2, "candidates"), "double", free=True),
)
"""What a model file holds of it."""


@dataclass(frozen=True)
class Ageing:
    """What happens between rows, and to rows that are far out."""

    forgetting: float = 1.0
    random_walk: float = 0.0
    robust: float | None = None

    @property
    def ages(self) -> bool:
        """Whether rows lose weight as others come."""
        return self.forgetting < 1.0 or self.random_walk > 0.0

    def checked(self, likelihood: Likelihood, sampling: bool) -> Self:
        """The same, if it makes sense."""
        if sampling and self != type(self)():
            msg = f"{self}: forgetting, random_walk and robust need linearise='mean'; leave them out or give that"
            raise ValueError(msg)
        between("forgetting", self.forgetting, 0, 1, "(]")
        not_negative("random_walk", self.random_walk)
        if self.robust is not None:
            positive("robust", self.robust)
            if not isinstance(likelihood, LearnedGaussian | likelihoods.Gaussian):
                refuse("robust", self.robust, "normal noise", "leave it out: other likelihoods bound what a row can do")
        return self


def usual_std(layout: Layout, flat: Array) -> Array:
    """The prior's standard deviation where none is given: the tree's scales, somewhat widened."""
    return np.asarray(WIDTH * scales.spread(layout, scales.at_least_usual(layout, jnp.asarray(flat))), dtype=np.float64)


def without_noise(likelihood: Likelihood, params: Tree, sampling: bool) -> tuple[Tree, float | None]:
    """The network's own parameters, and the variance that a noise starts from if it is learned."""
    if not isinstance(likelihood, LearnedGaussian):
        return params, None
    if sampling:
        remedy = "samples do not tell noise from what is not known yet: "
        remedy += "give gaussfold.likelihoods.Gaussian(std), or linearise='mean'"
        refuse("likelihood", likelihood, "a known noise level", remedy)
    if not is_with_noise(params):
        return params, 1.0
    network, log_std = parted(params)
    return network, math.exp(2.0 * float(log_std))


class OnePass:
    """Mean, low-rank precision and noise, learned row by row; ``noise``: where its variance starts if learned."""

    def __init__(self, mean: Array, std: Array, rank: int, noise: float | None, ageing: Ageing) -> None:
        self._ageing = ageing
        self._first = jnp.asarray(mean, jnp.float32), jnp.asarray(std**-2.0, jnp.float32)
        candidates = len(linearised.candidates(noise is not None))
        self._belief = factored.start(*self._first, rank, 1.0 if noise is None else noise, candidates)

    def learn(self, model: Model, rows: Block, passes: int = 1, seed: int = 0) -> tuple[float, int | None]:
        """Learn rows, or none of them; returns the sum of their log predictives, and the first bad row if any.

        In each of several passes a row counts an equal share of itself, so that in all it counts once; exact for
        linear models, and networks have settled somewhat before most of what a row says is linearised. After the first
        pass the order is a new one each time.
        """
        if not len(rows[2]):
            return 0.0, None
        task, given, belief, total = self._task(model, rows[0]), self._given(), self._belief, 0.0
        for number in range(passes):
            order = np.arange(len(rows[2]))
            if number:
                order = np.random.default_rng([seed, number]).permutation(order)
            part = rows[0][order], rows[1][order], rows[2][order] / passes
            belief, values, bad = linearised.run(task, belief, given, part)
            if bad is not None:
                return 0.0, int(order[bad])
            if not number:
                total = float(rows[2] @ values)
        self._belief = belief
        return total, None

    def _task(self, model: Model, X: Array | jax.Array) -> linearised.Task:
        stacked, _ = interface(model, X.shape[1:], X.dtype)
        noisy = isinstance(model.likelihood, LearnedGaussian)
        return linearised.Task(model, stacked, noisy, self._ageing.robust is not None, self._ageing.ages)

    def _given(self) -> factored.Given:
        age = self._ageing
        numbers = [jnp.asarray(value, jnp.float32) for value in (age.forgetting, age.random_walk**2, age.robust or 1.0)]
        return factored.Given(self._first[1], *numbers)

    def stepper(self, model: Model, classes: bool) -> Stepper:
        """The pass as pure functions; a state is the belief."""

        def step(belief: factored.Belief, batch: Batch) -> tuple[factored.Belief, jax.Array]:
            X, y = (jnp.asarray(part) for part in batch)
            labels = jnp.asarray(y, jnp.float32).reshape(len(X), *(() if classes else (-1,)))
            weight = jnp.ones(len(X), jnp.float32)
            after, values, good = linearised.scan(self._task(model, X), belief, self._given(), (X, labels, weight))
            kept = jax.tree.map(lambda new, old: jnp.where(good.all(), new, old), after, belief)
            return kept, jnp.where(good.all(), -values.mean(), jnp.nan)

        return Stepper(
            lambda: jax.tree.map(jnp.copy, self._belief),
            step,
            lambda belief: self._posterior_of(belief, model.layout, model.likelihood),
        )

    def posterior(self, layout: Layout, likelihood: Likelihood) -> Posterior:
        """As it stands, with the width that has predicted best where the likelihood leaves its noise to the network."""
        return self._posterior_of(self._belief, layout, likelihood)

    @staticmethod
    def _posterior_of(belief: factored.Belief, layout: Layout, likelihood: Likelihood) -> Posterior:
        width, level = linearised.best_of(belief) if temperature.is_open(likelihood) else (1.0, 1.0)
        factors = np.asarray(belief.W[: len(belief.W) // 2 + int(belief.filled)], dtype=np.float64)
        if len(factors) > layout.dim:  # as many as parameters say the same
            factors = np.linalg.qr(factors).R
        W = np.zeros((layout.dim, max(1, len(factors))))  # a low-rank belief has a factor
        W[:, : len(factors)] = factors.T / np.sqrt(width)
        found = LowRankGaussian(
            np.asarray(belief.mean), W, np.asarray(belief.psi, dtype=np.float64) / width, projection="eigen"
        )
        if isinstance(likelihood, LearnedGaussian):
            likelihood = likelihoods.Gaussian(float(np.sqrt(level * belief.noise)))
        return Posterior(found, layout, likelihood, usual="linearised")

    def state(self) -> Arrays:
        """Named arrays that hold all of it."""
        belief = {f"pass_{name}": np.asarray(array) for name, array in zip(factored.FIELDS, self._belief, strict=True)}
        for name in ("pass_filled", "pass_noise", "pass_count", "pass_gains"):
            belief[name] = belief[name].astype(np.float64)
        return belief | {"pass_prior_mean": np.asarray(self._first[0]), "pass_prior": np.asarray(self._first[1])}

    @classmethod
    def from_state(cls, arrays: Arrays, ageing: Ageing) -> Self:
        """Undo :meth:`state`."""
        schema.check(arrays, PARTS)
        self = cls.__new__(cls)
        self._ageing = ageing
        self._first = jnp.asarray(arrays["pass_prior_mean"]), jnp.asarray(arrays["pass_prior"])
        self._belief = factored.Belief(*(jnp.asarray(arrays[f"pass_{name}"], jnp.float32) for name in factored.FIELDS))
        return self
