"""Outputs that mix latent signals with weights that move too: the Gaussian process regression network."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gaussfold.checks import number, whole
from gaussfold.likelihoods.conditionally_linear import ConditionallyLinear
from gaussfold.likelihoods.normal import NormalMoments
from gaussfold.likelihoods.quadratic_mean import QuadraticMean
from gaussfold.linalg.roots import lower_root
from gaussfold.types import Array, ArrayLike


@dataclass(frozen=True, eq=False)
class RegressionNetwork(ConditionallyLinear, QuadraticMean):
    """``y | f, W ~ N(W f, Σ)`` with q signals f and P x q weights W, all of them latents: bayes-newton (74).

    The latents of a row are ``f₁ .. f_q`` followed by W row by row, D = q (1 + P). The mean is bilinear in them: what
    vi, pl and pl2 expect has closed forms.

    Parameters
    ----------
    noise_cov
        Σ, P x P positive definite: the noise of the outputs may be correlated.
    signals
        q.
    weight_offset
        Added to every weight. The authors' programs have 0.1 here, the paper 0.

    Examples
    --------
    >>> net = RegressionNetwork([[0.1, 0.02], [0.02, 0.3]], signals=1)
    >>> net.latents, net.conditional([[2.0, 0.5, -1.0]]).mean
    (3, array([[ 1., -2.]]))
    """

    noise_cov: Array
    signals: int = 2
    weight_offset: float = 0.0

    def __post_init__(self) -> None:
        cov = np.atleast_2d(np.asarray(self.noise_cov, dtype=float))
        if cov.ndim != 2 or cov.shape[0] != cov.shape[1]:
            msg = f"noise_cov has shape {cov.shape}: the noise of P outputs needs a P x P matrix"
            raise ValueError(msg)
        lower_root(cov, "noise_cov")
        whole("signals", self.signals, owner="a regression network")
        number("weight_offset", self.weight_offset, remedy="the paper's model has 0.0")
        cov.flags.writeable = False
        object.__setattr__(self, "noise_cov", cov)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, RegressionNetwork) and self.config() == other.config()

    def __hash__(self) -> int:
        return hash((self.noise_cov.tobytes(), self.signals, self.weight_offset))

    @property
    def outputs(self) -> int:
        """P."""
        return int(self.noise_cov.shape[0])

    @property
    def latents(self) -> int:
        """``q (1 + P)``."""
        return int(self.signals) * (1 + self.outputs)

    @property
    def outer(self) -> tuple[int, ...]:
        """The signals: given them the mean is linear in the weights."""
        return tuple(range(int(self.signals)))

    def linear_part(self, a: Array) -> tuple[Array, Array, Array]:
        """Output p sees the signals through its own weights."""
        A = np.zeros((*a.shape[:-1], self.outputs, self.outputs, self.signals))
        A[..., np.arange(self.outputs), np.arange(self.outputs), :] = a[..., None, :]
        constant = self.weight_offset * a.sum(axis=-1, keepdims=True)
        return A.reshape(*a.shape[:-1], self.outputs, -1), self._noise(a.ndim - 1), constant

    def conditional(self, F: ArrayLike) -> NormalMoments:
        """``W f`` and Σ."""
        signals, weights = self._split(F)
        return NormalMoments((weights @ signals[..., None])[..., 0], self._noise(signals.ndim - 1))

    def conditional_slopes(self, F: ArrayLike) -> NormalMoments:
        """``W`` by f; by the weights of an output, f for that output and 0 for the others."""
        signals, weights = self._split(F)
        q, P = self.signals, self.outputs
        slope = np.zeros((*signals.shape[:-1], P, self.latents))
        slope[..., :q] = weights
        for p in range(P):
            slope[..., p, q * (1 + p) : q * (2 + p)] = signals
        return self.conditional(F).having(mean_slope=slope)

    def conditional_curvatures(self, F: ArrayLike) -> NormalMoments:
        """1 where a signal meets its own weight; constant."""
        q, P = self.signals, self.outputs
        bend = np.zeros((P, self.latents, self.latents))
        for p in range(P):
            for i in range(q):
                j = q * (1 + p) + i
                bend[p, i, j] = bend[p, j, i] = 1.0
        lead = (1,) * (np.asarray(F).ndim - 1)
        return self.conditional_slopes(F).having(mean_curvature=bend.reshape(lead + bend.shape))

    def _split(self, F: ArrayLike) -> tuple[Array, Array]:
        F = np.asarray(F, dtype=float)
        q = self.signals
        weights = F[..., q:].reshape(*F.shape[:-1], self.outputs, q) + self.weight_offset
        return F[..., :q], weights

    def _noise(self, leading: int) -> Array:
        return self.noise_cov.reshape((1,) * leading + self.noise_cov.shape)
