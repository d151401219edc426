"""Likelihoods the slow way: textbook densities, derivatives by differencing, integrals cell by cell.

Two levels, so that neither has to be trusted alone:

- ``exact_*``: mpmath at 50 digits, from the definition of each density. ``mpmath.diff`` for derivatives,
  ``mpmath.quad`` between given breakpoints for expectations. Seconds per cell.
- ``expectations``: float64, Gauss-Legendre with 24 points on each of some 200 panels. The panels follow the
  Gaussian (every standard deviation out to 40), the place where the log density bends (graded by 1.5
  away from it) and the peak of density times Gaussian. Milliseconds per cell.

Both hold for ``|m| ≤ 1000``, ``1e-8 ≤ v ≤ 1e6``. A family is named as in ``config()``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from functools import cache

import mpmath as mp
import numpy as np
from scipy import special, stats

DIGITS = 50
LEGENDRE = np.polynomial.legendre.leggauss(24)


# ---------------------------------------------------------------------------- definitions, 50 digits


def exact_log_density(config: dict, y: float, f: mp.mpf) -> mp.mpf:
    """log p(y | f) from the definition, at mpmath's current precision."""
    name, y = config["name"], mp.mpf(y)
    if name == "Gaussian":
        return mp.log(mp.npdf(y, f, mp.mpf(config["std"])))
    if name == "Bernoulli" and config["link"] == "logit":
        return -y * mp.log1p(mp.exp(-f)) - (1 - y) * mp.log1p(mp.exp(f))
    if name == "Bernoulli":
        return y * exact_log_ncdf(f) + (1 - y) * exact_log_ncdf(-f)
    if name == "Poisson":
        return y * f - mp.exp(f) - mp.loggamma(y + 1)
    if name == "StudentT":
        df, scale = mp.mpf(config["df"]), mp.mpf(config["scale"])
        log_norm = mp.loggamma((df + 1) / 2) - mp.loggamma(df / 2) - mp.log(df * mp.pi * scale**2) / 2
        return log_norm - (df + 1) / 2 * mp.log1p(((y - f) / scale) ** 2 / df)
    r, mu = mp.mpf(config["dispersion"]), mp.exp(f)
    coefficient = exact_log_coefficient(config["dispersion"], int(y), mp.mp.prec)
    return coefficient - r * mp.log1p(mu / r) + y * (f - mp.log(r + mu))


@cache
def exact_log_coefficient(dispersion: float, y: int, precision: int) -> mp.mpf:
    """log of r (r + 1) ... (r + y - 1) / y!, remembered per working precision."""
    with mp.workprec(precision):
        return mp.log(mp.fprod((mp.mpf(dispersion) + i) / (1 + i) for i in range(y)))


def exact_log_ncdf(f: mp.mpf) -> mp.mpf:
    return mp.log(mp.erfc(-f / mp.sqrt(2)) / 2) if f < 0 else mp.log1p(-mp.erfc(f / mp.sqrt(2)) / 2)


def exact_derivatives(config: dict, y: float, f: float) -> tuple[float, float]:
    """l'(f) and l''(f) by differencing: 60 digits, or 400 where values of e^-800 hide behind larger ones."""
    hidden = abs(f) > 100 and config["name"] in ("Bernoulli", "NegativeBinomial")
    with mp.workdps(400 if hidden else 60):
        log_density = lambda t: exact_log_density(config, y, t)  # noqa: E731
        return float(mp.diff(log_density, mp.mpf(f), 1)), float(mp.diff(log_density, mp.mpf(f), 2))


def exact_conditional(config: dict, f: float) -> tuple[float, float]:
    """Mean and variance of y given f, by SciPy's distributions."""
    name = config["name"]
    if name == "Gaussian":
        law = stats.norm(f, config["std"])
    elif name == "Bernoulli":
        law = stats.bernoulli(special.expit(f) if config["link"] == "logit" else stats.norm.cdf(f))
    elif name == "Poisson":
        law = stats.poisson(np.exp(f))
    elif name == "StudentT":
        law = stats.t(config["df"], loc=f, scale=config["scale"])
    else:
        law = stats.nbinom(config["dispersion"], config["dispersion"] / (config["dispersion"] + np.exp(f)))
    return float(law.mean()), float(law.var())


def exact_expectations(config: dict, y: float, m: float, v: float) -> tuple[mp.mpf, mp.mpf, mp.mpf]:
    """E l, E l', E l'' from log densities alone, by mpmath.

    Stein's identities put the derivatives on the Gaussian: ``E l' = E[l u]/s``, ``E l'' = E[l (u² - 1)]/v``.
    """
    edges = panels(config, y, m, v)
    edges = edges[np.abs(edges) <= 16]
    with mp.workdps(20 + int(max(0.0, -2.5 * np.log10(v)))):
        mean, std = mp.mpf(m), mp.sqrt(mp.mpf(v))
        log_densities = mp.memoize(lambda u: exact_log_density(config, y, mean + std * u) * mp.npdf(u))
        pieces = [mp.mpf(e) for e in edges]
        return (
            mp.quad(log_densities, pieces, method="gauss-legendre"),
            mp.quad(lambda u: u * log_densities(u), pieces, method="gauss-legendre") / std,
            mp.quad(lambda u: (u * u - 1) * log_densities(u), pieces, method="gauss-legendre") / v,
        )


def exact_log_evidence(config: dict, y: float, m: float, v: float) -> mp.mpf:
    """log E p(y | f) by mpmath, on the scale of the integrand's peak."""
    edges = panels(config, y, m, v, peak=True)
    with mp.workdps(20):
        mean, std = mp.mpf(m), mp.sqrt(mp.mpf(v))

        def log_product(u: mp.mpf) -> mp.mpf:
            return exact_log_density(config, y, mean + std * u) - u * u / 2 - mp.log(2 * mp.pi) / 2

        heights = np.array([float(log_product(mp.mpf(e))) for e in edges])
        top = heights.max()
        keep = np.flatnonzero(heights > top - 50)
        pieces = [mp.mpf(e) for e in edges[max(keep[0] - 1, 0) : keep[-1] + 2]]
        return top + mp.log(mp.quad(lambda u: mp.exp(log_product(u) - top), pieces, method="gauss-legendre"))


# ------------------------------------------------------------------- pointwise functions in float64


def log_density(config: dict, y: float, f: np.ndarray) -> np.ndarray:
    """log p(y | f) with SciPy's special functions."""
    name = config["name"]
    if name == "Gaussian":
        return stats.norm.logpdf(y, f, config["std"])
    if name == "Bernoulli":
        log_g = special.log_expit if config["link"] == "logit" else special.log_ndtr
        return (y * log_g(f) if y > 0 else 0.0) + ((1 - y) * log_g(-f) if y < 1 else 0.0)
    if name == "Poisson":
        with np.errstate(over="ignore"):
            return y * f - np.exp(f) - special.gammaln(y + 1)
    if name == "StudentT":
        return stats.t.logpdf(y, config["df"], loc=f, scale=config["scale"])
    r = config["dispersion"]
    g = f - np.log(r)
    coefficient = special.gammaln(y + r) - special.gammaln(r) - special.gammaln(y + 1)
    return coefficient + y * special.log_expit(g) + r * special.log_expit(-g)


def derivatives(config: dict, y: float, f: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """l'(f) and l''(f)."""
    name = config["name"]
    if name == "Gaussian":
        return (y - f) / config["std"] ** 2, np.full_like(f, -1 / config["std"] ** 2)
    if name == "Bernoulli" and config["link"] == "logit":
        up, down = special.expit(f), special.expit(-f)
        return y * down - (1 - y) * up, -up * down
    if name == "Bernoulli":
        (a, b), (c, d) = log_ncdf_derivatives(f), log_ncdf_derivatives(-f)
        return y * a - (1 - y) * c, y * b + (1 - y) * d
    if name == "Poisson":
        with np.errstate(over="ignore"):
            return y - np.exp(f), -np.exp(f)
    if name == "StudentT":
        df, r2 = config["df"], (y - f) ** 2
        a = df * config["scale"] ** 2
        return (df + 1) * (y - f) / (a + r2), (df + 1) * (r2 - a) / (a + r2) ** 2
    r = config["dispersion"]
    up, down = special.expit(f - np.log(r)), special.expit(np.log(r) - f)
    return y * down - r * up, -(y + r) * up * down


def log_ncdf_derivatives(f: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """φ/Φ and its slope; the slope by its asymptotic series below -50, where the textbook form cancels."""
    ratio = np.sqrt(2 / np.pi) / special.erfcx(-f / np.sqrt(2))
    x2 = np.minimum(f, -50.0) ** -2
    excess = (1 - x2 * (2 - x2 * (10 - x2 * (74 - x2 * 706)))) / np.abs(np.minimum(f, -50.0))
    return ratio, -ratio * np.where(f < -50, excess, f + ratio)


def bend(config: dict, y: float) -> tuple[float, float]:
    """Where the log density bends as a function of f, and over what length."""
    name = config["name"]
    if name == "StudentT":
        return y, config["scale"] * np.sqrt(config["df"])
    if name == "NegativeBinomial":
        return np.log(config["dispersion"]), 1.0
    if name == "Poisson":
        return np.log(max(y, 0.5)), 1.0
    return 0.0, 1.0


# ------------------------------------------------------------------------------ integrals in float64


@dataclass(frozen=True)
class Expectations:
    """Everything a likelihood promises under N(m, v), for one cell."""

    log_prob: float
    first: float
    second: float
    log_predictive: float
    mean: float
    total_variance: float
    epistemic_variance: float

    def items(self) -> list[tuple[str, float]]:
        return [(field.name, getattr(self, field.name)) for field in fields(self)]


def panels(config: dict, y: float, m: float, v: float, peak: bool = False) -> np.ndarray:
    """Breakpoints between which the integrand is smooth, as u = (f - m)/√v.

    In u and not in f: at m = 1000 and v = 1e-8 the rounding of f is 1e-9 standard deviations.
    """
    s = np.sqrt(v)
    centre, length = bend(config, y)
    grades = 0.25 * length * 1.5 ** np.arange(60)
    bends = (np.concatenate([[centre], centre - grades, centre + grades]) - m) / s
    edges = np.concatenate([np.arange(-40.0, 41.0), bends])
    low, high = -40.0, 40.0
    if peak and config["name"] != "StudentT":
        top = peak_of_product(config, y, m, v)
        width = (1 - v * float(derivatives(config, y, np.array([top]))[1][0])) ** -0.5
        around = (top - m) / s + width * np.arange(-40.0, 41.0)
        edges = np.append(edges, around)
        low, high = min(low, around[0]), max(high, around[-1])
    elif peak:  # with many degrees of freedom a far label pulls as a Gaussian would
        towards = float(np.clip(bends[0], -400.0, 400.0))
        low, high = min(low, towards - 40.0), max(high, towards + 40.0)
        edges = np.concatenate([np.arange(np.floor(low), high), bends])
    return np.unique(edges[(edges >= low) & (edges <= high)])


def peak_of_product(config: dict, y: float, m: float, v: float) -> float:
    """Where p(y | f) N(f; m, v) is largest, for a log-concave density: bisection on a decreasing slope."""

    def slope(f: float) -> float:
        return float(derivatives(config, y, np.array([f]))[0][0]) - (f - m) / v

    step = np.sqrt(v) * np.sign(slope(m))
    if step == 0.0:
        return m
    near, far = m, m + step
    while np.sign(slope(far)) == np.sign(step):
        step *= 2
        near, far = far, far + step
    for _ in range(80):
        middle = 0.5 * (near + far)
        near, far = (middle, far) if np.sign(slope(middle)) == np.sign(step) else (near, middle)
    return 0.5 * (near + far)


def grid(edges: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """All nodes and weights of the composite rule."""
    x, w = LEGENDRE
    half = 0.5 * np.diff(edges)[:, None]
    return (0.5 * (edges[1:] + edges[:-1])[:, None] + half * x).ravel(), (half * w).ravel()


def integrate(g: Callable[[np.ndarray], np.ndarray], m: float, v: float, edges: np.ndarray) -> float:
    u, w = grid(edges)
    density = np.exp(-0.5 * u * u) / np.sqrt(2 * np.pi)
    return float(np.sum((g(m + np.sqrt(v) * u) * density * w)[density > 0]))


def log_evidence(config: dict, y: float, m: float, v: float) -> float:
    """log ∫ p(y | f) N(f; m, v) df, relative to the largest value of the integrand."""
    u, w = grid(panels(config, y, m, v, peak=True))
    log_integrand = log_density(config, y, m + np.sqrt(v) * u) - 0.5 * u * u - 0.5 * np.log(2 * np.pi)
    top = log_integrand.max()
    return -np.inf if np.isneginf(top) else float(top + np.log(np.sum(np.exp(log_integrand - top) * w)))


def expectations(config: dict, y: float, m: float, v: float) -> Expectations:
    """All of it for one cell."""
    name = config["name"]
    edges = panels(config, y, m, v)
    if name == "Poisson":  # E e^f = e^(m + v/2)
        with np.errstate(over="ignore"):
            rate = np.exp(m + v / 2)
        log_prob, first, second = y * m - rate - special.gammaln(y + 1), y - rate, -rate
    else:
        log_prob = integrate(lambda f: log_density(config, y, f), m, v, edges)
        first = integrate(lambda f: derivatives(config, y, f)[0], m, v, edges)
        second = integrate(lambda f: derivatives(config, y, f)[1], m, v, edges)
    if name == "Bernoulli":
        log_one, log_zero = log_probabilities(config, m, v)
        log_predictive = (y * log_one if y > 0 else 0.0) + ((1 - y) * log_zero if y < 1 else 0.0)
    else:
        log_predictive = log_evidence(config, y, m, v)
    return Expectations(log_prob, first, second, log_predictive, *predictive(config, m, v))


def log_probabilities(config: dict, m: float, v: float) -> tuple[float, float]:
    """log P(y = 1) and log P(y = 0); the one near zero from its complement."""
    return _log_probabilities(config["link"], m, v)


@cache
def _log_probabilities(link: str, m: float, v: float) -> tuple[float, float]:
    config = {"name": "Bernoulli", "link": link}
    log_one, log_zero = log_evidence(config, 1.0, m, v), log_evidence(config, 0.0, m, v)
    if log_one > log_zero:
        return float(np.log1p(-np.exp(log_zero))), log_zero
    return log_one, float(np.log1p(-np.exp(log_one)))


def predictive(config: dict, m: float, v: float) -> tuple[float, float, float]:
    """Mean of y, its variance, and the variance of E[y | f]."""
    name = config["name"]
    if name == "Gaussian":
        return m, v + config["std"] ** 2, v
    if name == "StudentT":
        df = config["df"]
        return m, v + config["scale"] ** 2 * df / (df - 2) if df > 2 else np.inf, v
    if name == "Bernoulli":
        log_one, log_zero = log_probabilities(config, m, v)
        g = special.expit if config["link"] == "logit" else special.ndtr
        sign = -1.0 if m > 0 else 1.0  # the variance of g(f) is that of g(-f): take the one that is small
        centre = np.exp(min(log_one, log_zero))
        edges = panels(config, 1.0, m, v)
        spread = integrate(lambda f: (g(sign * f) - centre) ** 2, m, v, edges)
        return float(np.exp(log_one)), float(np.exp(log_one + log_zero)), spread
    with np.errstate(over="ignore"):  # a log-normal mean; exp(2m + v) (exp(v) - 1) without 0 · ∞
        mean = np.exp(m + v / 2)
        spread = np.exp(2 * m + 2 * v + np.log(-np.expm1(-v)))
        excess = 0.0 if name == "Poisson" else np.exp(2 * m + 2 * v) / config["dispersion"]
        return float(mean), float(mean + excess + spread), float(spread)


def probit_expectations(y: float, m: float, v: float) -> Expectations:
    """The closed forms of rvga (58), (62), (63), at 50 digits; E log p is the exact one."""
    with mp.workdps(DIGITS):
        k = 1 / mp.sqrt(1 + mp.pi * mp.mpf(v) / 8)
        one, zero = 1 / (1 + mp.exp(-k * m)), 1 / (1 + mp.exp(k * m))
        log_one, log_zero = -mp.log1p(mp.exp(-k * m)), -mp.log1p(mp.exp(k * m))
        log_predictive = y * log_one + (1 - y) * log_zero
        first, second = y * zero - (1 - y) * one, -k * one * zero
        closed = [float(x) for x in (first, second, log_predictive, one, one * zero, one * zero * (1 - k))]
    exact = expectations({"name": "Bernoulli", "link": "logit"}, y, m, v)
    return Expectations(exact.log_prob, *closed)
