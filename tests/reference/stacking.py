"""A stack of lanes written from its definition: Laplace's approximation by a root finder, matrices inverted in full."""

from __future__ import annotations

import numpy as np
from scipy.optimize import brentq
from scipy.special import expit, log_expit
from scipy.stats import norm

C = np.pi / 8


def _averaged(m, v):
    return m / np.sqrt(1 + C * v)


def _site(y, w, m0, v0):
    """Curvature and gradient at the mode of σ(f)^(wy) σ(-f)^(w(1-y)) N(f; m0, v0)."""
    mode = brentq(lambda f: f - m0 - v0 * w * (y - expit(f)), m0 - v0 * w - 1, m0 + v0 * w + 1, xtol=1e-14, rtol=1e-14)
    return w * (y - expit(mode)), w * expit(mode) * expit(-mode)


def score(y, m, v):
    """Log E σ(±f), f ~ N(m, v), by brute force."""
    f = m + np.sqrt(v) * np.linspace(-12, 12, 40001)
    p = norm.pdf(np.linspace(-12, 12, 40001))
    return float(np.log(np.trapezoid(np.exp(log_expit(f if y else -f)) * p) / p.sum()))


FOLLOWING = ((0.9, "labels"), (0.3, "labels"), (0.5, "left over"))
"""What those who see the constant only keep of their precision a row, and what they follow."""


def stacked(lane_means, lane_variances, y, w, follow=FOLLOWING):
    """(mean, variance, log score) of the mixture before each row, and its weights after the last."""
    n, k = lane_means.shape
    mu0 = np.append(np.full(k, 1 / k), np.zeros(len(follow) + 1))
    precision, shift = np.diag(np.append(np.ones(k + len(follow)), 1 / 0.09)), mu0.copy()
    following = dict.fromkeys(follow, (0.0, 1.0))
    prior = np.append(np.full(k, 0.5 / k), 0.5)
    weights, t = prior.copy(), 0
    out = []
    assert np.allclose(np.linalg.solve(precision, shift), mu0)
    for i in range(n):
        P = np.linalg.inv(precision)
        mu = P @ shift
        h = np.array([*_averaged(lane_means[i], lane_variances[i]), *(_averaged(*f) for f in following.values()), 1.0])
        m0, v0 = h @ mu, h @ P @ h
        V = v0 + (mu[:k] @ np.sqrt(lane_variances[i])) ** 2
        M = _averaged(m0, v0) * np.sqrt(1 + C * V)
        means, variances = np.append(lane_means[i], M), np.append(lane_variances[i], V)
        mean = weights @ means
        variance = weights @ (variances + (means - mean) ** 2)
        if np.isnan(y[i]):
            out.append((mean, variance, np.nan))
            continue
        scores = [score(y[i], m, v) for m, v in zip([*lane_means[i], m0], [*lane_variances[i], v0], strict=True)]
        out.append((mean, variance, np.log(weights @ np.exp(scores))))
        if w[i] == 0:
            continue
        J, curvature = _site(y[i], w[i], m0, v0)
        new = mu + P @ h * J
        precision = precision + curvature * np.outer(h, h)
        shift = precision @ new
        for (keep, of), (m, v) in following.items():
            old = keep / v
            v = 1 / (old + (1 - keep))
            m = v * old * m
            J, curvature = _site(y[i], w[i], m + (h[:k] @ mu[:k] if of == "left over" else 0.0), v)
            following[keep, of] = m + v * J, 1 / (1 / v + curvature)
        t += 1
        weights = weights * np.exp(w[i] * np.array(scores))
        weights = (1 - 0.1 / (t + 1)) * weights / weights.sum() + 0.1 / (t + 1) * prior
    return np.array(out), weights
