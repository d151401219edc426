"""Expectation propagation: the Gaussian that matches the tilted moments, or a power of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from gaussfold.expectations.gauss_hermite import nodes
from gaussfold.protocols import Likelihood
from gaussfold.types import ArrayLike, Moments, Site


@dataclass(frozen=True)
class EP:
    """Power EP on a cavity N(m, v): bayes-newton (22).

    With L = (1/α) log E p(y|f)^α and R = 1/(1 + α v L''): J = R L', H = R L''. alpha = 1 is assumed density
    filtering when it looks at the belief before; alpha → 0 is vi.

    Parameters
    ----------
    alpha
        Power in (0, 1].
    """

    alpha: float = 1.0
    name: ClassVar[str] = "ep"
    code: ClassVar[int] = 3

    def __post_init__(self) -> None:
        if not 0.0 < self.alpha <= 1.0:
            msg = f"alpha={self.alpha!r} is not in (0, 1]; 1 is EP, and for the limit 0 use rule='vi'"
            raise ValueError(msg)

    def site(self, likelihood: Likelihood, y: ArrayLike, moments: Moments) -> Site:
        """Match the first two moments of N(m, v) p(y|f)^α, by Gauss-Hermite nodes around its mode."""
        m, v, y = np.broadcast_arrays(
            np.asarray(moments.mean, dtype=float), np.asarray(moments.variance, dtype=float), np.asarray(y, dtype=float)
        )
        mode, precision = m, 1.0 / v
        for _ in range(50):  # Newton, with a likelihood that bends upwards taken as flat
            first, second = (self.alpha * d for d in likelihood.derivatives(y, mode))
            precision = 1.0 / v - np.minimum(second, 0.0)
            mode = mode + (first - (mode - m) / v) / precision
        points, weights = nodes()
        f = mode[..., None] + points / np.sqrt(precision)[..., None]
        log_w = np.log(weights) + 0.5 * points**2 - 0.5 * (f - m[..., None]) ** 2 / v[..., None]
        log_w = log_w + self.alpha * likelihood.log_prob(y[..., None], f)
        tilted = np.exp(log_w - log_w.max(axis=-1, keepdims=True))
        tilted /= tilted.sum(axis=-1, keepdims=True)
        first, second = (self.alpha * d for d in likelihood.derivatives(y[..., None], f))
        gradient = (tilted * first).sum(axis=-1)
        hessian = (tilted * (second + first**2)).sum(axis=-1) - gradient**2
        shrink = 1.0 / (1.0 + v * hessian)
        return Site(shrink * gradient / self.alpha, shrink * hessian / self.alpha)
