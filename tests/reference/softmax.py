"""The softmax's site by general optimisation: written from rvga (3)-(4), with SciPy, not from the loops.

Latents before a row are N(mean, cov); nodes z (K, S) of equal weight stand for N(0, I). The variational problem

    min  KL(N(m, V) ‖ N(mean, cov)) - w E log p(y | f)

is solved over independent latents (V diagonal) or over all Gaussians.
"""

from __future__ import annotations

import numpy as np
from scipy.optimize import minimize
from scipy.special import log_softmax

from tests.reference.largest import by_largest


def independent_optimum(mean, variance, label, weight, nodes):
    """Means and variances of the best independent Gaussians."""
    K = len(mean)

    def loss(theta):
        m, s = theta[:K], np.exp(theta[K:])
        log_p = log_softmax(m[:, None] + s[:, None] * nodes, axis=0)
        p = np.exp(log_p)
        hit = np.arange(K) == label
        value = (((m - mean) ** 2 + s**2) / (2 * variance) - np.log(s)).sum() - weight * log_p[label].mean()
        by_mean = (m - mean) / variance - weight * (hit - p.mean(axis=1))
        by_std = s / variance - 1 / s + weight * (p * nodes).mean(axis=1)
        return value, np.concatenate([by_mean, by_std * s])

    start = np.concatenate([mean, 0.5 * np.log(variance)])
    found = minimize(loss, start, jac=True, method="L-BFGS-B", options={"ftol": 1e-15, "gtol": 1e-11, "maxiter": 5000})
    return found.x[:K], np.exp(2 * found.x[K:])


def joint_optimum(mean, cov, label, weight, nodes):
    """Mean and covariance of the best Gaussian, over its Cholesky factor."""
    K = len(mean)
    precision = np.linalg.inv(cov)
    lower = np.tril_indices(K)
    diagonal = np.arange(K)

    def unpack(theta):
        L = np.zeros((K, K))
        L[lower] = theta[K:]
        L[diagonal, diagonal] = np.exp(L[diagonal, diagonal])
        return theta[:K], L

    def loss(theta):
        m, L = unpack(theta)
        log_p = log_softmax(m[:, None] + L @ nodes, axis=0)
        p = np.exp(log_p)
        away = m - mean
        value = 0.5 * away @ precision @ away + 0.5 * np.trace(precision @ L @ L.T) - np.log(np.diag(L)).sum()
        value -= weight * log_p[label].mean()
        residual = (np.arange(K) == label)[:, None] - p
        by_mean = precision @ away - weight * residual.mean(axis=1)
        by_root = precision @ L - np.diag(1 / np.diag(L)) - weight * residual @ nodes.T / nodes.shape[1]
        by_root[diagonal, diagonal] *= np.diag(L)
        return value, np.concatenate([by_mean, by_root[lower]])

    L = np.linalg.cholesky(cov)
    L[diagonal, diagonal] = np.log(L[diagonal, diagonal])
    start = np.concatenate([mean, L[lower]])
    found = minimize(loss, start, jac=True, method="L-BFGS-B", options={"ftol": 1e-15, "gtol": 1e-11, "maxiter": 5000})
    m, L = unpack(found.x)
    return m, L @ L.T


def block_fold(means, covs, X, y, weight, nodes):
    """One covariance per class, in place on copies: means (K, d), covs (K, d, d)."""
    means, covs = means.copy(), covs.copy()
    scores = []
    for x, label, w in zip(X, y, weight, strict=True):
        m, v = means @ x, np.einsum("i,kij,j->k", x, covs, x)
        if np.isnan(label):
            scores.append(np.nan)
            continue
        scores.append(by_largest(m, np.sqrt(v))[int(label)])
        if w == 0:
            continue
        new_m, new_v = independent_optimum(m, v, int(label), w, nodes)
        for k in range(len(means)):
            u = covs[k] @ x
            means[k] = means[k] + u * (new_m[k] - m[k]) / v[k]
            covs[k] = covs[k] - np.outer(u, u) * (1 - new_v[k] / v[k]) / v[k]
    return means, covs, np.array(scores)


def diagonal_fold(means, variances, X, y, nodes):
    """One variance per feature and class (K, d): precisions grow by x² times the site's."""
    means, variances = means.copy(), variances.copy()
    for x, label in zip(X, y, strict=True):
        m, v = means @ x, variances @ x**2
        new_m, new_v = independent_optimum(m, v, int(label), 1.0, nodes)
        precision = 1 / new_v - 1 / v
        means = means + variances * x * ((new_m - m) / v)[:, None]
        variances = 1 / (1 / variances + x**2 * precision[:, None])
    return means, variances


def kalman(mean, cov, H, Y, R):
    """The textbook filter with q outputs, rvga (40)-(42); outputs that are NaN are left out."""
    scores = []
    for h, y, r in zip(H, Y, R, strict=True):
        seen = ~np.isnan(y)
        if not seen.any():
            scores.append(np.nan)
            continue
        h, y, r = h[seen], y[seen], r[np.ix_(seen, seen)]
        S = h @ cov @ h.T + r
        gain = cov @ h.T @ np.linalg.inv(S)
        e = y - h @ mean
        scores.append(-0.5 * (e @ np.linalg.solve(S, e) + np.linalg.slogdet(2 * np.pi * S)[1]))
        mean = mean + gain @ e
        cov = cov - gain @ h @ cov
    return mean, cov, np.array(scores)
