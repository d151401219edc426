"""What we know: Gaussians over the parameters, one file per shape of covariance."""

from gaussfold.beliefs.dense import DenseGaussian

__all__ = ["DenseGaussian"]
