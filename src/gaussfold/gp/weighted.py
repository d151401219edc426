"""Rows that count more or less: the likelihood to the power of its weight, carried as one more column of Y."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gaussfold.checks import not_negative
from gaussfold.likelihoods import as_vector
from gaussfold.likelihoods.chained import AnyCubature, VectorLikelihood
from gaussfold.protocols import Likelihood
from gaussfold.rules import SiteRule
from gaussfold.types import Array, ArrayLike


@dataclass(frozen=True)
class Weighted(VectorLikelihood):
    """``p(y | f)^w`` with w the last column of Y."""

    likelihood: Likelihood | VectorLikelihood

    @property
    def base(self) -> VectorLikelihood:
        """The likelihood of a row that counts once."""
        return as_vector(self.likelihood)

    @property
    def latents(self) -> int:
        """As before."""
        return self.base.latents

    @property
    def outputs(self) -> int:
        """One more."""
        return self.base.outputs + 1

    @property
    def responses(self) -> int:
        """As before."""
        return self.base.responses

    @property
    def gaussian_noise(self) -> bool:
        """As before."""
        return self.base.gaussian_noise

    @property
    def log_concave(self) -> bool:
        """As before."""
        return self.base.log_concave

    def __str__(self) -> str:
        return str(self.likelihood)

    def log_prob(self, Y: ArrayLike, F: ArrayLike) -> Array:
        """``w log p``."""
        y, w = _parted(Y)
        return np.asarray(w * self.base.log_prob(y, F))

    def derivatives(self, Y: ArrayLike, F: ArrayLike) -> tuple[Array, Array]:
        """W times each."""
        y, w = _parted(Y)
        first, second = self.base.derivatives(y, F)
        return w[..., None] * first, w[..., None, None] * second

    def gauss_newton(self, Y: Array, F: Array) -> Array:
        """W times it."""
        y, w = _parted(Y)
        return np.asarray(w[..., None, None] * self.base.gauss_newton(y, F))

    def expected_log_prob(self, Y: Array, mean: Array, cov: Array, cubature: AnyCubature = None) -> Array:
        """W times it."""
        y, w = _parted(Y)
        return np.asarray(w * self.base.expected_log_prob(y, mean, cov, cubature))

    def expected_derivatives(
        self, Y: Array, mean: Array, cov: Array, cubature: AnyCubature = None
    ) -> tuple[Array, Array]:
        """W times each."""
        y, w = _parted(Y)
        return _times(w, self.base.expected_derivatives(y, mean, cov, cubature))

    def summed_slopes(self, Y: Array, mean: Array, cov: Array, cubature: AnyCubature = None) -> tuple[Array, Array]:
        """W times each; what the engine integrates has no sum over nodes, and Price's slopes."""
        y, w = _parted(Y)
        scalar = self.base.one_latent
        if cubature is None and scalar is not None and scalar.record is not None:
            first, second = self.base.expected_derivatives(y, mean, cov)
            return _times(w, (first, 0.5 * second))
        return _times(w, self.base.summed_slopes(y, mean, cov, cubature))

    def expected_gauss_newton(self, Y: Array, mean: Array, cov: Array, cubature: AnyCubature = None) -> Array:
        """W times it."""
        y, w = _parted(Y)
        return np.asarray(w[:, None, None] * self.base.expected_gauss_newton(y, mean, cov, cubature))

    def tilted(
        self, Y: Array, mean: Array, cov: Array, alpha: float = 1.0, cubature: AnyCubature = None
    ) -> tuple[Array, Array, Array]:
        """``log E p^{αw}`` with its derivatives, the rows of each weight together."""
        value, first, second = np.empty(len(mean)), np.empty(mean.shape), np.empty(cov.shape)
        for rows, y, power in _by_weight(Y, alpha):
            found = self.base.tilted(y, mean[rows], cov[rows], power, cubature)
            value[rows], first[rows], second[rows] = found
        return value, first, second

    def tilted_slopes(
        self, Y: Array, mean: Array, cov: Array, alpha: float = 1.0, cubature: AnyCubature = None
    ) -> tuple[Array, Array]:
        """Derivatives of ``log E p^{αw}``."""
        by_mean, by_cov = np.empty(mean.shape), np.empty(cov.shape)
        for rows, y, power in _by_weight(Y, alpha):
            by_mean[rows], by_cov[rows] = self.base.tilted_slopes(y, mean[rows], cov[rows], power, cubature)
        return by_mean, by_cov

    def log_predictive(
        self, Y: Array, mean: Array, cov: Array, cubature: AnyCubature = None, *, alpha: float = 1.0
    ) -> Array:
        """``log E p^{αw}``."""
        value = np.empty(len(mean))
        for rows, y, power in _by_weight(Y, alpha):
            value[rows] = self.base.log_predictive(y, mean[rows], cov[rows], cubature, alpha=power)
        return value


def _parted(Y: ArrayLike) -> tuple[Array, Array]:
    """Labels and weights."""
    Y = np.asarray(Y, dtype=float)
    return Y[..., :-1], Y[..., -1]


def _times(w: Array, slopes: tuple[Array, Array]) -> tuple[Array, Array]:
    return w[:, None] * slopes[0], w[:, None, None] * slopes[1]


def _by_weight(Y: Array, alpha: float) -> list[tuple[np.ndarray, Array, float]]:
    """Rows of the same weight, their labels, and their power."""
    y, w = _parted(Y)
    return [(rows := np.flatnonzero(w == each), y[rows], float(alpha * each)) for each in np.unique(w)]


def weights_of(sample_weight: ArrayLike | None, rows: int, rule: SiteRule) -> Array | None:
    """Weights (N,), checked; None where every row counts once."""
    if sample_weight is None:
        return None
    try:
        weights = np.asarray(sample_weight, dtype=np.float64)
    except (TypeError, ValueError) as error:
        msg = f"sample_weight is not numeric ({error}); give one number >= 0 per row"
        raise ValueError(msg) from error
    if weights.shape != (rows,):
        msg = f"sample_weight has shape {weights.shape}; X has {rows} rows: give one number >= 0 for each"
        raise ValueError(msg)
    bad = ~(np.isfinite(weights) & (weights >= 0.0))
    if bad.any():
        not_negative(f"sample_weight[{int(np.argmax(bad))}]", float(weights[np.argmax(bad)]))
    if (weights == 1.0).all():
        return None
    if rule.linearises:
        msg = (
            f"sample_weight with rule={rule.name!r}: a rule that linearises the response knows no weights; use 'vi', "
            "'newton' or 'ep'"
        )
        raise ValueError(msg)
    return weights


def observed(Y: Array, weights: Array | None) -> Array:
    """Labels with their weights beside them; a row of weight 0 is a row that was not seen."""
    if weights is None:
        return Y
    unseen = np.isnan(Y).all(axis=1) | (weights == 0.0)
    both = np.hstack([Y, weights[:, None]])
    both[unseen] = np.nan
    return both
