"""An estimator as named arrays and a JSON header, and back, bit for bit (see `gaussfold.store`).

The estimator hands over what it has learned as one record, :class:`Learned`, and takes one back; nothing here
reaches into it.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

import numpy as np
from sklearn.base import BaseEstimator, is_classifier

from gaussfold import registry, schema
from gaussfold.beliefs.bank.belief import Bank
from gaussfold.checks import not_negative, whole
from gaussfold.estimators.coordinates import Coordinates, members
from gaussfold.estimators.early import Early
from gaussfold.estimators.noise import NoiseBelief
from gaussfold.estimators.noise_bank import NoiseBank
from gaussfold.estimators.parameters import StreamingParameters
from gaussfold.estimators.priors import AnyBelief, restore_belief
from gaussfold.lookback import Lookback
from gaussfold.store.codecs import decode_generator, decode_labels, decode_rng, encode_labels, encode_rng
from gaussfold.types import ArrayLike

Model = TypeVar("Model")

OPTIONS = ("rule", "at", "coupling")
"""Parameters that may be objects; each is called as its kind in the registry is."""
PARTS = (
    schema.Part("progress", (3,), "double", free=True),
    schema.Part("noise", (4,), "double", positive=True, optional=True),
    schema.Part("noise_bank", ("K", 4), "double", positive=True, optional=True),
)
"""What a model file holds beside beliefs, rows that are kept, and parameters."""


class Learned(NamedTuple):
    """What an estimator has beside its parameters."""

    parameters: dict[str, ArrayLike]
    """As they were when learning began."""
    beliefs: Sequence[AnyBelief]
    lookbacks: list[Lookback]
    noise: NoiseBelief | NoiseBank | None
    rng: np.random.Generator
    loss: tuple[float, float]
    n_observations: int
    coordinates: Coordinates | None
    early: Early | None


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
    for part, several in (("belief", learned.beliefs), ("lookback", learned.lookbacks)):
        for i, member in enumerate(several):
            arrays |= {f"{part}{i}.{name}": array for name, array in member.state().items()}
    arrays["progress"] = np.array([learned.n_observations, *learned.loss])
    arrays |= _noise_arrays(learned.noise)
    for part, own in (("scaling", learned.coordinates), ("early", learned.early)):
        arrays |= {} if own is None else {f"{part}.{name}": array for name, array in own.state().items()}
    for name, value in learned.parameters.items():
        if np.ndim(value):
            arrays[f"parameter.{name}"] = np.asarray(value)
    return arrays


def _noise_arrays(noise: NoiseBelief | NoiseBank | None) -> dict[str, np.ndarray]:
    if isinstance(noise, NoiseBank):
        return {"noise_bank": noise.arrays()}
    return {} if noise is None else {"noise": np.array(dataclasses.astuple(noise))}


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
    values: dict[str, Any] = {"scale": False} | dict(described["parameters"])  # which 0.1.0 did not know
    if "classes" in described:
        values.setdefault("multi_class", "ovr")  # files from before there was anything else
    values |= {name: registry.decode(values[name], name) for name in OPTIONS}
    values |= schema.part_of(arrays, "parameter.")
    model: Any = cls(**values, random_state=decode_rng(described["random_state"]))
    model.n_features_in_ = whole("n_features", described["n_features"])
    if "feature_names" in described:
        model.feature_names_in_ = decode_names(described["feature_names"], model.n_features_in_)
    if "classes" in described:
        model.classes_ = decode_labels(described["classes"])
    found: Model = model
    return found


def restored_beliefs(
    model: StreamingParameters, described: Mapping[str, Any], arrays: Mapping[str, np.ndarray]
) -> list[AnyBelief]:
    """The beliefs of a file, as many and as wide as its header says."""
    schema.equal("classes", "classes" in described, is_classifier(model), "which classifiers have, and no others")
    together = classes_together(described)
    several = 1 if together > 1 else count_of(described)
    schema.equal("n_beliefs", described["n_beliefs"], several, "one, or for several classes one each")
    beliefs = [restore_belief(schema.part_of(arrays, f"belief{i}.")) for i in range(described["n_beliefs"])]
    dim = (described["n_features"] + bool(model.fit_intercept)) * together
    for i, belief in enumerate(beliefs):
        schema.equal(f"belief{i}", belief.dim, dim, "one parameter for each feature and one for the intercept")
        if f"lookback{i}.X" in arrays:
            schema.equal(f"lookback{i}.X", arrays[f"lookback{i}.X"].shape[-1], dim, "one column for each parameter")
    return beliefs


def learned(
    described: Mapping[str, Any],
    arrays: Mapping[str, np.ndarray],
    given: dict[str, ArrayLike],
    beliefs: list[AnyBelief],
    *,
    looks_back: bool,
) -> Learned:
    """Undo `state` and `header`; ``given`` are the parameters."""
    schema.check(arrays, PARTS)
    count, *loss = arrays["progress"].tolist()
    not_negative("progress", count)
    return Learned(
        parameters=given,
        beliefs=beliefs,
        lookbacks=[
            Lookback.from_state(schema.part_of(arrays, f"lookback{i}.")) for i in range(len(beliefs)) if looks_back
        ],
        noise=_noise(arrays, beliefs),
        rng=decode_generator(described["rng"]),
        loss=(loss[0], loss[1]),
        n_observations=int(count),
        coordinates=_coordinates(arrays, described["n_features"], beliefs),
        early=_early(arrays, described["n_features"], beliefs),
    )


def _noise(arrays: Mapping[str, np.ndarray], beliefs: list[AnyBelief]) -> NoiseBelief | NoiseBank | None:
    if "noise_bank" not in arrays:
        return NoiseBelief(*arrays["noise"].tolist()) if "noise" in arrays else None
    count = len(beliefs[0].members) if isinstance(beliefs[0], Bank) else 0
    schema.equal("noise_bank", len(arrays["noise_bank"]), count, "one row for each member of the bank")
    return NoiseBank.from_arrays(arrays["noise_bank"])


def _coordinates(arrays: Mapping[str, np.ndarray], width: int, beliefs: list[AnyBelief]) -> Coordinates | None:
    """Scales and priors, where the model learns them."""
    parts = schema.part_of(arrays, "scaling.")
    count = sum(len(members(belief)) for belief in beliefs)
    return Coordinates.from_state(parts, width, members(beliefs[0])[0].dim, count) if parts else None


def _early(arrays: Mapping[str, np.ndarray], width: int, beliefs: list[AnyBelief]) -> Early | None:
    """The first rows, where the model still keeps them."""
    parts = schema.part_of(arrays, "early.")
    return Early.from_state(parts, width, len(beliefs)) if parts else None


def count_of(described: Mapping[str, Any]) -> int:
    """How many beliefs or processes a model has: one, or one for each of more than two classes."""
    classes = whole("classes", len(described["classes"]["values"]), least=2) if "classes" in described else 2
    return 1 if classes == 2 else classes


def classes_together(described: Mapping[str, Any]) -> int:
    """How many classes have their weights in the one belief of a file; 1: not so."""
    count = count_of(described)
    return count if described["n_beliefs"] == 1 else 1


def decode_names(names: object, count: int) -> np.ndarray:
    """Names of the columns, one for each."""
    if not isinstance(names, list) or len(names) != count or not all(isinstance(name, str) for name in names):
        schema.refuse("feature_names", f"{names!r:.60}", f"a list of {count} strings is needed, one for each feature")
    return np.array(names, dtype=object)
