"""Another prior for a belief that has learned: natural parameters add, so a prior can be taken out and another put in.

With sites of precision S and shift h a belief is ``Λ = Λ₀ + S``, ``Λμ = Λ₀μ₀ + h``; the sites are what is left when
the prior is subtracted, and they may be multiplied with any other prior. `SiteSum` holds them in a form in which a
prior ``w ~ N(μ₀', τ² diag(r²))`` of *every* width τ costs O(d): parameters with a prior of their own (intercepts) are
profiled out, and the rest, in units of r, is diagonalised once, ``M = U diag(m) U'``. With ``t = U'h`` the part of the
log evidence that depends on τ is

    log Z(τ) = -½ Σ log(1 + τ² m) + ½ Σ t² τ²/(1 + τ² m),

the sites standing still; where a noise level of shape a is integrated out (normal-inverse-gamma) it is ``-½ Σ log(1 +
τ² m) - a log(scale(τ))``, ``scale(τ) = rest - ½ Σ t² τ²/(1 + τ² m)``.

All is written about the new prior's mean and the present posterior's, so that no large numbers cancel where a mean is
far from zero; eigenvalues that rounding has pushed below zero are zero, so the result is positive definite.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple, Self

import numpy as np
from scipy.optimize import brentq

from gaussfold.beliefs.dense.belief import DenseGaussian
from gaussfold.linalg.triangles import solve_triangular
from gaussfold.types import Array

WIDTHS = np.exp(np.linspace(np.log(1e-3), np.log(1e3), 61))
"""Where the best width is looked for before it is found to all digits."""


class Independent(NamedTuple):
    """A Gaussian of independent parameters."""

    mean: Array
    std: Array

    def belief(self) -> DenseGaussian:
        """The same as a belief."""
        return DenseGaussian.independent(self.mean, self.std)


class Noise(NamedTuple):
    """What is believed of a noise level that the weights are measured in: ``σ² ~ InverseGamma(shape, scale)``."""

    shape: float
    scale: float
    prior_scale: float


class Apart(NamedTuple):
    """Parameters with a prior of their own, profiled out: their precision ``A = L L'`` and what binds them."""

    places: np.ndarray
    rest: np.ndarray
    """Places of all others."""
    root: Array
    """L."""
    shift: Array
    share: Array
    """``A⁻¹`` times the precision between these and the others."""

    @classmethod
    def of(cls, total: Array, shift: Array, places: np.ndarray, std: Array) -> Self:
        """From the sites' precision and shift of all parameters; ``std``: of the priors of their own."""
        others = np.ones(shift.size, dtype=bool)
        others[places] = False
        rest = np.flatnonzero(others)
        own = total[places][:, places]
        if places.size == 1:  # rounding may push it below zero, where sites say little
            root = np.sqrt(np.maximum(own, 0.0) + std**-2.0)
        else:
            values, vectors = np.linalg.eigh(own)
            root = np.linalg.cholesky((vectors * np.maximum(values, 0.0)) @ vectors.T + np.diag(std**-2.0))
        return cls(places, rest, root, shift[places], _solved(root, total[places][:, rest]))

    def best(self) -> Array:
        """Where they are, the others being at the new prior's mean: A⁻¹ times the shift."""
        return _solved(self.root, self.shift)

    def without(self, total: Array, shift: Array) -> tuple[Array, Array]:
        """Precision and shift of the others, these integrated out."""
        theirs = total[self.rest]
        mixed = theirs[:, self.places].T
        return theirs[:, self.rest] - self.share.T @ mixed, shift[self.rest] - self.share.T @ self.shift

    def joined(self, step: Array, factor: Array) -> tuple[Array, Array]:
        """Mean, from the new prior's, and factor of all parameters, from those of the others."""
        count = self.rest.size
        move, whole = np.empty(count + self.places.size), np.zeros((count + self.places.size,) * 2)
        move[self.rest], move[self.places] = step, self.best() - self.share @ step
        whole[self.rest, :count], whole[self.places, :count] = factor, -self.share @ factor
        whole[self.places, count:] = solve_triangular(self.root, np.eye(self.places.size), lower=True, turned=True)
        return move, whole


def _solved(root: Array, right: Array) -> Array:
    """``(L L')⁻¹`` times columns."""
    return solve_triangular(root, solve_triangular(root, right, lower=True), lower=True, turned=True)


class SiteSum(NamedTuple):
    """All that the data have said, ready for a prior of any width."""

    values: Array  # m
    basis: Array  # U
    shift: Array  # t
    anchor: Array  # the new prior's mean
    relative: Array  # r
    apart: Apart | None
    noise: Noise | None  # with the scale that is left at τ = 0

    @classmethod
    def of(
        cls,
        belief: DenseGaussian,
        before: Independent,
        after: Independent,
        *,
        apart: Sequence[int] = (),
        change: tuple[Array, Array] | None = None,
        noise: Noise | None = None,
        prior_scale: float = 0.0,
    ) -> Self:
        """Take the prior ``before`` out of a belief.

        ``after`` is the prior to come: its mean, its relative standard deviations, and for parameters whose places
        ``apart`` tells, which have a prior of their own, the standard deviation as it is. ``change`` is the way to new
        coordinates ``θ' = Aθ`` that belief and ``before`` are not yet in: A and its inverse. ``prior_scale`` is the new
        prior's of the noise.
        """
        if change is not None:
            belief = DenseGaussian.from_factor(change[0] @ belief.mean, change[0] @ belief.factor)
        precision, _ = belief.natural()
        centre = before.mean
        if change is None:
            base = np.diag(before.std**-2.0)
        else:
            forth, back = change
            base = (back.T * before.std**-2.0) @ back
            centre = forth @ centre
        mean = belief.mean
        total = precision - base
        pull, away = base @ (mean - centre), mean - after.mean
        shift = total @ away + pull
        own, rest = None, None
        if noise is not None:  # the sum of squares at the new prior's mean
            found = 2.0 * (noise.scale - noise.prior_scale) - float((mean - centre) @ pull)
            found += 2.0 * float(pull @ away) + float(away @ (total @ away))
            rest = prior_scale + 0.5 * max(found, 0.0)
        relative = after.std
        if len(apart):
            own = Apart.of(total, shift, places := np.asarray(apart), after.std[places])
            if rest is not None:
                rest = max(rest - 0.5 * float(own.shift @ own.best()), prior_scale)
            total, shift = own.without(total, shift)
            relative = relative[own.rest]
        values, basis = np.linalg.eigh(0.5 * (total + total.T) * np.outer(relative, relative))
        left = None if noise is None or rest is None else Noise(noise.shape, rest, prior_scale)
        return cls(np.maximum(values, 0.0), basis, basis.T @ (relative * shift), after.mean, relative, own, left)

    def log_evidence(self, width: Array) -> Array:
        """Of each width τ, up to a constant."""
        squared = np.square(np.atleast_1d(width))[:, None]
        grown = 1.0 + squared * self.values
        gain = 0.5 * np.sum(self.shift**2 * squared / grown, axis=1)
        size = -0.5 * np.sum(np.log(grown), axis=1)
        if self.noise is None:
            return np.asarray(size + gain)
        left = np.maximum(self.noise.scale - gain, self.noise.prior_scale)
        return np.asarray(size - self.noise.shape * np.log(left))

    def best_width(self, middle: float, reach: float) -> float:
        """The width of most evidence, under ``log τ ~ N(log middle, reach²)``; the optimum, not a point of a grid.

        Uphill from the middle, where there are several summits: nearly collinear features may have another one at
        enormous weights that cancel each other, which no fresh row has use for.
        """

        def score(log_width: Array) -> Array:
            bend = 0.5 * np.square((log_width - np.log(middle)) / reach)
            return np.asarray(self.log_evidence(np.exp(log_width)) - bend)

        grid = np.log(WIDTHS)
        scores, place = score(grid), int(np.argmin(np.abs(grid - np.log(middle))))
        while (step := int(np.argmax(scores[max(place - 1, 0) : place + 2])) - min(place, 1)) != 0:
            place += step
        low, high = grid[max(place - 1, 0)], grid[min(place + 1, grid.size - 1)]

        def bent(log_width: float) -> float:
            return self.slope(math.exp(log_width)) - (log_width - math.log(middle)) / reach**2

        if not bent(low) > 0.0 > bent(high):  # at an end of the grid, or flat
            return float(WIDTHS[place])
        return math.exp(brentq(bent, low, high, xtol=1e-12))

    def slope(self, width: float) -> float:
        """Derivative of the log evidence by log τ."""
        variance = width**2
        kept = 1.0 / (1.0 + variance * self.values)
        share = self.shift * self.shift * (variance * kept)
        size, gain = -variance * float(self.values @ kept), float(share @ kept)
        if self.noise is None:
            return size + gain
        left = self.noise.scale - 0.5 * float(share.sum())
        return size + self.noise.shape * gain / left if left > self.noise.prior_scale else size

    def belief(self, width: float) -> tuple[DenseGaussian, float | None]:
        """The sites under the prior of that width; and the scale of the noise, where that is unknown."""
        squared = width**2
        grown = 1.0 + squared * self.values
        step = self.relative * (self.basis @ (self.shift * squared / grown))
        factor = self.relative[:, None] * self.basis * (width / np.sqrt(grown))
        gain = 0.5 * float(np.sum(self.shift**2 * squared / grown))
        scale = None if self.noise is None else max(self.noise.scale - gain, self.noise.prior_scale)
        if self.apart is not None:
            step, factor = self.apart.joined(step, factor)
        return DenseGaussian.from_factor(self.anchor + step, factor), scale

    def prior(self, width: float, own_std: float) -> Independent:
        """The prior of that width itself; ``own_std``: of those that have one of their own."""
        if self.apart is None:
            return Independent(self.anchor, self.relative * width)
        std = np.full(self.anchor.size, own_std)
        std[self.apart.rest] = self.relative * width
        return Independent(self.anchor, std)

    @classmethod
    def pooled(cls, sums: Sequence[SiteSum]) -> SiteSum:
        """Independent Gaussians whose priors have one width in common: for `best_width` alone, as evidence adds up."""
        first = sums[0]
        if len(sums) == 1:
            return first
        return first._replace(
            values=np.concatenate([each.values for each in sums]), shift=np.concatenate([each.shift for each in sums])
        )
