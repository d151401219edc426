"""What we know: Gaussians over the parameters, one file per shape of covariance."""

from gaussfold.beliefs.dense import DenseGaussian
from gaussfold.beliefs.lowrank import LowRankGaussian

__all__ = ["DenseGaussian", "LowRankGaussian"]
