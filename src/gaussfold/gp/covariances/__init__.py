"""Covariance functions: leaves, sums and products, each with derivatives and, where it has one, a state-space form."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gaussfold.gp.covariances.base import Covariance, Product, Sum
from gaussfold.gp.covariances.oscillating import Cosine, Periodic
from gaussfold.gp.covariances.plain import Constant, Linear, White
from gaussfold.gp.covariances.stationary import Matern12, Matern32, Matern52, Matern72, SquaredExponential

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

_LEAVES: dict[str, Any] = {
    kind.__name__: kind
    for kind in (
        Constant, Cosine, Linear, Matern12, Matern32, Matern52, Matern72, Periodic, SquaredExponential, White
    )
}  # fmt: skip


def from_config(config: Mapping[str, Any]) -> Covariance:
    """Build the covariance that ``config()`` described.

    Examples
    --------
    >>> from_config((Matern12(0.5) + Constant(2.0)).config()).parameters()
    {'0.variance': 0.5, '0.lengthscale': 1.0, '1.variance': 2.0}
    """
    options = dict(config)
    name = options.pop("name", None)
    if name in ("Sum", "Product"):
        parts = tuple(from_config(part) for part in options["parts"])
        return Sum(parts) if name == "Sum" else Product(parts)
    if name not in _LEAVES:
        msg = f"covariance name={name!r}: allowed are {', '.join(map(repr, _LEAVES))}, 'Sum' and 'Product'"
        raise ValueError(msg)
    made: Covariance = _LEAVES[name](**options)
    return made
