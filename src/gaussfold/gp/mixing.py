"""Anderson's acceleration of the site iterations: the last few steps tell where the sequence is going.

Plain steps (9) shrink errors by a constant factor, close to one where the likelihood's curvature changes much within a
marginal. With x_k the sites and r_k the step that the rule wants from there, the combination of the last steps whose r
is smallest in norm predicts the fixed point: ``x = x_k + r_k - (ΔX + ΔR) γ``, ``γ = argmin |r_k - ΔR γ|``. It is a
proposal only: a walk takes it if it lowers what steps are to lower.

The norm is that of how far marginals would move: with ``C = LL'`` and m those of a row, ``L'(δλ - δΛ m)`` in standard
deviations of the mean, and ``L'δΛL/√2`` in shares of the covariance.
"""

from __future__ import annotations

from collections import deque

import numpy as np

from gaussfold.gp.priors import Marginals
from gaussfold.linalg.small import applied
from gaussfold.types import Array, Sites

DEPTH = 6
"""Steps that are looked back at."""
SINGULAR = 1e-7
"""Directions of the last steps that are this much shorter than the longest are rounding."""


class Mixer:
    """The last sites and the steps that were wanted there."""

    def __init__(self) -> None:
        self._seen: deque[tuple[Sites, Sites]] = deque(maxlen=DEPTH)

    def forget(self) -> None:
        """Start anew: what came before says nothing of what comes."""
        self._seen.clear()

    def proposal(self, sites: Sites, target: Sites, marginals: Marginals) -> Sites | None:
        """Where the sequence is going, from these sites and those that the rule wants; None if little is known."""
        step = _difference(target, sites)
        self._seen.append((sites, step))
        if len(self._seen) < 3 or len(sites.shift) == 0:
            return None
        moved = [_difference(sites, x) for x, _ in list(self._seen)[:-1]]
        turned = [_difference(step, r) for _, r in list(self._seen)[:-1]]
        norm = _Norm(marginals)
        R = np.stack([norm(each) for each in turned], axis=1)
        lengths = np.linalg.norm(R, axis=0)
        if not (np.isfinite(R).all() and (lengths > 0.0).all()):
            return None
        gamma = np.linalg.lstsq(R / lengths, norm(step), rcond=SINGULAR)[0] / lengths
        precision, shift = (a.copy() for a in target)
        for g, dx, dr in zip(gamma, moved, turned, strict=True):
            precision -= g * (dx.precision + dr.precision)
            shift -= g * (dx.shift + dr.shift)
        return Sites(precision, shift)


def _difference(one: Sites, other: Sites) -> Sites:
    return Sites(one.precision - other.precision, one.shift - other.shift)


class _Norm:
    """Changes of sites as vectors whose length says how far the marginals would move."""

    def __init__(self, marginals: Marginals) -> None:
        self._mean, cov = marginals.mean, marginals.cov
        self._root: Array = np.asarray(np.sqrt(cov) if cov.shape[-1] == 1 else np.linalg.cholesky(cov))

    def __call__(self, change: Sites) -> Array:
        L = self._root
        turned = np.swapaxes(L, 1, 2)
        pull = applied(turned, change.shift - applied(change.precision, self._mean))
        return np.concatenate([pull.ravel(), (np.sqrt(0.5) * (turned @ change.precision @ L)).ravel()])
