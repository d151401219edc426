"""A model as the command line keeps it: a belief, how rows are read, and how far the stream has come."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np

from gaussfold import schema
from gaussfold.beliefs.diagonal.apart import Apart
from gaussfold.beliefs.diagonal.base import DiagonalBelief
from gaussfold.beliefs.diagonal.belief import DiagonalGaussian
from gaussfold.beliefs.diagonal.mixture import DiagonalMixture
from gaussfold.beliefs.diagonal.stack import LANE_STDS, DiagonalStack
from gaussfold.beliefs.diagonal.state import mix_moments
from gaussfold.checks import whole
from gaussfold.cli import label_range
from gaussfold.cli.apart import StreamApart
from gaussfold.cli.label_range import LabelRange
from gaussfold.cli.noise import PART, LabelNoise, added
from gaussfold.cli.predictions import Prediction, Told, short
from gaussfold.cli.progressive_loss import LEARNED, LOSS, SEEN, WEIGHT, add_losses, constant_loss
from gaussfold.cli.sampling import sampled_latent
from gaussfold.cli.scales import Scales
from gaussfold.cli.setting import Setting
from gaussfold.cli.slot_names import arrays_of, names_of
from gaussfold.data.chunks import Chunk
from gaussfold.data.messages import DataError
from gaussfold.data.reading import Reading
from gaussfold.distributed.learning import Gained, LearnerApart, learn_apart
from gaussfold.dynamics import Forgetting
from gaussfold.folding import fold, recipe_of
from gaussfold.rows import Rows
from gaussfold.trace import RowError, Trace
from gaussfold.types import Array, Moments

KINDS = (DiagonalGaussian, DiagonalMixture, DiagonalStack)
"""What a model file may hold."""
PARTS = (
    schema.Part("totals", (6,), "double", free=True),
    PART,
    label_range.PART,
    schema.Part("squares", (1,), "double", low=0.0, optional=True),
)
"""What a model file holds beside the belief."""


@dataclass
class StreamModel:
    """A belief over hashed features that goes on where it stopped, bit for bit.

    ``run`` says where in its input an unfinished training run stands: rows taken, passes done.
    """

    setting: Setting
    reading: Reading
    belief: DiagonalBelief = None  # type: ignore[assignment]  # the prior, if none is given: see __post_init__
    totals: Array = field(default_factory=lambda: np.zeros(6))
    run: dict[str, int] = field(default_factory=dict)
    names: dict[int, str] | None = None
    scales: Scales = field(default_factory=Scales)
    noise: LabelNoise = field(default_factory=LabelNoise)
    squares: Array = field(default_factory=lambda: np.zeros(1))
    """Of numbers: weighted squared errors of the predictions, added up."""
    range: LabelRange = field(default_factory=LabelRange)
    learns: Apart | None = None
    """What learns instead of ``belief``: of a model that is one of several shards."""

    def __post_init__(self) -> None:
        """Resolve names once."""
        if self.reading.labels != self.setting.labels:
            self.reading = dataclasses.replace(self.reading, labels=self.setting.labels)
        self._likelihood = self.setting.make_likelihood()
        recipe_of(self._likelihood, self.setting.rule, "posterior")  # refuses what is not defined, before any row
        given: DiagonalBelief | None = self.belief
        if given is None:
            self.belief = self.setting.prior(self.reading.width)
        else:
            self.belief.set_start(self.setting.prior(1))
        if self.setting.prior_stds and self.names is None:
            self.names = {}  # a slot's prior is that of the first feature in it, so those must be known
        self._awaited = {name for name, _ in self.setting.prior_stds} if given is None else set[str]()
        self._dynamics: Forgetting | None = None
        if self.setting.forgetting < 1.0:
            prior: DiagonalBelief = self.setting.prior(self.reading.width)
            if self.setting.prior_stds:  # one cell per slot from the start: another shape later would be another prior
                prior.spread(self.belief.pull)
            self._prior = prior
            self._dynamics = Forgetting(self.setting.forgetting, prior)

    @property
    def binary(self) -> bool:
        """Whether labels are 0 and 1."""
        return self.setting.labels == "binary"

    # Learning.

    def meet(self, chunk: Chunk) -> None:
        """Note the names of slots that are new, and give those slots the prior of their namespace."""
        if self.names is None:
            return
        new = [named for named in chunk.names if named.slot not in self.names]
        self.names.update((named.slot, named.name) for named in new)
        self._awaited -= {named.space for named in new}
        stds = dict(self.setting.prior_stds)
        special = [(named.slot, stds[named.space]) for named in new if named.space in stds]
        if special:
            slots, std = (np.array(part) for part in zip(*special, strict=True))
            self.belief.set_prior(slots, std)
            if self._dynamics is not None:
                self._prior.set_prior(slots, std)

    @property
    def awaited(self) -> list[str]:
        """Namespaces that were given a prior of their own and never came, of a model that is new."""
        return sorted(self._awaited)

    def learn(self, chunk: Chunk) -> Trace:
        """Fold a chunk in; the trace has the predictions made before each row was learned.

        A row that would drive the posterior out of range raises `RowError`, with the trace of the rows before it, which
        stay learned; see `refuse_row`.
        """
        self.meet(chunk)
        try:
            return self._kept(self._learn_in_units(chunk), chunk)
        except RowError as error:
            if error.trace is not None:
                error.trace = self._kept(error.trace, chunk.rows(0, error.row))
            raise

    def _kept(self, trace: Trace, learned: Chunk | None = None) -> Trace:
        """With predictions kept within the labels so far, if they are to be; labels of rows learned count from then."""
        if not self.setting.keeps_range:
            return trace
        mean, *rest = trace
        return Trace(self.range.kept(mean) if learned is None else self.range.learned(mean, learned), *rest)

    def _learn_in_units(self, chunk: Chunk) -> Trace:
        if not self.setting.learns_noise:
            return self._learn(chunk)
        told: list[Trace] = []
        at = 0
        while at < len(chunk):
            part = chunk.rows(at, self.noise.until(chunk, at, constant=self.reading.constant))
            try:
                told.append(self._learn_noise(part, self._learn(part)))
            except RowError as error:
                if error.trace is not None:
                    told.append(self._learn_noise(part.rows(0, error.row), error.trace))
                raise RowError(at + error.row, Trace.joined(told) if told else None) from error
            at += len(part)
        return Trace.joined(told) if told else Trace.empty(0)

    def _learn_noise(self, chunk: Chunk, trace: Trace) -> Trace:
        """What a trace says in the labels' units; the belief takes over new ones if they are due."""
        told = self.noise.outward(trace)
        units = self.noise.note(chunk, told, constant=self.reading.constant)
        if units is not None:
            constant = 1 << self.reading.bits if self.reading.constant else None
            self.belief.change_units(units.ratio, units.shift, constant)
        return told

    def _learn(self, chunk: Chunk) -> Trace:
        if self.setting.scale == "none":
            return self._fold(chunk)
        # Scaled values are tame, and 0 and 1 cannot surprise; other labels can, and then the scales are taken back.
        before = None if self.binary else self.scales.remembered(chunk)
        try:
            return self._fold(self._scaled(chunk, learn=True))
        except RowError as error:
            if before is not None:
                self.scales.put_back(before)
                self.scales.scaled(chunk.rows(0, error.row), self.reading, learn=True)
            raise

    def _scaled(self, chunk: Chunk, *, learn: bool = False) -> Chunk:
        return chunk if self.setting.scale == "none" else self.scales.scaled(chunk, self.reading, learn=learn)

    def _fold(self, chunk: Chunk) -> Trace:
        if self.learns is not None:
            rows, rule = rows_of(chunk), self.setting.rule
            return learn_apart(self.learns, self._likelihood, rule, rows, chunk.label, chunk.weight)
        return fold(
            self.belief, self._likelihood, rows_of(chunk), self.noise.inward(chunk.label), self.setting.rule,
            "posterior", sample_weight=chunk.weight, dynamics=self._dynamics, whole=False,
        )  # fmt: skip

    def score(self, chunk: Chunk) -> Trace:
        """Predictions and their log scores without learning."""
        latent, (mean, variance) = self.belief.readings(rows_of(self._scaled(chunk)))
        log_weights = self.belief.log_weights
        scores = self._likelihood.log_predictive(self.noise.inward(chunk.label)[:, None], latent)
        log_p, told = np.full(len(chunk), np.nan), ~np.isnan(chunk.label)  # NumPy warns of NaN that are added up
        log_p[told] = np.logaddexp.reduce(log_weights + scores[told], axis=1)
        nothing = np.zeros(len(chunk))
        return self._kept(self.noise.outward(Trace(mean, variance, log_p, nothing, nothing)))

    # Several workers: see `gaussfold.distributed`.

    def apart(self, shards: int, least: float) -> LearnerApart:
        """What the shards of a round are learned by in one process."""
        return StreamApart(self, self.belief.apart(shards, least))

    def shard(self, scales: Scales, apart: Apart) -> Self:
        """The same model that learns into ``apart``, and nothing counted yet."""
        return dataclasses.replace(
            self, totals=np.zeros(6), run={}, names=None if self.names is None else {}, scales=scales,
            squares=np.zeros(1), range=LabelRange(self.range.ends), learns=apart,
        )  # fmt: skip

    def take(self, gained: Gained) -> None:
        """Count what a shard has counted; its belief is added up with the others'."""
        self.totals, self.squares = self.totals + gained.totals, self.squares + gained.more["squares"]
        self.scales.add(gained.more, self.reading.width)
        self.range.add(gained.more["range"])
        if self.names is not None:
            self.names = (gained.names or {}) | self.names  # the first that was met keeps the slot

    def add(self, chunk: Chunk, trace: Trace, start: int, stop: int) -> None:
        """Count rows ``start:stop`` in the progressive loss."""
        add_losses(self.totals, trace.log_predictive, chunk.label, chunk.weight, start, stop)
        if self.setting.labels == "real":
            part = slice(start, stop)
            away = np.nan_to_num(chunk.label[part] - trace.mean[part])  # a row without a label has no error
            self.squares[0] = added(float(self.squares[0]), chunk.weight[part] * away**2)

    # Reading off.

    def predict(self, chunk: Chunk) -> Told:
        """Label and x'θ of each row, with mean and standard deviation."""
        latent, (mean, variance) = self.belief.readings(rows_of(self._scaled(chunk)))
        log_weights = self.belief.log_weights
        label, spread = mix_moments(log_weights, *self._likelihood.predictive(latent))
        centre, unit = self.noise.centre, self.noise.std
        label, mean = centre + unit * label, centre + unit * mean
        if self.setting.keeps_range:
            label, mean = self.range.kept(label), self.range.kept(mean)
        return Prediction(label, unit * np.sqrt(spread), mean, unit * np.sqrt(variance))

    def before(self, trace: Trace, y: Array) -> Told:
        """Predictions that a trace holds.

        A probability is exact where there is a label; the rest goes by mean and variance of x'θ, which for mixed priors
        is an approximation: their mixture is no Gaussian.
        """
        if self.setting.learns_noise:
            spread = trace.variance + 1.0 / trace.site_precision
            return Prediction(trace.mean, np.sqrt(spread), trace.mean, np.sqrt(trace.variance))
        label, spread = self._likelihood.predictive(Moments(trace.mean, trace.variance))
        if self.binary:
            scored = np.exp(trace.log_predictive)
            label = np.where(y == 1.0, scored, np.where(y == 0.0, 1.0 - scored, label))
        return Prediction(label, np.sqrt(spread), trace.mean, np.sqrt(trace.variance))

    def thompson(self, chunk: Chunk, seed: int) -> Array:
        """Expected labels under one draw of the weights; the same draw for all chunks."""
        latent = sampled_latent(self.belief, rows_of(self._scaled(chunk)), seed)
        return np.asarray(self.noise.centre + self.noise.std * self._likelihood.conditional(latent).mean)

    def line(self, label: float, prediction: Told) -> str:
        """What a line of progress says of a row: its label, and what was predicted."""
        shown = " unknown" if np.isnan(label) else short(label)
        return f"{shown}  {prediction.line()}"

    def lanes(self) -> dict[str, float]:
        """How much each lane of a stack counts; nothing where there is none."""
        if not isinstance(self.belief, DiagonalStack):
            return {}
        names = [*(f"{std:g}" for std in LANE_STDS), "forgetting", "stacked"]
        return dict(zip(names, map(float, self.belief.weights), strict=True))

    def shown_weights(self, slots: np.ndarray) -> tuple[Array, Array, list[str]]:
        """Means and variances of the weights of some slots, and what to say of each besides its feature."""
        mean, variance = self.belief.moments(slots)
        return mean, variance, [""] * len(slots)

    @property
    def average_loss(self) -> float:
        """Mean log loss of predicting each labelled row before learning it."""
        return float(self.totals[LOSS] / self.totals[WEIGHT]) if self.totals[WEIGHT] else float("nan")

    @property
    def base_rate_loss(self) -> float:
        """Loss of the best constant probability in hindsight; NaN unless labels are binary."""
        return constant_loss(self.totals) if self.binary else float("nan")

    @property
    def examples(self) -> int:
        """Rows seen, with or without a label."""
        return int(self.totals[SEEN])

    @property
    def learned(self) -> int:
        """Rows learned."""
        return int(self.totals[LEARNED])

    def used(self) -> np.ndarray:
        """Slots (the constant's left out) that any row has touched, in order."""
        columns = self.belief.touched()
        return np.asarray(columns[columns < 1 << self.reading.bits])

    # Model files: see `gaussfold.store`.

    def state(self) -> dict[str, np.ndarray]:
        """Everything numeric, as named arrays (the belief's are views)."""
        arrays = {f"belief.{name}": array for name, array in self.belief.state(copy=False).items()}
        arrays["totals"] = self.totals
        if self.setting.labels == "real":
            arrays |= {"noise": self.noise.numbers, "squares": self.squares} | self.range.arrays()
        arrays |= self.scales.arrays()
        return arrays if self.names is None else arrays | arrays_of(self.names)

    def store_header(self) -> dict[str, Any]:
        """Everything else, as JSON can hold it."""
        return {
            "setting": vars(self.setting),
            "reading": dataclasses.replace(self.reading, format=None).to_json(),  # of a file, not of the model
            "belief": type(self.belief).__name__,
            "run": dict(self.run),
        }

    @classmethod
    def from_store(cls, header: dict[str, Any], arrays: dict[str, np.ndarray]) -> Self:
        """Undo `state` and `store_header`."""
        kind: Any = {kind.__name__: kind for kind in KINDS}[header["belief"]]
        belief = kind.from_state(schema.part_of(arrays, "belief."), copy=False)
        setting, reading = Setting.from_json(header["setting"]), Reading.from_json(header["reading"])
        schema.check(arrays, PARTS)
        schema.equal("belief.dim", belief.dim, reading.width, f"the slots of {reading.bits} bits")
        prior: DiagonalBelief = setting.prior(1)
        schema.equal("belief", type(belief), type(prior), f"as prior_std={setting.prior_std!r} says")
        schema.equal("belief.log_weights", belief.log_weights.size, prior.log_weights.size, "one for each prior")
        schema.equal("belief.cells", belief.dtype, prior.dtype, "as the setting says")
        for name, value in header["run"].items():
            whole(f"run {name}", value, least=0)
        return cls(
            setting,
            reading,
            belief,
            arrays["totals"],
            header["run"],
            names_of(arrays, reading),
            Scales.from_arrays(arrays, reading.width),
            **_of_numbers(arrays),
        )


def _of_numbers(arrays: dict[str, np.ndarray]) -> dict[str, Any]:
    """What a file knows of labels that are numbers: nothing, from before noise was learned."""
    found: dict[str, Any] = {"range": LabelRange.from_arrays(arrays)}
    if schema.together(arrays, ["noise", "squares"]):
        found |= {"noise": LabelNoise.from_arrays(arrays), "squares": arrays["squares"].copy()}
    return found


def rows_of(chunk: Chunk) -> Rows:
    """The rows of a chunk, as they are: readers leave no repetitions, and nothing that is not finite."""
    return Rows(chunk.indptr, chunk.indices, chunk.data, chunk.width, checked=True)


def refuse_row(chunk: Chunk, error: RowError) -> DataError:
    """Return what to tell about a row that cannot be learned."""
    place = f"{chunk.source}:{chunk.line[error.row]}"
    return DataError(f"{place}: the row drives the weights out of range; rescale its features")
