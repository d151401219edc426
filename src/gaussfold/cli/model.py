"""A model as the command line keeps it: a belief, how rows are read, and how far the stream has come."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple, Self

import numpy as np

from gaussfold import likelihoods
from gaussfold.beliefs.cellular import Rows
from gaussfold.beliefs.diagonal import DiagonalGaussian
from gaussfold.beliefs.mixture import PRIOR_GRID, DiagonalMixture
from gaussfold.beliefs.trace import RowError, Trace
from gaussfold.data.chunks import Chunk
from gaussfold.data.messages import DataError
from gaussfold.data.reading import Reading
from gaussfold.dynamics import Forgetting
from gaussfold.engine.totals import LEARNED, LOSS, POSITIVE, SEEN, WEIGHT, add_losses
from gaussfold.folding import recipe_of
from gaussfold.types import Array, Moments

AUTO = "auto"


@dataclass(frozen=True)
class Setting:
    """What is learned, as the user chose it."""

    prior_std: float | str = 1.0  # AUTO becomes the default once it costs less than four single priors
    link: str = "logit"
    rule: str = "newton"
    coupling: str = "marginal"
    forgetting: float = 1.0
    dtype: str = "float64"

    def __post_init__(self) -> None:
        """Refuse numbers that make no sense."""
        if self.prior_std != AUTO and not (isinstance(self.prior_std, float) and 0.0 < self.prior_std <= 1e6):
            msg = f"prior-std={self.prior_std!r}: 'auto' or a number > 0 is needed"
            raise ValueError(msg)
        if not 0.0 < self.forgetting <= 1.0:
            msg = f"forgetting={self.forgetting!r}: a number > 0 and <= 1 is needed; 1 remembers everything"
            raise ValueError(msg)

    def prior(self, dim: int) -> Any:
        """Return the belief before any data."""
        if self.prior_std == AUTO:
            return DiagonalMixture.isotropic(dim, PRIOR_GRID, coupling=self.coupling, dtype=self.dtype)
        return DiagonalGaussian.isotropic(dim, float(self.prior_std), coupling=self.coupling, dtype=self.dtype)


class Prediction(NamedTuple):
    """Per row: probability of label 1, and mean and standard deviation of x'θ."""

    probability: Array
    mean: Array
    std: Array


@dataclass
class StreamModel:
    """A belief over hashed features that goes on where it stopped, bit for bit.

    ``run`` says where in its input an unfinished training run stands: rows taken, passes done.
    """

    setting: Setting
    reading: Reading
    belief: Any = None
    totals: Array = field(default_factory=lambda: np.zeros(6))
    run: dict[str, int] = field(default_factory=dict)
    names: dict[int, str] | None = None

    def __post_init__(self) -> None:
        """Resolve names once."""
        self._likelihood = likelihoods.Bernoulli(self.setting.link)  # type: ignore[arg-type]
        self._program = recipe_of(self._likelihood, self.setting.rule, "posterior").program
        if self.belief is None:
            self.belief = self.setting.prior(self.reading.width)
        self._dynamics = None
        if self.setting.forgetting < 1.0:
            self._dynamics = Forgetting(self.setting.forgetting, self.setting.prior(self.reading.width))

    # Learning.

    def learn(self, chunk: Chunk) -> Trace:
        """Fold a chunk in; the trace has the predictions made before each row was learned.

        A row that would drive the posterior out of range raises `DataError`, after the rows before it were learned.
        """
        try:
            trace = self._absorb(chunk)
        except RowError as error:
            place = f"{chunk.source}:{chunk.line[error.row]}"
            msg = f"{place}: the row drives the weights out of range; rescale its features"
            raise DataError(msg) from error
        if chunk.names and self.names is not None:
            for slot, name in chunk.names:
                self.names.setdefault(slot, name)
        return trace

    def _absorb(self, chunk: Chunk) -> Trace:
        rows = Rows(chunk.indptr, chunk.indices, chunk.data)  # the readers leave no repetitions
        trace: Trace = self.belief.absorb_rows(
            rows, chunk.label, chunk.weight, self._program, self._dynamics, whole=False
        )
        return trace

    def score(self, chunk: Chunk) -> Trace:
        """Predictions and their log scores without learning."""
        if isinstance(self.belief, DiagonalMixture):
            means, variances = self.belief.marginals(chunk.X)
            scores = self._likelihood.log_predictive(chunk.label[:, None], Moments(means, variances))
            log_p = np.logaddexp.reduce(self.belief.log_weights + scores, axis=1)
            mean, variance = self.belief.marginal(chunk.X)
        else:
            mean, variance = self.belief.marginal(chunk.X)
            log_p = self._likelihood.log_predictive(chunk.label, Moments(mean, variance))
        nothing = np.zeros(len(chunk))
        return Trace(mean, variance, log_p, nothing, nothing)

    def add(self, chunk: Chunk, trace: Trace, start: int, stop: int) -> None:
        """Count rows ``start:stop`` in the progressive loss."""
        add_losses(self.totals, trace.log_predictive, chunk.label, chunk.weight, start, stop)

    # Reading off.

    def predict(self, chunk: Chunk) -> Prediction:
        """Probability of label 1 with the weights integrated out, and mean and standard deviation of x'θ."""
        mean, variance = self.belief.marginal(chunk.X)
        if isinstance(self.belief, DiagonalMixture):
            latent = Moments(*self.belief.marginals(chunk.X))
            probability = self._likelihood.predictive(latent).mean @ self.belief.weights
        else:
            probability = self._likelihood.predictive(Moments(mean, variance)).mean
        return Prediction(probability, mean, np.sqrt(variance))

    def before(self, trace: Trace, label: Array) -> Prediction:
        """Predictions that a trace holds; exact where there is a label, else by its mean and variance."""
        probability = self._likelihood.predictive(Moments(trace.mean, trace.variance)).mean
        scored = np.exp(trace.log_predictive)
        probability = np.where(label == 1.0, scored, np.where(label == 0.0, 1.0 - scored, probability))
        return Prediction(probability, trace.mean, np.sqrt(trace.variance))

    def thompson(self, chunk: Chunk, seed: int) -> Array:
        """Probabilities under one draw of the weights; the same draw for all chunks, by the seed and the slot."""
        columns, place = np.unique(chunk.indices, return_inverse=True)
        normals = _normals(columns, seed)
        if isinstance(self.belief, DiagonalMixture):
            k = int(np.random.default_rng(seed).choice(len(self.belief.weights), p=self.belief.weights))
            cells = np.broadcast_to(self.belief._current(columns), (len(columns), 2, len(self.belief.weights)))
            theta = cells[:, 0, k] + np.sqrt(cells[:, 1, k]) * normals
        else:
            mean, variance = self.belief.weights(columns)
            theta = mean + np.sqrt(variance) * normals
        matrix = chunk.X
        matrix.data = chunk.data * theta[place]
        return np.asarray(self._likelihood.conditional(np.asarray(matrix.sum(axis=1)).ravel()).mean)

    @property
    def average_loss(self) -> float:
        """Mean log loss of predicting each labelled row before learning it."""
        return float(self.totals[LOSS] / self.totals[WEIGHT]) if self.totals[WEIGHT] else float("nan")

    @property
    def base_rate_loss(self) -> float:
        """Loss of the best constant prediction in hindsight."""
        weight = self.totals[WEIGHT]
        if not weight:
            return float("nan")
        p = np.array([self.totals[POSITIVE] / weight, 1.0 - self.totals[POSITIVE] / weight])
        return float(-(p[p > 0] * np.log(p[p > 0])).sum())

    @property
    def examples(self) -> int:
        """Rows seen, with or without a label."""
        return int(self.totals[SEEN])

    @property
    def learned(self) -> int:
        """Rows learned."""
        return int(self.totals[LEARNED])

    def used(self) -> np.ndarray[Any, Any]:
        """Which slots (the constant's left out) any row has touched."""
        cells = self.belief._cells
        if cells.shape[0] == 1:
            return np.zeros(1 << self.reading.bits, bool)
        prior = self.setting.prior(1)._cells[0]
        touched = np.zeros(1 << self.reading.bits, bool)
        for place, value in np.ndenumerate(prior):  # column by column: a reduction over tiny axes is slow
            touched |= cells[(slice(touched.size), *place)] != value
        return touched

    # Model files: see `gaussfold.store`.

    def state(self) -> dict[str, np.ndarray[Any, Any]]:
        """Everything numeric, as named arrays (the belief's are views)."""
        arrays = {f"belief.{name}": array for name, array in self.belief.state(copy=False).items()}
        arrays["totals"] = self.totals
        if self.names is not None:
            slots = sorted(self.names)
            text = [self.names[slot].encode() for slot in slots]
            arrays["names.slots"] = np.array(slots, np.int64)
            arrays["names.sizes"] = np.array([len(raw) for raw in text], np.int64)
            arrays["names.text"] = np.frombuffer(b"".join(text), np.uint8)
        return arrays

    def store_header(self) -> dict[str, Any]:
        """Everything else, as JSON can hold it."""
        return {
            "setting": vars(self.setting),
            "reading": self.reading.to_json(),
            "belief": type(self.belief).__name__,
            "run": dict(self.run),
        }

    @classmethod
    def from_store(cls, header: dict[str, Any], arrays: dict[str, np.ndarray[Any, Any]]) -> Self:
        """Undo `state` and `store_header`."""
        kind: Any = {"DiagonalGaussian": DiagonalGaussian, "DiagonalMixture": DiagonalMixture}[header["belief"]]
        belief = kind.from_state(
            {name.removeprefix("belief."): array for name, array in arrays.items() if name.startswith("belief.")}
        )
        names = None
        if "names.slots" in arrays:
            ends = np.cumsum(arrays["names.sizes"]).tolist()
            text = arrays["names.text"].tobytes()
            pieces = [text[a:b].decode() for a, b in zip([0, *ends[:-1]], ends, strict=True)] if ends else []
            names = dict(zip(arrays["names.slots"].tolist(), pieces, strict=True))
        return cls(
            Setting(**header["setting"]),
            Reading.from_json(header["reading"]),
            belief,
            arrays["totals"],
            header["run"],
            names,
        )


def _normals(columns: np.ndarray[Any, Any], seed: int) -> Array:
    """Return a standard normal number per slot that depends on the slot and the seed alone (SplitMix64)."""
    from scipy.special import ndtri

    with np.errstate(over="ignore"):
        z = columns.astype(np.uint64) + np.uint64(seed % 2**32) * np.uint64(0x9E3779B97F4A7C15)
        z = (z + np.uint64(0x9E3779B97F4A7C15)) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        z ^= z >> np.uint64(31)
    return np.asarray(ndtri(((z >> np.uint64(11)).astype(np.float64) + 0.5) * 2.0**-53))
