"""The River models as arrays and JSON, and back."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import Any, TypeVar

import numpy as np
from river import base

from gaussfold import registry, schema
from gaussfold.checks import refuse
from gaussfold.estimators.river.features import INTERCEPT
from gaussfold.estimators.river.weights import Diagonal, Weights

Model = TypeVar("Model")


def state(beliefs: Sequence[Diagonal]) -> dict[str, np.ndarray]:
    """The arrays of all beliefs."""
    return {f"belief{i}.{name}": array for i, belief in enumerate(beliefs) for name, array in belief.state().items()}


def header(model: base.Estimator, weights: Weights) -> dict[str, object]:
    """Parameters and names."""
    names = inspect.signature(type(model)).parameters
    parameters = {name: registry.encode(vars(model)[name]) for name in names}
    return {"parameters": parameters, "names": plain_names(weights.columns.places, "feature")}


def plain_names(names: Iterable[Hashable], what: str) -> list[object]:
    """Names that JSON gives back as they are."""
    found: list[object] = []
    for name in names:
        if not isinstance(name, str | int | float):  # a truth value is an int
            refuse(what, name, "a text, a number or a truth value", "call it by one to store the model")
        found.append(name.item() if isinstance(name, np.generic) else name)
    return found


def distinct(name: str, values: object) -> list[Any]:
    """Names out of a file, each once."""
    if not isinstance(values, list) or not all(isinstance(value, str | int | float) for value in values):
        schema.refuse(name, f"{values!r:.60}", "a list of texts, numbers and truth values is needed")
    schema.equal(name, len(set(values)), len(values), "each of them once")
    return values


def blank(cls: Callable[..., Model], described: Mapping[str, Any]) -> Model:
    """The model of a file before it had learned."""
    values = dict(described["parameters"])
    values["coupling"] = registry.decode(values["coupling"], "coupling")
    return cls(**values)


def named(weights: Weights, described: Mapping[str, Any]) -> Weights:
    """The same weights, with columns for the names of a file."""
    names = distinct("names", described["names"])
    if weights.columns.intercept:
        schema.equal("names", names[:1], [INTERCEPT], "the intercept, which fit_intercept asks for, comes first")
    return Weights(weights.start, weights.likelihood, weights.rule, names)
