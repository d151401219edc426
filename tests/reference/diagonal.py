"""Sparse online learning as the paper prints it: plain Python, one feature at a time, no speed intended.

Labels are -1 and 1 here, as in the paper. A belief is two lists, a row is a dict from feature to value.
"""

import math

import numpy as np
from scipy import integrate, optimize
from scipy.special import log_ndtr

C = math.pi / 8


def sigma(a):
    return 1 / (1 + math.exp(-a)) if a > 0 else math.exp(a) / (1 + math.exp(a))


def log_sigma(a):
    return -math.log1p(math.exp(-a)) if a > 0 else a - math.log1p(math.exp(a))


def mills(z):
    """φ(z)/Φ(z)."""
    return math.exp(-0.5 * z * z - 0.5 * math.log(2 * math.pi) - float(log_ndtr(z)))


def total(means, variances, row):
    """(6)."""
    return (
        math.fsum(x * means[i] for i, x in row.items()),
        math.fsum(x * x * variances[i] for i, x in row.items()),
    )


def rising_root(function, low, high):
    """Zero of an increasing function, to the last bit that bisection can tell."""
    return optimize.brentq(function, low, high, xtol=1e-300, rtol=4 * np.finfo(float).eps, maxiter=500)


def logit_log_loss(means, variances, row, y):
    """-log p_t of (8)."""
    mean, variance = total(means, variances, row)
    return -log_sigma(y * mean / math.sqrt(1 + C * variance))


def marginal_logit(means, variances, row, y, w=1.0, mean_form="solved", variance_form="curvature"):
    """Algorithm 1, the likelihood to the power w; updates the lists in place."""
    mu, spread = total(means, variances, row)
    new = {}
    for i, x in row.items():
        m, v = means[i], variances[i]
        rest_mean, rest = mu - x * m, spread - x * x * v
        k = 1 / math.sqrt(1 + C * rest)
        if mean_form == "solved":  # (15), (14)
            limit = w * abs(x) * k * v + 1e-9

            def score(at, m=m, v=v, x=x, k=k, rest_mean=rest_mean):
                return (at - m) / v - w * y * x * k * sigma(-y * k * (rest_mean + x * at))

            after = rising_root(score, m - limit, m + limit)
        else:  # (17)
            p = sigma(y * mu * k)
            q = sigma(-y * mu * k)
            after = m + w * y * x * v * q * k / (1 + w * k * k * x * x * v * p * q)
        a = k * (rest_mean + x * after)
        if variance_form == "curvature":  # (19)
            variance = 1 / (1 / v + w * x * x * k * k * sigma(a) * sigma(-a))
        else:  # (18)
            log_ratio = -logit_log_loss(means, variances, row, y) - log_sigma(y * a)
            variance = v * math.exp(2 * w * log_ratio + (after - m) ** 2 / v)
        new[i] = after, variance
    for i, (m, v) in new.items():
        means[i], variances[i] = m, v


def marginal_probit(means, variances, row, y, w=1.0, mean_form="solved"):
    """Appendix B: (27)-(31)."""
    mu, spread = total(means, variances, row)
    new = {}
    for i, x in row.items():
        m, v = means[i], variances[i]
        rest_mean, rest = mu - x * m, spread - x * x * v
        k = 1 / math.sqrt(1 + rest)
        if mean_form == "solved":

            def score(at, m=m, v=v, x=x, k=k, rest_mean=rest_mean):
                return (at - m) / v - w * y * x * k * mills(y * k * (rest_mean + x * at))

            limit = w * abs(x) * k * v * (mills(-abs(k * mu)) + 1) + 1e-9
            after = rising_root(score, m - limit, m + limit)
        else:
            z = y * mu * k
            r = mills(z)
            after = m + w * y * x * v * r * k / (1 + w * k * k * x * x * v * r * (z + r))
        z = y * k * (rest_mean + x * after)
        r = mills(z)
        new[i] = after, 1 / (1 / v + w * x * x * k * k * r * (z + r))
    for i, (m, v) in new.items():
        means[i], variances[i] = m, v


def dim_gauss(means, variances, row, y, w=1.0):
    """D.1 with matrices: the mode of (35) by (38)-(40), then the diagonal of the inverse of (39)."""
    index = list(row)
    x = np.array([row[i] for i in index])
    u0 = np.array([means[i] for i in index])
    prior = np.diag([1 / variances[i] for i in index])
    u = u0.copy()
    for _ in range(200):
        p = sigma(y * float(x @ u))
        gradient = prior @ (u - u0) - w * y * x * sigma(-y * float(x @ u))
        hessian = prior + w * np.outer(x, x) * p * sigma(-y * float(x @ u))
        step = np.linalg.solve(hessian, gradient)
        u -= step
        if np.abs(step).max() < 1e-15:
            break
    a = float(x @ u)
    covariance = np.linalg.inv(prior + w * np.outer(x, x) * sigma(a) * sigma(-a))
    for i, m, v in zip(index, u, np.diag(covariance), strict=True):
        means[i], variances[i] = float(m), float(v)


def dim_gauss_one_step(means, variances, row, y, w=1.0):
    """(42)-(46) with matrices."""
    index = list(row)
    x = np.array([row[i] for i in index])
    u = np.array([means[i] for i in index])
    sigma_t = np.diag([variances[i] for i in index])
    p = sigma(y * float(x @ u))  # (42)
    v = sigma_t @ x  # (43)
    curvature = w * p * sigma(-y * float(x @ u))
    temporary = sigma_t - curvature * np.outer(v, v) / (1 + curvature * (x @ v))  # (44)
    u = u + w * y * sigma(-y * float(x @ np.array([means[i] for i in index]))) * temporary @ x  # (45)
    curvature = w * sigma(float(x @ u)) * sigma(-float(x @ u))
    covariance = sigma_t - curvature * np.outer(v, v) / (1 + curvature * (x @ v))  # (46)
    for i, m, v in zip(index, u, np.diag(covariance), strict=True):
        means[i], variances[i] = float(m), float(v)


def dim_gauss_batch(means, variances, rows, labels):
    """(47), (48): precisions of all rows of a batch added up, over all features; the inverse's diagonal is kept."""
    d = len(means)
    X = np.zeros((len(rows), d))
    for r, row in enumerate(rows):
        for i, x in row.items():
            X[r, i] = x
    y, u = np.array(labels, float), np.array(means)
    prior = np.diag(1 / np.array(variances))

    def misses(at):
        return np.array([sigma(-s * f) for s, f in zip(y, X @ at, strict=True)])

    q = misses(u)
    temporary = prior + X.T @ (X * (q * (1 - q))[:, None])  # (47)
    u = u + np.linalg.inv(temporary) @ (X.T @ (y * q))  # (45)
    q = misses(u)
    covariance = np.linalg.inv(prior + X.T @ (X * (q * (1 - q))[:, None]))  # (48)
    for i in range(d):
        means[i], variances[i] = float(u[i]), float(covariance[i, i])


def marginal_vb_taylor(means, variances, row, y, samples):
    """D.3 with q_j = 1 - p_j expanded to first order around the old mean and standard deviation, solved numerically."""
    mu, spread = total(means, variances, row)
    new = {}
    for i, x in row.items():
        m, v = means[i], variances[i]
        s = math.sqrt(v)
        k = 1 / math.sqrt(1 + C * (spread - x * x * v))
        alpha = y * x * k
        f = y * k * (mu - x * m) + alpha * (m + s * samples)
        q = 1 / (1 + np.exp(f))
        slope = -alpha * q * (1 - q)

        def gradient(theta, m=m, s=s, v=v, alpha=alpha, q=q, slope=slope):
            at, scale = theta[0], math.exp(theta[1])
            expanded = q + slope * ((at - m) + samples * (scale - s))  # around p_{i,j,t}
            first = (at - m) / v - alpha * expanded.mean()  # (51)
            return [first, -1 / scale + scale / v - alpha * (samples * expanded).mean()]

        found = optimize.root(gradient, [m, math.log(s)], tol=1e-13)
        new[i] = found.x[0], math.exp(found.x[1])
    return new


def matched_moments(log_likelihood, means, variances, row):
    """D.2: first two moments of every active weight under prior × likelihood, by integrals over f = x'w.

    Given f, weight i is Gaussian with mean mᵢ + gᵢ (f - μ) and variance vᵢ - gᵢ² s, gᵢ = xᵢ vᵢ/s.
    """
    mu, s = total(means, variances, row)
    top = max(log_likelihood(f) for f in np.linspace(mu - 8 * math.sqrt(s), mu + 8 * math.sqrt(s), 401))

    def moment(power):
        def integrand(z):
            return z**power * math.exp(-0.5 * z * z + log_likelihood(mu + math.sqrt(s) * z) - top)

        return integrate.quad(integrand, -12, 12, epsabs=0, epsrel=1e-13, limit=400, points=[0.0])[0]

    z0, z1, z2 = moment(0), moment(1), moment(2)
    shift, spread = math.sqrt(s) * z1 / z0, s * (z2 / z0 - (z1 / z0) ** 2)
    new = {}
    for i, x in row.items():
        g = x * variances[i] / s
        new[i] = means[i] + g * shift, variances[i] - g * g * s + g * g * spread
    return new


def marginal_vb(means, variances, row, y):
    """D.3: the Gaussian nearest in KL to (12), by minimising (49) with dense quadrature, per active weight."""
    mu, spread = total(means, variances, row)
    z = np.linspace(-9, 9, 3001)
    weight = np.exp(-0.5 * z * z)
    weight /= weight.sum()
    new = {}
    for i, x in row.items():
        m, v = means[i], variances[i]
        rest_mean, rest = mu - x * m, spread - x * x * v
        k = 1 / math.sqrt(1 + C * rest)

        def divergence(theta, m=m, v=v, x=x, k=k, rest_mean=rest_mean):
            at, s = theta[0], math.exp(theta[1])
            loss = weight @ np.logaddexp(0, -y * k * (rest_mean + x * (at + s * z)))
            return -theta[1] + 0.5 * ((at - m) ** 2 + s * s) / v + loss

        found = optimize.minimize(divergence, [m, 0.5 * math.log(v)], method="BFGS", options={"gtol": 1e-9})
        new[i] = found.x[0], math.exp(2 * found.x[1])
    return new


def forget(means, variances, factor, prior_means, prior_variances):
    """One tick for every feature: natural parameters relax towards the prior's."""
    for i in range(len(means)):
        precision = factor / variances[i] + (1 - factor) / prior_variances[i]
        shift = factor * means[i] / variances[i] + (1 - factor) * prior_means[i] / prior_variances[i]
        means[i], variances[i] = shift / precision, 1 / precision
