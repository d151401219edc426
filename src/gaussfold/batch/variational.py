"""The Gaussian nearest to the posterior in KL(q || p), found from all the data at once.

In the prior's units (`gaussfold.batch.problem`) the optimum has precision ``I + Z' diag(λ) Z`` with
``λ_i = -w_i E l''_i`` and a mean where ``Z'(w E l') = z``: a fixed point in the N site precisions and the
mean. One natural-gradient step of length ρ moves the sites to ``(1-ρ)λ + ρ λ(q)`` and the mean by
``ρ S_new (Z' w E l' - z)``; ρ = 1 is Newton's method with expected derivatives, and the ELBO decides how
much of it to take. The ELBO is concave (in the mean and the covariance's Cholesky factor) for
log-concave likelihoods, so what is found is the optimum.
"""

from __future__ import annotations

import dataclasses
from typing import NamedTuple

import numpy as np

from gaussfold.batch.laplace import mode
from gaussfold.batch.problem import Problem, prepare
from gaussfold.beliefs.dense import DenseGaussian
from gaussfold.likelihoods import Bernoulli
from gaussfold.linalg.information import InformationRoot
from gaussfold.protocols import Likelihood
from gaussfold.types import Array, ArrayLike, Moments

_TOLERANCE = 1e-10
_STEPS = 2000


class _Point(NamedTuple):
    """A belief ``q`` over z, and what the data say when they look at it."""

    z: Array
    sites: Array
    root: InformationRoot
    elbo: float
    gradient: Array  # of the ELBO, in the mean
    wanted: Array  # site precisions that this belief asks for
    residual: float  # natural norm of the ELBO's gradient: 0 at the optimum


def variational(
    prior: DenseGaussian,
    likelihood: Likelihood,
    X: ArrayLike,
    y: ArrayLike,
    sample_weight: ArrayLike | None = None,
) -> DenseGaussian:
    """Batch variational optimum: the Gaussian that maximises `gaussfold.metrics.elbo`.

    Expectations are accurate ones, also for ``Bernoulli(expectation="probit")``. Iterates until the natural
    gradient of the ELBO is below 1e-10 (in nats per posterior standard deviation).

    Parameters
    ----------
    prior
        Belief before the data; it is not changed.
    likelihood
        Log-concave, so that every site precision is positive and the optimum unique.
    X, y, sample_weight
        The data. Rows with a NaN label or weight 0 do not count.

    Examples
    --------
    >>> import gaussfold as gf
    >>> prior = gf.DenseGaussian.isotropic(1, std=0.7)
    >>> gf.batch.variational(prior, gf.likelihoods.Bernoulli("logit"), [[1.0], [-0.5]], [1, 0]).mean
    array([0.2895])
    """
    if not likelihood.log_concave:
        msg = (
            f"likelihood: {likelihood!r} is not log-concave; variational takes Gaussian, Bernoulli, Poisson "
            "and NegativeBinomial, whose site precisions are never negative; use laplace, or fold and sweep"
        )
        raise ValueError(msg)
    if isinstance(likelihood, Bernoulli):
        likelihood = dataclasses.replace(likelihood, expectation="quadrature")
    problem = prepare(prior, likelihood, X, y, sample_weight)
    point, length = _start(problem), 1.0
    for _ in range(_STEPS):
        if point.residual <= _TOLERANCE:
            return problem.belief(point.z, point.root.factor())
        point, length = _step(problem, point, min(1.0, 2.0 * length))
    msg = f"variational did not converge in {_STEPS} steps (natural gradient {point.residual:.1e})"
    raise RuntimeError(msg)


def _start(problem: Problem) -> _Point:
    """Begin at the mode, with no latent wider than one: E e^f must not overflow on the way in."""
    z = mode(problem)
    _, second = problem.likelihood.derivatives(problem.y, problem.latent(z))
    return _look(problem, z, np.maximum(-problem.weight * second, 1.0))


def _step(problem: Problem, point: _Point, length: float) -> tuple[_Point, float]:
    """One natural-gradient step, shortened until the ELBO gains its share of ``ρ residual²``.

    Close to the optimum that gain drowns in rounding; there the gradient itself must shrink.
    """
    rounding = 1e-13 * (1.0 + abs(point.elbo))
    while length > 1e-12:
        sites = (1.0 - length) * point.sites + length * point.wanted
        root = problem.root(sites)
        new = _look(problem, point.z + length * root.solve(point.gradient), sites, root)
        if point.residual**2 > 1e4 * rounding:
            accept = new.elbo >= point.elbo + 1e-3 * length * point.residual**2 - rounding
        else:
            accept = new.residual < point.residual
        if accept:
            return new, length
        length *= 0.5
    msg = f"variational: no step improves the ELBO (natural gradient {point.residual:.1e})"
    raise RuntimeError(msg)


def _look(problem: Problem, z: Array, sites: Array, root: InformationRoot | None = None) -> _Point:
    """Evaluate the ELBO and its gradient for the belief with this mean and these site precisions."""
    root = problem.root(sites) if root is None else root
    whitened = root.whiten(problem.Z)
    moments = Moments(problem.latent(z), np.einsum("ij,ij->i", whitened, whitened))
    with np.errstate(over="ignore", invalid="ignore"):
        fit = problem.weight @ problem.likelihood.expected_log_prob(problem.y, moments)
        first, second = problem.likelihood.expected_derivatives(problem.y, moments)
        gradient = problem.Z.T @ (problem.weight * first) - z
        wanted = -problem.weight * second
        # ½|Z'(wanted - sites)Z|² in the metric of the covariance, and g'Sg for the mean
        mismatch = whitened.T @ ((wanted - sites)[:, None] * whitened)
        residual = np.sqrt(gradient @ root.solve(gradient) + 0.5 * np.sum(mismatch**2))
    kl = 0.5 * (z @ z + np.sum(root.factor() ** 2) - z.size + root.log_det())
    elbo = float(fit - kl) if np.isfinite(fit) and np.isfinite(residual) else -np.inf
    return _Point(z, sites, root, elbo, gradient, wanted, float(residual))
