"""Latents that are not independent processes of mean zero but made of such: ``f = W g + m``.

W mixes latents into outputs (coregionalisation), m is a mean function, an offset such as the log of an exposure, or
both. A site on f is a site on g, ``Λ_g = W'ΛW`` and ``λ_g = W'(λ - Λm)``, and its value at g = 0 is a constant factor
of Z. So a prior of g is a prior of f, whatever its structure is.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple

import numpy as np

from gaussfold.gp.covariances import Covariance
from gaussfold.gp.priors import Marginals, Prior, PriorGradient, Slopes
from gaussfold.linalg.small import applied, symmetrised
from gaussfold.types import Array, Sites

MeanAt = Callable[[Array], Array]
"""The mean function: inputs (n, d) to (n, D)."""


class AffineMap(NamedTuple):
    """``f = W g + m`` in every row; None: the identity, and zero."""

    mixing: Array | None
    """(D, Q)"""
    shift: Array | None
    """(N, D)"""

    def pulled(self, sites: Sites) -> Sites:
        """Sites on f as sites on g."""
        precision, pull = sites
        if self.shift is not None:
            pull = pull - applied(precision, self.shift)
        if self.mixing is not None:
            W = self.mixing
            precision, pull = symmetrised(W.T @ precision @ W), pull @ W
        return Sites(precision, pull)

    def log_factor(self, sites: Sites) -> float:
        """``Σ λ'm - m'Λm/2``, what the sites say at g = 0."""
        if self.shift is None:
            return 0.0
        return float(np.vdot(self.shift, sites.shift - 0.5 * applied(sites.precision, self.shift)))

    def mean(self, g: Array) -> Array:
        """Of f."""
        mixed = g if self.mixing is None else g @ self.mixing.T
        return mixed if self.shift is None else mixed + self.shift

    def cov(self, cov: Array) -> Array:
        """Of f."""
        return cov if self.mixing is None else self.mixing @ cov @ self.mixing.T

    def at(self, shift: Array | None) -> AffineMap:
        """The same mixture around another mean."""
        return AffineMap(self.mixing, shift)


class Affine:
    """A prior of ``f = W g + m`` made of a prior of g.

    Parameters
    ----------
    inner
        Of g.
    link
        W, and m at the inputs of the inner prior.
    mean_at
        The mean function at other inputs; None: zero.
    """

    def __init__(self, inner: Prior, link: AffineMap, mean_at: MeanAt | None = None) -> None:
        self.inner, self.link, self._mean_at = inner, link, mean_at
        self.covariances = inner.covariances
        self._last: tuple[Sites, Sites, Marginals] | None = None

    @property
    def Z(self) -> Array | None:
        """Inducing inputs, if the inner prior has some."""
        return self.inner.Z

    def with_covariances(self, covariances: Sequence[Covariance], Z: Array | None = None) -> Affine:
        """The same map of other processes."""
        return Affine(self.inner.with_covariances(covariances, Z), self.link, self._mean_at)

    def having(self, link: AffineMap, mean_at: MeanAt | None) -> Affine:
        """Another map of the same processes."""
        return Affine(self.inner, link, mean_at)

    def _looked(self, sites: Sites) -> tuple[Sites, Sites, Marginals]:
        """These sites as sites on g, and the posterior of g; kept for when they are asked for again."""
        if self._last is None or self._last[0] is not sites:
            pulled = self.link.pulled(sites)
            self._last = sites, pulled, self.inner.update(pulled)
        return self._last

    def update(self, sites: Sites) -> Marginals:
        """Posterior of f."""
        _, _, g = self._looked(sites)
        cov = self.link.cov(g.cov)
        inner = cov if g.inner is g.cov else self.link.cov(g.inner)
        others = None if g.others is None else partial(self._others, g.others)
        return Marginals(self.link.mean(g.mean), cov, inner, g.log_z + self.link.log_factor(sites), others)

    def _others(self, others: Callable[[], tuple[Array, Array]]) -> tuple[Array, Array]:
        mean, cov = others()
        return self.link.mean(mean), self.link.cov(cov)

    def gradient(self, sites: Sites, slopes: Slopes | None) -> PriorGradient:
        """The inner prior's, the slopes taken through the map."""
        _, pulled, _ = self._looked(sites)
        if slopes is not None and self.link.mixing is not None:
            W = self.link.mixing
            slopes = Slopes(slopes.mean @ W, W.T @ slopes.cov @ W, W.T @ slopes.inner @ W)
        return self.inner.gradient(pulled, slopes)

    def shift_gradient(self, sites: Sites) -> Array:
        """``dE/dm = -(λ - Λ E f)`` (N, D) at settled sites, where only log Z moves."""
        return -(sites.shift - applied(sites.precision, self.update(sites).mean))

    def mixing_gradient(self, sites: Sites) -> Array:
        """``dE/dW = -Σ (λ - Λm) E g' - ΛW E gg'`` (D, Q) at settled sites, and what sparse priors leave open."""
        assert self.link.mixing is not None
        W = self.link.mixing
        _, _, g = self._looked(sites)
        pull = sites.shift if self.link.shift is None else sites.shift - applied(sites.precision, self.link.shift)
        second = g.inner + g.mean[:, :, None] * g.mean[:, None, :]
        if g.inner is not g.cov:
            second = second + g.cov - g.inner
        return np.asarray(np.einsum("nde,eq,nqr->dr", sites.precision, W, second) - pull.T @ g.mean)

    def predict(self, sites: Sites, X: Array, *, joint: bool = False) -> tuple[Array, Array]:
        """At other inputs, around the mean function there."""
        _, pulled, _ = self._looked(sites)
        mean, cov = self.inner.predict(pulled, X, joint=joint)
        there = self.link.at(None if self._mean_at is None else self._mean_at(X))
        if not joint or self.link.mixing is None:
            return there.mean(mean), there.cov(cov)
        wide = np.kron(self.link.mixing, np.eye(len(X)))
        return there.mean(mean), wide @ cov @ wide.T

    def sample(self, sites: Sites, X: Array, n: int, rng: np.random.Generator) -> Array:
        """Draws of g, mapped."""
        _, pulled, _ = self._looked(sites)
        there = self.link.at(None if self._mean_at is None else self._mean_at(X))
        return there.mean(self.inner.sample(pulled, X, n, rng))
