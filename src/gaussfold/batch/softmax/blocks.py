"""A Gaussian for the weights of each class, and nothing between classes."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy.linalg import cho_solve, solve_triangular

from gaussfold.batch.softmax.rows import LEAST_LEFT, ClassRows, Seen, expected_log, lower, moved, turned
from gaussfold.beliefs.dense.belief import DenseGaussian
from gaussfold.types import Array

SOLVED = 1e-3
"""What is left of the equation of a Newton step, relative to its start."""
MOST_TURNS = 30


class Blocks(NamedTuple):
    """Means (K, d), curvatures w b (n, K), and what follows: lower Cholesky factors (K, d, d) of the precisions."""

    mean: Array
    curvature: Array
    root: Array

    @classmethod
    def start(cls, rows: ClassRows) -> Blocks:
        """Means of the prior, under which all classes are alike, and what rows without spread would bend there.

        Under the prior's own spread they bend hardly at all, and the first steps would be far too long.
        """
        bend = (rows.classes - 1.0) / rows.classes**2
        return cls.of(rows, np.tile(rows.mean, (rows.classes, 1)), np.tile(bend * rows.weight[:, None], rows.classes))

    @classmethod
    def of(cls, rows: ClassRows, mean: Array, curvature: Array) -> Blocks:
        """With the precisions that the rows' curvatures and the prior make."""
        kept, own = np.maximum(curvature, 0.0), np.diag(rows.std**-2.0)
        return cls(mean, kept, lower(np.stack([own + (rows.X.T * b) @ rows.X for b in kept.T])))

    def seen(self, rows: ClassRows) -> Seen:
        """What it says of the rows, by nodes of independent latents."""
        nodes = rows.nodes
        middle, variance = self._latents(rows)
        std = np.sqrt(variance)
        p, pull, value = np.empty(middle.shape), np.empty(middle.shape), 0.0
        for part in rows.pieces():
            found = middle[part, :, None] + std[part, :, None] * nodes
            value += float(rows.weight[part] @ expected_log(found, rows.y[part]))
            p[part] = found.mean(axis=2)
            pull[part] = np.einsum("iks,ks->ik", found, nodes) / nodes.shape[1]
        weight, safe = rows.weight[:, None], np.maximum(std, 1e-300)
        b = weight * np.maximum(pull, 0.0) / safe
        return Seen(value - self._divergence(rows), weight * (rows.hit - p), b, p)

    def _latents(self, rows: ClassRows) -> tuple[Array, Array]:
        """Mean and variance (n, K) of the latents."""
        half = [solve_triangular(root, rows.X.T, lower=True) for root in self.root]
        return rows.X @ self.mean.T, np.stack([np.square(each).sum(axis=0) for each in half], axis=1)

    def left_out(self, rows: ClassRows, seen: Seen) -> float:
        """The leave-one-out score."""
        middle, variance = self._latents(rows)
        # the curvatures that are in the precisions: before the last step those of `seen` are others
        left = variance / np.maximum(1.0 - variance * rows.once[:, None] * self.curvature, LEAST_LEFT)
        before, std, score = middle - left * rows.once[:, None] * seen.gradient, np.sqrt(left), 0.0
        for part in rows.pieces():
            score += rows.log_predictive(before[part, :, None] + std[part, :, None] * rows.nodes, part)
        return score

    def _divergence(self, rows: ClassRows) -> float:
        """KL(q ‖ prior)."""
        away = np.sum(((self.mean - rows.mean) / rows.std) ** 2)
        spread = np.sum(self.variance() / rows.std**2)
        logs = np.sum(np.log(np.einsum("kdd->kd", self.root))) + len(self.mean) * np.sum(np.log(rows.std))
        return 0.5 * float(away + spread - self.mean.size) + float(logs)

    def variance(self) -> Array:
        """Of each weight, (K, d)."""
        eye = np.eye(self.mean.shape[1])
        return np.stack([np.square(solve_triangular(root, eye, lower=True)).sum(axis=0) for root in self.root])

    def after(self, rows: ClassRows, seen: Seen) -> tuple[Blocks, Array]:
        """Where a whole step leads, and how far that is.

        The Hessian of the mean has ``w(b_k δ_kl - (1 - δ_kl) r_k r_l)`` between the classes of a row, ``r = √ρ E p``,
        ``ρ = b/(E p (1 - E p))``, as the stream has it; its equation is solved by conjugate gradients.
        """
        new = Blocks.of(rows, self.mean, seen.curvature)
        root, precision = new.root, new.root @ turned(new.root)
        slope = seen.gradient.T @ rows.X - (self.mean - rows.mean) * rows.std**-2.0
        whole = rows.weight[:, None] * seen.share * (1.0 - seen.share)
        ratio = np.minimum(seen.curvature / np.maximum(whole, 1e-300), 1.0)
        r = np.sqrt(rows.weight[:, None] * ratio) * seen.share

        def bent(u: Array) -> Array:
            f = r * (rows.X @ u.T)
            between = r * (f.sum(axis=1, keepdims=True) - f)
            return np.asarray(np.einsum("kde,ke->kd", precision, u) - between.T @ rows.X)

        def eased(u: Array) -> Array:
            return np.stack([cho_solve((each, True), part) for each, part in zip(root, u, strict=True)])

        step = conjugate_gradients(bent, eased, slope)
        there = new._replace(mean=self.mean + step)
        return there, moved(step, self.variance(), there.variance())

    def units(self, rows: ClassRows) -> tuple[Array, Array]:
        """What moves of means and of curvatures are measured in."""
        size = np.maximum(self._latents(rows)[1], 1e-300)
        return np.sqrt(self.variance()), np.sqrt(rows.weight)[:, None] / size

    def beliefs(self) -> list[DenseGaussian]:
        """One for each class."""
        eye = np.eye(self.mean.shape[1])
        factors = [solve_triangular(root, eye, lower=True, trans="T") for root in self.root]
        return [DenseGaussian.from_factor(mean.copy(), each) for mean, each in zip(self.mean, factors, strict=True)]


def conjugate_gradients(bent: Callable[[Array], Array], eased: Callable[[Array], Array], slope: Array) -> Array:
    """Solve ``bent(x) = slope``, positive definite, with ``eased`` near its inverse."""
    x, left = np.zeros(slope.shape), slope.copy()
    direction = eased(left)
    size = start = float(np.sum(left * direction))
    for _ in range(MOST_TURNS):
        if not size > SOLVED**2 * start:
            break
        turned_to = bent(direction)
        length = size / float(np.sum(direction * turned_to))
        if not length > 0.0:  # rounding
            break
        x += length * direction
        left -= length * turned_to
        softened = eased(left)
        before, size = size, float(np.sum(left * softened))
        direction = softened + (size / before) * direction
    return x
