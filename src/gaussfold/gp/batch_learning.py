"""Hyperparameters and inducing inputs learned from batches, for vi on a sparse prior.

Every step draws some rows, moves the tied factor t(u) of `stochastic` towards what they say (a natural-gradient step
on q, (9)), and takes one step of Adam down the gradient of (16), scaled up from these rows to all, at that q. Whitened
inducing variables keep q meaningful while the hyperparameters move. Learning from a subset alone fits the places of
the inducing inputs to its rows; batches see all of them at a cost that does not grow with their number.
"""

from __future__ import annotations

import numpy as np

from gaussfold.gp import hyper
from gaussfold.gp.checks import curvature_of
from gaussfold.gp.objective import Objective, likelihood_gradient
from gaussfold.gp.priors import Slopes
from gaussfold.gp.site_updates import likelihood_slopes
from gaussfold.gp.sparse import Solved, SparsePrior, Tied
from gaussfold.gp.stochastic import Here, lowered
from gaussfold.likelihoods import Gaussian
from gaussfold.progress import Progress
from gaussfold.rules import Gaussians, SiteRecipe
from gaussfold.types import Array

STEPS = 8
"""Batches for every iteration that is asked for."""
RATE = 0.05
"""Of Adam: in log hyperparameters, and in standard deviations of an input column."""
EXACT_DAMPING, DAMPING = 0.3, 0.1
"""Of the tied factor, under normal noise (whose sites are what they are) and else; less in small batches."""
ENOUGH = 2.5
"""Rows of a batch for every inducing input."""
FEWEST_ROWS = 256
SETTLING = 0.4
"""Share of the steps, the last ones, in which steps become shorter."""
LAST = 0.03
FIRST_MEMORY, SECOND_MEMORY = 0.9, 0.999
USUAL, OUTLIER = 10, 10.0
"""After so many batches, gradients of more than so many times their usual size count as such."""
FAILURES = 20
"""Batches in a row without a posterior, after which learning ends."""


def rows_of_batch(inducing: int) -> int:
    """How many rows a batch has when nobody has said so."""
    return max(FEWEST_ROWS, int(ENOUGH * inducing))


class BatchLearner:
    """Where learning from batches stands: hyperparameters and inducing inputs x, and the tied factor.

    Parameters
    ----------
    problem
        Names, limits and priors of what is learned, at a model whose prior is sparse.
    tied
        The factor to start from.
    size
        Rows per batch.
    rng
        For drawing them.
    """

    def __init__(self, problem: Objective, prior: SparsePrior, tied: Tied, size: int, rng: np.random.Generator) -> None:
        self._problem, self._prior = problem, prior
        self.here = Here(tied, Solved(tied))
        self._model = model = problem.model
        recipe = problem.recipe
        self._recipe = recipe._replace(
            curvature=curvature_of(None, recipe.rule, model.likelihood, in_batches=True)
        )  # heuristic where exact curvature may be negative: steps cannot be checked
        self._labels, self._size, self._rng = model.labels, min(size, len(model.X_)), rng
        self.x = self._before = problem.get()
        self._limits = problem.limits
        self._adam = Adam(self.x.size)
        longest = EXACT_DAMPING if isinstance(model.likelihood, Gaussian) else DAMPING
        self._damping = longest * min(1.0, self._size / (ENOUGH * len(prior.Z)))

    def run(self, steps: int) -> None:
        """Take so many steps; a batch that leaves no posterior takes the last step back, and the next are shorter."""
        failed, share = 0, 1.0
        with Progress("batches", steps, 0, self._model.verbose) as progress:
            for done in range(steps):
                left = (steps - done) / max(SETTLING * steps, 1.0)
                try:
                    with np.errstate(all="ignore"):  # what overflows is not finite, and refused
                        self._step(share * max(min(left, 1.0), LAST))
                    failed = 0
                except (ValueError, np.linalg.LinAlgError):
                    self.x = self._before
                    share, failed = 0.5 * share, failed + 1
                    if failed == FAILURES:
                        break
                progress.show(done + 1, "learning")

    def place(self) -> tuple[SparsePrior, SiteRecipe]:
        """Prior and recipe with the hyperparameters where they are now, which the model takes over."""
        model, problem = self._model, self._problem
        values = problem.named(self.x)
        model.covariances, model.likelihood = hyper.replaced(model.covariances, model.likelihood, values)
        Z = problem.inducing(self.x[len(problem.names) :])
        self._prior = self._prior.with_covariances(model.covariances, Z)
        return self._prior, self._recipe._replace(likelihood=model.recipe.likelihood)

    def _step(self, share: float) -> None:
        """One batch: q first, then everything else; at the q before it the same steps would lead less far."""
        model, problem = self._model, self._problem
        prior, recipe = self.place()
        N = len(model.X_)
        rows = np.sort(self._rng.choice(N, self._size, replace=False, shuffle=False))
        X, Y, scale = model.X_[rows], self._labels[rows], N / self._size
        features = prior.features(X)
        here, found = lowered(recipe, Y, features, self.here, N, self._damping * share)
        now = Gaussians(found.mean, found.cov)
        first, second = likelihood_slopes(recipe, Y, *now)
        slopes = Slopes(-scale * first, -scale * second, np.zeros(second.shape))
        down = prior.gradient_at(X, features, here.solved, slopes)
        by_noise = likelihood_gradient(model, recipe, Y, now)
        values = [*down.log_parameters.tolist(), *(scale * value for value in by_noise.values())]
        names = hyper.parameters(model.covariances, model.likelihood)
        slope = np.array(problem.led(dict(zip(names, values, strict=True))))
        slope += problem.constraints.penalty(problem.names, self.x[: len(slope)])[1]
        slope = np.concatenate([slope, problem.by_inducing(down.inducing)])
        if not np.isfinite(slope).all():
            msg = "the gradient of this batch is not finite"
            raise ValueError(msg)
        x = self.x - RATE * share * self._adam.direction(slope)
        x[: len(problem.names)] = np.clip(x[: len(problem.names)], *self._limits)
        self._before, self.x, self.here = self.x, x, here


class Adam:
    """Steps of about one in every coordinate: the mean gradient over the root of the mean squared one."""

    def __init__(self, size: int) -> None:
        self._first, self._second, self._steps = np.zeros(size), np.zeros(size), 0

    def direction(self, gradient: Array) -> Array:
        """Where to step back from."""
        self._steps += 1
        if self._steps > USUAL:  # one wild batch must not shorten a thousand steps after it
            limit = OUTLIER * np.sqrt(self._second / (1.0 - SECOND_MEMORY ** (self._steps - 1)))
            gradient = np.clip(gradient, -limit, limit)
        self._first = FIRST_MEMORY * self._first + (1.0 - FIRST_MEMORY) * gradient
        self._second = SECOND_MEMORY * self._second + (1.0 - SECOND_MEMORY) * gradient**2
        mean = self._first / (1.0 - FIRST_MEMORY**self._steps)
        size = np.sqrt(self._second / (1.0 - SECOND_MEMORY**self._steps))
        return np.asarray(mean / np.maximum(size, np.finfo(float).tiny ** 0.5))


def learn_in_batches(
    problem: Objective, prior: SparsePrior, tied: Tied, steps: int, size: int
) -> tuple[SparsePrior, Tied]:
    """The model's hyperparameters after so many batches; returns its prior and the tied factor."""
    learner = BatchLearner(problem, prior, tied, size, problem.model.rng)
    learner.run(steps)
    return learner.place()[0], learner.here.tied
