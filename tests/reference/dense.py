"""A dense Gaussian that learns row by row with the formulas of a textbook: inverses, outer products, no factors.

Twin of ``gaussfold.beliefs.dense.belief``, ``gaussfold.beliefs.dense.passes`` and ``gaussfold.engine.dense``.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from tests.reference import sites


@dataclass
class Textbook:
    """N(mean, cov), and what it met on its way."""

    mean: np.ndarray
    cov: np.ndarray
    means: list[float] = field(default_factory=list)
    variances: list[float] = field(default_factory=list)
    precisions: list[float] = field(default_factory=list)
    shifts: list[float] = field(default_factory=list)

    def absorb(self, x: np.ndarray, precision: float, shift: float) -> None:
        """Natural parameters add: Λ + λxx', Λμ + shift x."""
        before = np.linalg.inv(self.cov)
        after = before + precision * np.outer(x, x)
        self.mean = np.linalg.solve(after, before @ self.mean + shift * x)
        self.cov = np.linalg.inv(after)

    def relax(self, factor: float, prior_mean: np.ndarray, prior_cov: np.ndarray) -> None:
        """Λ ← γΛ + (1-γ)Λ₀, Λμ ← γΛμ + (1-γ)Λ₀μ₀."""
        before, base = np.linalg.inv(self.cov), np.linalg.inv(prior_cov)
        after = factor * before + (1.0 - factor) * base
        self.mean = np.linalg.solve(after, factor * before @ self.mean + (1.0 - factor) * base @ prior_mean)
        self.cov = np.linalg.inv(after)

    def learn(self, config: dict, X, y, rule="vi", alpha=1.0, at="posterior", weight=None, tick=None) -> Textbook:
        """Marginal, site, absorb; ``tick(self)`` before each learned row."""
        weight = np.ones(len(y)) if weight is None else weight
        for x, label, w in zip(X, y, weight, strict=True):
            learned = not np.isnan(label) and w > 0.0
            if learned and tick is not None:
                tick(self)
            m0, v0 = float(x @ self.mean), float(x @ self.cov @ x)
            site = sites.visit(config, rule, alpha, at, float(label), float(w), m0, v0) if learned else (0.0, 0.0)
            if learned:
                self.absorb(x, *site)
            columns = (self.means, self.variances, self.precisions, self.shifts)
            for column, value in zip(columns, (m0, v0, *site), strict=True):
                column.append(value)
        return self


def linear_posterior(mean, cov, X, y, std, weight=None) -> tuple[np.ndarray, np.ndarray]:
    """The exact posterior of y = x'θ + noise, all rows at once (normal equations)."""
    weight = np.ones(len(y)) if weight is None else weight
    before = np.linalg.inv(cov)
    after = before + X.T @ (weight[:, None] * X) / std**2
    return np.linalg.solve(after, before @ mean + X.T @ (weight * y) / std**2), np.linalg.inv(after)


def kalman_random_walk(mean, cov, X, y, std, step) -> tuple[np.ndarray, np.ndarray]:
    """The Kalman filter of θ_t = θ_{t-1} + step·noise, y_t = x_t'θ_t + std·noise: rvga (40)-(42) after a prediction."""
    for x, label in zip(X, y, strict=True):
        cov = cov + step**2 * np.eye(len(mean))
        gain = cov @ x / (std**2 + x @ cov @ x)
        mean = mean + gain * (label - x @ mean)
        cov = (np.eye(len(mean)) - np.outer(gain, x)) @ cov
    return mean, cov
