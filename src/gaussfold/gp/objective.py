"""The energy as a function of one vector: log hyperparameters, weights of means and mixtures, inducing inputs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple, cast

import numpy as np

from gaussfold.gp import exact, hyper, linear_parts
from gaussfold.gp.constraints import Constraints
from gaussfold.gp.differences import by_log_parameter
from gaussfold.gp.inference import settle, start
from gaussfold.gp.site_updates import likelihood_cavity, settled_slopes, slopes
from gaussfold.gp.stochastic import blank_sites
from gaussfold.gp.weighted import Weighted
from gaussfold.likelihoods import Gaussian
from gaussfold.rules import VI, Exact, Gaussians, SiteRecipe, likelihood_energy
from gaussfold.types import Array

if TYPE_CHECKING:
    from gaussfold.gp.model import GaussianProcess

BOUND = 16.0  # of a log hyperparameter, either way
LEAP = 8.0
"""How far from its start one search may take a log hyperparameter."""
INNER_LIMIT = 200
INNER_TOLERANCE = 1e-8
COARSE_TOLERANCE = 1e-6
SHARE = 1e-3
"""Inference inside learning is as exact as the search needs: a share of its last change, between the tolerances."""


class Gradient(NamedTuple):
    """Derivatives of the energy at fixed sites."""

    parameters: dict[str, float]
    """With respect to the logarithm of every hyperparameter."""
    inducing: Array | None


def energy_gradient(model: GaussianProcess, *, settled: bool = False) -> Gradient:
    """The energy's gradient at fixed sites; ``settled`` says that the sites are stationary, which saves a pass."""
    recipe = model.recipe
    now = model.marginals_
    chain = settled_slopes(recipe, now, model.sites_) if settled else None
    if chain is None and not (settled and now.inner is now.cov):
        chain = slopes(recipe, model.labels, now, model.sites_)
    found = model.prior_.gradient(model.sites_, chain)
    names = hyper.parameters(model.covariances, model.likelihood)
    cavity = likelihood_cavity(recipe, now, model.sites_)
    by_likelihood = likelihood_gradient(model, recipe, model.labels, Gaussians(now.mean, now.cov), cavity)
    values = [*found.log_parameters.tolist(), *by_likelihood.values()]
    return Gradient(dict(zip(names, values, strict=True)), found.inducing)


def likelihood_gradient(
    model: GaussianProcess, recipe: SiteRecipe, Y: Array, now: Gaussians, cavity: Gaussians | None = None
) -> dict[str, float]:
    """``-∂/∂log φ`` of the likelihood's share at fixed marginals, by a five-point difference (error about 1e-12)."""

    def share(values: dict[str, float]) -> float:
        _, changed = hyper.replaced(model.covariances, model.likelihood, values)
        likelihood = changed if model.extras_.weights is None else Weighted(changed)
        other = recipe._replace(likelihood=likelihood)
        return -float(likelihood_energy(other, Y, now, blank_sites(now.mean), cavity).sum())

    mine = {f"likelihood.{k}": v for k, v in hyper.likelihood_parameters(model.likelihood).items()}
    return by_log_parameter(share, mine)


class Objective:
    """The model's free hyperparameters as one vector, and the energy as a function of it."""

    def __init__(
        self, model: GaussianProcess, fixed: Sequence[str], learn_inducing: bool, constraints: Constraints
    ) -> None:
        self.model = model
        values = model.parameters()
        self.constraints = constraints.checked(values)
        self._follows = constraints.follows()
        _refuse_unknown(fixed, [*values, *linear_parts.names(model)])
        self._all = tuple(values)
        self.names = [name for name in values if name not in fixed and name not in self._follows]
        self.linear = linear_parts.LinearParts(model, fixed)
        self.moves_inducing = learn_inducing and model.prior_.Z is not None
        if not self.names and self.linear.is_empty and not self.moves_inducing:
            msg = f"fixed={list(fixed)!r} leaves nothing to learn; free at least one hyperparameter"
            raise ValueError(msg)
        self.recipe = model.recipe
        if isinstance(model.likelihood, Gaussian):  # all rules agree, and the variational energy is stationary
            self.recipe = model.recipe._replace(rule=VI(), curvature=Exact())
        if not self.linear.is_empty and not self.recipe.is_stationary:
            msg = (
                f"rule={model.rule.name!r} with curvature={model.curvature.name!r}: a mean or a mixture is learned "
                f"with rule 'vi' or 'ep' and exact curvature; use these, or fixed={linear_parts.names(model)!r}"
            )
            raise ValueError(msg)
        spread = np.std(model.X_, axis=0)
        self._spread = np.where(spread > 0.0, spread, 1.0)
        self.evaluations = 0
        self._value, self._tolerance = np.inf, COARSE_TOLERANCE
        self._exact = exact.seen_rows(model) if exact.is_exact(model) else None

    def get(self) -> Array:
        """Where the model is."""
        values = self.model.parameters()
        free = [np.log(values[name]) for name in self.names]
        Z = self.model.prior_.Z
        moved = (Z / self._spread).ravel() if self.moves_inducing and Z is not None else np.empty(0)
        return np.concatenate([free, self.linear.get(), moved])

    @property
    def limits(self) -> tuple[Array, Array]:
        """Of the free log hyperparameters, which may be far from one: inputs in nanoseconds have such length scales."""
        return self.constraints.limits(self.names, BOUND, self.get()[: len(self.names)], LEAP)

    def at(self, values: Mapping[str, float]) -> Array:
        """The vector with these hyperparameters, inducing inputs where they are."""
        x = self.get()
        x[: len(self.names)] = np.log([values[name] for name in self.names])
        return x

    def named(self, x: Array) -> dict[str, float]:
        """Hyperparameters there, tied ones too."""
        values = dict(zip(self.names, np.exp(x[: len(self.names)]).tolist(), strict=True))
        return values | {name: values[leader] for name, leader in self._follows.items() if leader in values}

    @property
    def first_inducing(self) -> int:
        """Where inducing inputs begin in the vector."""
        return len(self.names) + len(self.linear.get())

    def inducing(self, x: Array) -> Array | None:
        """Inducing inputs, of which the vector holds multiples of the columns' spread; None if they do not move."""
        return x.reshape(-1, len(self._spread)) * self._spread if self.moves_inducing else None

    def _evidence(self, x: Array, X: Array, y: Array) -> tuple[float, Array]:
        """Energy and slope where both have a closed form; the model stays where it is."""
        model = self.model
        (covariance,), likelihood = hyper.replaced(model.covariances, model.likelihood, self.named(x))
        found = exact.evidence_slope(covariance, cast("Gaussian", likelihood).std, X, y)
        slopes = dict(zip(self._all, [*found.covariance.tolist(), found.std], strict=True))
        return found.value, np.array(self.led(slopes))

    def led(self, slopes: dict[str, float]) -> list[float]:
        """Slopes of the free hyperparameters, with those that follow them."""
        for name, leader in self._follows.items():
            slopes[leader] += slopes[name]
        return [slopes[name] for name in self.names]

    def set(self, x: Array) -> None:
        """Bring the model there, with the sites it has."""
        model, count, moved = self.model, len(self.names), self.first_inducing
        covariances, likelihood = hyper.replaced(model.covariances, model.likelihood, self.named(x))
        Z = self.inducing(x[moved:])
        prior = self.linear.set(x[count:moved], model.prior_.with_covariances(covariances, Z))
        model.covariances, model.likelihood, model.prior_ = covariances, likelihood, prior
        try:
            model.marginals_ = prior.update(model.sites_)
        except ValueError:  # negative sites that another prior could bear
            start(model, chosen=True)

    def begin(self, x: Array) -> None:
        """Bring the model there, to search anew."""
        if self._exact is None:
            self.set(x)
            start(self.model, chosen=True)
        else:
            self._name(x)

    def arrive(self, x: Array) -> float:
        """Leave the model where a search has ended; its energy there."""
        if self._exact is None:
            self.set(x)
            return self.infer()
        self._name(x)
        model = self.model
        return exact.evidence(model.covariances[0], cast("Gaussian", model.likelihood).std, *self._exact)[0]

    def end(self) -> None:
        """Give the model the posterior of the hyperparameters that searches of the evidence alone have left it with."""
        if self._exact is not None:
            self.set(self.get())
            self.infer()

    def _name(self, x: Array) -> None:
        """Give the model these hyperparameters and nothing else."""
        model = self.model
        model.covariances, model.likelihood = hyper.replaced(model.covariances, model.likelihood, self.named(x))

    def infer(self) -> float:
        """Iterate until the energy settles."""
        value = settle(self.model, INNER_LIMIT, self._tolerance, quiet=True).energy
        change, size = abs(value - self._value), 1.0 + abs(value)
        self._value = value
        self._tolerance = min(max(SHARE * change / size, INNER_TOLERANCE), COARSE_TOLERANCE)
        return value

    def gradient(self, *, settled: bool) -> Array:
        """Of the energy at these sites."""
        found = energy_gradient(self.model, settled=settled)
        free = self.led(dict(found.parameters))
        return np.concatenate([free, self.linear.gradient(), self.by_inducing(found.inducing)])

    def by_inducing(self, slope: Array | None) -> Array:
        """The gradient in the coordinates of `inducing`."""
        return (slope * self._spread).ravel() if self.moves_inducing and slope is not None else np.empty(0)

    def profile(self, x: Array) -> tuple[float, Array]:
        """Energy and slope with inference run to its end."""
        self.evaluations += 1
        if self._exact is not None:
            return self._penalised(x, *self._evidence(x, *self._exact))
        self.set(x)
        value = self.infer()
        return self._penalised(x, value, self.gradient(settled=True))

    def at_fixed_sites(self, x: Array) -> tuple[float, Array]:
        """Energy and slope at the sites that the model has."""
        self.evaluations += 1
        self.set(x)
        return self._penalised(x, self.model.energy(), self.gradient(settled=False))

    def _penalised(self, x: Array, value: float, slope: Array) -> tuple[float, Array]:
        """With what the priors of the hyperparameters say."""
        count = len(self.names)
        more, by_log = self.constraints.penalty(self.names, x[:count])
        slope[:count] += by_log
        return value + more, slope

    def penalty(self) -> float:
        """Minus the log density of the hyperparameters where the model is."""
        return self.constraints.penalty(self.names, self.get()[: len(self.names)])[0]


def _refuse_unknown(fixed: Sequence[str], known: Sequence[str]) -> None:
    for name in fixed:
        if name not in known:
            msg = f"fixed: {name!r} is not one of {', '.join(map(repr, known))}"
            raise ValueError(msg)
