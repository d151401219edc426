"""Covariance functions: leaves, sums and products, each with derivatives and, where it has one, a state-space form."""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

from gaussfold.gp.covariances.base import Covariance, Product, Sum
from gaussfold.gp.covariances.oscillating import Cosine, Periodic
from gaussfold.gp.covariances.plain import Constant, Linear, White
from gaussfold.gp.covariances.stationary import Matern12, Matern32, Matern52, Matern72, SquaredExponential
from gaussfold.registry import Catalogue, decode

__all__ = [
    "Constant",
    "Cosine",
    "Covariance",
    "Linear",
    "Matern12",
    "Matern32",
    "Matern52",
    "Matern72",
    "Periodic",
    "Product",
    "SquaredExponential",
    "Sum",
    "White",
    "from_config",
]

COVARIANCES: Catalogue[Covariance] = Catalogue(
    "covariance",
    (
        Constant, Cosine, Linear, Matern12, Matern32, Matern52, Matern72, Periodic, SquaredExponential, White,
        Sum, Product,
    ),
    accepts=Covariance,
    also="an object such as gaussfold.gp.Matern32(1.0, lengthscale=2.0)",
)  # fmt: skip
"""Every covariance function. A new one is a class and one entry here."""


def from_config(config: Mapping[str, object]) -> Covariance:
    """Build the covariance that ``config()`` described.

    Examples
    --------
    >>> from_config((Matern12(0.5) + Constant(2.0)).config()).parameters()
    {'0.variance': 0.5, '0.lengthscale': 1.0, '1.variance': 2.0}
    """
    return cast("Covariance", decode(config, "covariance"))
