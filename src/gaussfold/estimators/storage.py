"""An estimator as named arrays and a JSON header, and back, bit for bit (see `gaussfold.store`)."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

from gaussfold import rules
from gaussfold.beliefs.diagonal import coupling
from gaussfold.estimators.making import restore_belief
from gaussfold.estimators.noise import NoiseBelief
from gaussfold.lookback import Lookback
from gaussfold.store_codecs import decode_labels, decode_rng, encode_labels, encode_rng


def parameters(model: Any) -> dict[str, Any]:
    """Read the constructor's parameters; arrays are copied. The seed is left out: it may change."""
    values = model.get_params(deep=False)
    values.pop("random_state")
    return {name: value.copy() if isinstance(value, np.ndarray) else value for name, value in values.items()}


def same(now: Any, before: Any) -> bool:
    """Whether a parameter is what it was."""
    return now is before or bool(np.array_equal(now, before))


def state(model: Any) -> dict[str, np.ndarray]:
    """Beliefs, counters, the noise's belief and parameters that are arrays."""
    arrays = {
        f"belief{i}.{name}": array for i, belief in enumerate(model._beliefs) for name, array in belief.state().items()
    }
    for i, memory in enumerate(model._lookbacks):
        arrays |= {f"lookback{i}.{name}": array for name, array in memory.state().items()}
    arrays["progress"] = np.array([model.n_observations_, *model._loss])
    if model._noise is not None:
        arrays["noise"] = np.array(dataclasses.astuple(model._noise))
    for name, value in model._parameters.items():
        if np.ndim(value):
            arrays[f"parameter.{name}"] = np.asarray(value)
    return arrays


def header(model: Any) -> dict[str, Any]:
    """Parameters that are not arrays, names, classes, random states."""
    described = {
        "parameters": {name: _plain(name, value) for name, value in model._parameters.items() if not np.ndim(value)},
        "random_state": encode_rng(model.random_state),
        "rng": encode_rng(model._rng),
        "n_features": int(model.n_features_in_),
        "n_beliefs": len(model._beliefs),
    }
    if hasattr(model, "feature_names_in_"):
        described["feature_names"] = model.feature_names_in_.tolist()
    if hasattr(model, "classes_"):
        described["classes"] = encode_labels(model.classes_)
    return described


def rebuild(cls: type[Any], described: dict[str, Any], arrays: dict[str, np.ndarray]) -> Any:
    """Undo `state` and `header`."""
    values = dict(described["parameters"])
    for name in arrays:
        if name.startswith("parameter."):
            values[name.removeprefix("parameter.")] = arrays[name]
    for name in ("rule", "at", "coupling"):
        if isinstance(values[name], dict):
            values[name] = _rule(**values[name])
    model = cls(**values, random_state=decode_rng(described["random_state"]))
    model.n_features_in_ = described["n_features"]
    if "feature_names" in described:
        model.feature_names_in_ = np.array(described["feature_names"], dtype=object)
    if "classes" in described:
        model.classes_ = decode_labels(described["classes"])
    model._prepare()
    model._rng = decode_rng(described["rng"])
    n_beliefs = described["n_beliefs"]
    model._beliefs = [restore_belief(_part(arrays, f"belief{i}.")) for i in range(n_beliefs)]
    model._lookbacks = [
        Lookback.from_state(_part(arrays, f"lookback{i}.")) for i in range(n_beliefs) if model._settings.second_look
    ]
    count, *loss = arrays["progress"].tolist()
    model.n_observations_ = int(count)
    model._loss = tuple(loss)
    if "noise" in arrays:
        model._noise = NoiseBelief(*arrays["noise"].tolist())
    return model


def _part(arrays: dict[str, np.ndarray], prefix: str) -> dict[str, np.ndarray]:
    return {name.removeprefix(prefix): array for name, array in arrays.items() if name.startswith(prefix)}


def _plain(name: str, value: Any) -> Any:
    """Return a parameter as JSON can hold it."""
    if isinstance(value, np.generic):
        return value.item()
    if name in ("rule", "at", "coupling") and dataclasses.is_dataclass(value):
        return {"kind": type(value).__name__, **dataclasses.asdict(value)}  # type: ignore[arg-type]
    return value


def _rule(kind: str, **options: Any) -> Any:
    """Build a rule (or an at, or a coupling) that was given as an object."""
    if kind in ("Joint", "Marginal"):
        return getattr(coupling, kind)(**options)
    if kind not in rules.__all__:
        msg = f"rule {kind!r} is not known to this version of gaussfold"
        raise ValueError(msg)
    return getattr(rules, kind)(**options)
