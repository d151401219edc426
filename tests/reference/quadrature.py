"""One-dimensional integrals, slowly: panels of Gauss-Legendre in float64, and mpmath for the last word.

``tests/reference/likelihoods.py`` has the densities; here are the integrals that rules need beyond its
expectations: moments of the tilted density N(f|m, v) p(y|f)^power, and the best affine fit to E[y|f].
"""

from __future__ import annotations

import mpmath as mp
import numpy as np
from scipy import special

from tests.reference import likelihoods as reference

STEPS = np.arange(-40.0, 40.5, 0.5)


def tilted_mode(config: dict, y: float, power: float, m: float, v: float) -> float:
    """Root of power l'(f) = (f - m)/v, for a log-concave density: its left side minus its right decreases."""

    def slope(f: float) -> float:
        return power * float(reference.derivatives(config, y, np.array([f]))[0][0]) - (f - m) / v

    step = np.copysign(np.sqrt(v), slope(m))
    near, far = m, m + step
    while slope(far) * step > 0.0:
        step *= 2.0
        near, far = far, far + step
    while True:  # bisection to the last bit: e^f may overflow at the far end
        middle = 0.5 * (near + far)
        if middle in (near, far):
            return middle
        near, far = (middle, far) if slope(middle) * step > 0.0 else (near, middle)


def tilted_edges(config: dict, y: float, power: float, m: float, v: float) -> tuple[float, np.ndarray]:
    """A centre, and panel edges relative to it, that cover all the mass of the tilted density."""
    bend, length = reference.bend(config, y)
    grades = 0.25 * length * 1.5 ** np.arange(60)
    bends = np.concatenate([[0.0], -grades, grades])
    if config["name"] == "StudentT":  # up to two lumps: where the Gaussian is, or where the label pulls it
        low, high = min(m, y) - 15.0 * np.sqrt(v), max(m, y) + 15.0 * np.sqrt(v)
        low, high = max(low, m - 60.0 * np.sqrt(v)), min(high, m + 60.0 * np.sqrt(v))
        edges = np.concatenate([np.arange(low, high, 0.5 * np.sqrt(v)), [high], bends + bend])
        return m, np.unique(np.clip(edges, low, high)) - m
    mode = tilted_mode(config, y, power, m, v)
    curvature = 1.0 / v - power * float(reference.derivatives(config, y, np.array([mode]))[1][0])
    around = STEPS / np.sqrt(curvature)
    wide = STEPS * np.sqrt(v)  # tails decay no slower than the Gaussian's, and no faster than the curvature says
    edges = np.unique(np.concatenate([around, wide, bends + (bend - mode)]))
    return mode, edges[np.abs(edges) <= wide[-1]]


def tilted_moments(
    config: dict, y: float, power: float, m: float, v: float
) -> tuple[float, float, float, float, float]:
    """log Z, E l', E l'' + Var l' (l = power log p), mean and variance of N(f|m, v) p(y|f)^power / Z."""
    centre, edges = tilted_edges(config, y, power, m, v)
    u, w = reference.grid(edges)
    f = centre + u
    height = power * reference.log_density(config, y, np.array([centre]))[0] - 0.5 * (centre - m) ** 2 / v
    if config["name"] == "Poisson":  # terms of 1e13 balance at the mode; they are left out on both sides
        with np.errstate(over="ignore"):
            beyond = power * (np.exp(f) - np.exp(centre) * (1.0 + u))
        near = np.abs(u) < 1e-3
        beyond[near] = power * np.exp(centre) * (u * u * (1 / 2 + u / 6 + u * u / 24 + u**3 / 120))[near]
        log_integrand = -beyond - 0.5 * u * u / v
    else:
        log_integrand = power * reference.log_density(config, y, f) - 0.5 * (u + (centre - m)) ** 2 / v - height
    top = log_integrand.max()
    keep = log_integrand > top - 60.0
    u, f = u[keep], f[keep]
    p = np.exp(log_integrand[keep] - top) * w[keep]
    mass = p.sum()
    p /= mass
    first, second = (power * d for d in reference.derivatives(config, y, f))
    gradient, offset = p @ first, p @ u
    hessian = p @ second + p @ (first - gradient) ** 2
    log_z = height + top + np.log(mass) - 0.5 * np.log(2.0 * np.pi * v)
    return float(log_z), float(gradient), float(hessian), float(centre + offset), float(p @ (u - offset) ** 2)


def exact_tilted_moments(config: dict, y: float, power: float, m: float, v: float) -> tuple[mp.mpf, mp.mpf, mp.mpf]:
    """log Z, mean and variance by mpmath, between the same edges."""
    with mp.workdps(40):
        centre, edges = tilted_edges(config, y, power, m, v)
        mean, variance = mp.mpf(m), mp.mpf(v)

        def log_product(u: mp.mpf) -> mp.mpf:
            f = centre + u
            return power * reference.exact_log_density(config, y, f) - (f - mean) ** 2 / (2 * variance)

        heights = np.array([float(log_product(mp.mpf(e))) for e in edges])
        top = heights.max()
        keep = np.flatnonzero(heights > top - 60)
        pieces = [mp.mpf(e) for e in edges[max(keep[0] - 1, 0) : keep[-1] + 2]]
        weight = mp.memoize(lambda u: mp.exp(log_product(u) - top))
        moments = [mp.quad(lambda u, k=k: u**k * weight(u), pieces, method="gauss-legendre") for k in range(3)]
        mass, offset = moments[0], moments[1] / moments[0]
        return (
            top + mp.log(mass) - mp.log(2 * mp.pi * variance) / 2,
            centre + offset,
            moments[2] / mass - offset**2,
        )


def affine_site(config: dict, y: float, m: float, v: float) -> tuple[float, float]:
    """The best affine fit to h(f) = E[y|f] under N(m, v), as a site: slope (y - E h)/Ω and -slope²/Ω.

    bayes-newton (29)-(31): slope = E h', and Ω = E[(h - E h - slope (f - m))²] + E Var[y|f] is what the fit leaves,
    the noise included: a sum of two positive numbers.
    """
    if config["name"] in ("Gaussian", "StudentT"):
        return (y - m) / noise_variance(config), -1.0 / noise_variance(config)
    if config["name"] == "Bernoulli":
        return _binary_affine_site(config, y, m, v)
    with mp.workdps(60):  # log-normal moments
        rate, spread = mp.exp(mp.mpf(m) + mp.mpf(v) / 2), mp.exp(mp.mpf(v))
        noise = rate + (rate**2 * spread / mp.mpf(config["dispersion"]) if "dispersion" in config else 0)
        left = rate**2 * (spread - 1 - mp.mpf(v)) + noise
        return float(rate * (y - rate) / left), float(-(rate**2) / left)


def _binary_affine_site(config: dict, y: float, m: float, v: float) -> tuple[float, float]:
    """As a multiple of the smaller of E h and 1 - E h, in logarithms, so that nothing underflows."""
    u, w = reference.grid(reference.panels(config, 1.0 if m <= 0.0 else 0.0, m, v, peak=True))
    mirror = -1.0 if m > 0.0 else 1.0  # the side on which E h is the small one; 1 - h has the same fit, mirrored
    log_cdf, log_pdf = link(config)
    f = mirror * (m + np.sqrt(v) * u)
    log_w = np.log(w) - 0.5 * u * u - 0.5 * np.log(2.0 * np.pi)
    log_small = special.logsumexp(log_cdf(f) + log_w)
    small = np.exp(log_small)
    slope = np.exp(special.logsumexp(log_pdf(f) + log_w) - log_small)
    noise = np.exp(special.logsumexp(log_cdf(f) + log_cdf(-f) + log_w) - log_small)
    root = np.exp(0.5 * (log_w + log_small))
    misfit = np.exp(log_cdf(f) + 0.5 * (log_w - log_small)) - root * (1.0 + mirror * slope * np.sqrt(v) * u)
    left = misfit @ misfit + noise
    y = y if mirror > 0.0 else 1.0 - y
    return mirror * slope * (y * (1.0 - small) - (1.0 - y) * small) / left, -(slope**2) * small / left


def noise_variance(config: dict) -> float:
    """Var[y|f] where it is constant."""
    if config["name"] == "Gaussian":
        return float(config["std"] ** 2)
    return float(config["scale"] ** 2 * config["df"] / (config["df"] - 2.0))


def link(config: dict):
    """Logs of the distribution function and of the density behind a Bernoulli likelihood."""
    if config["link"] == "logit":
        return special.log_expit, lambda f: special.log_expit(f) + special.log_expit(-f)
    return special.log_ndtr, lambda f: -0.5 * f * f - 0.5 * np.log(2.0 * np.pi)
