"""Covariance functions: leaves, sums and products, each with derivatives and, where it has one, a state-space form.

One covariance, one file, its state-space form with it; a new one is such a file and one line here. What is imported
below is offered by `gaussfold.gp`, known by name, saved and loaded. Reference twins: ``tests/gp/test_covariances.py``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, cast

from gaussfold.gp.covariances.base import Covariance as Covariance
from gaussfold.gp.covariances.base import Product as Product
from gaussfold.gp.covariances.base import Sum as Sum
from gaussfold.gp.covariances.brownian import Brownian as Brownian
from gaussfold.gp.covariances.columns import Columns as Columns
from gaussfold.gp.covariances.constant import Constant as Constant
from gaussfold.gp.covariances.cosine import Cosine as Cosine
from gaussfold.gp.covariances.given_space import GivenStateSpace as GivenStateSpace
from gaussfold.gp.covariances.linear import Linear as Linear
from gaussfold.gp.covariances.matern import Matern12 as Matern12
from gaussfold.gp.covariances.matern import Matern32 as Matern32
from gaussfold.gp.covariances.matern import Matern52 as Matern52
from gaussfold.gp.covariances.matern import Matern72 as Matern72
from gaussfold.gp.covariances.periodic import Periodic as Periodic
from gaussfold.gp.covariances.rational_quadratic import RationalQuadratic as RationalQuadratic
from gaussfold.gp.covariances.space_time import SpaceTime as SpaceTime
from gaussfold.gp.covariances.squared_exponential import SquaredExponential as SquaredExponential
from gaussfold.gp.covariances.white import White as White
from gaussfold.registry import Catalogue, decode

_IMPORTED = [kind for kind in globals().values() if isinstance(kind, type) and issubclass(kind, Covariance)]

COVARIANCES: Catalogue[Covariance] = Catalogue(
    "covariance",
    [kind for kind in _IMPORTED if kind is not Covariance],
    accepts=Covariance,
    also="an object such as gaussfold.gp.Matern32(1.0, lengthscale=2.0)",
)
"""Every covariance function."""

if not TYPE_CHECKING:  # type checkers read the imports above, and would take a list that is made for an empty one
    __all__ = [kind.__name__ for kind in _IMPORTED]


def from_config(config: Mapping[str, object]) -> Covariance:
    """Build the covariance that ``config()`` described.

    Examples
    --------
    >>> from_config((Matern12(0.5) + Constant(2.0)).config()).parameters()
    {'0.variance': 0.5, '0.lengthscale': 1.0, '1.variance': 2.0}
    """
    return cast("Covariance", decode(config, "covariance"))
