"""The class that was seen against all others: a softmax of K latents is a function of K - 1 differences.

``log p(y | f) = -log(1 + Σ exp g)`` with ``g_j = f_j - f_y`` for the classes j other than y. The differences are normal
with mean ``A m`` and covariance ``A C A'``, so that an expectation over K latents is one over K - 1, and derivatives in
the latents are ``A'(·)`` and ``A'(·)A`` of those in the differences.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from gaussfold.expectations.cubature import resolve_cubature
from gaussfold.likelihoods.chained import BLOCK, AnyCubature, VectorLikelihood
from gaussfold.linalg.small import lower_roots, root_adjoint, symmetrised
from gaussfold.types import Array, ArrayLike


@dataclass(frozen=True)
class AgainstOthers(VectorLikelihood):
    """``-log(1 + Σ exp g)`` of so many differences; the label has been used up by taking them."""

    others: int
    log_concave: ClassVar[bool] = True

    @property
    def latents(self) -> int:
        """K - 1."""
        return self.others

    def log_prob(self, Y: ArrayLike, F: ArrayLike) -> Array:
        """``-log(1 + Σ exp g)``."""
        del Y
        F = np.asarray(F, dtype=float)
        top, terms = _terms(F)
        return np.asarray(-top - np.log(np.exp(-top) + _total(terms)))

    def derivatives(self, Y: ArrayLike, F: ArrayLike) -> tuple[Array, Array]:
        """``-p`` and ``pp' - diag p``, p the probabilities of the others."""
        p = -self.gradient(Y, F)
        return -p, np.asarray(p[..., :, None] * (p[..., None, :] - np.eye(self.others)))

    def gradient(self, Y: ArrayLike, F: ArrayLike) -> Array:
        """``-p``."""
        del Y
        top, terms = _terms(np.asarray(F, dtype=float))
        terms /= -(np.exp(-top) + _total(terms))[..., None]
        return terms

    def expected_log_prob(self, Y: Array, mean: Array, cov: Array, cubature: AnyCubature = None) -> Array:
        """``-E log(1 + Σ exp g)``, every difference of all nodes in an array of its own."""
        del Y
        out = np.empty(len(mean))
        for nodes in self._nodes(mean, cov, cubature):
            out[nodes.rows] = nodes.value @ nodes.weights
        return out

    def summed(self, Y: Array, mean: Array, cov: Array, cubature: AnyCubature = None) -> tuple[Array, Array, Array]:
        """The sum and its slopes from the same exponentials."""
        del Y
        out = np.empty(len(mean)), np.empty(mean.shape), np.empty(cov.shape)
        for nodes in self._nodes(mean, cov, cubature):
            out[0][nodes.rows] = nodes.value @ nodes.weights
            weighted = np.hstack([nodes.weights[:, None], nodes.weights[:, None] * nodes.points])
            found = np.stack([(term / nodes.total) @ weighted for term in nodes.terms], axis=1)  # (n, D, 1 + D)
            out[1][nodes.rows] = -found[:, :, 0]
            out[2][nodes.rows] = symmetrised(root_adjoint(nodes.roots, -found[:, :, 1:]))
        return out

    def _nodes(self, mean: Array, cov: Array, cubature: AnyCubature) -> Iterator[_Nodes]:
        """Rows with all nodes of a rule, as many at a time as memory likes."""
        chosen = self.usual_cubature if cubature is None else cubature
        points, weights = resolve_cubature(chosen, self.others).nodes(self.others)
        size = max(1, BLOCK // (len(points) * self.others))
        for start in range(0, len(mean), size):
            rows = slice(start, min(start + size, len(mean)))
            roots = lower_roots(cov[rows], "cov")
            g = [mean[rows, j, None] + roots[:, j] @ points.T for j in range(self.others)]
            top = np.maximum(g[0], 0.0)
            for each in g[1:]:
                np.maximum(top, each, out=top)
            total = np.exp(-top)
            for each in g:
                each -= top
                np.exp(each, out=each)
                total += each
            yield _Nodes(rows, roots, points, weights, g, total, -top - np.log(total))


class _Nodes(NamedTuple):
    """Differences at the nodes of some rows: ``log p = -top - log total``, ``p_j = terms_j / total``."""

    rows: slice
    roots: Array
    points: Array
    weights: Array
    terms: list[Array]
    total: Array
    value: Array


def _terms(F: Array) -> tuple[Array, Array]:
    """The largest of 0 and g, and ``exp(g - top)`` in an array of its own."""
    top = np.maximum(F[..., 0], 0.0)
    for j in range(1, F.shape[-1]):  # a reduction over a short last axis takes ten times as long
        np.maximum(top, F[..., j], out=top)
    terms = F - top[..., None]
    return top, np.exp(terms, out=terms)


def _total(terms: Array) -> Array:
    out = terms[..., 0].copy()
    for j in range(1, terms.shape[-1]):
        out += terms[..., j]
    return out


def differences(Y: Array, classes: int) -> Array:
    """A (N, K - 1, K) of every label: rows ``e_j - e_y`` for j ≠ y in order; of a missing label those of class 0."""
    label = np.where(np.isnan(Y[:, 0]), 0.0, Y[:, 0]).astype(np.int64)
    steps = np.arange(classes - 1)
    others = steps + (steps >= label[:, None])
    return np.asarray(np.eye(classes)[others] - np.eye(classes)[label][:, None, :])
