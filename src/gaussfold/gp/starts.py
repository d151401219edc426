"""Where iterations start: at the mode of every observation's own posterior, which suits whatever the labels' scale is.

From sites that say nothing, a count of 500 pulls with a gradient of 500 at f = 0, and the first step ends where exp(f)
overflows. Row by row the mode of ``p(y | f) N(f; 0, k)``, k the prior's variance there, is found by Newton's method
with halved steps; the rule's expansion around it, without negative directions, is the first site.
"""

from __future__ import annotations

import numpy as np

from gaussfold.likelihoods.chained import VectorLikelihood
from gaussfold.linalg.small import applied, inverse, symmetrised
from gaussfold.rules import SiteRecipe
from gaussfold.rules.site_updates import missing_rows
from gaussfold.types import Array, Sites

START_PRECISION = 0.01
"""The authors' programs', where the start is not chosen by the likelihood."""
STEPS = 40
HALVINGS = 40
CLOSE = 1e-3
"""Standard deviations: a start need not be nearer to the mode."""


def plain_sites(Y: Array, latents: int, precision: float) -> Sites:
    """The same precision everywhere, around zero; nothing where nothing was seen."""
    start = np.tile(precision * np.eye(latents), (len(Y), 1, 1))
    start[missing_rows(Y)] = 0.0
    return Sites(start, np.zeros((len(Y), latents)))


def mode_sites(recipe: SiteRecipe, prior: tuple[Array, Array], Y: Array, floor: float) -> Sites | None:
    """Sites around every row's own mode, no eigenvalue below ``floor``; None where the likelihood gives no numbers.

    ``prior`` are mean and variance of the latents before any label, (N, D) each.
    """
    seen = ~missing_rows(Y)
    model, labels, centre = recipe.model, Y[seen], prior[0][seen]
    variance = np.maximum(prior[1][seen], np.finfo(float).tiny ** 0.5)
    with np.errstate(all="ignore"):  # a trial that overflows is taken back
        mode, precision = _modes(model, labels, centre, variance)
        if not np.isfinite(precision).all():
            return None
        if recipe.rule.looks_at_mean:
            first, second = model.derivatives(labels, mode)
        else:
            first, second = model.expected_derivatives(labels, mode, symmetrised(inverse(precision)), recipe.cubature)
        curvature = no_less(-np.asarray(second), floor)
        shift = first + applied(curvature, mode)
    if not (np.isfinite(curvature).all() and np.isfinite(shift).all()):
        return None
    sites = plain_sites(Y, centre.shape[1], 0.0)
    sites.precision[seen], sites.shift[seen] = curvature, shift
    return sites


def no_less(precision: Array, floor: float) -> Array:
    """The same matrices, eigenvalues below the floor raised to it."""
    if precision.shape[-1] == 1:
        return np.maximum(precision, floor)
    if not np.isfinite(precision).all():
        return precision
    values, vectors = np.linalg.eigh(symmetrised(precision))
    return symmetrised((vectors * np.maximum(values, floor)[:, None, :]) @ np.swapaxes(vectors, 1, 2))


def _modes(model: VectorLikelihood, Y: Array, centre: Array, variance: Array) -> tuple[Array, Array]:
    """Of ``log p(y | f) - Σ (f - m)²/2k`` in every row, and the precision there (upward bends of log p as flat)."""
    rows, D = variance.shape
    f = centre.copy()
    precision = np.zeros((rows, D, D))
    left = np.arange(rows)
    for _ in range(STEPS):
        y, here, m, k = Y[left], f[left], centre[left], variance[left]
        first, second = model.derivatives(y, here)
        pull = first - (here - m) / k
        P = no_less(-np.asarray(second), 0.0)
        P[:, np.arange(D), np.arange(D)] += 1.0 / k
        precision[left] = P
        step = applied(inverse(P), pull)
        moved = _shortened(model, y, here, (m, k), step)
        f[left] = here + moved
        far = np.einsum("nd,nd->n", moved, applied(P, moved)) > CLOSE**2
        left = left[far]
        if not left.size:
            break
    return f, precision


def _shortened(model: VectorLikelihood, Y: Array, f: Array, prior: tuple[Array, Array], step: Array) -> Array:
    """Each row's step, halved until its log posterior does not fall; nothing where it always does."""
    centre, variance = prior

    def height(rows: np.ndarray, at: Array) -> Array:
        return np.asarray(model.log_prob(Y[rows], at) - 0.5 * ((at - centre[rows]) ** 2 / variance[rows]).sum(axis=1))

    rows = np.arange(len(f))
    before, out, share = height(rows, f), np.zeros(f.shape), 1.0
    for _ in range(HALVINGS):
        trial = share * step[rows]
        better = height(rows, f[rows] + trial) >= before[rows]
        out[rows[better]] = trial[better]
        rows = rows[~better]
        if not rows.size:
            break
        share *= 0.5
    return out
