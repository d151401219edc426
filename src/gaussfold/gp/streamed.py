"""New rows on a sparse prior without refitting: sites of rows that leave become one factor, inducing inputs follow.

All sites so far are a Gaussian factor ``t(v)`` of the whitened inducing variables. With new inducing inputs Z' the old
variables are ``v = R v' + (what v' leaves open)``, ``R = L⁻¹ K(Z, Z') L'⁻ᵀ``, and the variational posterior of v' under
a Gaussian factor of v is that under ``exp(E log t)``: precision ``R'ΛR``, shift ``R'λ``. Nothing is lost where Z' has
the points of Z. Memory: one (DM, DM) matrix and the rows of the last call.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from scipy.linalg import block_diag, solve_triangular

from gaussfold.gp.affine import Affine
from gaussfold.gp.covariances import Covariance
from gaussfold.gp.extras import Extras
from gaussfold.gp.inference import iterate, start
from gaussfold.gp.sparse import SparsePrior, Tied
from gaussfold.gp.threads import fitting_threads
from gaussfold.types import Array

if TYPE_CHECKING:
    from gaussfold.gp.fitting import Fitting

MOST = 100
"""Inducing inputs, if no number was given."""
FAR = 0.05
"""Share of a row's prior variance that inducing inputs may leave open before they move."""
NEAR = 1e-3
"""Share below which another inducing input is not worth having."""
LOOKED_AT = 1000
"""New rows that are candidates."""


def absorb(model: Fitting, X: Array, Y: Array, extras: Extras) -> None:
    """Make the rows of the last call one factor, and fit these on top of it."""
    if not model.is_fitted:
        model.prior_ = model.prior_at(X, extras)
    else:
        old = _plain(model)
        tied = old.total(model.pulled_sites)
        most = MOST if model.inducing is None else model.inducing
        Z = following(model.covariances, old.Z, X, int(most)) if isinstance(most, int | np.integer) else old.Z
        model.prior_ = model.prior_at(X, extras, Z, _carried(tied, old, SparsePrior(model.covariances, X[:1], Z)))
    model.X_, model.Y_, model.extras_ = X, Y, extras
    with fitting_threads(model.matrix_rows):
        start(model, chosen=True)
        model.result_ = iterate(model, None)


def _plain(model: Fitting) -> SparsePrior:
    """The prior of the processes themselves."""
    prior = model.prior_.inner if isinstance(model.prior_, Affine) else model.prior_
    assert isinstance(prior, SparsePrior)  # the structure was looked at before
    return prior


def _carried(tied: Tied, old: SparsePrior, new: SparsePrior) -> Tied:
    """The factor as one of the new inducing variables."""
    if old.Z is new.Z:
        return tied
    features = new.features(old.Z)
    R = np.asarray(
        block_diag(*(solve_triangular(L, a.T, lower=True) for L, a in zip(old.roots, features.A, strict=True)))
    )
    precision = R.T @ tied.precision @ R
    return Tied(0.5 * (precision + precision.T), R.T @ tied.shift)


def following(covariances: Sequence[Covariance], Z: Array, X: Array, most: int) -> Array:
    """Inducing inputs for what has been seen and what comes: the same if they serve the new rows as well.

    While there is room, rows that they leave open join them; after that the best of both are chosen, each time the one
    of which the others know least (a pivoted Cholesky factor).
    """
    rows = np.unique(X[np.linspace(0, len(X) - 1, min(len(X), LOOKED_AT)).astype(np.int64)], axis=0)
    both = np.vstack([Z, rows])
    kept = np.arange(len(Z))
    open_now = _open(covariances, both, kept)[len(Z) :]
    if open_now.max(initial=0.0) <= FAR:
        return Z
    chosen = _pivots(covariances, both, kept if len(Z) < most else kept[:0], most)
    return np.asarray(both[np.sort(chosen)])


def _pivots(covariances: Sequence[Covariance], points: Array, first: np.ndarray, most: int) -> np.ndarray:
    """These points and others up to so many, each the one that those before leave most open."""
    factors = [_Factor(c, points, most) for c in covariances]
    for k, known in enumerate(first):
        for each in factors:
            each.take(k, int(known))
    chosen = list(first)
    while len(chosen) < most:
        share = np.mean([each.share for each in factors], axis=0)
        best = int(np.argmax(share))
        if share[best] < NEAR:
            break
        for each in factors:
            each.take(len(chosen), best)
        chosen.append(best)
    return np.array(chosen)


class _Factor:
    """A Cholesky factor that grows by a column for each point taken, and what the points leave open."""

    def __init__(self, covariance: Covariance, points: Array, most: int) -> None:
        self._covariance, self._points = covariance, points
        self._columns = np.zeros((len(points), most))
        self._left = covariance.diagonal(points)
        self._whole = np.maximum(self._left, np.finfo(float).tiny)

    @property
    def share(self) -> Array:
        """Of every point's variance that is open."""
        return np.asarray(self._left / self._whole)

    def take(self, k: int, point: int) -> None:
        """Make that point the k-th."""
        pivot = self._left[point]
        if pivot <= 1e-12 * self._whole[point]:
            return
        row = self._covariance(self._points, self._points[point : point + 1])[:, 0]
        row = row - self._columns[:, :k] @ self._columns[point, :k]
        self._columns[:, k] = row / np.sqrt(pivot)
        self._left = np.maximum(self._left - self._columns[:, k] ** 2, 0.0)


def _open(covariances: Sequence[Covariance], points: Array, known: np.ndarray) -> Array:
    """Which share of every point's variance the known points leave open, the most over latents."""
    shares = []
    for c in covariances:
        features = SparsePrior([c], points[:1], points[known]).features(points)
        shares.append(features.open[:, 0] / np.maximum(c.diagonal(points), np.finfo(float).tiny))
    return np.asarray(np.max(shares, axis=0))
