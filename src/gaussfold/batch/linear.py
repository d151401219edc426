"""Linear regression with known noise: the one posterior that is Gaussian."""

from __future__ import annotations

import numpy as np

from gaussfold.batch.problem import prepare
from gaussfold.beliefs.dense.belief import DenseGaussian
from gaussfold.likelihoods import Gaussian
from gaussfold.linalg.information import InformationRoot
from gaussfold.types import ArrayLike


def exact_linear(
    prior: DenseGaussian, X: ArrayLike, y: ArrayLike, noise_std: float, sample_weight: ArrayLike | None = None
) -> DenseGaussian:
    """Exact posterior of ``y = x'θ + noise_std ε``, by QR of the data: accurate for ill-conditioned X.

    Parameters
    ----------
    prior
        Belief before the data; it is not changed.
    X, y
        The data; rows with a NaN label do not count.
    noise_std
        Standard deviation of the noise.
    sample_weight
        Weight 2 is the row twice.

    Examples
    --------
    >>> prior = DenseGaussian.isotropic(1, std=0.5)
    >>> posterior = exact_linear(prior, [[1.0], [2.0]], [1.0, 1.5], noise_std=0.7)
    >>> posterior.mean, posterior.variance()
    (array([0.574713]), array([0.070402]))
    """
    likelihood = Gaussian(noise_std)
    problem = prepare(prior, likelihood, X, y, sample_weight)
    scale = np.sqrt(problem.weight) / likelihood.std
    root = InformationRoot(scale[:, None] * problem.Z, scale * (problem.y - problem.offset))
    return problem.belief(root.z, root.factor())
