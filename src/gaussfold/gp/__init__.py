"""Gaussian processes: covariances, three kinds of prior, and the model that joins them to a likelihood and a rule."""

from gaussfold.gp.covariances import (
    Constant,
    Cosine,
    Covariance,
    Linear,
    Matern12,
    Matern32,
    Matern52,
    Matern72,
    Periodic,
    SquaredExponential,
    White,
)
from gaussfold.gp.inference import FitResult
from gaussfold.gp.model import GaussianProcess

__all__ = [
    "Constant",
    "Cosine",
    "Covariance",
    "FitResult",
    "GaussianProcess",
    "Linear",
    "Matern12",
    "Matern32",
    "Matern52",
    "Matern72",
    "Periodic",
    "SquaredExponential",
    "White",
]
