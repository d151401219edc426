"""The posterior looked for again from all the data at once: what a belief that was learned row by row is held against.

In the prior's units, ``θ = μ₀ + F₀ z``, the log posterior has gradient ``Z'(w l') - z`` and precision
``I + Z' diag(-w l'') Z``. Newton's method with a line search finds the mode; from there a few steps of the variational
fixed point, which averages l' and l'' over the Gaussian; from its draws importance weights lead to the mean and the
standard deviations of the posterior itself.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from scipy.linalg import LinAlgError, cho_solve, cholesky, solve_triangular
from scipy.special import logsumexp

from gaussfold.beliefs.dense.belief import DenseGaussian
from gaussfold.metrics.divergence import log_joint
from gaussfold.metrics.psis import psis_log_weights
from gaussfold.observations import Observations
from gaussfold.protocols import Likelihood
from gaussfold.rows import dense_rows
from gaussfold.types import Array, Moments

LARGEST = 1000
"""Parameters up to which the posterior is looked for again: it takes rows × parameters² a step."""
STEPS, SETTLED = 60, 1e-6
"""Newton steps at most, and the size of one, in posterior standard deviations, at which they end."""
AVERAGED_STEPS = 15
"""Steps of the variational fixed point at most."""


class Target(NamedTuple):
    """The data and the prior, in the prior's units."""

    prior: DenseGaussian
    root: Array
    """F₀: a lower factor of the prior's covariance."""
    Z: Array
    data: Observations
    likelihood: Likelihood


class Settled(NamedTuple):
    """What the posterior is, as far as can be told."""

    mean: Array
    std: Array
    khat: float
    """How far importance weights could be trusted; where they could not, this is the variational Gaussian."""


class _Information:
    """The precision ``I + Z' diag(λ) Z``, its columns scaled to be alike before it is factorised."""

    def __init__(self, Z: Array, precision: Array) -> None:
        matrix = np.eye(Z.shape[1]) + Z.T @ (precision[:, None] * Z)
        self.scale = 1.0 / np.sqrt(np.diag(matrix))
        self.lower = cholesky(self.scale[:, None] * matrix * self.scale, lower=True)

    def solve(self, b: Array) -> Array:
        return np.asarray(self.scale * cho_solve((self.lower, True), self.scale * b))

    def whiten(self, rows: Array) -> Array:
        """Rows whose squared norms are x' (I + Z'ΛZ)⁻¹ x."""
        return np.asarray(solve_triangular(self.lower, (rows * self.scale).T, lower=True).T)

    def factor(self) -> Array:
        """A factor of the inverse."""
        inverse = solve_triangular(self.lower, np.eye(self.lower.shape[0]), lower=True)
        return np.asarray(self.scale[:, None] * inverse.T)


def settle(
    start: Array, prior: DenseGaussian, likelihood: Likelihood, data: Observations, rng: np.random.Generator, draws: int
) -> Settled | None:
    """Look for the posterior from a mean near it; None where that is not possible."""
    root = prior.factor
    target = Target(prior, root, dense_rows(data.X) @ root, data, likelihood)
    try:
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            z = _mode(target, np.asarray(np.linalg.solve(root, start - prior.mean), dtype=np.float64))
            found = _averaged(target, z)
            return None if found is None else _weighted(target, *found, rng, draws)
    except (LinAlgError, ValueError):  # nothing finite to start from
        return None


def _value(target: Target, z: Array) -> float:
    y, weight = target.data.y, target.data.weight
    fit = target.likelihood.log_prob(y, target.Z @ z + dense_rows(target.data.X) @ target.prior.mean)
    value = float(weight @ fit - 0.5 * z @ z)
    return value if np.isfinite(value) else -np.inf


def _slopes(target: Target, z: Array, variance: Array | None) -> tuple[Array, Array]:
    """Gradient, and precisions of the sites, at a point or averaged over a Gaussian of these variances."""
    mean = target.Z @ z + dense_rows(target.data.X) @ target.prior.mean
    y, weight = target.data.y, target.data.weight
    if variance is None:
        first, second = target.likelihood.derivatives(y, mean)
    else:
        first, second = target.likelihood.expected_derivatives(y, Moments(mean, variance))
    return target.Z.T @ (weight * first) - z, np.maximum(-weight * second, 0.0)


def _mode(target: Target, z: Array) -> Array:
    """Newton's method with a line search, from z, or from the prior's mean if that is the better start."""
    value = _value(target, z)
    if not value > (at_zero := _value(target, np.zeros_like(z))):
        z, value = np.zeros_like(z), at_zero
    for _ in range(STEPS):
        gradient, precision = _slopes(target, z, None)
        information = _Information(target.Z, precision)
        step = information.solve(gradient)
        size = float(gradient @ step)
        length = 1.0
        while length > 1e-8 and not _value(target, z + length * step) >= value + 1e-4 * length * size:
            length *= 0.5
        if length <= 1e-8 or size <= SETTLED**2:
            break
        z = z + length * step
        value = _value(target, z)
    return z


def _averaged(target: Target, z: Array) -> tuple[Array, _Information] | None:
    """From the mode to the variational optimum, as long as steps get shorter."""
    _, precision = _slopes(target, z, None)
    information = _Information(target.Z, precision)
    best, last = (z, information), np.inf
    for _ in range(AVERAGED_STEPS):
        variance = np.einsum("ij,ij->i", whitened := information.whiten(target.Z), whitened)
        gradient, precision = _slopes(target, z, variance)
        try:
            information = _Information(target.Z, precision)
        except (LinAlgError, ValueError):  # averages of e^f over a wide Gaussian overflow: the mode must do
            break
        step = information.solve(gradient)
        size = math.sqrt(max(float(gradient @ step), 0.0))
        if not size < 2.0 * last:
            break
        z = z + step
        best, last = (z, information), size
        if size <= 1e-4:
            break
    return best


def _weighted(target: Target, z: Array, information: _Information, rng: np.random.Generator, draws: int) -> Settled:
    """Mean and standard deviations by importance weights, from Gaussian draws that are a little too wide."""
    factor, wider = information.factor(), 1.1
    noise = rng.standard_normal((draws, z.size))
    theta = target.prior.mean + (z + wider * noise @ factor.T) @ target.root.T
    centre, spread = target.prior.mean + target.root @ z, target.root @ factor
    std = np.sqrt(np.einsum("ij,ij->i", spread, spread))
    likelihood, data = target.likelihood, target.data
    joint = log_joint(theta, target.prior, likelihood, data.X, data.y, sample_weight=data.weight)
    log_weights, khat = psis_log_weights(joint + 0.5 * np.einsum("ij,ij->i", noise, noise))
    if not khat < 0.7:
        return Settled(centre, std, khat)
    weights = np.exp(log_weights - logsumexp(log_weights))
    # what the same draws say without weights, of a Gaussian that is known, is taken off: chance cancels
    away = theta - centre
    mean = weights @ away
    change = (weights @ (away - mean) ** 2) / away.var(axis=0)
    return Settled(centre + mean - away.mean(axis=0), wider * std * np.sqrt(change), khat)
