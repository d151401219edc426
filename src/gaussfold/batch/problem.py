"""The data in the prior's own units, where every batch method here works.

With a prior ``N(μ0, F F')`` put ``θ = μ0 + F z``: then ``z ~ N(0, I)``, the latents are
``f = X μ0 + Z z`` with ``Z = X F``, and site precisions λ give z the precision ``I + Z' diag(λ) Z``. A flat
prior (a standard deviation of 1e3 beside one of 1) costs no digits there.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gaussfold.beliefs.dense.belief import DenseGaussian
from gaussfold.linalg.information import InformationRoot
from gaussfold.observations import observe
from gaussfold.protocols import Likelihood
from gaussfold.rows import dense_rows
from gaussfold.types import Array, ArrayLike


class Problem(NamedTuple):
    """Data and prior, with the parameters θ expressed as ``centre + factor z``."""

    likelihood: Likelihood
    Z: Array
    offset: Array
    y: Array
    weight: Array
    centre: Array
    factor: Array

    def latent(self, z: Array) -> Array:
        """``f`` of every row."""
        return self.offset + self.Z @ z

    def root(self, precision: Array) -> InformationRoot:
        """Square root of ``I + Z' diag(precision) Z``."""
        return InformationRoot(np.sqrt(precision)[:, None] * self.Z)

    def belief(self, z: Array, factor: Array) -> DenseGaussian:
        """Return the Gaussian over θ whose z has this mean and this factor of its covariance."""
        return DenseGaussian.from_factor(self.centre + self.factor @ z, self.factor @ factor)


def prepare(
    prior: DenseGaussian, likelihood: Likelihood, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None
) -> Problem:
    """Check the data, drop rows that do not count, and change to the prior's units."""
    data = observe(likelihood, X, y, prior.dim, sample_weight)
    rows = dense_rows(data.X)
    centre, factor = prior.mean, prior.factor
    return Problem(likelihood, rows @ factor, rows @ centre, data.y, data.weight, centre, factor)
