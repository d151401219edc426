"""Derivatives by differences, for what does not know its own."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import numpy as np

from gaussfold.types import Array

Value = TypeVar("Value", float, Array)
STEP = 1e-3


def five_point(fn: Callable[[float], Value], h: float = STEP) -> Value:
    """``fn'(0)`` from four values around 0, with an error of the order h⁴ (1e-12 at this step, relative)."""
    return (8.0 * (fn(h) - fn(-h)) - (fn(2.0 * h) - fn(-2.0 * h))) / (12.0 * h)


def by_log_parameter(fn: Callable[[dict[str, float]], Value], parameters: dict[str, float]) -> dict[str, Value]:
    """``∂fn/∂log θ`` for every one of these, the others held."""

    def along(name: str) -> Callable[[float], Value]:
        return lambda step: fn({name: parameters[name] * float(np.exp(step))})

    return {name: five_point(along(name)) for name in parameters}
