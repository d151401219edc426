"""What we know: Gaussians over the parameters, one file per shape of covariance."""

from gaussfold.beliefs.coupling import Joint, Marginal
from gaussfold.beliefs.dense import DenseGaussian
from gaussfold.beliefs.diagonal import DiagonalGaussian
from gaussfold.beliefs.factor import FactorGaussian
from gaussfold.beliefs.lowrank import LowRankGaussian
from gaussfold.beliefs.mixture import DiagonalMixture

__all__ = [
    "DenseGaussian",
    "DiagonalGaussian",
    "DiagonalMixture",
    "FactorGaussian",
    "Joint",
    "LowRankGaussian",
    "Marginal",
]
