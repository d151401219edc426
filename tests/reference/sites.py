"""One visit, the textbook way: what each rule says of N(m, v), and the three places where it may look.

Twin of ``engine.scalar.expectations`` and ``engine.scalar.sites``. Integrals are panels of Gauss-Legendre,
roots are SciPy's; nothing here is clever about overflow, so the solvers take moderate inputs, while
``distance_to_root`` judges an answer anywhere.
"""

from __future__ import annotations

import numpy as np
from scipy import special
from scipy.optimize import brentq, minimize, root

from tests.reference import likelihoods as reference
from tests.reference import quadrature


def surrogate(
    config: dict, rule: str, alpha: float, y: float, w: float, m: float, v: float, m0: float, v0: float
) -> tuple[float, float]:
    """Gradient at m and curvature of the Gaussian that stands in for p(y|f)^w; only ep asks for N(m0, v0)."""
    if rule == "ep":
        cavity_variance = 1.0 / ((1.0 - alpha) / v + alpha / v0)
        cavity_mean = cavity_variance * ((1.0 - alpha) * m / v + alpha * m0 / v0)
        _, first, second, mean, variance = quadrature.tilted_moments(config, y, alpha * w, cavity_mean, cavity_variance)
        if abs(cavity_variance * second) < 0.1:  # bayes-newton (22), by derivatives of log Z
            shrink = 1.0 / (1.0 + cavity_variance * second)
            J, H = shrink * first / alpha, shrink * second / alpha
        else:  # the same by moments: the site's α-th part is tilted over cavity
            J, H = (mean - cavity_mean) / variance / alpha, (1.0 / cavity_variance - 1.0 / variance) / alpha
        return J + H * (m - cavity_mean), H
    J, H = _SITES[rule](config, y, m, v)
    return w * float(J), w * float(H)


def newton(config: dict, y: float, m: float, v: float) -> tuple[float, float]:
    """l'(m), l''(m)."""
    first, second = reference.derivatives(config, y, np.array([m]))
    return first[0], second[0]


def taylor(config: dict, y: float, m: float, v: float) -> tuple[float, float]:
    """h'(y - h)/R and -h'²/R with h = E[y|f], R = Var[y|f]: bayes-newton (32)."""
    name = config["name"]
    if name in ("Gaussian", "StudentT"):
        noise = quadrature.noise_variance(config)
        return (y - m) / noise, -1.0 / noise
    if name == "Bernoulli":  # h'²/R = exp(2 log h' - log h - log(1 - h))
        log_cdf, log_pdf = quadrature.link(config)
        log_slope = log_pdf(m)
        fisher = np.exp(2.0 * log_slope - log_cdf(m) - log_cdf(-m))
        up, down = np.exp(log_slope - log_cdf(m)), np.exp(log_slope - log_cdf(-m))
        return y * up - (1.0 - y) * down, -fisher  # h'(y - h)/(h (1 - h)), without cancellation
    if name == "Poisson":
        return y - np.exp(m), -np.exp(m)
    r = config["dispersion"]  # h' = h = e^f and R = h + h²/r, so h/R = r/(r + h)
    fisher = r * special.expit(m - np.log(r))
    return y * special.expit(np.log(r) - m) - fisher, -fisher


def vi(config: dict, y: float, m: float, v: float) -> tuple[float, float]:
    """E l', E l''; with the closed form rvga (58) where the likelihood asks for it."""
    if config.get("expectation") == "probit":
        k = np.sqrt(8.0 / np.pi) / np.sqrt(v + 8.0 / np.pi)
        return (
            y * special.expit(-k * m) - (1.0 - y) * special.expit(k * m),
            -k * special.expit(k * m) * special.expit(-k * m),
        )
    if config["name"] == "Poisson":
        rate = np.exp(m + 0.5 * v)
        return y - rate, -rate
    edges = reference.panels(config, y, m, v)
    u, weight = reference.grid(edges)
    weight = weight * np.exp(-0.5 * u * u) / np.sqrt(2.0 * np.pi)
    keep = weight > 0.0
    first, second = reference.derivatives(config, y, m + np.sqrt(v) * u[keep])
    return first @ weight[keep], second @ weight[keep]


def pl(config: dict, y: float, m: float, v: float) -> tuple[float, float]:
    """a(y - E h)/Ω and -a²/Ω for the affine fit y ≈ E h + a (f - m) with residual variance Ω."""
    if config.get("expectation") == "probit":
        k = np.sqrt(8.0 / np.pi) / np.sqrt(v + 8.0 / np.pi)
        p, q = special.expit(k * m), special.expit(-k * m)
        left = 1.0 - v * k**2 * p * q  # Ω/(p q); the slope is k p q
        return k * (y * q - (1.0 - y) * p) / left, -(k**2) * p * q / left
    return quadrature.affine_site(config, y, m, v)


def quadratic(config: dict, y: float, m: float, v: float) -> tuple[float, float]:
    """The tightest quadratic lower bound: rvga (82)-(89) for logistic families, and its relatives."""
    name = config["name"]
    if name == "Gaussian":
        return newton(config, y, m, v)
    if name == "StudentT":  # E of the precision that a gamma mixing density has given f
        precision = (config["df"] + 1.0) / (config["df"] * config["scale"] ** 2 + (y - m) ** 2 + v)
        return precision * (y - m), -precision
    if name == "Bernoulli" and config["link"] == "probit":
        return newton(config, y, m, v)[0], -1.0
    total, g = (1.0, m) if name == "Bernoulli" else (y + config["dispersion"], m - np.log(config["dispersion"]))
    xi = np.sqrt(v + g * g)
    rate = total * (special.expit(xi) - 0.5) / xi
    return y - 0.5 * total - rate * g, -rate


_SITES = {"newton": newton, "taylor": taylor, "vi": vi, "pl": pl, "quadratic": quadratic}


def visit(
    config: dict, rule: str, alpha: float, at: str, y: float, w: float, m0: float, v0: float
) -> tuple[float, float]:
    """Precision and shift of the site that one observation leaves behind."""
    if at == "posterior":
        m, v = implicit(config, rule, alpha, y, w, m0, v0)
    else:
        m, v = m0, v0
    J, H = surrogate(config, rule, alpha, y, w, m, v, m0, v0)
    if at == "extragradient":
        v = 1.0 / (1.0 / v0 - H)
        m = m0 + v * J
        J, H = surrogate(config, rule, alpha, y, w, m, v, m0, v0)
    return -H, J - H * m


def implicit(config: dict, rule: str, alpha: float, y: float, w: float, m0: float, v0: float) -> tuple[float, float]:
    """m = m0 + v0 J(m, v), v = v0/(1 - v0 H(m, v)) by Powell's method on (m, log v), from where prior form leads."""

    def residual(x: np.ndarray) -> list[float]:
        m, v = x[0], np.exp(x[1])
        J, H = surrogate(config, rule, alpha, y, w, m, v, m0, v0)
        return [(m - m0 - v0 * J) / np.sqrt(v0), np.log(v / v0) + np.log(max(1.0 - v0 * H, 1e-300))]

    start = [m0, np.log(v0)]
    found = root(residual, start, method="hybr", options={"xtol": 1e-14})
    if not np.abs(found.fun).max() < 1e-9:
        return nested(config, rule, alpha, y, w, m0, v0)
    return float(found.x[0]), float(np.exp(found.x[1]))


def nested(config: dict, rule: str, alpha: float, y: float, w: float, m0: float, v0: float) -> tuple[float, float]:
    """The same root by bisection in bisection: v for each m, then m. For a log-concave likelihood."""

    def variance(m: float) -> float:
        def excess(x: float) -> float:
            return np.exp(x) * (1.0 / v0 - surrogate(config, rule, alpha, y, w, m, np.exp(x), m0, v0)[1]) - 1.0

        return float(np.exp(brentq(excess, np.log(v0) - 40.0, np.log(v0) + 1e-9, xtol=1e-14)))

    def excess(m: float) -> float:
        return m - m0 - v0 * surrogate(config, rule, alpha, y, w, m, variance(m), m0, v0)[0]

    here = excess(m0)
    step = np.sqrt(v0) if here < 0.0 else -np.sqrt(v0)
    while excess(m0 + step) * here > 0.0:
        step *= 2.0
    low, high = sorted((m0, m0 + step))
    m = float(brentq(excess, low, high, xtol=1e-14))
    return m, variance(m)


def nearest_gaussian(config: dict, y: float, w: float, m0: float, v0: float) -> tuple[float, float, float]:
    """Minimise KL(N(m, v) ‖ N(m0, v0) p(y|f)^w), rvga (2), without its gradient: (m, v, smallest value)."""

    def objective(x: np.ndarray) -> float:
        return kl_objective(config, y, w, m0, v0, x[0], np.exp(x[1]))

    best = minimize(
        objective, [m0, np.log(v0)], method="Nelder-Mead", options={"xatol": 1e-9, "fatol": 1e-13, "maxiter": 4000}
    )
    return float(best.x[0]), float(np.exp(best.x[1])), float(best.fun)


def kl_objective(config: dict, y: float, w: float, m0: float, v0: float, m: float, v: float) -> float:
    """KL(N(m, v) ‖ N(m0, v0)) - w E log p(y|f)."""
    fit = reference.integrate(lambda f: reference.log_density(config, y, f), m, v, reference.panels(config, y, m, v))
    return 0.5 * (v / v0 + (m - m0) ** 2 / v0 - 1.0 - np.log(v / v0)) - w * fit


def distance_to_root(
    config: dict, rule: str, alpha: float, y: float, w: float, m0: float, v0: float, m: float, v: float
) -> tuple[float, float]:
    """How far (m, v) is from solving the implicit equations: of m in units of |m| + √v, of v relative to v.

    A residual r of m = m0 + v0 J moves the root by r/(1 - v0 ∂J/∂m), and ∂J/∂m = H for vi and newton (about so
    for the others): that quotient is the distance. For ep the equations say that the tilted density has mean m and
    variance v, which is what is checked.
    """
    if not (np.isfinite(m) and 0.0 < v < np.inf):
        return np.inf, np.inf
    unit = abs(m) + np.sqrt(v)
    if rule == "ep":
        cavity_variance = 1.0 / ((1.0 - alpha) / v + alpha / v0)
        cavity_mean = m + cavity_variance * alpha * (m0 - m) / v0
        *_, mean, variance = quadrature.tilted_moments(config, y, alpha * w, cavity_mean, cavity_variance)
        return abs(mean - m) / unit, abs(variance / v - 1.0)
    J, H = surrogate(config, rule, alpha, y, w, m, v, m0, v0)
    stiffness = 1.0 - v0 * H
    return abs(m - m0 - v0 * J) / stiffness / unit, abs(v / v0 * stiffness - 1.0)
