"""Do the data look like what the model predicts? Three residual statistics whose law is known if they do.

With ``r = (y - E y)/√Var y`` under the posterior predictive distribution of each row:

- dispersion: Σ r² against the number of rows less parameters. Counts that vary more than a Poisson's show here;
- bend: rows in ten groups by their latent; each group's mean residual should be 0. A curve taken for a line shows;
- tails: the fourth power of r against what this spread of residuals would give. Outliers show. Not for binary labels,
  of which any r² is possible.

Each is a z-score (|z| ≤ 3 by chance, 3 times in a thousand).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gaussfold.protocols import Likelihood
from gaussfold.types import Array, Moments

GROUPS = 10
SURPRISING = 4.0
"""Standard deviations from which on a misfit is told."""
FEWEST = 30
"""Rows below which nothing can be told."""


class Misfit(NamedTuple):
    """Z-scores; NaN where there is nothing to tell."""

    dispersion: float
    bend: float
    tails: float

    @property
    def words(self) -> str:
        """What is wrong most and what may help; empty if nothing is."""
        told = {
            "outliers: try StudentT, or df=4 in StreamingRegressor": self.tails,
            "residuals bend with the prediction: add features such as squares and products": self.bend,
            "more spread than the model has: NegativeBinomial for counts, a larger noise_std, more features": (
                self.dispersion
            ),
            "less spread than the model has: a smaller noise_std, or noise_std='learn'": -self.dispersion,
        }
        size, words = max((-np.inf if np.isnan(size) else size, words) for words, size in told.items())
        return words if size > SURPRISING else ""


def check(
    likelihood: Likelihood, y: Array, latent: Moments, weight: Array, dim: int, noise_std: float | None = None
) -> Misfit:
    """Compare the labels with what is predicted of them; rows of little weight count little.

    Normal noise of standard deviation 1 is what learned noise is measured in. Unless ``noise_std`` says what it is, its
    size is taken from the residuals, and their dispersion says nothing.
    """
    nothing = Misfit(np.nan, np.nan, np.nan)
    if y.size < max(FEWEST, 2 * dim):
        return nothing
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        mean, variance = likelihood.conditional(latent.mean)
        residual = (y - mean) / np.sqrt(variance * (1.0 if noise_std is None else noise_std**2))
        normal = _is_normal(likelihood, y[0])
    if not np.isfinite(residual).all():
        return nothing
    share = weight / weight.mean()
    if np.isin(y, (0.0, 1.0)).all():
        return Misfit(np.nan, _bend(residual, latent.mean, share), np.nan)
    open_size = normal and noise_std is None and bool((variance == 1.0).all())
    if open_size:
        residual = residual / np.sqrt(max(float((residual**2).mean()), 1e-300))
    fourth = 2.0 if normal else 2.0 + float(np.mean(1.0 / np.maximum(variance, 1e-3)))  # of counts, 2 + 1/μ
    freedom = y.size - dim
    dispersion = np.nan if open_size else (float(share @ residual**2) - freedom) / np.sqrt(freedom * fourth)
    return Misfit(dispersion, _bend(residual, latent.mean, share), _tails(residual) if normal else np.nan)


def _bend(residual: Array, latent: Array, share: Array) -> float:
    """Whether residuals of groups of rows with like predictions lie to one side."""
    groups = np.array_split(np.argsort(latent, kind="stable"), min(GROUPS, residual.size // 5))
    means = np.array([share[rows] @ residual[rows] / np.sqrt(share[rows] @ share[rows]) for rows in groups])
    overall = max(1.0, float((residual**2).mean()))  # residuals that are large everywhere do not bend
    return (float(means @ means) / overall - len(means)) / float(np.sqrt(2.0 * len(means)))


def _tails(residual: Array) -> float:
    """The fourth moment in units of the second."""
    scaled = residual**2 / max(float((residual**2).mean()), 1e-300)
    return (float((scaled**2).mean()) - 3.0) / float(np.sqrt(24.0 / residual.size))


def _is_normal(likelihood: Likelihood, y: float) -> bool:
    """Whether y given f is normal: the only case in which l'' is the same everywhere."""
    _, second = likelihood.derivatives(np.full(3, y), np.array([-1.0, 0.0, 2.0]))
    return bool(np.ptp(second) <= 1e-12 * abs(second[0]))
