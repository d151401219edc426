"""Normal noise on the dense prior, where nothing has to be iterated: the evidence and its slopes from one factor.

``E = y'a/2 + log|C|/2 + N log(2π)/2`` with ``C = K + σ²I`` and ``a = C⁻¹y``; ``dE = tr(M dC)``, ``M = (C⁻¹ - aa')/2``.
Learning looks at hundreds of such and needs no marginals for them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from scipy.linalg.blas import dger
from scipy.linalg.lapack import dpotrf, dpotri, dpotrs

from gaussfold.gp.covariances import Covariance
from gaussfold.gp.dense import DensePrior
from gaussfold.likelihoods import Gaussian
from gaussfold.linalg.roots import log_det
from gaussfold.types import Array

if TYPE_CHECKING:
    from gaussfold.gp.model import GaussianProcess


class Slope(NamedTuple):
    """Minus the log evidence, and its derivatives in the logs of the covariance's parameters and of the noise's std."""

    value: float
    covariance: Array
    std: float


def is_exact(model: GaussianProcess) -> bool:
    """Whether the model's energy is this evidence."""
    return isinstance(model.likelihood, Gaussian) and isinstance(model.prior_, DensePrior) and not model.extras_.any


def seen_rows(model: GaussianProcess) -> tuple[Array, Array]:
    """Inputs and labels without those that are missing."""
    seen = ~np.isnan(model.Y_[:, 0])
    return model.X_[seen], model.Y_[seen, 0]


def evidence(covariance: Covariance, std: float, X: Array, y: Array) -> tuple[float, Array, Array]:
    """Minus the log evidence, the factor of C, and a; a ValueError where C is not positive definite."""
    return _factored(covariance(X), std, y)


def _factored(C: Array, std: float, y: Array) -> tuple[float, Array, Array]:
    """The same, of the covariance without noise, which is overwritten."""
    C.flat[:: len(y) + 1] += std**2
    lower, bad = dpotrf(C.T, lower=1, overwrite_a=1)  # symmetric, and turned as LAPACK wants it
    if bad == 0:
        a = np.asarray(dpotrs(lower, y, lower=1)[0])
        value = 0.5 * float(y @ a) + 0.5 * log_det(lower) + 0.5 * len(y) * float(np.log(2.0 * np.pi))
        if np.isfinite(value):
            return value, lower, a
    msg = f"the covariance of the {len(y)} labels is not positive definite (std={std!r}); use a larger std"
    raise ValueError(msg)


def evidence_slope(covariance: Covariance, std: float, X: Array, y: Array) -> Slope:
    """Value and slopes."""
    K, vjp = covariance.with_vjp(X)
    value, lower, a = _factored(K, std, y)
    half = dpotri(lower, lower=1, overwrite_c=1)[0]  # C⁻¹ below the diagonal, zeros above
    diagonal = np.diag(half).copy()
    by_std = std**2 * (float(diagonal.sum()) - float(a @ a))
    # dC is symmetric, so that one triangle of C⁻¹ counts for both; turned, it lies as rows
    half.T.flat[:: len(y) + 1] = 0.5 * diagonal
    bar = dger(-0.5, a, a, a=half, overwrite_a=1).T
    return Slope(value, vjp(bar), by_std)
