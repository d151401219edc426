"""Likelihoods whose mean is linear in some latents once the others are known: half of the integral is exact.

``y | a, b ~ N(A(a) b + c(a), R(a))`` with f = (a, b). For power ep and for predictive densities the inner latents b are
integrated in closed form at every node of a (Rao-Blackwell), so that a sharp likelihood costs no accuracy in b, and
normalisers and tilted covariances are positive whatever the weights are.
"""

from __future__ import annotations

from abc import abstractmethod
from math import log, pi
from typing import NamedTuple

import numpy as np
import scipy

from gaussfold.expectations.cubature import resolve_cubature
from gaussfold.likelihoods.chained import BLOCK, AnyCubature
from gaussfold.likelihoods.gaussian_noise import GaussianNoise
from gaussfold.linalg.small import inverse, lower_roots, symmetrised, whiteners
from gaussfold.types import Array

FEW = 6.0
GAP = 0.4
"""Distance of neighbouring nodes, in standard deviations of the Gaussian that they were made for."""
REFINEMENTS = 8


class Tilted(NamedTuple):
    """Of N(f | m, C) p(y | f)^α: the log normaliser, the mean's distance from m, and the covariance."""

    log_z: Array
    moved: Array
    cov: Array


class ConditionallyLinear(GaussianNoise):
    """Adds :meth:`linear_part`; with ``cubature=None`` tilted moments and predictive densities go through it.

    With a rule given by name or object they are sums over its nodes in all D dimensions, as for any other likelihood.
    """

    @property
    @abstractmethod
    def outer(self) -> tuple[int, ...]:
        """Which latents a are integrated by nodes; the rest, b, exactly."""

    @abstractmethod
    def linear_part(self, a: Array) -> tuple[Array, Array, Array | float]:
        """``A (..., P, D - d)``, ``R (..., P, P)`` and a constant ``c (..., P)`` at outer latents ``a (..., d)``."""

    def tilted(
        self, Y: Array, mean: Array, cov: Array, alpha: float = 1.0, cubature: AnyCubature = None
    ) -> tuple[Array, Array, Array]:
        """``log E p(y | f)^α`` with derivatives: C⁻¹(m̂ - m) and C⁻¹(Ĉ - C)C⁻¹ from the tilted moments."""
        if cubature is not None:
            return super().tilted(Y, mean, cov, alpha, cubature)
        found = self._moments(Y, mean, cov, alpha)
        turn = whiteners(cov, "cov")  # L⁻¹ of C = L L', so that rounding is amplified by L⁻¹ and not by C⁻¹
        back = np.swapaxes(turn, -1, -2)
        first = (back @ turn @ found.moved[:, :, None])[:, :, 0]
        relative = symmetrised(turn @ found.cov @ back) - np.eye(cov.shape[-1])
        return found.log_z, first, symmetrised(back @ relative @ turn)

    def tilted_slopes(
        self, Y: Array, mean: Array, cov: Array, alpha: float = 1.0, cubature: AnyCubature = None
    ) -> tuple[Array, Array]:
        """In the mean, and by Price's theorem in the covariance."""
        if cubature is not None:
            return super().tilted_slopes(Y, mean, cov, alpha, cubature)
        _, first, second = self.tilted(Y, mean, cov, alpha)
        return first, 0.5 * (second + first[:, :, None] * first[:, None, :])

    def log_predictive(
        self, Y: Array, mean: Array, cov: Array, cubature: AnyCubature = None, *, alpha: float = 1.0
    ) -> Array:
        """``log E p(y | f)^α``."""
        if cubature is not None:
            return super().log_predictive(Y, mean, cov, cubature, alpha=alpha)
        return self._moments(Y, mean, cov, alpha).log_z

    def _moments(self, Y: Array, mean: Array, cov: Array, alpha: float) -> Tilted:
        points, weights = resolve_cubature(None, len(self.outer)).nodes(len(self.outer))
        size = max(1, BLOCK // (points.shape[0] * self.latents**2))
        parts = [
            self._block(Y[i : i + size], mean[i : i + size], cov[i : i + size], alpha, points, np.log(weights))
            for i in range(0, max(mean.shape[0], 1), size)
        ]
        return Tilted(*(np.concatenate(column) for column in zip(*parts, strict=True)))

    def _block(self, Y: Array, mean: Array, cov: Array, alpha: float, points: Array, log_w: Array) -> Tilted:
        """Nodes from the marginal of a; rows where a few nodes carry everything get nodes of their own, closer in.

        Those are placed by the tilted moments found so far, wide enough for the gaps between the old ones.
        """
        outer = np.array(self.outer)
        inside = np.ix_(np.arange(len(Y)), outer, outer)
        at, around = mean[:, outer], cov[inside]
        found, share = self._pass(Y, mean, cov, alpha, points, log_w, at, around)
        rows = np.flatnonzero(_spread_thin(share))
        for _ in range(REFINEMENTS):
            if not rows.size:
                break
            at, around = at.copy(), around.copy()
            at[rows] = mean[rows][:, outer] + found.moved[rows][:, outer]
            around[rows] = found.cov[inside][rows] + GAP**2 * around[rows]
            part, share = self._pass(Y[rows], mean[rows], cov[rows], alpha, points, log_w, at[rows], around[rows])
            for whole, some in zip(found, part, strict=True):
                whole[rows] = some
            rows = rows[_spread_thin(share)]
        return found

    def _pass(
        self, Y: Array, mean: Array, cov: Array, alpha: float, points: Array, log_w: Array, at: Array, around: Array
    ) -> tuple[Tilted, Array]:
        """Outer nodes a from N(at, around), weighed by the cavity; given each, b meets y exactly, with noise R/α.

        Also each node's share of the normaliser.
        """
        outer = np.array(self.outer)
        inner = np.setdiff1d(np.arange(self.latents), outer)
        root = lower_roots(cov[:, outer][:, :, outer], "cov")
        turn = inverse(root)
        place = lower_roots(symmetrised(around), "cov")
        W = cov[:, inner][:, :, outer] @ np.swapaxes(turn, -1, -2)
        left = symmetrised(cov[:, inner][:, :, inner] - W @ np.swapaxes(W, -1, -2))
        steps = (at - mean[:, outer])[:, None] + points @ np.swapaxes(place, -1, -2)
        white = steps @ np.swapaxes(turn, -1, -2)
        log_w = log_w + 0.5 * (points**2).sum(-1) - 0.5 * (white**2).sum(-1) + _log_root(place) - _log_root(root)
        drift = white @ np.swapaxes(W, -1, -2)
        A, noise, constant = self.linear_part(mean[:, None, outer] + steps)
        seen = ~np.isnan(Y)[:, None]
        A = np.where(seen[..., None], A, 0.0)
        expected = (A @ (mean[:, None, inner] + drift)[..., None])[..., 0] + constant
        e = np.where(seen, np.where(seen, Y[:, None], 0.0) - expected, 0.0)
        pair = seen[..., :, None] & seen[..., None, :]
        noise = np.where(pair, noise, np.eye(Y.shape[1]) * alpha)
        rows, nodes = white.shape[:2]
        A = np.broadcast_to(A, (rows, nodes, *A.shape[-2:]))
        gain = (A.reshape(rows, -1, len(inner)) @ left).reshape(A.shape)  # A C: nodes of one row in one product
        # everything goes through L⁻¹ of A C A' + R/α = L L'
        turn_y = whiteners(gain @ np.swapaxes(A, -1, -2) + noise / alpha, "cov")
        e = (turn_y @ e[..., None])[..., 0]
        gain = turn_y @ gain
        log_p = np.log(np.einsum("npii->npi", turn_y)).sum(-1) - 0.5 * np.einsum("npi,npi->np", e, e)
        if alpha != 1.0:  # N(y; Ab, R)^α = N(y; Ab, R/α) |2πR|^{(1-α)/2} α^{-P/2}
            log_p = log_p + 0.5 * (1.0 - alpha) * _log_det(noise)
            log_p = log_p - 0.5 * log(alpha) * (seen.sum(-1) + (1.0 - alpha) * (~seen).sum(-1))
        log_p = log_w + log_p - 0.5 * alpha * log(2.0 * pi) * seen.sum(-1)
        log_z = scipy.special.logsumexp(log_p, axis=1)
        share = np.exp(log_p - log_z[:, None])
        away = np.empty((*steps.shape[:2], self.latents))
        away[..., outer] = steps
        away[..., inner] = drift + (e[..., None, :] @ gain)[..., 0, :]
        moved = (share[:, None] @ away)[:, 0]
        away = away - moved[:, None]
        spread = np.swapaxes(share[..., None] * away, 1, 2) @ away
        known = gain.reshape(rows, -1, len(inner))
        weighed = (share[..., None, None] * gain).reshape(known.shape)
        spread[np.ix_(np.arange(rows), inner, inner)] += left - np.swapaxes(weighed, 1, 2) @ known
        return Tilted(log_z, moved, spread), share


def _spread_thin(share: Array) -> np.ndarray:
    """Rows whose normaliser rests on fewer than FEW nodes (the inverse of the sum of squared shares)."""
    return np.asarray((share**2).sum(axis=1) > 1.0 / FEW)


def _log_root(root: Array) -> Array:
    """Half the log determinant of ``L L'``, as a column."""
    with np.errstate(divide="ignore"):
        return np.asarray(np.linalg.slogdet(root)[1])[:, None]


def _log_det(matrices: Array) -> Array:
    if matrices.shape[-1] == 1:
        return np.asarray(np.log(matrices[..., 0, 0]))
    return np.asarray(np.linalg.slogdet(matrices)[1])
