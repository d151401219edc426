"""A model of several classes as the command line keeps it: as `StreamModel`, with weights for each class."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any, Self, cast

import numpy as np
from scipy.special import log_softmax, softmax

from gaussfold import likelihoods, schema
from gaussfold.beliefs.diagonal.base import DiagonalBelief
from gaussfold.beliefs.diagonal.blocks import DiagonalBlocks
from gaussfold.beliefs.diagonal.class_stack import CLASS_LANE_STDS, DiagonalClassStack
from gaussfold.checks import whole
from gaussfold.cli.model import PARTS, StreamModel, rows_of
from gaussfold.cli.predictions import ClassPrediction, Told
from gaussfold.cli.scales import Scales
from gaussfold.cli.setting import Setting
from gaussfold.cli.slot_names import names_of
from gaussfold.data.chunks import Chunk
from gaussfold.data.reading import Reading
from gaussfold.dynamics import Forgetting
from gaussfold.expectations.classes import class_log_probabilities
from gaussfold.folding import fold
from gaussfold.trace import Trace
from gaussfold.types import Array, Moments

AVERAGED = np.pi / 8.0


@dataclass
class ClassModel(StreamModel):
    """A softmax over hashed features that goes on where it stopped, bit for bit."""

    def __post_init__(self) -> None:
        """Resolve names once."""
        classes = self.setting.classes
        self.reading = dataclasses.replace(self.reading, labels="class", classes=classes)
        self._softmax = likelihoods.Softmax(len(classes))
        self._awaited = set()
        given: DiagonalBelief | None = self.belief
        if given is None:
            self.belief = cast("DiagonalBelief", class_prior(self.setting, self.reading.width))
        self._dynamics = None
        if self.setting.forgetting < 1.0:
            self._dynamics = Forgetting(self.setting.forgetting, class_prior(self.setting, self.reading.width))

    @property
    def _weights(self) -> DiagonalBlocks | DiagonalClassStack:
        """The belief, as what it is here."""
        return cast("DiagonalBlocks | DiagonalClassStack", self.belief)

    @property
    def binary(self) -> bool:
        """Never: even of two classes each has its latent."""
        return False

    def meet(self, chunk: Chunk) -> None:
        """Note the names of slots that are new."""
        if self.names is not None:
            self.names.update((named.slot, named.name) for named in chunk.names if named.slot not in self.names)

    def _fold(self, chunk: Chunk) -> Trace:
        return fold(
            self._weights, self._softmax, rows_of(chunk), chunk.label, "vi", "posterior", sample_weight=chunk.weight,
            dynamics=self._dynamics, whole=False,
        )  # fmt: skip

    def _look(self, chunk: Chunk) -> tuple[Array, Moments]:
        """Log probabilities, and the latents."""
        rows, count = rows_of(self._scaled(chunk)), len(self.setting.classes)
        latents = Moments(*self._weights.class_marginals(rows, count))
        return self._log_probabilities(latents), latents

    def _log_probabilities(self, latents: Moments) -> Array:
        """A stack reports latents whose average over what is not known is that of its prediction."""
        if isinstance(self._weights, DiagonalClassStack):
            told = latents.mean / np.sqrt(1.0 + AVERAGED * latents.variance)
            return np.asarray(log_softmax(told, axis=1))
        return class_log_probabilities(*latents)

    def score(self, chunk: Chunk) -> Trace:
        """Predictions and their log scores without learning."""
        log_p, latents = self._look(chunk)
        missing = np.isnan(chunk.label)
        own = log_p[np.arange(len(chunk)), np.where(missing, 0, chunk.label).astype(np.intp)]
        nothing = np.zeros(len(chunk))
        return Trace(latents.mean, latents.variance, np.where(missing, np.nan, own), nothing, nothing)

    def predict(self, chunk: Chunk) -> ClassPrediction:
        """Probabilities of the classes of each row."""
        log_p, latents = self._look(chunk)
        return ClassPrediction(self.setting.classes, np.exp(log_p), latents.mean, np.sqrt(latents.variance))

    def before(self, trace: Trace, y: Array) -> ClassPrediction:
        """Predictions that a trace holds."""
        del y
        latents = Moments(trace.mean, trace.variance)
        log_p = self._log_probabilities(latents)
        return ClassPrediction(self.setting.classes, softmax(log_p, axis=1), latents.mean, np.sqrt(latents.variance))

    def thompson(self, chunk: Chunk, seed: int) -> Array:
        """Refuse: a draw has a column for each class."""
        del chunk, seed
        msg = "--thompson: a model of several classes has no one number to draw; leave it out"
        raise ValueError(msg)

    def line(self, label: float, prediction: Told) -> str:
        """What a line of progress says of a row: its label, and what was predicted."""
        shown = "unknown" if np.isnan(label) else self.setting.classes[int(label)]
        return f"{shown:>8.8}  {prediction.line()}"

    def lanes(self) -> dict[str, float]:
        """How much each lane of a stack counts."""
        if not isinstance(self._weights, DiagonalClassStack):
            return {}
        return {f"{std:g}": float(p) for std, p in zip(CLASS_LANE_STDS, self._weights.shares, strict=True)}

    def shown_weights(self, slots: np.ndarray) -> tuple[Array, Array, list[str]]:
        """Means and variances of the weights of some slots, class after class, and which class each is of."""
        found = self._weights.weights(slots)
        of = [f" for {name}" for name in self.setting.classes for _ in slots]
        return found.mean.ravel(), found.variance.ravel(), of

    @classmethod
    def from_store(cls, header: dict[str, Any], arrays: dict[str, np.ndarray]) -> Self:
        """Undo `state` and `store_header`."""
        setting, reading = Setting.from_json(header["setting"]), Reading.from_json(header["reading"])
        schema.check(arrays, PARTS)
        prior = class_prior(setting, 1)
        schema.equal("belief", header["belief"], type(prior).__name__, f"as prior_std={setting.prior_std!r} says")
        belief = type(prior).from_state(schema.part_of(arrays, "belief."), copy=False)
        schema.equal("belief.features", belief.features, reading.width, f"the slots of {reading.bits} bits")
        schema.equal("belief.classes", belief.classes, len(setting.classes), "as many as the setting names")
        schema.equal("belief.cells", belief.dtype, prior.dtype, "as the setting says")
        for name, value in header["run"].items():
            whole(f"run {name}", value, least=0)
        scales = Scales.from_arrays(arrays, reading.width)
        known = cast("DiagonalBelief", belief)
        return cls(setting, reading, known, arrays["totals"], header["run"], names_of(arrays, reading), scales)


def class_prior(setting: Setting, width: int) -> DiagonalBlocks | DiagonalClassStack:
    """The belief of all classes before any data."""
    count = len(setting.classes)
    if isinstance(setting.prior_std, str):
        return DiagonalClassStack.isotropic(count, width, dtype="float32")
    return DiagonalBlocks.isotropic(count, width, float(setting.prior_std), dtype=setting.dtype)
