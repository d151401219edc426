"""Pareto-smoothed importance sampling in plain loops, from the two papers' formulas.

Twin of `gaussfold.metrics.psis`. Written after Zhang and Stephens (2009), section 3, and Vehtari et al.
(2024), section 2 and appendix G, without looking at the package.
"""

import math


def pareto_shape(values):
    """Zhang and Stephens' estimate of (k, sigma), no prior on k."""
    x = sorted(values)
    n = len(x)
    m = 30 + math.floor(math.sqrt(n))
    first_quartile = x[math.floor(n / 4 + 0.5) - 1]
    thetas, likelihoods = [], []
    for j in range(1, m + 1):
        theta = 1.0 / x[-1] + (1.0 - math.sqrt(m / (j - 0.5))) / (3.0 * first_quartile)
        k = -sum(math.log(1.0 - theta * v) for v in x) / n  # Zhang and Stephens' sign
        thetas.append(theta)
        likelihoods.append(n * (math.log(theta / k) + k - 1.0))
    theta_hat = 0.0
    for theta, value in zip(thetas, likelihoods, strict=True):
        theta_hat += theta / sum(math.exp(other - value) for other in likelihoods)
    k = sum(math.log(1.0 - theta_hat * v) for v in x) / n
    return k, -k / theta_hat


def psis(log_weights):
    """(smoothed log weights, regularised k)."""
    n = len(log_weights)
    size = math.ceil(min(0.2 * n, 3.0 * math.sqrt(n)))
    order = sorted(range(n), key=lambda i: log_weights[i])
    top = log_weights[order[-1]]
    cutoff = math.exp(log_weights[order[-size - 1]] - top)
    tail = order[-size:]
    k, sigma = pareto_shape([math.exp(log_weights[i] - top) - cutoff for i in tail])
    k = (size * k + 10 * 0.5) / (size + 10)
    smoothed = list(log_weights)
    for rank, i in enumerate(tail, start=1):
        p = (rank - 0.5) / size
        quantile = cutoff + sigma / k * ((1.0 - p) ** (-k) - 1.0)
        smoothed[i] = top + min(math.log(quantile), 0.0)
    return smoothed, k
