"""Weights of several classes, one Gaussian for each and nothing between them: a block-diagonal covariance."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Self, TypeAlias, final

import numpy as np

from gaussfold import checks, schema
from gaussfold.beliefs.dense.belief import DenseGaussian
from gaussfold.beliefs.diagonal.belief import DiagonalGaussian
from gaussfold.beliefs.lowrank.belief import LowRankGaussian
from gaussfold.dynamics import moving
from gaussfold.engine.softmax.dense import absorb_blocks
from gaussfold.engine.softmax.independent import independent_site
from gaussfold.engine.softmax.largest import class_log_average, room_for
from gaussfold.observations import Observations, admit
from gaussfold.rows import as_rows, dense_rows
from gaussfold.trace import ONCE, Pass, RowError, Trace, check_moments
from gaussfold.types import Array, ArrayLike, ClassProgram, Moments, Program

Part: TypeAlias = DenseGaussian | LowRankGaussian | DiagonalGaussian
COUNT = (schema.Part("blocks", (1,), "whole", low=2, high=2**31 - 1),)
"""What a model file holds besides the blocks."""


@final
class BlockGaussian:
    """Independent Gaussians, one over the weights of each class: θ = (θ₁, .., θ_K), class after class.

    ``fold(belief, Softmax(K), X, y)`` takes rows of as many columns as a block has parameters: latent k is x'θ_k.

    Parameters
    ----------
    blocks
        K beliefs of one kind and dimension: DenseGaussian, LowRankGaussian, or DiagonalGaussian with coupling="joint"
        (for wide sparse rows :class:`gaussfold.DiagonalBlocks` is compiled).

    Examples
    --------
    >>> import numpy as np
    >>> import gaussfold as gf
    >>> belief = BlockGaussian.isotropic(3, 2, std=1.0)
    >>> X = np.array([[1.0, 0.2], [-1.0, 0.5], [0.1, -2.0], [1.2, 0.0]])
    >>> result = gf.fold(belief, gf.likelihoods.Softmax(3), X, [0, 1, 2, 0])
    >>> print(result.log_predictive.round(2))
    [-1.1  -0.95 -0.9  -0.61]
    """

    def __init__(self, blocks: Sequence[Part]) -> None:
        self._blocks = list(blocks)
        checks.whole("len(blocks)", len(self._blocks), least=2, remedy="one class needs no softmax")
        first = self._blocks[0]
        for block in self._blocks:
            if type(block) not in (DenseGaussian, LowRankGaussian, DiagonalGaussian):
                msg = f"blocks: a {type(block).__name__}; give DenseGaussian, LowRankGaussian or DiagonalGaussian"
                raise ValueError(msg)
            if type(block) is not type(first) or block.dim != first.dim:
                msg = (
                    f"blocks: a {type(first).__name__} of {first.dim} parameters and a {type(block).__name__} of "
                    f"{block.dim}; all must be of one kind and size"
                )
                raise ValueError(msg)

    @classmethod
    def isotropic(cls, classes: int, features: int, std: float = 1.0, mean: ArrayLike = 0.0) -> Self:
        """Dense blocks N(mean, std² I)."""
        checks.whole("classes", classes, least=2)
        return cls([DenseGaussian.isotropic(features, std, mean) for _ in range(classes)])

    @property
    def blocks(self) -> list[Part]:
        """The beliefs, one for each class: not copies."""
        return list(self._blocks)

    @property
    def dim(self) -> int:
        """Number of parameters of all blocks."""
        return len(self._blocks) * self._blocks[0].dim

    @property
    def mean(self) -> Array:
        """Mean of all blocks, one after the other."""
        return np.concatenate([block.mean for block in self._blocks])

    def variance(self) -> Array:
        """Variance of each parameter."""
        return np.concatenate([block.variance() for block in self._blocks])

    def marginal(self, X: ArrayLike) -> Moments:
        """Mean and variance of x'θ for rows x over the parameters of all blocks."""
        rows = dense_rows(as_rows(X, self.dim))
        parts = [block.marginal(part) for block, part in zip(self._blocks, self._cut(rows), strict=True)]
        return Moments(*np.sum([tuple(part) for part in parts], axis=0))

    def class_marginals(self, X: ArrayLike, classes: int) -> Moments:
        """Mean and variance (n, K) of x'θ_k for rows x over the parameters of a block."""
        checks.same_dim("classes", classes, len(self._blocks))
        parts = [block.marginal(X) for block in self._blocks]
        return Moments(np.stack([p.mean for p in parts], axis=1), np.stack([p.variance for p in parts], axis=1))

    def sample(self, n: int, rng: np.random.Generator) -> Array:
        """Draw n parameter vectors, shape (n, dim)."""
        return np.concatenate([block.sample(n, rng) for block in self._blocks], axis=1)

    def log_prob(self, theta: ArrayLike) -> Array:
        """Log density at each row of theta (or at one vector)."""
        parts = self._cut(np.asarray(theta, dtype=float))
        return np.asarray(sum(block.log_prob(part) for block, part in zip(self._blocks, parts, strict=True)))

    def entropy(self) -> float:
        """Differential entropy in nats."""
        return sum(block.entropy() for block in self._blocks)

    def kl(self, other: BlockGaussian) -> float:
        """KL(self ‖ other) in nats."""
        return sum(ours.kl(theirs) for ours, theirs in zip(self._blocks, other.blocks, strict=True))  # type: ignore[arg-type, misc]

    def to_dense(self) -> DenseGaussian:
        """The same Gaussian with its covariance written out."""
        size = self._blocks[0].dim
        factor = np.zeros((self.dim, self.dim))
        for k, block in enumerate(self._blocks):
            factor[k * size : (k + 1) * size, k * size : (k + 1) * size] = block.to_dense().factor
        return DenseGaussian.from_factor(self.mean, factor)

    @classmethod
    def combine(cls, prior: BlockGaussian, shards: Iterable[BlockGaussian]) -> Self:
        """Prior × Π (shard / prior), block by block."""
        parts = [shard.blocks for shard in shards]
        return cls([
            type(block).combine(block, [part[k] for part in parts])  # type: ignore[arg-type, misc]
            for k, block in enumerate(prior.blocks)
        ])  # fmt: skip

    def copy(self) -> Self:
        """An independent copy."""
        return type(self)([block.copy() for block in self._blocks])

    def become(self, other: BlockGaussian) -> None:
        """Take over another belief's numbers; the other must not be used any more."""
        vars(self).update(vars(other))

    def state(self) -> dict[str, np.ndarray]:
        """Named arrays that hold everything; see :meth:`from_state`."""
        arrays = {"blocks": np.array([len(self._blocks)])}
        for k, block in enumerate(self._blocks):
            arrays |= {f"block{k}.{name}": array for name, array in block.state().items()}
        return arrays

    @classmethod
    def from_state(cls, state: dict[str, np.ndarray]) -> Self:
        """The belief of :meth:`state`, bit for bit."""
        schema.check(state, COUNT)
        return cls([_restored(schema.part_of(state, f"block{k}.")) for k in range(int(state["blocks"][0]))])

    def relax(self, factor: float, prior: BlockGaussian) -> None:
        """Every block towards its prior."""
        for block, towards in zip(self._blocks, self._like(prior), strict=True):
            block.relax(factor, towards)  # type: ignore[arg-type]

    def diffuse(self, variance: float | Array) -> None:
        """Add ``variance`` to every parameter's, independently: one for all, or one each."""
        each = self._cut(np.asarray(variance)) if np.ndim(variance) else [variance] * len(self._blocks)
        for block, share in zip(self._blocks, each, strict=True):
            block.diffuse(share)

    def absorb(self, x: Array, precision: float, shift: float) -> None:
        """Multiply by one site on f = x'θ, where x sees the parameters of one block only."""
        parts = self._cut(checks.finite_vector("x", x, self.dim))
        seen = [k for k, part in enumerate(parts) if part.any()]
        if len(seen) > 1:
            msg = f"x sees blocks {seen}: a block-diagonal belief takes rows of one block; use a DenseGaussian"
            raise ValueError(msg)
        for k in seen:
            self._blocks[k].absorb(parts[k], precision, shift)

    def absorb_row(self, row: Array, y: float, program: Program) -> Trace | None:
        """None: there is no quicker way than a stream of one."""
        del row, y, program
        return None

    def absorb_stream(self, data: Observations, program: Program, how: Pass = ONCE, *loose: object) -> Trace:
        """Refuse: a likelihood of one latent has no classes."""
        del data, program, how, loose
        msg = "belief: a BlockGaussian has a block for each class; fold Softmax(K) into it, or others into a block"
        raise ValueError(msg)

    def absorb_classes(self, data: Observations, program: ClassProgram, how: Pass = ONCE) -> Trace:
        """Visit rows with classes in order, each once: marginals, sites, absorb."""
        size = self._blocks[0].dim
        checks.same_dim("likelihood's classes", program.nodes.shape[0], len(self._blocks))
        data = admit(data, size)
        worked = self.copy()
        dense = [block for block in worked.blocks if isinstance(block, DenseGaussian)]
        if how.sites is not None and not dense:
            msg = "sites: only dense blocks can visit a row again; the others have dropped part of every site"
            raise ValueError(msg)
        trace = Trace.several(data.y.size, len(self._blocks), how.sites, independent=True)
        if dense and moving(how.dynamics) is None:
            worked = type(self)(_dense_pass(dense, data, program, trace))
        else:
            for i in range(data.y.size):
                try:
                    _visit(worked, data.part(slice(i, i + 1)), program, how, trace, i)
                except ValueError as error:  # too large for a prediction, or for the belief
                    raise RowError(i) from error
        if data.learned.any():  # else nothing changes, to the last bit
            self.become(worked)
        return trace

    def _cut(self, values: Array) -> list[Array]:
        """One part for each block, of the last axis."""
        return list(np.split(values, len(self._blocks), axis=-1))

    def _like(self, prior: object) -> list[Part]:
        if isinstance(prior, BlockGaussian):
            checks.same_dim("prior", prior.dim, self.dim)
            return prior.blocks
        msg = f"prior: a {type(prior).__name__}; a BlockGaussian forgets towards one of its own kind"
        raise ValueError(msg)


def _visit(belief: BlockGaussian, data: Observations, program: ClassProgram, how: Pass, trace: Trace, row: int) -> None:
    """One row: time passes, marginals, site, absorb."""
    learn = bool(data.learned[0])
    if learn and how.dynamics is not None:
        how.dynamics.tick(belief)
    rows = dense_rows(data.X)  # whatever they came as: sums in the same order
    found = check_moments(belief.class_marginals(rows, program.nodes.shape[0]))
    mean, variance = np.ascontiguousarray(found.mean[0]), np.ascontiguousarray(found.variance[0])
    trace.mean[row], trace.variance[row] = mean, variance
    trace.log_predictive[row] = np.nan
    if np.isnan(data.y[0]):
        return
    k, points = program.nodes.shape
    precision, gradient = np.empty(k), np.empty(k)
    weight = float(data.weight[0]) if variance.max() > 0.0 else 0.0
    trace.log_predictive[row] = class_log_average(
        mean, variance, int(data.y[0]), program.largest, room_for(k, program.largest), np.empty((3, k))
    )
    independent_site(
        mean, variance, int(data.y[0]), weight, program.nodes, np.empty((k + 2, points)), np.empty((8, k)),
        precision, gradient,
    )  # fmt: skip
    if not (np.isfinite(precision).all() and np.isfinite(gradient).all()):
        raise RowError(row)
    if weight > 0.0:
        shift = gradient + precision * (mean + variance * gradient)
        for block, share, pull in zip(belief.blocks, precision, shift, strict=True):
            block.absorb(rows[0], float(share), float(pull))
        trace.site_precision[row], trace.site_shift[row] = precision, shift


def _dense_pass(
    blocks: list[DenseGaussian], data: Observations, program: ClassProgram, trace: Trace
) -> list[DenseGaussian]:
    """All rows through the compiled loop; the blocks after them."""
    rows = dense_rows(data.X)
    means = np.stack([block.mean for block in blocks])
    factors = np.stack([block.factor for block in blocks])
    failed = absorb_blocks(
        factors, means, rows, data.y, data.weight, trace.site_precision, trace.site_shift, program.nodes,
        program.largest, trace.mean, trace.variance, trace.log_predictive,
    )  # fmt: skip
    if failed >= 0:
        raise RowError(int(failed))
    return [DenseGaussian.from_factor(*pair) for pair in zip(means, factors, strict=True)]


def _restored(state: dict[str, np.ndarray]) -> Part:
    """The block whose ``state`` this is; its kind is told by the names of its arrays."""
    if "W" in state:
        return LowRankGaussian.from_state(state)
    return DiagonalGaussian.from_state(state) if "cells" in state else DenseGaussian.from_state(state)
