"""Small problems with odd values, shared by the tests."""

from __future__ import annotations

import numpy as np

from gaussfold import likelihoods as lk
from gaussfold import rules

FAMILIES = [
    lk.Gaussian(std=0.7),
    lk.Bernoulli(),
    lk.Bernoulli(expectation="probit"),
    lk.Bernoulli("probit"),
    lk.Poisson(),
    lk.StudentT(df=3.5, scale=0.8),
    lk.NegativeBinomial(dispersion=2.5),
]
RULES = [
    rules.Newton(), rules.Taylor(), rules.VI(), rules.EP(), rules.EP(alpha=0.5), rules.PL(), rules.Quadratic(),
]  # fmt: skip
ATS = ["prior", "posterior", "extragradient"]


def name(value: object) -> str | None:
    """A readable test id for a likelihood or a rule; pytest finds its own for the rest."""
    if isinstance(value, lk.Bernoulli):
        return value.link if value.expectation == "quadrature" else "logit-closed"
    if isinstance(value, lk.ScalarLikelihood):
        return type(value).__name__
    if isinstance(value, rules.EP):
        return f"ep{value.alpha:g}"
    return getattr(value, "name", None)


def is_defined(rule, at, likelihood) -> bool:
    """Whether the combination means something."""
    try:
        rules.check_defined(rules.resolve(rule), rules.resolve_at(at), likelihood)
    except ValueError:
        return False
    return True


CELLS = [(family, rule, at) for family in FAMILIES for rule in RULES for at in ATS if is_defined(rule, at, family)]


def labels(likelihood, rng: np.random.Generator, n: int) -> np.ndarray:
    """Labels that the family can explain, soft ones included."""
    if isinstance(likelihood, lk.Bernoulli):
        return rng.choice([0.0, 1.0, 0.3], n)
    if isinstance(likelihood, lk.Poisson | lk.NegativeBinomial):
        return rng.choice([0.0, 1.0, 3.0, 7.0, 60.0], n)
    return np.where(rng.random(n) < 0.1, 40.0, 3.0) * rng.standard_normal(n)


def extreme_marginals(likelihood, n: int, seed: int) -> tuple[np.ndarray, ...]:
    """Labels, weights, and marginals N(m0, v0) all over |m0| ≤ 1e3, 1e-8 ≤ v0 ≤ 1e6."""
    rng = np.random.default_rng(seed)
    m0 = rng.choice([-1.0, 1.0], n) * 10.0 ** rng.uniform(-3.0, 3.0, n)
    m0[rng.random(n) < 0.05] = 0.0
    v0 = 10.0 ** rng.uniform(-8.0, 6.0, n)
    corners = [(m, v) for m in (-1e3, -30.0, 0.0, 30.0, 1e3) for v in (1e-8, 1.0, 1e6)]
    m0[: len(corners)], v0[: len(corners)] = np.array(corners).T
    return labels(likelihood, rng, n), rng.choice([1.0, 0.3, 2.5], n), m0, v0


def data(likelihood, n: int, d: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Rows and labels drawn from the model itself, features of different sizes, some rows outlying."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d)) * np.linspace(0.4, 1.3, d)
    f = 1.1 * X @ rng.standard_normal(d) / np.sqrt(d)
    if isinstance(likelihood, lk.Poisson | lk.NegativeBinomial):
        return X, rng.poisson(np.exp(np.clip(0.6 * f, -4.0, 3.0))).astype(float)
    if isinstance(likelihood, lk.Bernoulli):
        return X, (rng.random(n) < 1.0 / (1.0 + np.exp(-2.0 * f))).astype(float)
    noise = rng.standard_t(4.0, n) if isinstance(likelihood, lk.StudentT) else rng.standard_normal(n)
    return X, f + 0.7 * noise


def prior(d: int, seed: int = 5) -> tuple[np.ndarray, np.ndarray]:
    """An odd mean, and a covariance with correlations and unequal scales."""
    rng = np.random.default_rng(seed)
    root = rng.standard_normal((d, d)) / np.sqrt(d) + np.diag(np.linspace(0.5, 0.9, d))
    return 0.3 * rng.standard_normal(d), 0.7**2 * root @ root.T


def relative(got: np.ndarray, want: np.ndarray) -> float:
    """Largest difference, relative to the largest entry."""
    return float(np.abs(np.asarray(got) - want).max() / np.abs(want).max())
