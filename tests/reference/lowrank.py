"""Slow textbook twins of the low-rank machinery: d×d arrays and loops, straight from the papers' formulas."""

from __future__ import annotations

import numpy as np


def algorithm_1(W, psi, X, weights, alpha=1.0, inner_loops=1):
    """Lrvga Algorithm 1 as printed, with rows X (K, d) and one weight each, on d×d arrays."""
    target = alpha * (W @ W.T + np.diag(psi))
    for x, weight in zip(X, weights, strict=True):
        target = target + weight * np.outer(x, x)
    for _ in range(inner_loops):
        inverse_psi = np.diag(1.0 / psi)
        M = np.eye(W.shape[1]) + W.T @ inverse_psi @ W
        V = target @ inverse_psi @ W
        W_new = V @ np.linalg.inv(np.eye(W.shape[1]) + np.linalg.inv(M) @ W.T @ inverse_psi @ V)
        psi = np.diag(target - W_new @ np.linalg.inv(M) @ V.T).copy()
        W = W_new
    return W, psi


def eigen_projection(W, psi, X, weights, alpha=1.0, weaken=True):
    """Eigenvectors of the d×d target in the metric of the old diagonal; returns WW' and Ψ.

    The diagonal of the target is kept. Then, in the new metric, every kept direction loses what the diagonal has
    gained on average.
    """
    low = alpha * W @ W.T + (X.T * weights) @ X
    kept = _strongest(low, alpha * psi, W.shape[1], 0.0)
    fresh = alpha * psi + np.diag(low - kept)
    if weaken:
        noise = np.mean(1.0 - alpha * psi / fresh)
        weak = _strongest(kept, fresh, W.shape[1], noise)
        fresh = fresh + np.diag(kept - weak)
        kept = weak
    return kept, fresh


def marginal_projection(W, psi, X, weights, alpha=1.0, low=None):
    """The strongest directions in the metric of the old diagonal; every variance of the d×d target, to first order.

    The diagonal grows by the variance that would be left without the dropped directions over what it should be.
    Returns WW' and Ψ.
    """
    low = alpha * W @ W.T + (X.T * weights) @ X if low is None else low
    kept = _strongest(low, alpha * psi, W.shape[1], 0.0)
    left = np.diag(np.linalg.inv(kept + np.diag(alpha * psi)))
    wanted = np.diag(np.linalg.inv(low + np.diag(alpha * psi)))
    return kept, alpha * psi * left / wanted


def _strongest(matrix, metric, count, less):
    scale = np.sqrt(np.outer(metric, metric))
    values, vectors = np.linalg.eigh(matrix / scale)
    strong = vectors[:, -count:] * np.sqrt(np.maximum(values[-count:] - less, 0.0))
    return scale * (strong @ strong.T)


def log_likelihood(W, psi, target):
    """Lrvga (13) per sample, constants apart: what a projection maximises."""
    precision = W @ W.T + np.diag(psi)
    return -0.5 * np.trace(np.linalg.solve(precision, target)) - 0.5 * np.linalg.slogdet(precision)[1]


def kl_to_covariance(W, psi, S):
    """KL(N(0, S) ‖ N(0, WW' + Ψ))."""
    model = W @ W.T + np.diag(psi)
    spread = np.trace(np.linalg.solve(model, S)) - len(psi)
    return 0.5 * (spread + np.linalg.slogdet(model)[1] - np.linalg.slogdet(S)[1])


def linear_regression(W, psi, mean, X, y, noise_std, project, gain="exact", block=1):
    """L-RVGA for a linear model on d×d arrays; ``project(W, psi, X, weights) -> W, psi``."""
    mean = mean.copy()
    for start in range(0, len(y), block):
        rows, labels = X[start : start + block], y[start : start + block]
        before = W @ W.T + np.diag(psi)
        after = before + rows.T @ rows / noise_std**2
        W, psi = project(W, psi, rows, np.full(len(rows), noise_std**-2))
        used = after if gain == "exact" else W @ W.T + np.diag(psi)
        mean = mean + np.linalg.solve(used, rows.T @ (labels - rows @ mean)) / noise_std**2
    return mean, W, psi


def calibrated_regression(W, psi, mean, X, y, noise_std, block=1, unsure=0.1):
    """L-RVGA with variances kept and their scale learned, for a linear model, on d×d arrays; returns mean, WW' and Ψ.

    The scale of what Ψ has gained is the estimate of a Kalman filter. Its observations are the squared innovations of
    single rows, each predicted by all rows before; its steps are taken when a block is projected.
    """
    low, base, d = W @ W.T, psi.copy(), len(psi)
    mean, uncertainty, scale, room = mean.copy(), 0.0, 0.0, 0.0
    for start in range(0, len(y), block):
        target, score, information = low + np.diag(psi), 0.0, 0.0
        for x, label in zip(X[start : start + block], y[start : start + block], strict=True):
            seen = np.linalg.solve(target, x)
            variance, error = x @ seen, label - x @ mean
            h = variance / (variance + noise_std**2)
            slope = 0.5 * h * (1.0 - 0.9 * h)
            score += slope * (min(error**2 / (variance + noise_std**2), 10.0) - 1.0)
            information += slope * h
            mean = mean + seen * error / (variance + noise_std**2)
            target = target + np.outer(x, x) / noise_std**2
        values = np.linalg.eigvalsh((target - np.diag(psi)) / np.sqrt(np.outer(psi, psi)))[: -W.shape[1]]
        values = np.maximum(values, 0.0)
        low, fresh = marginal_projection(W, psi, np.zeros((0, d)), [], 1.0, target - np.diag(psi))
        up = -np.log(1.0 - np.sum(values / (1.0 + values)) / d)
        more = np.log(1.0 + np.sum(values) / d) - up
        gain = uncertainty / (1.0 + uncertainty * information)
        free = np.mean(base / psi) * np.exp(-up)
        step = np.log(np.clip(1.0 + gain * score, 0.1, 10.0))
        step = np.clip(step, -room - scale, -np.log(free))
        if free < 1.0:
            fresh = base + (fresh - base) * max(1.0 + (np.exp(-step) - 1.0) / (1.0 - free), 0.0)
        psi, uncertainty = fresh, gain + unsure * (up + more)
        scale, room = scale + step, room + more
    return mean, low, psi


def sample_covariance_error(samples, cov):
    """Largest deviation of the empirical covariance from ``cov``, in standard errors of each entry."""
    empirical = np.cov(samples.T)
    error = np.sqrt((cov**2 + np.outer(np.diag(cov), np.diag(cov))) / len(samples))
    return np.abs((empirical - cov) / error).max()
