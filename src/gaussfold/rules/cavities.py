"""Posterior marginals without (a fraction of) their own site."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gaussfold.linalg.small import applied, inverse, lower_roots, smallest_eigenvalues, symmetrised
from gaussfold.types import Array, Sites


class Gaussians(NamedTuple):
    """N Gaussians on R^D.

    Examples
    --------
    >>> import numpy as np
    >>> marginals = Gaussians(mean=np.zeros((4, 2)), cov=np.tile(np.eye(2), (4, 1, 1)))  # rows that see 2 latents
    >>> marginals.cov.shape
    (4, 2, 2)
    """

    mean: Array  # (N, D)
    cov: Array  # (N, D, D)


def cavities(mean: Array, cov: Array, sites: Sites, alpha: float) -> Gaussians:
    """Posterior marginals without the fraction alpha of their site: (I - αCΛ)⁻¹ C and (I - αCΛ)⁻¹ (m - αCλ)."""
    shrunk = np.eye(cov.shape[-1]) - alpha * cov @ sites.precision
    turn = inverse(shrunk)
    with np.errstate(invalid="ignore"):  # a cavity that rounding has eaten is infinite, and refused below
        left = symmetrised(turn @ cov)
    finite = np.asarray(np.isfinite(left).all(axis=(1, 2)))
    smallest = smallest_eigenvalues(np.where(finite[:, None, None], left, 0.0))
    bad = ~(smallest > 0.0)
    if bad.any():
        row = int(np.argmax(bad))
        msg = (
            f"rule='ep': the cavity of row {row} is not a Gaussian (smallest eigenvalue of its covariance "
            f"{float(smallest[row])!r}): its site is stronger than its posterior; use a smaller alpha or damping, or "
            "curvature='heuristic' or 'quasi-newton'"
        )
        raise ValueError(msg)
    away = mean - alpha * applied(cov, sites.shift)
    return Gaussians(applied(turn, away), left)


def cavities_from(others: Gaussians, sites: Sites, alpha: float) -> Gaussians:
    """The same from what all other sites say: times the fraction 1 - alpha of the own one; nothing cancels."""
    root = lower_roots(others.cov, "cov")
    turned = np.swapaxes(root, -1, -2)
    grown = np.eye(root.shape[-1]) + (1.0 - alpha) * symmetrised(turned @ sites.precision @ root)
    cov = symmetrised(root @ inverse(grown) @ turned)
    pull = (1.0 - alpha) * (sites.shift - applied(sites.precision, others.mean))
    return Gaussians(others.mean + applied(cov, pull), cov)
