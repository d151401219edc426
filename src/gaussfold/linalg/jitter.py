"""The one place where something is added to a covariance matrix, and the one number that says how much.

A Gaussian-process prior over inputs that lie close together is singular in floating point although it is not on
paper. :func:`jittered_root` adds ``JITTER`` times the mean of its diagonal to its diagonal, always (not only after a
failure, which would make results jump), and refuses what is singular even then. It is used for the covariance of
inducing inputs and for drawing samples; dense and Markov inference factor no prior and add nothing.
"""

from __future__ import annotations

import numpy as np
from scipy.linalg import LinAlgError, cholesky

from gaussfold.types import Array

JITTER = 1e-10
"""Relative to the mean of the diagonal."""


def jittered_root(matrix: Array, name: str, remedy: str) -> Array:
    """Lower Cholesky factor of ``matrix + JITTER · mean(diagonal) · I``; ``name`` and ``remedy`` are for the error."""
    if not np.isfinite(matrix).all():
        msg = f"{name} has entries that are not finite; check the inputs and the hyperparameters for overflow"
        raise ValueError(msg)
    shifted = matrix.copy()
    shifted.flat[:: len(matrix) + 1] += JITTER * float(np.mean(np.diag(matrix)))
    try:
        return np.asarray(cholesky(shifted, lower=True))
    except LinAlgError:
        values = np.linalg.eigvalsh(shifted)
        msg = (
            f"{name} is numerically singular: eigenvalues from {values[0]:.3g} to {values[-1]:.3g} with the jitter "
            f"{JITTER:g} (relative) added; {remedy}"
        )
        raise ValueError(msg) from None
