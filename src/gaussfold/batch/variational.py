"""The Gaussian nearest to the posterior in KL(q || p), found from all the data at once.

In the prior's units (`gaussfold.batch.problem`) the optimum has precision ``I + Z' diag(λ) Z`` with
``λ = -w E l''`` and a mean where ``g = Z'(w E l') - z`` vanishes: a fixed point in the N site precisions and
the mean. Two kinds of step lead there:

* A natural-gradient step of length ρ moves the sites to ``(1-ρ)λ + ρ λ(q)`` and the mean by ``ρ S_new g``.
  It always ascends the ELBO if it is short enough, but may converge slowly.
* A Newton step on the fixed point, taken whenever it shrinks the ELBO's gradient, ends that slowness.

The ELBO is concave (in the mean and the covariance's Cholesky factor) for log-concave likelihoods, so what
is found is the optimum.
"""

from __future__ import annotations

import dataclasses
from typing import NamedTuple

import numpy as np
from scipy.sparse.linalg import LinearOperator, gmres

from gaussfold.batch.laplace import mode
from gaussfold.batch.problem import Problem, prepare
from gaussfold.beliefs.dense.belief import DenseGaussian
from gaussfold.likelihoods import Bernoulli
from gaussfold.linalg.information import InformationRoot
from gaussfold.protocols import Likelihood
from gaussfold.types import Array, ArrayLike, Moments

_TOLERANCE = 1e-10
_STEPS = 500


class _Point(NamedTuple):
    """A belief over z, and what the data say when they look at it."""

    z: Array
    sites: Array
    root: InformationRoot
    whitened: Array  # Z R⁻¹
    moments: Moments  # of the latents
    elbo: float
    rounding: float  # differences of the ELBO below this mean nothing
    gradient: Array  # of the ELBO, in the mean
    wanted: Array  # site precisions that this belief asks for
    residual: float  # natural norm of the ELBO's gradient: 0 at the optimum


def variational(
    prior: DenseGaussian, likelihood: Likelihood, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None
) -> DenseGaussian:
    """Batch variational optimum: the Gaussian that maximises `gaussfold.metrics.elbo`.

    Expectations are accurate ones, also for ``Bernoulli(expectation="probit")``. Iterates until the natural
    gradient of the ELBO is below 1e-10 nats per posterior standard deviation, or at rounding.

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
    array([0.322206])
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
    with np.errstate(over="ignore", invalid="ignore"):  # a trial that overflows is refused, not reported
        point = _climb(problem)
    return problem.belief(point.z, point.root.factor())


def _climb(problem: Problem) -> _Point:
    """Step until the gradient vanishes: by Newton where that helps, else by the natural gradient."""
    point, length = _start(problem), 1.0
    for _ in range(_STEPS):
        if point.residual <= max(_TOLERANCE, point.rounding):
            return point
        newton = _newton_step(problem, point)
        if newton is not None:
            point = newton
        else:
            point, length = _natural_step(problem, point, min(1.0, 2.0 * length))
    msg = f"variational: no convergence in {_STEPS} steps (natural gradient {point.residual:.1e})"
    raise RuntimeError(msg)


def _start(problem: Problem) -> _Point:
    """Begin at the mode, with no latent wider than one: E e^f must not overflow on the way in."""
    z = mode(problem)
    _, second = problem.likelihood.derivatives(problem.y, problem.latent(z))
    return _look(problem, z, np.maximum(-problem.weight * second, 1.0))


def _look(problem: Problem, z: Array, sites: Array) -> _Point:
    """Evaluate the ELBO and its gradient for the belief with this mean and these site precisions."""
    root = problem.root(sites)
    whitened = root.whiten(problem.Z)
    moments = Moments(problem.latent(z), np.einsum("ij,ij->i", whitened, whitened))
    kl_terms = np.array([z @ z, np.sum(root.factor() ** 2), -z.size, root.log_det()])
    fit = problem.weight * problem.likelihood.expected_log_prob(problem.y, moments)
    first, second = problem.likelihood.expected_derivatives(problem.y, moments)
    gradient = problem.Z.T @ (problem.weight * first) - z
    wanted = -problem.weight * second
    elbo, residual = float(fit.sum() - 0.5 * kl_terms.sum()), np.inf
    if np.isfinite(gradient).all():
        # g'Sg for the mean, and ½|Z'(wanted - sites)Z|² in the metric of the covariance
        mismatch = whitened.T @ ((wanted - sites)[:, None] * whitened)
        residual = float(np.sqrt(gradient @ root.solve(gradient) + 0.5 * np.sum(mismatch**2)))
    if not (np.isfinite(elbo) and np.isfinite(residual)):
        elbo, residual = -np.inf, np.inf  # overflow: too wide a belief for a likelihood with e^f
    rounding = 1e-13 * float(1.0 + np.abs(fit).sum() + np.abs(kl_terms).sum())
    return _Point(z, sites, root, whitened, moments, elbo, rounding, gradient, wanted, residual)


def _better(old: _Point, new: _Point, promised: float) -> bool:
    """Whether the ELBO gains a share of what was promised.

    Close to the optimum the gain drowns in rounding; there the gradient itself must shrink.
    """
    if old.residual**2 > 1e4 * old.rounding:
        return promised > 0.0 and new.elbo >= old.elbo + 1e-3 * promised
    return new.residual < 0.9 * old.residual


def _natural_step(problem: Problem, point: _Point, length: float) -> tuple[_Point, float]:
    """Shorten a natural-gradient step until the ELBO gains its share; the slope is the squared residual."""
    while length > 1e-12:
        sites = (1.0 - length) * point.sites + length * point.wanted
        new = _look(problem, point.z + length * problem.root(sites).solve(point.gradient), sites)
        if _better(point, new, length * point.residual**2):
            return new, length
        length *= 0.5
    msg = f"variational: no step improves the ELBO (natural gradient {point.residual:.1e})"
    raise RuntimeError(msg)


def _newton_step(problem: Problem, point: _Point) -> _Point | None:
    """Newton's step for ``g = 0, λ = λ(q)``, or None where it does not bring the optimum closer.

    With ``C = (Z S Z')²`` elementwise, variances answer to sites by ``δv = -C δλ``, and the equations are

        (I + Z' diag(λ(q)) Z) δz + ½ Z' diag(w E l''') C δλ = g
        diag(w E l''') Z δz + (I - diag(w ∂_v E l'') C) δλ = λ(q) - λ.

    δz is eliminated; the rest is solved by GMRES for the relative change of the sites, which keeps them
    positive and needs C only as a product: ``C x = diag(U (U' diag(x) U) U')`` with ``U = Z R⁻¹``.
    """
    third, slope = _sensitivities(problem, point)
    U, Z, sites = point.whitened, problem.Z, np.where(point.sites > 0.0, point.sites, 1.0)
    root = problem.root(point.wanted)

    def variance_loss(relative: Array) -> Array:
        shrink = U.T @ ((sites * relative)[:, None] * U)
        return np.asarray(np.einsum("ij,ij->i", U @ shrink, U))

    def mean_response(loss: Array) -> Array:
        return root.solve(Z.T @ (0.5 * third * loss))

    def equation(relative: Array) -> Array:
        loss = variance_loss(relative)
        return relative - (third * (Z @ mean_response(loss)) + slope * loss) / sites

    mean_step = root.solve(point.gradient)
    right = (point.wanted - point.sites - third * (Z @ mean_step)) / sites
    if not np.isfinite(right).all():
        return None
    operator = LinearOperator((sites.size, sites.size), matvec=equation, dtype=float)
    accuracy = min(1e-2, 0.1 * point.residual)  # inexact Newton: solve no better than the step deserves
    relative = gmres(operator, right, rtol=accuracy, restart=50, maxiter=2)[0]
    loss = variance_loss(relative)
    mean_step = mean_step - mean_response(loss)
    slope_of_elbo = float(point.gradient @ mean_step + 0.5 * (point.wanted - point.sites) @ loss)
    for length in (1.0, 0.5, 0.25, 0.125, 0.0625):
        # never more than a factor e² at once: the equations are local
        change = np.exp(np.clip(length * relative, -2.0, 2.0))
        new = _look(problem, point.z + length * mean_step, point.sites * change)
        if _better(point, new, length * slope_of_elbo):
            return new
    return None


def _sensitivities(problem: Problem, point: _Point) -> tuple[Array, Array]:
    """``w E l'''`` and ``w ∂_v E l''``, by central differences: Newton only needs them to a few digits."""
    mean, variance = point.moments
    step, widening = 1e-4, np.maximum(1e-4 * variance, 1e-30)

    def second(m: Array, v: Array) -> Array:
        return np.asarray(problem.weight * problem.likelihood.expected_derivatives(problem.y, Moments(m, v))[1])

    third = (second(mean + step, variance) - second(mean - step, variance)) / (2.0 * step)
    slope = second(mean, variance + widening) - second(mean, np.maximum(variance - widening, 0.0))
    return third, slope / (2.0 * widening)
