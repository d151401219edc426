"""Distance from a Gaussian belief to the true posterior: rvga (92)-(94).

With ``p̃(θ) = Π p(y_i|x_i'θ)^{w_i} p0(θ)`` (both factors normalised), evidence ``Z = ∫ p̃`` and
``q = N(μ, Q)``,

    KL(q || p̃/Z) = -E_q log p̃ - ½ log|Q| - d/2 (1 + log 2π) + log Z.

Z is rarely known, and shifts every belief alike; ``log_evidence=0`` leaves it out, as the paper does.
Then values may be negative and only differences mean anything.
"""

from __future__ import annotations

import numpy as np

from gaussfold.linalg.roots import log_det, triangularise
from gaussfold.observations import Observations, observe
from gaussfold.protocols import Distribution, Gaussian, Likelihood
from gaussfold.types import Array, ArrayLike

_CHUNK = 2_000_000
"""How many log likelihoods to hold at once; memory stays below some 100 MB for any amount of data."""


def kl_to_posterior(
    belief: Gaussian,
    prior: Gaussian,
    likelihood: Likelihood,
    X: ArrayLike,
    y: ArrayLike,
    *,
    n_samples: int = 300,
    normals: ArrayLike | None = None,
    rng: np.random.Generator | int | None = None,
    sample_weight: ArrayLike = None,
    log_evidence: float = 0.0,
) -> float:
    """KL from a belief to the posterior, by Monte Carlo: rvga (94).

    Parameters
    ----------
    belief, prior
        The approximation q and the prior p0.
    likelihood, X, y, sample_weight
        The data. Rows with a NaN label or weight 0 do not count.
    n_samples
        Number of draws from the belief, when ``normals`` is not given.
    normals
        Standard normals of shape (n, d) to use instead: the draws are ``μ + chol(Q) z``, with the lower
        Cholesky factor, so two beliefs can share their noise.
    rng
        Generator or seed of the draws.
    log_evidence
        ``log Z``, if known.

    Examples
    --------
    The posterior itself is at distance zero, up to the evidence (here N(y; 0, 1 + 0.25)):

    >>> import numpy as np, gaussfold as gf
    >>> prior = gf.DenseGaussian.isotropic(1, std=0.5)
    >>> posterior = gf.DenseGaussian([0.2], [[0.2]])
    >>> noise = gf.likelihoods.Gaussian(1.0)
    >>> log_evidence = -0.5 * np.log(2 * np.pi * 1.25) - 0.5 / 1.25
    >>> kl = kl_to_posterior(
    ...     posterior, prior, noise, [[1.0]], [1.0], normals=[[-1.0], [1.0]], log_evidence=log_evidence
    ... )
    >>> round(kl, 12) + 0.0
    0.0
    """
    data = observe(likelihood, X, y, prior.dim, sample_weight)
    lower = triangularise(belief.to_dense().factor)
    if normals is None:
        theta = belief.sample(n_samples, np.random.default_rng(rng))
    else:
        z = np.asarray(normals, dtype=float)
        if z.ndim != 2 or z.shape[1] != belief.dim or not z.shape[0]:
            msg = f"normals: shape {z.shape}; (n, {belief.dim}) with n >= 1 is needed"
            raise ValueError(msg)
        theta = belief.mean + z @ lower.T
    entropy = 0.5 * (log_det(lower) + belief.dim * (1.0 + np.log(2.0 * np.pi)))
    return float(log_evidence - _log_joint(theta, prior, likelihood, data).mean() - entropy)


def kl_to_posterior_exact(  # the arguments of `elbo`, spelled out for who calls it
    belief: Gaussian,
    prior: Gaussian,
    likelihood: Likelihood,
    X: ArrayLike,
    y: ArrayLike,
    *,
    sample_weight: ArrayLike = None,
    log_evidence: float = 0.0,
) -> float:
    """KL from a belief to the posterior, rvga (93), with every expectation done in one dimension.

    ``E_q log p(y|x'θ)`` only sees the marginal of ``x'θ``; the likelihood integrates it accurately,
    whichever ``expectation`` the belief was learned with.
    """
    return log_evidence - elbo(belief, prior, likelihood, X, y, sample_weight=sample_weight)


def elbo(
    belief: Gaussian,
    prior: Gaussian,
    likelihood: Likelihood,
    X: ArrayLike,
    y: ArrayLike,
    *,
    sample_weight: ArrayLike = None,
) -> float:
    """Lower bound of the log evidence: ``Σ w_i E_q log p(y_i|x_i'θ) - KL(q || p0)``.

    It is tight when the belief is the posterior.

    Examples
    --------
    >>> import numpy as np, gaussfold as gf
    >>> prior, noise = gf.DenseGaussian.isotropic(1, std=1.0), gf.likelihoods.Gaussian(0.5)
    >>> X, y = np.array([[1.0], [2.0]]), np.array([0.3, 1.1])
    >>> belief = prior.copy()
    >>> evidence = gf.fold(belief, noise, X, y).log_predictive.sum()
    >>> round(float(elbo(belief, prior, noise, X, y) - evidence), 9)
    0.0
    """
    data = observe(likelihood, X, y, prior.dim, sample_weight)
    fit = likelihood.expected_log_prob(data.y, belief.marginal(data.X))
    return float(data.weight @ fit - belief.kl(prior))


def log_joint(
    theta: ArrayLike,
    prior: Distribution,
    likelihood: Likelihood,
    X: ArrayLike,
    y: ArrayLike,
    *,
    sample_weight: ArrayLike = None,
) -> Array:
    """``log p̃(θ)``, the unnormalised log posterior, at each row of theta."""
    points = np.atleast_2d(np.asarray(theta, dtype=float))
    if points.shape[-1] != prior.dim or points.ndim != 2:
        msg = f"theta: shape {points.shape}; (n, {prior.dim}) is needed"
        raise ValueError(msg)
    return _log_joint(points, prior, likelihood, observe(likelihood, X, y, prior.dim, sample_weight))


def _log_joint(theta: Array, prior: Distribution, likelihood: Likelihood, data: Observations) -> Array:
    total = np.array(prior.log_prob(theta), dtype=float)
    rows = max(1, _CHUNK // theta.shape[0])
    for start in range(0, data.y.size, rows):
        block = slice(start, start + rows)
        latent = data.X[block] @ theta.T
        total += data.weight[block] @ likelihood.log_prob(data.y[block, None], latent)
    return total
