"""A stack of lanes of classes written from its definition: a general minimiser, matrices inverted in full."""

from __future__ import annotations

import numpy as np
from scipy.optimize import minimize
from scipy.special import log_softmax, softmax

C = np.pi / 8


def stacked(lane_means, lane_variances, y, w):
    """(mean, variance, log score) of every row before it is learned, and mean and precision of the shares after all.

    Marginals of the lanes have shape (n, L, K); labels may be NaN.
    """
    n, lanes, _ = lane_means.shape
    mu, precision = np.full(lanes, 1 / lanes), np.eye(lanes)
    out = []
    for i in range(n):
        h = lane_means[i] / np.sqrt(1 + C * lane_variances[i])
        q = np.einsum("ic,ij,jc->c", h, np.linalg.inv(precision), h)
        told = (mu @ h) / np.sqrt(1 + C * q)
        V = q + (mu @ np.sqrt(lane_variances[i])) ** 2
        score = np.nan if np.isnan(y[i]) else log_softmax(told)[int(y[i])]
        out.append((told * np.sqrt(1 + C * V), V, score))
        if np.isnan(y[i]) or w[i] == 0:
            continue

        def objective(a, h=h, i=i, mu=mu, precision=precision):
            p = softmax(a @ h)
            value = 0.5 * (a - mu) @ precision @ (a - mu) - w[i] * log_softmax(a @ h)[int(y[i])]
            return value, precision @ (a - mu) - w[i] * (h[:, int(y[i])] - h @ p)

        found = minimize(objective, mu, jac=True, method="BFGS", options={"gtol": 1e-11})
        p = softmax(found.x @ h)
        mu, precision = found.x, precision + w[i] * (h * p) @ h.T - w[i] * np.outer(h @ p, h @ p)
    return out, mu, precision
