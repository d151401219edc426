"""Slow textbook versions of what the estimators compute, written without looking at them.

Dense covariances, explicit inverses, expectations by the trapezoidal rule on a wide grid (which is
accurate to rounding for smooth integrands with Gaussian tails).
"""

from dataclasses import dataclass, replace

import numpy as np
from scipy import optimize, stats

Z = np.linspace(-14.0, 14.0, 4001)
NORMAL = stats.norm.pdf(Z) * (Z[1] - Z[0])


@dataclass
class Gauss:
    mean: np.ndarray
    cov: np.ndarray

    def relax(self, factor, prior):
        """Stabilised forgetting: natural parameters move towards the prior's."""
        precision = factor * np.linalg.inv(self.cov) + (1 - factor) * np.linalg.inv(prior.cov)
        shift = factor * np.linalg.solve(self.cov, self.mean) + (1 - factor) * np.linalg.solve(prior.cov, prior.mean)
        return Gauss(np.linalg.solve(precision, shift), np.linalg.inv(precision))

    def drift(self, std):
        return replace(self, cov=self.cov + std**2 * np.eye(len(self.mean)))

    def marginal(self, x):
        return x @ self.mean, x @ self.cov @ x


def expect(function, m, v):
    return NORMAL @ function(m + np.sqrt(v) * Z)


def implicit_vi(belief, x, y, weight, derivatives):
    """Solve rvga (73)-(77): m = m0 + v0 w E l'(f), 1/v = 1/v0 - w E l''(f), f ~ N(m, v)."""
    m0, v0 = belief.marginal(x)

    def residual(u):
        m, v = u[0], v0 * np.exp(u[1])
        first = weight * expect(lambda f: derivatives(y, f)[0], m, v)
        second = weight * expect(lambda f: derivatives(y, f)[1], m, v)
        return [m - m0 - v0 * first, u[1] + np.log1p(-v0 * second)]

    root = optimize.root(residual, [m0, -0.1], tol=1e-13)
    m, v = root.x[0], v0 * np.exp(root.x[1])
    np.testing.assert_allclose(residual(root.x), 0, atol=1e-10)
    first = weight * expect(lambda f: derivatives(y, f)[0], m, v)
    second = weight * expect(lambda f: derivatives(y, f)[1], m, v)
    u = belief.cov @ x
    return Gauss(belief.mean + u * first, belief.cov - np.outer(u, u) * (-second) / (1 - v0 * second))


def logit(y, f):
    p = 1 / (1 + np.exp(-f))
    return y - p, -p * (1 - p)


def poisson(y, f):
    return y - np.exp(f), -np.exp(f)


def stream(prior, X, y, weight, derivatives, factor=1.0, drift=0.0):
    """Fold the rows one after another; return the posterior and each row's marginal before it was learned."""
    belief, seen = prior, []
    for x, label, w in zip(X, y, weight, strict=True):
        learn = not np.isnan(label) and w > 0
        if learn:
            belief = belief.relax(factor, prior).drift(drift) if factor < 1 or drift > 0 else belief
        seen.append(belief.marginal(x))
        if learn:
            belief = implicit_vi(belief, x, label, w, derivatives)
    return belief, np.array(seen)


def exact_linear(prior, X, y, weight, noise_std):
    """Batch Bayesian linear regression by the normal equations."""
    precision = np.linalg.inv(prior.cov) + (X.T * weight) @ X / noise_std**2
    shift = np.linalg.solve(prior.cov, prior.mean) + X.T @ (weight * y) / noise_std**2
    return Gauss(np.linalg.solve(precision, shift), np.linalg.inv(precision))


def normal_inverse_gamma(prior, a, b, X, y, weight):
    """Batch formulas for unknown noise (covariance in units of the noise): belief, a, b."""
    posterior = exact_linear(prior, X, y, weight, 1.0)
    before = np.linalg.inv(prior.cov)
    after = np.linalg.inv(posterior.cov)
    squares = weight @ y**2 + prior.mean @ before @ prior.mean - posterior.mean @ after @ posterior.mean
    return posterior, a + weight.sum() / 2, b + squares / 2
