"""From the parameters of a factor analysis to the stream that learns it: checked here, used nowhere else."""

from __future__ import annotations

from typing import TypedDict

import numpy as np

from gaussfold import checks
from gaussfold.beliefs.lowrank.options import MOST_LOOPS
from gaussfold.estimators.parameters import RandomState
from gaussfold.factors.gradient import OPTIMIZERS, GradientAscent
from gaussfold.factors.model import FactorStream
from gaussfold.factors.online_em import OnlineEM
from gaussfold.factors.projections import OF_COVARIANCES
from gaussfold.factors.recursive import RecursiveFactors
from gaussfold.types import Array, ArrayLike

METHODS = ("recursive-em", "online-em", "gradient")


class FactorParameters:
    """Types of the parameters; `StreamingFactorAnalysis` documents them."""

    n_components: int
    method: str
    inner_loops: int
    ppca: bool
    projection: str
    block_size: int | None
    step: str
    optimizer: object
    learning_rate: float
    warm_up: int | None
    center: bool
    start: ArrayLike
    start_noise: ArrayLike
    prior_count: int
    average_from: int | None
    random_state: RandomState


class _Shared(TypedDict):
    """What every method is told."""

    warm_up: int
    center: bool
    isotropic: bool
    start: Array | None
    rng: np.random.Generator


def new_stream(parameters: FactorParameters, dim: int, start: Array | None = None) -> FactorStream:
    """A stream that has seen nothing, by the parameters, all of them checked; ``start`` are factors to go on from."""
    rank = checks.whole("n_components", parameters.n_components)
    if rank > dim:
        msg = f"n_components={rank}: more factors than the {dim} features; 1 to {dim} are allowed"
        raise ValueError(msg)
    checks.one_of("method", parameters.method, METHODS)
    checks.one_of("projection", parameters.projection, OF_COVARIANCES)
    checks.one_of("step", parameters.step, ("power", "average"))
    warm_up = 100 if parameters.warm_up is None else checks.whole("warm_up", parameters.warm_up, least=0)
    if parameters.block_size is not None:
        checks.whole("block_size", parameters.block_size)
    given = _given("start", parameters.start, (dim, rank))
    noise = _given("start_noise", parameters.start_noise, (dim,))
    if noise is not None:
        checks.positive_entries("start_noise", noise)
    shared = _Shared(
        warm_up=warm_up,
        center=checks.flag("center", parameters.center),
        isotropic=checks.flag("ppca", parameters.ppca),
        start=given if start is None else start,
        rng=checks.generator(parameters.random_state),
    )
    if parameters.method == "recursive-em":
        return _recursive(parameters, dim, rank, noise, shared)
    if parameters.method == "online-em":
        return _online(parameters, dim, rank, noise, shared)
    return GradientAscent(dim, rank, optimizer=_optimizer(parameters), **shared)


def _recursive(parameters: FactorParameters, dim: int, rank: int, noise: Array | None, shared: _Shared) -> FactorStream:
    return RecursiveFactors(
        dim,
        rank,
        projection=parameters.projection,
        inner_loops=checks.whole("inner_loops", parameters.inner_loops, most=MOST_LOOPS),
        block_size=parameters.block_size or 32,
        start_psi=noise,
        **shared,
    )


def _online(parameters: FactorParameters, dim: int, rank: int, noise: Array | None, shared: _Shared) -> FactorStream:
    default_block = 1 if parameters.step == "average" or parameters.start is not None else max(100, dim)
    return OnlineEM(
        dim,
        rank,
        step=parameters.step,
        averaging=parameters.step == "power",
        average_from=parameters.average_from,
        block_size=parameters.block_size or default_block,
        prior_count=checks.whole("prior_count", parameters.prior_count, least=0),
        start_psi=noise,
        **shared,
    )


def _optimizer(parameters: FactorParameters) -> object:
    if not isinstance(parameters.optimizer, str):
        return parameters.optimizer
    return type(OPTIMIZERS.resolve(parameters.optimizer))(checks.positive("learning_rate", parameters.learning_rate))


def _given(name: str, value: ArrayLike, shape: tuple[int, ...]) -> Array | None:
    if value is None:
        return None
    array = np.array(value, dtype=np.float64)
    if array.shape != shape or not np.isfinite(array).all():
        msg = f"{name}: shape {array.shape}; finite numbers of shape {shape} are needed"
        raise ValueError(msg)
    return array
