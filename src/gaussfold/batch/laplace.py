"""Laplace's approximation: a Gaussian at the posterior mode with the curvature found there."""

from __future__ import annotations

import numpy as np

from gaussfold.batch.problem import Problem, prepare
from gaussfold.beliefs.dense.belief import DenseGaussian
from gaussfold.linalg.roots import root_from_precision
from gaussfold.protocols import Likelihood
from gaussfold.types import Array, ArrayLike

_TOLERANCE = 1e-12
_STEPS = 500


def laplace(
    prior: DenseGaussian, likelihood: Likelihood, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None
) -> DenseGaussian:
    """Gaussian at the posterior mode, with the inverse curvature of the log posterior as covariance.

    Newton's method with a line search, from the prior mean, until the step is below 1e-12 posterior standard
    deviations (or stops shrinking, at rounding). For a likelihood that is not log-concave the mode
    found is a local one.

    Parameters
    ----------
    prior
        Belief before the data; it is not changed.
    likelihood, X, y, sample_weight
        The data. Rows with a NaN label or weight 0 do not count.

    Examples
    --------
    >>> import gaussfold as gf
    >>> prior = gf.DenseGaussian.isotropic(1, std=0.7)
    >>> gf.batch.laplace(prior, gf.likelihoods.Bernoulli("logit"), [[1.0], [-0.5]], [1, 0]).mean
    array([0.319001])
    """
    problem = prepare(prior, likelihood, X, y, sample_weight)
    z = mode(problem)
    _, second = likelihood.derivatives(problem.y, problem.latent(z))
    precision = -problem.weight * second
    if (precision >= 0.0).all():
        return problem.belief(z, problem.root(precision).factor())
    try:
        return problem.belief(z, root_from_precision(_information(problem, precision), "information"))
    except ValueError as error:
        msg = "laplace: the point found is a saddle, not a mode; start from another prior mean"
        raise RuntimeError(msg) from error


def mode(problem: Problem) -> Array:
    """Maximise the log posterior over z."""
    z = np.zeros(problem.Z.shape[1])
    value = _objective(problem, z)
    if value == -np.inf:
        msg = "prior: the likelihood overflows at the prior mean; move the mean, or scale X"
        raise ValueError(msg)
    best = np.inf
    for _ in range(_STEPS):
        first, second = problem.likelihood.derivatives(problem.y, problem.latent(z))
        gradient = problem.Z.T @ (problem.weight * first) - z
        step = _newton_step(problem, -problem.weight * second, gradient)
        decrement = float(np.sqrt(np.maximum(gradient @ step, 0.0)))  # the step, in posterior standard deviations
        if decrement <= _TOLERANCE:
            return z + step
        if 0.5 * best < decrement < 1e-6:
            return z  # rounding: a gradient that is a sum of large terms cannot get any smaller
        best = min(best, decrement)
        z, value = _line_search(problem, z, value, step, decrement)
    msg = f"laplace: no convergence in {_STEPS} Newton steps (the last one was {decrement:.1e} posterior stds)"
    raise RuntimeError(msg)


def _objective(problem: Problem, z: Array) -> float:
    """Log posterior up to a constant; -inf where it overflows."""
    with np.errstate(over="ignore", invalid="ignore"):
        fit = problem.weight @ problem.likelihood.log_prob(problem.y, problem.latent(z))
        value = float(fit - 0.5 * (z @ z))
    return value if np.isfinite(value) else -np.inf


def _information(problem: Problem, precision: Array) -> Array:
    return np.eye(problem.Z.shape[1]) + problem.Z.T @ (precision[:, None] * problem.Z)


def _newton_step(problem: Problem, precision: Array, gradient: Array) -> Array:
    """``(I + Z' diag(λ) Z)⁻¹ g``; where that is not positive definite, negative λ are left out."""
    if (precision < 0.0).any():
        try:
            factor = root_from_precision(_information(problem, precision), "information")
            return factor @ (factor.T @ gradient)
        except ValueError:
            precision = np.maximum(precision, 0.0)
    return problem.root(precision).solve(gradient)


def _line_search(problem: Problem, z: Array, value: float, step: Array, decrement: float) -> tuple[Array, float]:
    """Halve the step until the objective gains a fair share of what the model promises."""
    slack = 1e-13 * (1.0 + abs(value))  # below this, differences of the objective are rounding
    size = 1.0
    while size > 1e-20:
        candidate = z + size * step
        new = _objective(problem, candidate)
        if new >= value + 1e-4 * size * decrement**2 - slack:
            return candidate, new
        size *= 0.5
    msg = "laplace: no step improves the posterior; do the likelihood's derivatives match its log_prob?"
    raise RuntimeError(msg)
