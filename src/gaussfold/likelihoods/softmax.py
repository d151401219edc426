"""Classes without an order: one latent each, and the softmax of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import scipy

from gaussfold.checks import whole
from gaussfold.expectations.cubature import QuasiRandom
from gaussfold.expectations.quasi_random import enough_nodes, normal_nodes
from gaussfold.likelihoods.against_others import AgainstOthers, differences
from gaussfold.likelihoods.chained import AnyCubature, VectorLikelihood
from gaussfold.likelihoods.normal import NormalMoments
from gaussfold.linalg.small import applied, symmetrised
from gaussfold.types import Array, ArrayLike

POSITIVE = 5
"""Up to so many classes the nodes for K - 1 differences have positive weights."""
TENSOR = 4
"""Up to so many classes, products of Gauss-Hermite rules are few nodes enough."""
LEARNING = 128
"""Nodes at each row of a stream: with twice as many posteriors of digits differ by a hundredth of their spread."""


@dataclass(frozen=True)
class Softmax(VectorLikelihood):
    """``p(y = k | f) = exp(f_k) / Σ exp(f_j)`` with a latent for every class; labels 0, 1, .., K-1.

    The response whose moments the linearising rules use is the indicator of the first K - 1 classes: that of the last
    one follows, and with it the covariance would be singular.

    Parameters
    ----------
    classes
        K ≥ 2; None where the latents say how many there are (the outputs of a network).

    Examples
    --------
    >>> Softmax(3).log_prob([[2.0]], [[0.1, -0.4, 0.6]])
    array([-0.6803])
    """

    classes: int | None = None
    outputs: ClassVar[int] = 1
    log_concave: ClassVar[bool] = True
    labels: ClassVar[str] = "class numbers 0, 1, .., K-1"
    remedy: ClassVar[str] = "number the classes from 0, and give classes=K"

    def __post_init__(self) -> None:
        if self.classes is not None:
            whole("classes", self.classes, least=2, owner="Softmax")

    @property
    def latents(self) -> int:
        """K."""
        if self.classes is None:
            msg = "Softmax(): the number of classes is not known; give it, as in Softmax(classes=3)"
            raise ValueError(msg)
        return int(self.classes)

    @property
    def usual_cubature(self) -> AnyCubature:
        """Equal weights from five classes on: probabilities are averages of probabilities."""
        return QuasiRandom() if self.latents > TENSOR else None

    @property
    def class_nodes(self) -> Array:
        """What ``engine.softmax`` averages over while it learns."""
        return normal_nodes(self.latents, enough_nodes(self.latents, LEARNING))

    @property
    def responses(self) -> int:
        """K - 1 indicators."""
        return self.latents - 1

    def explains(self, Y: Array) -> np.ndarray:
        """``y = 0, 1, .., K-1``."""
        below = np.inf if self.classes is None else self.classes
        return np.asarray((Y >= 0.0) & (below > Y) & (np.floor(Y) == Y))

    def response(self, Y: Array) -> Array:
        """Indicators of the first K - 1 classes; NaN if the label is missing."""
        hit = (np.arange(self.responses) == Y).astype(float)
        return np.asarray(np.where(np.isnan(Y), np.nan, hit))

    def log_prob(self, Y: ArrayLike, F: ArrayLike) -> Array:
        """``f_y - log Σ exp(f_j)``; 0 where y is missing."""
        Y, F = np.asarray(Y, dtype=float), np.asarray(F, dtype=float)
        hit, missing = _hit(Y, F.shape[-1])
        value = (hit * F).sum(axis=-1) - scipy.special.logsumexp(F, axis=-1)
        return np.asarray(np.where(missing, 0.0, value))

    def derivatives(self, Y: ArrayLike, F: ArrayLike) -> tuple[Array, Array]:
        """``e_y - p`` and ``pp' - diag(p)``; 0 where y is missing."""
        Y, F = np.asarray(Y, dtype=float), np.asarray(F, dtype=float)
        hit, missing = _hit(Y, F.shape[-1])
        p = self._probabilities(F)
        first = np.where(missing[..., None], 0.0, hit - p)
        second = np.where(missing[..., None, None], 0.0, -_spread(p))
        return np.asarray(first), np.asarray(np.broadcast_to(second, (*first.shape, F.shape[-1])))

    def conditional(self, F: ArrayLike) -> NormalMoments:
        """``p`` and ``diag(p) - pp'`` without the last class."""
        p = self._probabilities(np.asarray(F, dtype=float))
        return NormalMoments(p[..., :-1], _spread(p)[..., :-1, :-1])

    def conditional_slopes(self, F: ArrayLike) -> NormalMoments:
        """``∂p_i = p_i (δ_ik - p_k)``, and of the covariance by the product rule."""
        full = self.conditional_curvatures(F)
        return full.having(mean_curvature=None, cov_curvature=None)

    def conditional_curvatures(self, F: ArrayLike) -> NormalMoments:
        """First and second derivatives of ``p`` and ``diag(p) - pp'``."""
        p = self._probabilities(np.asarray(F, dtype=float))
        eye = np.eye(p.shape[-1])
        slope = _spread(p)  # ∂p_i/∂f_k
        away = eye - p[..., None, :]  # δ_ik - p_k
        bend = slope[..., :, :, None] * away[..., :, None, :] - p[..., :, None, None] * slope[..., None, :, :]
        p, slope, bend = p[..., :-1], slope[..., :-1, :], bend[..., :-1, :, :]
        eye = eye[:-1, :-1]
        by_one = eye[:, :, None] * slope[..., :, None, :] - _product(slope, p)
        pair = slope[..., :, None, :, None] * slope[..., None, :, None, :]
        by_two = eye[:, :, None, None] * bend[..., :, None, :, :] - pair - np.swapaxes(pair, -1, -2)
        outer = bend[..., :, None, :, :] * p[..., None, :, None, None]
        by_two = by_two - outer - np.swapaxes(outer, -3, -4)
        cov = _spread(np.concatenate([p, 1.0 - p.sum(-1, keepdims=True)], axis=-1))[..., :-1, :-1]
        return NormalMoments(p, cov, slope, by_one, bend, by_two)

    # Expectations, over the K - 1 differences that the label leaves unless a cubature rule for K latents is given.

    def expected_log_prob(self, Y: Array, mean: Array, cov: Array, cubature: AnyCubature = None) -> Array:
        """``E log p``, shape (N,); 0 where y is missing."""
        if cubature is not None:
            return super().expected_log_prob(Y, mean, cov, cubature)
        view = _Against(Y, mean, cov)
        return view.kept(view.model.expected_log_prob(*view.differences))

    def expected_derivatives(
        self, Y: Array, mean: Array, cov: Array, cubature: AnyCubature = None
    ) -> tuple[Array, Array]:
        """``E ∇ log p`` and ``E ∇² log p``."""
        if cubature is not None:
            return super().expected_derivatives(Y, mean, cov, cubature)
        view = _Against(Y, mean, cov)
        return view.back(*view.model.expected_derivatives(*view.differences))

    def summed_slopes(self, Y: Array, mean: Array, cov: Array, cubature: AnyCubature = None) -> tuple[Array, Array]:
        """Derivatives of the sum that :meth:`expected_log_prob` is."""
        if cubature is not None:
            return super().summed_slopes(Y, mean, cov, cubature)
        return self.summed(Y, mean, cov)[1:]

    def summed(self, Y: Array, mean: Array, cov: Array, cubature: AnyCubature = None) -> tuple[Array, Array, Array]:
        """Sum and slopes."""
        if cubature is not None:
            return super().summed(Y, mean, cov, cubature)
        view = _Against(Y, mean, cov)
        value, by_mean, by_cov = view.model.summed(*view.differences)
        return view.kept(value), *view.back(by_mean, by_cov)

    def tilted(
        self, Y: Array, mean: Array, cov: Array, alpha: float = 1.0, cubature: AnyCubature = None
    ) -> tuple[Array, Array, Array]:
        """``log E p^α`` with gradient and Hessian in the mean."""
        if cubature is not None:
            return super().tilted(Y, mean, cov, alpha, cubature)
        view = _Against(Y, mean, cov)
        value, first, second = view.model.tilted(*view.differences, alpha)
        return view.kept(value), *view.back(first, second)

    def tilted_slopes(
        self, Y: Array, mean: Array, cov: Array, alpha: float = 1.0, cubature: AnyCubature = None
    ) -> tuple[Array, Array]:
        """Derivatives of ``log E p^α`` in mean and covariance."""
        if cubature is not None:
            return super().tilted_slopes(Y, mean, cov, alpha, cubature)
        view = _Against(Y, mean, cov)
        return view.back(*view.model.tilted_slopes(*view.differences, alpha))

    def log_predictive(
        self, Y: Array, mean: Array, cov: Array, cubature: AnyCubature = None, *, alpha: float = 1.0
    ) -> Array:
        """``log E p^α``; 0 where y is missing."""
        if cubature is not None:
            return super().log_predictive(Y, mean, cov, cubature, alpha=alpha)
        view = _Against(Y, mean, cov)
        return view.kept(view.model.log_predictive(*view.differences, alpha=alpha))

    def predictive(self, mean: Array, cov: Array, cubature: AnyCubature = None) -> tuple[Array, Array]:
        """Probabilities (N, K) of all classes, the last one too, and the covariance (N, K, K) of their indicators."""
        if cubature is None and self.latents <= POSITIVE:
            each = [self.log_predictive(np.full((len(mean), 1), float(k)), mean, cov) for k in range(self.latents)]
            probability = np.exp(np.stack(each, axis=1))
            probability /= probability.sum(axis=1, keepdims=True)  # each has its own nodes: 1 but for their error
            return probability, _spread(probability)
        first, second = super().predictive(mean, cov, cubature)
        fill = np.vstack([np.eye(self.responses), -np.ones(self.responses)])  # the indicators add up to one
        probability = np.concatenate([first, 1.0 - first.sum(axis=1, keepdims=True)], axis=1)
        return probability, fill @ second @ fill.T

    def _probabilities(self, F: Array) -> Array:
        return np.asarray(np.exp(F - scipy.special.logsumexp(F, axis=-1, keepdims=True)))


class _Against:
    """Marginals of the latents as those of the differences to the class that was seen, and the way back."""

    def __init__(self, Y: Array, mean: Array, cov: Array) -> None:
        self._A, self._missing = differences(Y, mean.shape[1]), np.isnan(Y[:, 0])
        self._turned = np.swapaxes(self._A, 1, 2)
        self.model = AgainstOthers(mean.shape[1] - 1)
        self.differences = Y, applied(self._A, mean), symmetrised(self._A @ cov @ self._turned)

    def kept(self, value: Array) -> Array:
        """Zero where nothing was seen."""
        return np.where(self._missing, 0.0, value)

    def back(self, first: Array, second: Array) -> tuple[Array, Array]:
        """``A'x`` and ``A'XA``."""
        by_mean, by_cov = applied(self._turned, first), self._turned @ second @ self._A
        by_mean[self._missing], by_cov[self._missing] = 0.0, 0.0
        return by_mean, by_cov


def _hit(Y: Array, classes: int) -> tuple[Array, np.ndarray]:
    """Which class each label is, and which labels are missing."""
    return (np.arange(classes) == Y).astype(float), np.isnan(Y[..., 0])


def _spread(p: Array) -> Array:
    """``diag(p) - pp'``."""
    return np.asarray(p[..., :, None] * (np.eye(p.shape[-1]) - p[..., None, :]))


def _product(slope: Array, p: Array) -> Array:
    """``∂(p_i p_j)/∂f_k``."""
    return np.asarray(slope[..., :, None, :] * p[..., None, :, None] + p[..., :, None, None] * slope[..., None, :, :])
