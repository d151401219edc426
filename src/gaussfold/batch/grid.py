"""The posterior of two parameters on a grid: nothing approximated but the integrals."""

from __future__ import annotations

import numpy as np
from scipy.linalg import solve_triangular
from scipy.special import logsumexp

from gaussfold.batch.laplace import mode
from gaussfold.batch.problem import Problem, prepare
from gaussfold.beliefs.dense.belief import DenseGaussian
from gaussfold.linalg.roots import lower_root
from gaussfold.protocols import Likelihood
from gaussfold.types import Array, ArrayLike

_DEPTH = 34.0  # the grid ends where the density has fallen by e^-34
_RAYS = 128
_REACH = np.geomspace(1e-6, 1e4, 201)  # in prior standard deviations
_CHUNK = 2_000_000


class GridPosterior:
    """Posterior of a model with two parameters, integrated on a grid that fits it.

    The region where the log density is within 34 of its maximum is found along rays from the mode; the
    grid is a parallelogram around it, aligned with its principal axes. The trapezoidal rule there converges
    faster than any power of the spacing, because the integrand is smooth and vanishes at the edge.

    Parameters
    ----------
    prior
        Belief before the data, ``dim == 2``.
    likelihood, X, y, sample_weight
        The data. Rows with a NaN label or weight 0 do not count.
    n
        Points per axis. ``None`` doubles them from 65 until the log evidence moves by less than
        1e-6 (and so is right to some 1e-12), at most 1025.

    Attributes
    ----------
    log_evidence : float
        ``log ∫ p(y|θ) p0(θ) dθ``; add it to an unnormalised KL (rvga (92)) to get the true one.
    log_evidence_error : float
        Difference to the same grid with every other point left out; the error itself is about its square.
    mean, cov : ndarray
        Posterior mean, shape (2,), and covariance, (2, 2).
    points : ndarray of shape (n, n, 2)
        Grid points θ.
    log_density : ndarray of shape (n, n)
        Normalised log density there.

    Examples
    --------
    >>> import numpy as np, gaussfold as gf
    >>> prior = gf.DenseGaussian.isotropic(2, std=0.7)
    >>> X, y = np.array([[1.0, 0.5], [-0.5, 1.0]]), np.array([1.0, 0.0])
    >>> grid = gf.batch.GridPosterior(prior, gf.likelihoods.Gaussian(0.9), X, y)
    >>> np.allclose(grid.mean, gf.batch.exact_linear(prior, X, y, 0.9).mean, atol=1e-9)
    True
    """

    def __init__(
        self,
        prior: DenseGaussian,
        likelihood: Likelihood,
        X: ArrayLike,
        y: ArrayLike,
        *,
        n: int | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> None:
        if prior.dim != 2:
            msg = f"prior: {prior.dim} parameters; GridPosterior takes 2; use laplace or variational"
            raise ValueError(msg)
        if n is not None and n < 5:
            msg = f"n: {n}; at least 5 points per axis are needed, or None to choose"
            raise ValueError(msg)
        self._problem = prepare(prior, likelihood, X, y, sample_weight)
        origin, axes, low, high = _fit_box(self._problem)
        for size in [n] if n is not None else [65, 129, 257, 513, 1025]:
            z, log_joint, log_cell = self._evaluate(origin, axes, low, high, size)
            self.log_evidence = float(logsumexp(log_joint) + log_cell)
            coarse = float(logsumexp(log_joint[::2, ::2]) + log_cell + np.log(4.0))
            self.log_evidence_error = abs(self.log_evidence - coarse)
            if self.log_evidence_error < 1e-6:
                break
        self.points = self._problem.centre + z @ self._problem.factor.T
        # densities of θ, not of z: divide by |F|
        self._log_scale = float(np.linalg.slogdet(self._problem.factor)[1])
        self.log_density = log_joint - self.log_evidence - self._log_scale
        weight = np.exp(log_joint + log_cell - self.log_evidence)
        self.mean = np.einsum("ij,ijk->k", weight, self.points)
        centred = self.points - self.mean
        self.cov = np.einsum("ij,ijk,ijl->kl", weight, centred, centred)

    def log_prob(self, theta: ArrayLike) -> Array:
        """Normalised log posterior density at points of shape (..., 2), on or off the grid."""
        points = np.asarray(theta, dtype=float)
        if points.shape[-1:] != (2,):
            msg = f"theta: shape {points.shape}; (..., 2) is needed"
            raise ValueError(msg)
        away = (points - self._problem.centre).reshape(-1, 2)
        z = np.asarray(np.linalg.solve(self._problem.factor, away.T).T, dtype=float)
        density = _log_joint(self._problem, z) - self.log_evidence - self._log_scale
        return np.asarray(density.reshape(points.shape[:-1]))

    def _evaluate(self, origin: Array, axes: Array, low: Array, high: Array, n: int) -> tuple[Array, Array, float]:
        """Grid in z, log p̃(z) on it, and the log area of one cell."""
        u, v = (np.linspace(low[i], high[i], n) for i in range(2))
        z = origin + np.stack(np.meshgrid(u, v, indexing="ij"), axis=-1) @ axes.T
        log_joint = _log_joint(self._problem, z.reshape(-1, 2)).reshape(n, n)
        log_cell = np.linalg.slogdet(axes)[1] + np.log(u[1] - u[0]) + np.log(v[1] - v[0])
        return z, log_joint, float(log_cell)


def _log_joint(problem: Problem, z: Array) -> Array:
    """Likelihood times the standard normal prior, at each row of z."""
    total: Array = -0.5 * np.einsum("ij,ij->i", z, z) - np.log(2.0 * np.pi)
    rows = max(1, _CHUNK // max(1, problem.y.size))
    with np.errstate(over="ignore"):
        for start in range(0, z.shape[0], rows):
            block = slice(start, start + rows)
            latent = problem.offset + z[block] @ problem.Z.T
            total[block] += problem.likelihood.log_prob(problem.y, latent) @ problem.weight
    return total


def _fit_box(problem: Problem) -> tuple[Array, Array, Array, Array]:
    """Centre, axes and limits of a parallelogram that holds all but e^-34 of the density's peak."""
    top = mode(problem)
    floor = _log_joint(problem, top[None])[0] - _DEPTH
    angle = 2.0 * np.pi * np.arange(_RAYS) / _RAYS
    rays = np.stack([np.cos(angle), np.sin(angle)], axis=1)
    # Far more than the prior allows at the outer end; the last point above the floor counts, so that a
    # second mode (a likelihood that is not log-concave) is not cut off.
    scan = (top + _REACH[:, None, None] * rays).reshape(-1, 2)
    above = _log_joint(problem, scan).reshape(-1, _RAYS) > floor
    last = _REACH.size - 1 - np.argmax(above[::-1], axis=0)
    edge = top + _REACH[np.minimum(last + 1, _REACH.size - 1), None] * rays
    origin = 0.5 * (edge.max(axis=0) + edge.min(axis=0))
    axes = lower_root(np.cov(edge.T), "spread")
    spread = solve_triangular(axes, (edge - origin).T, lower=True)
    return origin, axes, spread.min(axis=1), spread.max(axis=1)
