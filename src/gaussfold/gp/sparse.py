"""Sparse Gaussian processes with inducing inputs, bayes-newton (61)-(64): linear in N, cubic in M·D.

Inducing variables are kept whitened: ``u = L v`` with ``L L' = K_uu`` and v ~ N(0, I). What the sites see of f_n is
``A_n'v`` with ``A = L⁻¹K_uf``, which is (62) without an inverse of K_uu, and the posterior precision of v is
``I + Σ A_n Λ_n A_n'``: well conditioned, and positive definite exactly if the posterior is.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import NamedTuple

import numpy as np
from scipy.linalg import LinAlgError, block_diag, cho_solve, cholesky
from scipy.linalg.lapack import dpotri

from gaussfold.gp.covariances import Covariance
from gaussfold.gp.dense import draw
from gaussfold.gp.origin import GONE
from gaussfold.gp.priors import Marginals, PriorGradient, Slopes, finite, lost
from gaussfold.gp.row_blocks import row_blocks
from gaussfold.linalg.jitter import jittered_root
from gaussfold.linalg.roots import log_det
from gaussfold.linalg.small import root_adjoint
from gaussfold.linalg.triangles import divided
from gaussfold.types import Array, Sites

REMEDY = "use fewer inducing inputs or move them apart, or add a White covariance"


BLOCK = 512
"""Rows that are worked on at a time: as many columns of (M, n) matrices as the cache holds."""


class Features:
    """Whitened features ``A_d = L_d⁻¹ K_d(Z, X)`` (M, n) of each latent, and what they leave open of its variance."""

    def __init__(self, covariances: Sequence[Covariance], Z: Array, roots: Sequence[Array], X: Array) -> None:
        self.A = [np.empty((len(Z), len(X))) for _ in covariances]
        self.open = np.empty((len(X), len(self.A)))
        for d, (covariance, L) in enumerate(zip(covariances, roots, strict=True)):
            for rows in row_blocks(len(X), BLOCK):
                a = self.A[d][:, rows] = divided(covariance(Z, X[rows]), L)
                self.open[rows, d] = covariance.diagonal(X[rows]) - np.einsum("mn,mn->n", a, a)
        np.maximum(self.open, 0.0, out=self.open)  # K_uu carries the jitter, and rounding is all that is cut


class Tied(NamedTuple):
    """The product of all sites as one Gaussian factor of v."""

    precision: Array
    """(DM, DM)"""
    shift: Array
    """(DM,)"""


def gathered(features: Features, sites: Sites) -> Tied:
    """``Σ A_n Λ_n A_n'`` and ``Σ A_n λ_n``, (62)."""
    return Tied(
        _products(features.A, sites.precision),
        np.concatenate([a @ sites.shift[:, d] for d, a in enumerate(features.A)]),
    )


def _products(A: list[Array], weights: Array) -> Array:
    """``Σ A_n W_n A_n'`` for symmetric W_n, blocks by latent."""
    M, D = len(A[0]), len(A)
    out = np.zeros((D, M, D, M))
    for rows in row_blocks(A[0].shape[1], BLOCK):
        for d, a in enumerate(A):
            for c in range(d + 1):
                weight = weights[rows, d, c]
                if c == d and (weight >= 0.0).all():  # the product of a matrix with its own transpose costs half
                    half = a[:, rows] * np.sqrt(weight)
                    out[d, :, d] += half @ half.T
                else:
                    out[d, :, c] += (a[:, rows] * weight) @ A[c][:, rows].T
    for d in range(D):
        for c in range(d):
            out[c, :, d] = out[d, :, c].T
    return out.reshape(D * M, D * M)


def inverse_of(lower: Array) -> Array:
    """``(L L')⁻¹``, at a third of the cost of solving for the columns of the identity."""
    inverse = np.tril(dpotri(lower, lower=1)[0])
    return np.asarray(inverse + np.tril(inverse, -1).T)


class Solved:
    """Posterior of v: mean, covariance and log Z."""

    def __init__(self, tied: Tied) -> None:
        size = len(tied.shift)
        try:
            self._lower = lower = np.asarray(cholesky(np.eye(size) + tied.precision, lower=True))
        except LinAlgError:
            values = np.linalg.eigvalsh(tied.precision)  # below zero by more than rounding: sites that are negative
            raise lost(sharp=bool(values[0] >= -1e-12 * values[-1])) from None
        self.mean = np.asarray(cho_solve((lower, True), tied.shift))
        self.log_z = -0.5 * log_det(lower) + 0.5 * float(tied.shift @ self.mean)

    @cached_property
    def cov(self) -> Array:
        """Of v."""
        return inverse_of(self._lower)

    def marginals(self, features: Features) -> Marginals:
        """Of f at the features' inputs, (64)."""
        A = features.A
        M, D = len(A[0]), len(A)
        mean = np.stack([a.T @ self.mean[d * M : (d + 1) * M] for d, a in enumerate(A)], axis=1)
        inner = np.empty((A[0].shape[1], D, D))
        for rows in row_blocks(len(inner), BLOCK):
            if D == 1:  # C = L⁻ᵀL⁻¹: a triangular system costs half of a product with C
                half = divided(A[0][:, rows].copy(), self._lower)
                inner[rows, 0, 0] = np.einsum("mn,mn->n", half, half)
                continue
            for d, a in enumerate(A):
                for c in range(d + 1):
                    reach = self.cov[d * M : (d + 1) * M, c * M : (c + 1) * M] @ A[c][:, rows]
                    inner[rows, d, c] = inner[rows, c, d] = np.einsum("mn,mn->n", a[:, rows], reach)
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
    base
        What rows that are gone say of the whitened inducing variables, if there were such.
    """

    def __init__(self, covariances: Sequence[Covariance], X: Array, Z: Array, base: Tied | None = None) -> None:
        self.covariances = tuple(covariances)
        self.X, self.Z, self.base = X, Z, base
        self.roots = [
            jittered_root(finite(c, c(Z)), f"the covariance of the {len(Z)} inducing inputs", REMEDY)
            for c in self.covariances
        ]
        self._features: Features | None = None
        self._last: tuple[Sites, Solved] | None = None
        self._before = 0.0 if base is None else Solved(base).log_z

    def with_covariances(self, covariances: Sequence[Covariance], Z: Array | None = None) -> SparsePrior:
        """The same inputs with other covariances (and inducing inputs)."""
        if self.base is not None:
            raise ValueError(GONE)
        return SparsePrior(covariances, self.X, self.Z if Z is None else Z)

    def features(self, X: Array) -> Features:
        """Of any inputs."""
        return Features(self.covariances, self.Z, self.roots, X)

    @property
    def _mine(self) -> Features:
        if self._features is None:
            self._features = self.features(self.X)
        return self._features

    def update(self, sites: Sites) -> Marginals:
        """Posterior under these sites, (63)-(64), and how probable they are after the rows that are gone."""
        found = self._solved(sites).marginals(self._mine)
        return found._replace(log_z=found.log_z - self._before)

    def total(self, sites: Sites) -> Tied:
        """The product of all sites, those of rows that are gone among them."""
        found = gathered(self._mine, sites)
        if self.base is None:
            return found
        return Tied(found.precision + self.base.precision, found.shift + self.base.shift)

    def _solved(self, sites: Sites) -> Solved:
        """Posterior of v, kept for when it is asked for again."""
        if self._last is None or self._last[0] is not sites:
            self._last = sites, Solved(self.total(sites))
        return self._last[1]

    def predict(self, sites: Sites, X: Array, *, joint: bool = False) -> tuple[Array, Array]:
        """At other inputs."""
        return self.predict_tied(self.total(sites), X, joint=joint)

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
        return self.sample_tied(self.total(sites), X, n, rng)

    def sample_tied(self, tied: Tied, X: Array, n: int, rng: np.random.Generator) -> Array:
        """From the joint posterior, given the product of the sites."""
        mean, cov = self.predict_tied(tied, X, joint=True)
        return draw(mean, cov, n, rng)

    def gradient(self, sites: Sites, slopes: Slopes | None) -> PriorGradient:
        """Through A, by hand: log Z, then the slopes' chain through the posterior of v and directly through A.

        With ``w = C Σ A_n g_n`` and ``Γ = C (Σ A_n G_n A_n') C`` the adjoint of A_n is
        ``(C + mm' - wm' - mw' - 2Γ) A_n Λ_n + 2 C A_n G_n + m (g_n - λ_n)' + w λ_n'``.
        """
        if self.base is not None:
            raise ValueError(GONE)
        through = _through_posterior(self._mine, self._solved(sites), sites, slopes)
        return self._pulled(self.X, self._mine, through)

    def gradient_at(self, X: Array, features: Features, solved: Solved, slopes: Slopes) -> PriorGradient:
        """Of ``F(marginals)`` at some rows X while the posterior of v stays; A_n's adjoint is ``2 C A_n G_n + m g_n'``.

        Whitened variables have a prior that no hyperparameter moves, so that this is the gradient of (16) at fixed q.
        """
        line = [(solved.mean, slopes.mean)]
        return self._pulled(X, features, _Adjoints(features.A, solved.cov, _open(slopes), line, bend=slopes.cov))

    def _pulled(self, X: Array, features: Features, through: _Adjoints) -> PriorGradient:
        """Adjoints of A and of the open variance, carried to the hyperparameters and the inducing inputs."""
        parameters = []
        inducing = np.zeros_like(self.Z)
        for d, covariance in enumerate(self.covariances):
            L = self.roots[d]
            total = np.asarray(covariance.diagonal_vjp(X, through.open_bar[:, d]))
            bar_L = np.zeros(L.shape)
            for rows in row_blocks(len(X), BLOCK):
                bar_uf = divided(through.of(d, rows), L, turned=True)
                bar_L -= bar_uf @ features.A[d][:, rows].T
                by_parameter, by_input = covariance.pullback(self.Z, X[rows], bar_uf)
                total += by_parameter
                inducing += by_input
            by_parameter, by_input = covariance.pullback(self.Z, self.Z, root_adjoint(L, bar_L))
            parameters.append(total + by_parameter)
            inducing += 2.0 * by_input
        return PriorGradient(np.concatenate(parameters), inducing)


def _open(slopes: Slopes) -> Array:
    """The slopes of what the inducing variables leave open, (N, D)."""
    return np.stack([slopes.cov[:, d, d] for d in range(slopes.cov.shape[-1])], axis=1)


def _through_posterior(features: Features, solved: Solved, sites: Sites, slopes: Slopes | None) -> _Adjoints:
    """As :meth:`SparsePrior.gradient` says."""
    A, m, C = features.A, solved.mean, solved.cov
    curve, line = C + np.outer(m, m), [(m, -sites.shift)]
    open_bar, bend = np.zeros(sites.shift.shape), None
    if slopes is not None:
        open_bar, G = _open(slopes), slopes.cov + slopes.inner
        if G.any() or slopes.mean.any():  # else the sites have settled
            bend = G
            w = C @ np.concatenate([a @ slopes.mean[:, d] for d, a in enumerate(A)])
            curve -= np.outer(w, m) + np.outer(m, w) + 2.0 * C @ _products(A, G) @ C
            line = [(m, slopes.mean - sites.shift), (w, sites.shift)]
    return _Adjoints(A, C, open_bar, line, bend, (curve, sites.precision))


class _Adjoints:
    """Of A_n, a block of rows at a time, and of the open variance."""

    def __init__(
        self,
        A: list[Array],
        cov: Array,
        open_bar: Array,
        line: list[tuple[Array, Array]],
        bend: Array | None,
        curve: tuple[Array, Array] | None = None,
    ) -> None:
        self._A, self._cov, self._line, self._bend, self._curve = A, cov, line, bend, curve
        self.open_bar = open_bar

    def of(self, d: int, rows: slice) -> Array:
        """Latent d's features at these rows."""
        A, M = self._A, len(self._A[0])
        mine = slice(d * M, (d + 1) * M)
        bar = -2.0 * A[d][:, rows] * self.open_bar[rows, d]
        for c, a in enumerate(A):
            other = slice(c * M, (c + 1) * M)
            if self._curve is not None:
                curve, precision = self._curve
                bar += (curve[mine, other] @ a[:, rows]) * precision[rows, c, d]
            if self._bend is not None:
                bar += (self._cov[mine, other] @ a[:, rows]) * (2.0 * self._bend[rows, c, d])
        for left, right in self._line:
            bar += np.outer(left[mine], right[rows, d])
        return np.asarray(bar)
