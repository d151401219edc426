"""The full Gaussian process, bayes-newton (60): exact, cubic in N·D."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np
from scipy.linalg import LinAlgError, block_diag, cho_solve, cholesky, solve_triangular
from scipy.linalg.lapack import dpotri

from gaussfold.gp import square_root
from gaussfold.gp.covariances import Covariance
from gaussfold.gp.priors import Marginals, PriorGradient, Slopes, finite, lost, split
from gaussfold.gp.row_blocks import row_blocks
from gaussfold.linalg.jitter import jittered_root
from gaussfold.linalg.roots import log_det
from gaussfold.linalg.small import non_positive, smallest_eigenvalues
from gaussfold.linalg.triangles import divided
from gaussfold.types import Array, Sites

ROUNDED = 1e-12
"""A posterior variance (in any direction) below this share of the prior's has lost twelve digits as a difference."""

FEW = 100
"""Inputs that are predicted together on square roots at least."""


class NotFiniteError(ValueError):
    """``I + W'KW`` has no Cholesky factor in double precision."""


class _Solved:
    """What the sites do to the prior, ``R = (K + Λ⁻¹)⁻¹`` and ``a = K⁻¹ m``, factored.

    The positive parts ``W W'`` go through ``B = I + W'KW``, which is well conditioned whatever K is; negative ones
    (k directions U) afterwards through ``T = I - U'CU``, which is positive definite if and only if the posterior is.
    """

    def __init__(self, K: Sequence[Array], sites: Sites) -> None:
        self.precision = sites.precision
        self.root, self.rows, self.negative = split(sites.precision)
        self.count, self.latents = sites.shift.shape
        if self.latents > 1:  # a direction that no site looks in, as the mean of a softmax's latents, costs nothing
            seen = self.root.any(axis=(0, 1))
            self.root = self.root[:, :, seen if seen.any() else slice(1)]
        self.size = size = self.count * self.root.shape[2]
        B = self._prior_seen(K)
        B.flat[:: size + 1] += 1.0
        try:
            self.lower = np.asarray(cholesky(B, lower=True, overwrite_a=True))
        except (LinAlgError, ValueError):
            msg = (
                "the posterior precision is singular or not finite in double precision; check the inputs, or use "
                "a smaller prior variance or a larger noise"
            )
            raise NotFiniteError(msg) from None
        self.log_det = log_det(self.lower)
        self.turned: Array | None = None
        if self.rows.size:
            self._downdate(K)

    def _prior_seen(self, K: Sequence[Array]) -> Array:
        """``W'KW``."""
        B = np.zeros((self.count, self.root.shape[2], self.count, self.root.shape[2]))
        for i in range(self.root.shape[2]):
            for j in range(i + 1):
                for d, k in enumerate(K):
                    B[:, i, :, j] += self.root[:, d, i, None] * k * self.root[:, d, j]
                B[:, j, :, i] = B[:, i, :, j].T
        return B.reshape(self.size, self.size)

    def _rooted(self, K: Sequence[Array]) -> Array:
        """``W'K`` for cross-covariances K_d (n, N) of each latent: [row, i, d, n]."""
        return np.stack([self.root[:, d, :, None] * k.T[:, None, :] for d, k in enumerate(K)], axis=2)

    def _whitened(self, K: Sequence[Array]) -> Array:
        """``L⁻¹ W'K``, shape (ND, D, n)."""
        rooted = self._rooted(K).reshape(self.size, -1)
        return divided(rooted, self.lower).reshape(self.size, self.latents, -1)

    def _downdate(self, K: Sequence[Array]) -> None:
        near = self._whitened([k[self.rows] for k in K])
        self._half = np.einsum("rdk,kd->rk", near, self.negative)  # L⁻¹ W'K U
        T = np.eye(self.rows.size) + self._half.T @ self._half
        for d, k in enumerate(K):
            T -= np.outer(self.negative[:, d], self.negative[:, d]) * k[np.ix_(self.rows, self.rows)]
        try:
            self.turned = np.asarray(cholesky(T, lower=True))
        except LinAlgError:
            raise lost(int(self.rows[0]), "the first negative site is that of") from None
        self.log_det += log_det(self.turned)

    def factors(self, K: Sequence[Array]) -> tuple[Array, Array | None]:
        """X and Y with posterior covariance ``K** - X'X + Y'Y`` at inputs whose cross-covariances are K; (r, D, n)."""
        X = self._whitened(K)
        if self.turned is None:
            return X, None
        reach = np.stack([k[:, self.rows].T * self.negative[:, d, None] for d, k in enumerate(K)], axis=1)
        reach -= np.einsum("rk,rdx->kdx", self._half, X)  # U'C
        shape = reach.shape
        return X, np.asarray(solve_triangular(self.turned, reach.reshape(len(reach), -1), lower=True)).reshape(shape)

    def weights(self, K: Sequence[Array], shift: Array) -> Array:
        """``a = K⁻¹m``, with ``m = K a``; shape (N, D).

        With λ = W z + λ⊥, λ⊥ outside the range of W, it is ``W B⁻¹ z + (I - R₊K) λ⊥``: for sharp sites λ - Λm would be
        the difference of two large numbers.
        """
        lengths = np.einsum("ndi,ndi->ni", self.root, self.root)
        z = np.einsum("ndi,nd->ni", self.root, shift) / np.where(lengths > 0.0, lengths, 1.0)
        inside = cho_solve((self.lower, True), z.reshape(self.size)).reshape(self.count, -1)
        a = np.einsum("ndi,ni->nd", self.root, inside)
        short = (lengths > 0.0).sum(axis=1) < self.latents
        if short.any():
            rest = np.where(short[:, None], shift - np.einsum("ndi,ni->nd", self.root, z), 0.0)
            rest[np.abs(rest) <= 1e-14 * np.abs(shift).max(axis=1, keepdims=True)] = 0.0  # what W z rounds to
            a = a + self._kept(K, rest)
        if self.turned is None:
            return np.asarray(a)
        # C λ by the positive part, then through the negative directions: a = λ - Λ m.
        m = np.stack([k @ a[:, d] for d, k in enumerate(K)], axis=1)
        pull = cho_solve((self.turned, True), np.einsum("kd,kd->k", self.negative, m[self.rows]))
        extra = np.zeros_like(a)
        np.add.at(extra, self.rows, self.negative * pull[:, None])
        return np.asarray(a + self._kept(K, extra))

    def _kept(self, K: Sequence[Array], x: Array) -> Array:
        """``(I - R₊K) x`` with the positive part's R₊: what of a pull on the latents the other sites let through."""
        f = np.stack([k @ x[:, d] for d, k in enumerate(K)], axis=1)
        z = cho_solve((self.lower, True), np.einsum("ndi,nd->ni", self.root, f).reshape(self.size))
        return np.asarray(x - np.einsum("ndi,ni->nd", self.root, z.reshape(self.count, -1)))

    def R(self, K: Sequence[Array]) -> Array:
        """``(K + Λ⁻¹)⁻¹`` in full, (D, N, D, N)."""
        N, D, seen = self.count, self.latents, self.root.shape[2]
        inverse = np.tril(dpotri(self.lower, lower=1)[0])  # B⁻¹, its lower half
        inverse += np.tril(inverse, -1).T
        half = self.root @ inverse.reshape(N, seen, N * seen)  # W_n B⁻¹ for every row n, and the same from the right
        half = np.ascontiguousarray(half.reshape(N * D, N, seen).swapaxes(0, 1))
        R = np.ascontiguousarray((half @ np.swapaxes(self.root, 1, 2)).reshape(N, N, D, D).transpose(2, 1, 3, 0))
        if self.turned is not None:
            U = np.zeros((D, N, self.rows.size))
            U[:, self.rows, np.arange(self.rows.size)] = self.negative.T
            flat, square = U.reshape(N * D, -1), R.reshape(N * D, N * D)
            kept = flat - square @ np.concatenate([k @ u for k, u in zip(K, U, strict=True)])
            R -= (kept @ cho_solve((self.turned, True), kept.T)).reshape(R.shape)
        return np.asarray(R)


class DensePrior:
    """Independent Gaussian processes, one per latent, at all N inputs.

    Parameters
    ----------
    covariances
        One per latent.
    X
        Inputs (N, d).
    """

    Z = None

    def __init__(self, covariances: Sequence[Covariance], X: Array) -> None:
        self.covariances = tuple(covariances)
        self.X = X
        try:
            self._K = [finite(c, c(X)) for c in self.covariances]
        except MemoryError:
            msg = f"{len(X)} rows: a dense covariance of so many does not fit in memory; use structure='sparse'"
            raise MemoryError(msg) from None

    def with_covariances(self, covariances: Sequence[Covariance], Z: Array | None = None) -> DensePrior:
        """The same inputs with other covariances."""
        del Z  # there are no inducing inputs
        return DensePrior(covariances, self.X)

    def update(self, sites: Sites) -> Marginals:
        """Posterior under these sites, (60); on square roots where ``K - X'X`` is rounding."""
        try:
            solved = _Solved(self._K, sites)
        except NotFiniteError:
            if non_positive(sites.precision).any():
                raise
            return self._on_roots(sites)
        mean, cov = self._at(solved, sites, self._K, [np.diag(k) for k in self._K])
        most = np.sqrt([np.diag(k).max(initial=np.finfo(float).tiny) for k in self._K])
        if solved.turned is None and (smallest_eigenvalues(cov / np.outer(most, most)) < ROUNDED).any():
            return self._on_roots(sites)
        log_z = -0.5 * solved.log_det + 0.5 * float(np.vdot(sites.shift, mean))
        return Marginals(mean, cov, cov, log_z, partial(self.others, sites))

    def _on_roots(self, sites: Sites) -> Marginals:
        mean, cov, log_z = square_root.condition(self.roots(), *sites)
        return Marginals(mean, cov, cov, log_z, partial(self.others, sites))

    def _predicted_on_roots(self, sites: Sites, X: Array) -> tuple[Array, Array]:
        """At other inputs, which are rows without a label; so many at a time as there are rows with one."""
        N, (_, D) = len(self.X), sites.shift.shape
        mean, cov = np.empty((len(X), D)), np.empty((len(X), D, D))
        for rows in row_blocks(len(X), max(N, FEW)):
            new = X[rows]
            both = DensePrior(self.covariances, np.vstack([self.X, new]))
            nothing = np.zeros((len(new), D, D)), np.zeros((len(new), D))
            precision, shift = (np.concatenate(pair) for pair in zip(sites, nothing, strict=True))
            found = square_root.condition(both.roots(), precision, shift)
            mean[rows], cov[rows] = found[0][N:], found[1][N:]
        return mean, cov

    def roots(self) -> list[Array]:
        """Of each K; eigenvalues below zero are rounding."""
        values, vectors = np.linalg.eigh(np.stack(self._K))
        return list(vectors * np.sqrt(np.maximum(values, 0.0))[:, None, :])

    def others(self, sites: Sites) -> tuple[Array, Array]:
        """What all sites but a row's own say of it: one posterior per row."""
        roots, mean, cov = self.roots(), np.empty_like(sites.shift), np.empty_like(sites.precision)
        for row in range(len(mean)):
            precision, shift = sites.precision.copy(), sites.shift.copy()
            precision[row], shift[row] = 0.0, 0.0
            found = square_root.condition(roots, precision, shift)
            mean[row], cov[row] = found[0][row], found[1][row]
        return mean, cov

    def predict(self, sites: Sites, X: Array, *, joint: bool = False) -> tuple[Array, Array]:
        """At other inputs; marginals on square roots where ``K** - X'X`` is rounding."""
        if joint:
            return self._predict_joint(sites, X)
        try:
            solved = _Solved(self._K, sites)
        except NotFiniteError:
            if non_positive(sites.precision).any():
                raise
            return self._predicted_on_roots(sites, X)
        prior = [c.diagonal(X) for c in self.covariances]
        mean, cov = self._at(solved, sites, [c(X, self.X) for c in self.covariances], prior)
        if solved.turned is None:
            most = np.sqrt([each.max(initial=np.finfo(float).tiny) for each in prior])
            rounded = np.flatnonzero(smallest_eigenvalues(cov / np.outer(most, most)) < ROUNDED)
            if rounded.size:
                mean[rounded], cov[rounded] = self._predicted_on_roots(sites, X[rounded])
        return mean, cov

    def _predict_joint(self, sites: Sites, X: Array) -> tuple[Array, Array]:
        solved = _Solved(self._K, sites)
        cross = [c(X, self.X) for c in self.covariances]
        a = solved.weights(self._K, sites.shift)
        mean = np.stack([k @ a[:, d] for d, k in enumerate(cross)], axis=1)
        less, more = solved.factors(cross)
        half = less.reshape(len(less), -1)
        cov = np.asarray(block_diag(*(c(X) for c in self.covariances))) - half.T @ half
        if more is not None:
            half = more.reshape(len(more), -1)
            cov += half.T @ half
        return mean, cov

    def sample(self, sites: Sites, X: Array, n: int, rng: np.random.Generator) -> Array:
        """From the joint posterior."""
        mean, cov = self.predict(sites, X, joint=True)
        return draw(mean, cov, n, rng)

    def gradient(self, sites: Sites, slopes: Slopes | None) -> PriorGradient:
        """``dE = tr(M dK)`` with ``M = -(aa' - R)/2 + a (S'g)' + S'GS``, ``S = I - KR``, and g, G the slopes."""
        solved = _Solved(self._K, sites)
        D, N = solved.latents, solved.count
        a = solved.weights(self._K, sites.shift).T.reshape(-1)
        R = solved.R(self._K)
        M = 0.5 * (R.reshape(D * N, D * N) - np.outer(a, a))
        if slopes is not None:
            S = -np.concatenate([k @ r.reshape(N, D * N) for k, r in zip(self._K, R, strict=True)])
            S.flat[:: D * N + 1] += 1.0
            M += np.outer(a, slopes.mean.T.reshape(-1) @ S)
            M += S.T @ np.einsum("ndc,cnx->dnx", slopes.cov + slopes.inner, S.reshape(D, N, -1)).reshape(S.shape)
        parts = []
        for d, covariance in enumerate(self.covariances):
            block = M[d * N : (d + 1) * N, d * N : (d + 1) * N]
            parts.append(covariance.vjp(self.X, None, 0.5 * (block + block.T)))
        return PriorGradient(np.concatenate(parts))

    def _at(self, solved: _Solved, sites: Sites, cross: Sequence[Array], prior: Sequence[Array]) -> tuple[Array, Array]:
        a = solved.weights(self._K, sites.shift)
        mean = np.stack([k @ a[:, d] for d, k in enumerate(cross)], axis=1)
        X, Y = solved.factors(cross)
        cov = -_products(X)
        if Y is not None:
            cov += _products(Y)
        for d, diagonal in enumerate(prior):
            cov[:, d, d] += diagonal
        return mean, cov


def _products(X: Array) -> Array:
    """``X_n'X_n`` of factors (r, D, n): shape (n, D, D)."""
    _, D, n = X.shape
    out = np.empty((n, D, D))
    for d in range(D):
        for c in range(d + 1):
            out[:, d, c] = out[:, c, d] = np.einsum("rn,rn->n", X[:, d], X[:, c])
    return out


def draw(mean: Array, cov: Array, n: int, rng: np.random.Generator) -> Array:
    """Samples (n, rows, D) from a joint Gaussian whose covariance has the latents outside."""
    rows, latents = mean.shape
    root = jittered_root(
        0.5 * (cov + cov.T), "the posterior covariance at these inputs", "sample at inputs that are further apart"
    )
    noise = rng.standard_normal((n, latents * rows)) @ root.T
    return np.asarray(mean + noise.reshape(n, latents, rows).transpose(0, 2, 1))
