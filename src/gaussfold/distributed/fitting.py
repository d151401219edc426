"""``gaussfold.distributed.fit``: an estimator learned from files by many workers."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any, Self, TypeGuard

import numpy as np
from scipy import sparse
from sklearn.base import clone

from gaussfold import likelihoods
from gaussfold.beliefs.diagonal.apart import Apart
from gaussfold.beliefs.diagonal.base import DiagonalBelief
from gaussfold.beliefs.diagonal.belief import DiagonalGaussian
from gaussfold.beliefs.diagonal.mixture import DiagonalMixture
from gaussfold.beliefs.diagonal.stack import DiagonalStack
from gaussfold.beliefs.restoring import restore_single
from gaussfold.checks import one_of, refuse
from gaussfold.data.chunks import Chunk
from gaussfold.data.reading import Reading, Roles
from gaussfold.data.units import units_of
from gaussfold.distributed.frames import written
from gaussfold.distributed.learning import Gained, learn_apart
from gaussfold.distributed.plan import Scheme, rounds_of
from gaussfold.distributed.rounds import Engine, learn_rounds
from gaussfold.engine.arrays.progressive_loss import LEARNED, LOSS, WEIGHT, add_losses
from gaussfold.estimators import StreamingClassifier, StreamingRegressor
from gaussfold.estimators.priors import RULES
from gaussfold.rows import Rows
from gaussfold.rules.base import StreamRule
from gaussfold.trace import Trace
from gaussfold.types import Array

STILL = {"forgetting": 1.0, "drift_std": 0.0, "second_look": 0, "ensemble": 1}
"""Parameters that mean an order of rows, or several beliefs, unless they are this."""


@dataclass
class FoldLearner:
    """A likelihood and a rule with a diagonal belief: what a worker needs of an estimator."""

    likelihood: likelihoods.Bernoulli | likelihoods.Gaussian
    rule: str | StreamRule
    belief: DiagonalBelief
    reading: Reading
    totals: Array = field(default_factory=lambda: np.zeros(6))
    names: dict[int, str] | None = None

    def apart(self, shards: int, least: float) -> FoldApart:
        """What the shards of a round are learned by in one process."""
        return FoldApart(self, self.belief.apart(shards, least))

    def take(self, gained: Gained) -> None:
        """Count what a shard has counted."""
        self.totals += gained.totals

    def state(self) -> dict[str, np.ndarray]:
        """The belief's arrays and the totals."""
        return {**self.belief.state(copy=False), "totals": self.totals}

    def store_header(self) -> dict[str, Any]:
        """The rest, as it can be pickled."""
        return {"likelihood": self.likelihood, "rule": self.rule, "reading": self.reading}

    @classmethod
    def from_store(cls, header: dict[str, Any], arrays: dict[str, np.ndarray]) -> Self:
        """Undo ``state`` and ``store_header``."""
        rest = dict(arrays)
        totals, belief = rest.pop("totals"), restore_single(rest)
        assert isinstance(belief, DiagonalBelief)
        return cls(header["likelihood"], header["rule"], belief, header["reading"], totals)


class FoldApart:
    """A `FoldLearner` apart: see `gaussfold.distributed.work.LearnerApart`."""

    def __init__(self, learner: FoldLearner, apart: Apart) -> None:
        self._learner, self._apart, self._totals = learner, apart, np.zeros(6)

    def begin(self, index: int) -> None:
        """The next shard."""
        self._apart.begin(index)
        self._totals = np.zeros(6)

    def learn(self, chunk: Chunk) -> Trace:
        """Learn a chunk."""
        known = self._learner
        return learn_apart(self._apart, known.likelihood, known.rule, _rows(chunk), chunk.label, chunk.weight)

    def add(self, chunk: Chunk, trace: Trace, start: int, stop: int) -> None:
        """Count rows in the progressive loss."""
        add_losses(self._totals, trace.log_predictive, chunk.label, chunk.weight, start, stop)

    def sizes(self, chunk: Chunk) -> np.ndarray:
        """How large features are."""
        return np.asarray(np.abs(chunk.data))

    def gained(self, *, last: bool) -> Gained:
        """What the shard has learned, which ends it."""
        return Gained(self._apart.delta(last=last), self._totals, None)


def fit(
    model: StreamingClassifier | StreamingRegressor,
    source: Any,
    *,
    label: str | None = None,
    client: Any = None,
    workers: int | None = None,
    staging: str | os.PathLike[str] | None = None,
    skip_bad: int = 0,
    scheme: Scheme | None = None,
    **columns: Any,
) -> StreamingClassifier | StreamingRegressor:
    """Forget everything, then learn all rows of some files, by as many workers as there are; in place.

    The model is the same, bit for bit, whatever the number of workers and whoever runs them. Rows are read by the
    workers, as ``gaussfold.data.read`` reads them with the same options: fresh rows for ``predict_proba`` come from
    there.

    Parameters
    ----------
    model
        A `StreamingClassifier` (labels 0 and 1) or a `StreamingRegressor` with a number for ``noise_std``, with
        ``covariance="diagonal"``, without forgetting, drift, a second look or an ensemble.
    source
        Paths or globs, of Parquet, CSV, Vowpal Wabbit or svmlight text; the workers must find them there, too. Or a
        Dask or Spark DataFrame, a Dask Array (its columns are called x0, x1, ...; the label is one of them) or a Ray
        Dataset: its workers write it once, as Parquet, and learn from that.
    label
        Column of the label.
    client
        Who runs the workers: a Dask ``Client``, a ``SparkSession``, the module ``ray`` (connected by ``ray.init()``),
        or any `gaussfold.distributed.Engine`; None: processes of this machine.
    workers
        How many processes, without a client; None: one a core.
    staging
        Where a frame is written to, a folder that all workers reach; None: a temporary one of this machine.
    skip_bad
        So many bad records, or rows of damaged row groups, are left out.
    scheme
        How rounds grow.
    columns
        ``bits``, ``weight``, ``ignore``, ``numeric``, ``categorical``, ``interact``, ``positive``: what columns mean
        and how names become features, as `gaussfold.data.read` takes them.

    Returns
    -------
    The model itself.

    Raises
    ------
    ShardError
        A shard failed on every worker; its units are named.
    DataError
        The files cannot be read, or do not go together; the model is as it was.
    """
    likelihood, labels = _likelihood(model)
    _check(model)
    if not _are_paths(source):
        with written(source, staging, client) as (files, own):
            return fit(
                model, files, label=label, client=own, workers=workers, skip_bad=skip_bad, scheme=scheme, **columns
            )
    scheme = Scheme() if scheme is None else scheme
    reading, roles = _reading({"labels": labels, "constant": bool(model.fit_intercept)}, label, **columns)
    units = units_of(source, reading, roles, scheme.head // 2)
    blank = _unlearned(model, 1 << reading.bits)
    prior = _prior(blank)
    learner = FoldLearner(likelihood, RULES["diagonal"] if model.rule is None else model.rule, prior, units.reading)
    with _engine(client, workers) as engine:
        for _ in learn_rounds(learner, rounds_of(units.units, scheme), engine, scheme, skip_bad=skip_bad):
            pass
    _put_back(model, blank, learner)
    return model


def _are_paths(source: Any) -> TypeGuard[str | os.PathLike[str] | Sequence[str | os.PathLike[str]]]:
    one = (str, os.PathLike)
    return isinstance(source, one) or (isinstance(source, Sequence) and all(isinstance(each, one) for each in source))


def _prior(blank: StreamingClassifier | StreamingRegressor) -> DiagonalBelief:
    prior = blank.posterior_
    if isinstance(prior, DiagonalGaussian | DiagonalMixture | DiagonalStack):
        return prior
    msg = f"prior_std={blank.prior_std!r}: a {type(prior).__name__} cannot be added up over workers; give a number"
    raise ValueError(msg)


def _reading(
    known: dict[str, Any],
    label: str | None,
    *,
    bits: int = 18,
    weight: str | None = None,
    ignore: Sequence[str] = (),
    numeric: Sequence[str] = (),
    categorical: Sequence[str] = (),
    interact: Sequence[str] = (),
    positive: str | None = None,
) -> tuple[Reading, Roles]:
    reading = Reading(bits=bits, interact=tuple(interact), positive=positive, **known)
    return reading, Roles(label, weight, None, tuple(ignore), tuple(numeric), tuple(categorical))


def _likelihood(
    model: StreamingClassifier | StreamingRegressor,
) -> tuple[likelihoods.Bernoulli | likelihoods.Gaussian, str]:
    if isinstance(model, StreamingClassifier):
        return likelihoods.Bernoulli(model.link, model.expectation), "binary"
    known = isinstance(model, StreamingRegressor)
    if not known:
        msg = f"model: a {type(model).__name__}; a StreamingClassifier or StreamingRegressor can be learned apart"
        raise ValueError(msg)
    if isinstance(model.noise_std, str) or model.df is not None:
        msg = f"noise_std={model.noise_std!r}, df={model.df!r}: apart, noise is normal of a known size; give a number"
        raise ValueError(msg)
    return likelihoods.Gaussian(float(model.noise_std)), "real"


def _check(model: StreamingClassifier | StreamingRegressor) -> None:
    one_of("covariance", model.covariance, ("diagonal",))  # features of files are hashed; arrays: distributed.fold
    for name, value in STILL.items():
        if vars(model)[name] != value:
            refuse(name, vars(model)[name], f"{value!r} where workers learn apart", "learn in one process")


def _unlearned(
    model: StreamingClassifier | StreamingRegressor, features: int
) -> StreamingClassifier | StreamingRegressor:
    """A model with these parameters that has seen one row without a label."""
    fresh = clone(model)
    nothing = sparse.csr_matrix((1, features))
    if isinstance(fresh, StreamingClassifier):
        return fresh.partial_fit(nothing, np.array([np.nan]), classes=[0.0, 1.0])
    fresh.partial_fit(nothing, np.array([np.nan]))
    assert isinstance(fresh, StreamingRegressor)
    return fresh


def _put_back(
    model: StreamingClassifier | StreamingRegressor,
    blank: StreamingClassifier | StreamingRegressor,
    learner: FoldLearner,
) -> None:
    """Make the model one that has learned this."""
    arrays = {name: array for name, array in blank.state().items() if not name.startswith("belief0.")}
    arrays |= {f"belief0.{name}": array for name, array in learner.belief.state().items()}
    totals = learner.totals
    arrays["progress"] = np.array([totals[LEARNED], totals[LOSS], totals[WEIGHT]])
    fitted = type(model).from_store(blank.store_header(), arrays)
    for name, value in vars(fitted).items():
        setattr(model, name, value)


def _rows(chunk: Chunk) -> Rows:
    return Rows(chunk.indptr, chunk.indices, chunk.data, chunk.width, checked=True)


@contextlib.contextmanager
def _engine(client: Any, workers: int | None) -> Iterator[Engine]:
    if client is not None:
        yield engine_of(client)
        return
    from gaussfold.distributed.processes import Processes

    with Processes(workers if workers is not None else os.cpu_count() or 1) as engine:
        yield engine


def engine_of(client: Any) -> Engine:
    """Who runs shards for a client of Dask, Spark or Ray, told by where its type or the module comes from."""
    home = (client.__name__ if isinstance(client, ModuleType) else type(client).__module__).split(".")[0]
    known = ENGINES.get(home)
    if known is not None:
        return known(client)
    if isinstance(client, Engine):
        return client
    msg = f"client: a {type(client).__name__}; a Dask Client, a SparkSession or the module ray is needed"
    raise ValueError(msg)


def _dask(client: Any) -> Engine:
    from gaussfold.distributed.on_dask import OnDask

    return OnDask(client)


def _spark(client: Any) -> Engine:
    from gaussfold.distributed.on_spark import OnSpark

    return OnSpark(client)


def _ray(_client: Any) -> Engine:
    from gaussfold.distributed.on_ray import OnRay

    return OnRay()


ENGINES: dict[str, Callable[[Any], Engine]] = {"distributed": _dask, "pyspark": _spark, "ray": _ray}
