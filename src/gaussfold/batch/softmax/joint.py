"""One Gaussian over the weights of all classes."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.linalg import cho_solve, solve_triangular

from gaussfold.batch.softmax.rows import LEAST_LEFT, ClassRows, Seen, expected_log, lower, moved, turned
from gaussfold.beliefs.dense.belief import DenseGaussian
from gaussfold.types import Array


class Joint(NamedTuple):
    """Means (K, d), curvatures w B (n, K, K), and what follows: the lower Cholesky factor of the precision."""

    mean: Array
    curvature: Array
    root: Array

    @classmethod
    def start(cls, rows: ClassRows) -> Joint:
        """Means of the prior and the curvatures there, as for blocks."""
        K = rows.classes
        bend = np.eye(K) / K - 1.0 / K**2
        return cls.of(rows, np.tile(rows.mean, (K, 1)), rows.weight[:, None, None] * bend)

    @classmethod
    def of(cls, rows: ClassRows, mean: Array, curvature: Array) -> Joint:
        """With the precision that the rows' curvatures and the prior make, class after class."""
        K, d = mean.shape
        blocks = np.zeros((K, d, K, d))
        for k in range(K):
            for j in range(k + 1):
                blocks[k, :, j] = (rows.X.T * curvature[:, k, j]) @ rows.X
                blocks[j, :, k] = blocks[k, :, j].T
        return cls(mean, curvature, lower(blocks.reshape(K * d, K * d) + np.diag(np.tile(rows.std**-2.0, K))))

    def seen(self, rows: ClassRows) -> Seen:
        """What it says of the rows, by nodes of latents with covariances."""
        n, K = len(rows.y), rows.classes
        p, bend, value = np.empty((n, K)), np.empty((n, K, K)), 0.0
        weight, inverse = rows.weight[:, None], self._inverse()
        for part in rows.pieces():
            middle, root = self._latents(rows.X[part], inverse)
            found = middle[:, :, None] + root @ rows.nodes
            value += float(rows.weight[part] @ expected_log(found, rows.y[part]))
            p[part] = found.mean(axis=2)
            bend[part] = weight[part, :, None] * _spread(found)
        return Seen(value - self._divergence(rows, inverse), weight * (rows.hit - p), bend, p)

    def _inverse(self) -> Array:
        """L⁻¹."""
        return np.asarray(solve_triangular(self.root, np.eye(self.mean.size), lower=True))

    def _latents(self, X: Array, inverse: Array) -> tuple[Array, Array]:
        """Mean (n, K) and Cholesky factor (n, K, K) of the covariance of some rows' latents."""
        half = np.einsum("tkd,id->ikt", inverse.reshape(-1, *self.mean.shape), X, optimize=True)
        cov = half @ turned(half)
        size = np.einsum("nkk->n", cov)[:, None, None]  # room for rounding: latents may be known to be the same
        return X @ self.mean.T, np.linalg.cholesky(cov + 1e-13 * size * np.eye(len(self.mean)))

    def left_out(self, rows: ClassRows, seen: Seen) -> float:
        """The leave-one-out score: with C = R R', V = R (I - R'w B R)⁻¹ R'."""
        inverse, score = self._inverse(), 0.0
        for part in rows.pieces():
            middle, root = self._latents(rows.X[part], inverse)
            once = rows.once[part, None]
            values, vectors = np.linalg.eigh(turned(root) @ (once[:, :, None] * seen.curvature[part]) @ root)
            left = root @ (vectors / np.sqrt(np.maximum(1.0 - values, LEAST_LEFT))[:, None])  # a root of V
            before = middle - np.einsum("ikt,ilt,il->ik", left, left, once * seen.gradient[part], optimize=True)
            score += rows.log_predictive(before[:, :, None] + left @ rows.nodes, part)
        return score

    def _divergence(self, rows: ClassRows, inverse: Array) -> float:
        """KL(q ‖ prior)."""
        K = len(self.mean)
        away = np.sum(((self.mean - rows.mean) / rows.std) ** 2)
        spread = np.sum(np.square(inverse).sum(axis=0) / np.tile(rows.std, K) ** 2)
        logs = np.sum(np.log(np.diag(self.root))) + K * np.sum(np.log(rows.std))
        return 0.5 * float(away + spread - self.mean.size) + float(logs)

    def variance(self) -> Array:
        """Of each weight, (K, d)."""
        return np.asarray(np.square(self._inverse()).sum(axis=0).reshape(self.mean.shape))

    def after(self, rows: ClassRows, seen: Seen) -> tuple[Joint, Array]:
        """Where a whole step leads, and how far that is."""
        new = Joint.of(rows, self.mean, seen.curvature)
        slope = seen.gradient.T @ rows.X - (self.mean - rows.mean) * rows.std**-2.0
        step = cho_solve((new.root, True), slope.ravel()).reshape(self.mean.shape)
        there = new._replace(mean=self.mean + step)
        return there, moved(step, self.variance(), there.variance())

    def units(self, rows: ClassRows) -> tuple[Array, Array]:
        """What moves of means and of curvatures are measured in."""
        inverse = self._inverse()
        roots = np.concatenate([self._latents(rows.X[part], inverse)[1] for part in rows.pieces()])
        size = np.sqrt(np.square(roots).sum(axis=2))
        both = np.maximum(size[:, :, None] * size[:, None, :], 1e-300)
        return np.sqrt(self.variance()), np.sqrt(rows.weight)[:, None, None] / both

    def beliefs(self) -> list[DenseGaussian]:
        """One over all weights, class after class."""
        factor = solve_triangular(self.root, np.eye(self.mean.size), lower=True, trans="T")
        return [DenseGaussian.from_factor(self.mean.ravel().copy(), factor)]


def _spread(p: Array) -> Array:
    """E[diag(p) - pp'] of probabilities (rows, K, S); its rows add up to nothing, without cancellation in p - p²."""
    bend = -(p @ turned(p)) / p.shape[2]
    places = np.arange(p.shape[1])
    bend[:, places, places] = 0.0
    bend[:, places, places] = -bend.sum(axis=2)
    return np.asarray(bend)
