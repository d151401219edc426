"""An estimator as named arrays and a JSON header, and back, bit for bit (see `gaussfold.store`).

The estimator hands over what it has learned as one record, :class:`Learned`, and takes one back; nothing here
reaches into it.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

import numpy as np
from sklearn.base import BaseEstimator

from gaussfold import registry
from gaussfold.estimators.noise import NoiseBelief
from gaussfold.estimators.priors import AnyBelief, restore_belief
from gaussfold.lookback import Lookback
from gaussfold.store.codecs import decode_labels, decode_rng, encode_labels, encode_rng
from gaussfold.types import ArrayLike

Model = TypeVar("Model")

OPTIONS = ("rule", "at", "coupling")
"""Parameters that may be objects; each is called as its kind in the registry is."""


class Learned(NamedTuple):
    """What an estimator has beside its parameters."""

    parameters: dict[str, ArrayLike]
    """As they were when learning began."""
    beliefs: Sequence[AnyBelief]
    lookbacks: list[Lookback]
    noise: NoiseBelief | None
    rng: np.random.Generator
    loss: tuple[float, float]
    n_observations: int


def parameters(model: BaseEstimator) -> dict[str, ArrayLike]:
    """Read the constructor's parameters; arrays are copied. The seed is left out: it may change."""
    values = model.get_params(deep=False)
    values.pop("random_state")
    return {name: value.copy() if isinstance(value, np.ndarray) else value for name, value in values.items()}


def same(now: object, before: object) -> bool:
    """Whether a parameter is what it was."""
    return now is before or bool(np.array_equal(now, before))  # type: ignore[arg-type]  # anything may be compared


def state(learned: Learned) -> dict[str, np.ndarray]:
    """Beliefs, counters, the noise's belief and parameters that are arrays."""
    arrays: dict[str, np.ndarray] = {}
    for part, members in (("belief", learned.beliefs), ("lookback", learned.lookbacks)):
        for i, member in enumerate(members):
            arrays |= {f"{part}{i}.{name}": array for name, array in member.state().items()}
    arrays["progress"] = np.array([learned.n_observations, *learned.loss])
    if learned.noise is not None:
        arrays["noise"] = np.array(dataclasses.astuple(learned.noise))
    for name, value in learned.parameters.items():
        if np.ndim(value):
            arrays[f"parameter.{name}"] = np.asarray(value)
    return arrays


def header(model: Any, learned: Learned) -> dict[str, object]:
    """Parameters that are not arrays, names, classes, random states."""
    described: dict[str, object] = {
        "parameters": {name: registry.encode(v) for name, v in learned.parameters.items() if not np.ndim(v)},
        "random_state": encode_rng(model.random_state),
        "rng": encode_rng(learned.rng),
        "n_features": int(model.n_features_in_),
        "n_beliefs": len(learned.beliefs),
    }
    if "feature_names_in_" in vars(model):
        described["feature_names"] = model.feature_names_in_.tolist()
    if "classes_" in vars(model):
        described["classes"] = encode_labels(model.classes_)
    return described


def blank(cls: Callable[..., Model], described: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> Model:
    """The estimator of a file before it had learned: its parameters, names and classes."""
    values = dict(described["parameters"])
    values |= {name: registry.decode(values[name], name) for name in OPTIONS}
    values |= part(arrays, "parameter.")
    model: Any = cls(**values, random_state=decode_rng(described["random_state"]))
    model.n_features_in_ = described["n_features"]
    if "feature_names" in described:
        model.feature_names_in_ = np.array(described["feature_names"], dtype=object)
    if "classes" in described:
        model.classes_ = decode_labels(described["classes"])
    found: Model = model
    return found


def learned(
    described: Mapping[str, Any], arrays: Mapping[str, np.ndarray], given: dict[str, ArrayLike], *, looks_back: bool
) -> Learned:
    """Undo `state` and `header`; ``given`` are the parameters."""
    beliefs = range(described["n_beliefs"])
    count, *loss = arrays["progress"].tolist()
    return Learned(
        parameters=given,
        beliefs=[restore_belief(part(arrays, f"belief{i}.")) for i in beliefs],
        lookbacks=[Lookback.from_state(part(arrays, f"lookback{i}.")) for i in beliefs if looks_back],
        noise=NoiseBelief(*arrays["noise"].tolist()) if "noise" in arrays else None,
        rng=decode_rng(described["rng"]),
        loss=(loss[0], loss[1]),
        n_observations=int(count),
    )


def part(arrays: Mapping[str, np.ndarray], prefix: str) -> dict[str, np.ndarray]:
    """The arrays whose names begin so, without that beginning."""
    return {name.removeprefix(prefix): array for name, array in arrays.items() if name.startswith(prefix)}
