"""Sparse Gaussian processes with inducing inputs, bayes-newton (61)-(64): linear in N, cubic in M·D.

Inducing variables are kept whitened: ``u = L v`` with ``L L' = K_uu`` and v ~ N(0, I). What the sites see of f_n is
``A_n'v`` with ``A = L⁻¹K_uf``, which is (62) without an inverse of K_uu, and the posterior precision of v is
``I + Σ A_n Λ_n A_n'``: well conditioned, and positive definite exactly if the posterior is.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy.linalg import LinAlgError, block_diag, cho_solve, cholesky, solve_triangular

from gaussfold.gp.covariances import Covariance
from gaussfold.gp.dense import draw
from gaussfold.gp.priors import Marginals, PriorGradient, Slopes, lost
from gaussfold.linalg.jitter import jittered_root
from gaussfold.linalg.roots import log_det
from gaussfold.types import Array, Sites

REMEDY = "use fewer inducing inputs or move them apart, or add a White covariance"


class Features:
    """Whitened features ``A_d = L_d⁻¹ K_d(Z, X)`` (M, n) of each latent, and what they leave open of its variance."""

    def __init__(self, covariances: Sequence[Covariance], Z: Array, roots: Sequence[Array], X: Array) -> None:
        self.A = [solve_triangular(L, c(Z, X), lower=True) for c, L in zip(covariances, roots, strict=True)]
        prior = [c.diagonal(X) for c in covariances]
        # not below zero: K_uu carries the jitter, and rounding is all that is cut
        self.open = np.stack(
            [np.maximum(p - np.einsum("mn,mn->n", a, a), 0.0) for p, a in zip(prior, self.A, strict=True)], axis=1
        )


class Tied(NamedTuple):
    """The product of all sites as one Gaussian factor of v."""

    precision: Array
    """(DM, DM)"""
    shift: Array
    """(DM,)"""


def gathered(features: Features, sites: Sites) -> Tied:
    """``Σ A_n Λ_n A_n'`` and ``Σ A_n λ_n``, (62)."""
    A = features.A
    blocks = [[(a * sites.precision[:, d, c]) @ b.T for c, b in enumerate(A)] for d, a in enumerate(A)]
    return Tied(np.block(blocks), np.concatenate([a @ sites.shift[:, d] for d, a in enumerate(A)]))


class Solved:
    """Posterior of v: mean, covariance and log Z."""

    def __init__(self, tied: Tied) -> None:
        size = len(tied.shift)
        try:
            lower = np.asarray(cholesky(np.eye(size) + tied.precision, lower=True))
        except LinAlgError:
            raise lost() from None
        self.cov = np.asarray(cho_solve((lower, True), np.eye(size)))
        self.mean = np.asarray(cho_solve((lower, True), tied.shift))
        self.log_z = -0.5 * log_det(lower) + 0.5 * float(tied.shift @ self.mean)

    def marginals(self, features: Features) -> Marginals:
        """Of f at the features' inputs, (64)."""
        A = features.A
        M, D = len(A[0]), len(A)
        mean = np.stack([a.T @ self.mean[d * M : (d + 1) * M] for d, a in enumerate(A)], axis=1)
        inner = np.empty((A[0].shape[1], D, D))
        for d, a in enumerate(A):
            for c in range(d + 1):
                block = self.cov[d * M : (d + 1) * M, c * M : (c + 1) * M]
                inner[:, d, c] = inner[:, c, d] = np.einsum("mn,mn->n", a, block @ A[c])
        cov = inner + features.open[:, :, None] * np.eye(D)
        return Marginals(mean, cov, inner, self.log_z)


class SparsePrior:
    """Independent Gaussian processes, one per latent, seen through M inducing inputs.

    Parameters
    ----------
    covariances
        One per latent.
    X
        Inputs (N, d).
    Z
        Inducing inputs (M, d), shared by the latents.
    """

    def __init__(self, covariances: Sequence[Covariance], X: Array, Z: Array) -> None:
        self.covariances = tuple(covariances)
        self.X, self.Z = X, Z
        self._roots = [
            jittered_root(c(Z), f"the covariance of the {len(Z)} inducing inputs", REMEDY) for c in self.covariances
        ]
        self._features: Features | None = None

    def with_covariances(self, covariances: Sequence[Covariance], Z: Array | None = None) -> SparsePrior:
        """The same inputs with other covariances (and inducing inputs)."""
        return SparsePrior(covariances, self.X, self.Z if Z is None else Z)

    def features(self, X: Array) -> Features:
        """Of any inputs."""
        return Features(self.covariances, self.Z, self._roots, X)

    @property
    def _mine(self) -> Features:
        if self._features is None:
            self._features = self.features(self.X)
        return self._features

    def update(self, sites: Sites) -> Marginals:
        """Posterior under these sites, (63)-(64)."""
        return Solved(gathered(self._mine, sites)).marginals(self._mine)

    def predict(self, sites: Sites, X: Array, *, joint: bool = False) -> tuple[Array, Array]:
        """At other inputs."""
        return self.predict_tied(gathered(self._mine, sites), X, joint=joint)

    def predict_tied(self, tied: Tied, X: Array, *, joint: bool = False) -> tuple[Array, Array]:
        """At other inputs, from the product of the sites."""
        solved, features = Solved(tied), self.features(X)
        found = solved.marginals(features)
        if not joint:
            return found.mean, found.cov
        A = np.asarray(block_diag(*features.A))
        prior = np.asarray(block_diag(*(c(X) for c in self.covariances)))
        return found.mean, prior - A.T @ A + A.T @ solved.cov @ A

    def sample(self, sites: Sites, X: Array, n: int, rng: np.random.Generator) -> Array:
        """From the joint posterior."""
        return self.sample_tied(gathered(self._mine, sites), X, n, rng)

    def sample_tied(self, tied: Tied, X: Array, n: int, rng: np.random.Generator) -> Array:
        """From the joint posterior, given the product of the sites."""
        mean, cov = self.predict_tied(tied, X, joint=True)
        return draw(mean, cov, n, rng)

    def gradient(self, sites: Sites, slopes: Slopes | None) -> PriorGradient:
        """Through A, by hand: log Z, then the slopes' chain through the posterior of v and directly through A."""
        features = self._mine
        solved = Solved(gathered(features, sites))
        A, m, C = features.A, solved.mean, solved.cov
        M, D = len(A[0]), len(A)
        at = [slice(d * M, (d + 1) * M) for d in range(D)]

        def through(X: Array, S: Array) -> list[Array]:
            """Column d of ``X A_n S_n`` in block d, for all n."""
            return [np.asarray(sum((X[at[d], at[c]] @ A[c]) * S[:, c, d] for c in range(D))) for d in range(D)]

        minus_log_z = through(C + np.outer(m, m), sites.precision)
        bars = [minus_log_z[d] - np.outer(m[at[d]], sites.shift[:, d]) for d in range(D)]
        open_bar = np.zeros((A[0].shape[1], D))
        if slopes is not None:
            G = slopes.cov + slopes.inner
            g_hat = np.concatenate([a @ slopes.mean[:, d] for d, a in enumerate(A)])
            w = C @ g_hat
            G_hat = np.block([[(a * G[:, d, c]) @ b.T for c, b in enumerate(A)] for d, a in enumerate(A)])
            Gamma = C @ G_hat @ C
            direct, indirect = (
                through(2.0 * C, G),
                through(np.outer(w, m) + np.outer(m, w) + 2.0 * Gamma, sites.precision),
            )
            for d in range(D):
                bars[d] += np.outer(m[at[d]], slopes.mean[:, d]) + direct[d]
                bars[d] += np.outer(w[at[d]], sites.shift[:, d]) - indirect[d]
            open_bar = np.stack([slopes.cov[:, d, d] for d in range(D)], axis=1)
        parameters, inducing = [], np.zeros_like(self.Z)
        for d, covariance in enumerate(self.covariances):
            bar = bars[d] - 2.0 * A[d] * open_bar[:, d]
            L = self._roots[d]
            bar_uf = solve_triangular(L, bar, lower=True, trans="T")
            bar_L = -np.tril(bar_uf @ A[d].T)
            bar_uu = _cholesky_adjoint(L, bar_L)
            parameters.append(
                covariance.vjp(self.Z, self.X, bar_uf)
                + covariance.vjp(self.Z, None, bar_uu)
                + covariance.diagonal_vjp(self.X, open_bar[:, d])
            )
            inducing += covariance.input_vjp(self.Z, self.X, bar_uf) + 2.0 * covariance.input_vjp(
                self.Z, self.Z, bar_uu
            )
        return PriorGradient(np.concatenate(parameters), inducing)


def _cholesky_adjoint(L: Array, bar: Array) -> Array:
    """From the adjoint of L to that of ``K = L L'``, symmetric: ``L⁻ᵀ Φ(L' bar) L⁻¹`` made symmetric."""
    inside = np.tril(L.T @ bar)
    inside.flat[:: len(L) + 1] *= 0.5
    half = solve_triangular(L, inside + inside.T, lower=True, trans="T")
    return np.asarray(0.5 * solve_triangular(L, half.T, lower=True, trans="T"))
