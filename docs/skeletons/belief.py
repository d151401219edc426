"""Skeleton of a belief: a Gaussian by its natural parameters, precision Λ and Λ·mean. Copy, rename, replace.

In the package: this file in ``beliefs/``, one line in ``beliefs/__init__.py`` and one in ``registry.py`` (``MODELS``).
From outside: this file and ``gaussfold.registry.register("model", InformationGaussian)``. The protocols it keeps are in
``gaussfold.protocols``: ``Gaussian`` (what can be read) and ``Belief`` (what can be folded into). It never looks inside
a program; where speed matters, write ``absorb_stream`` as a compiled loop in ``engine/`` and let its twin stay here.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Self, final

import numpy as np

import gaussfold as gf
from gaussfold import schema
from gaussfold.beliefs.natural import combined
from gaussfold.engine.arrays import over_arrays
from gaussfold.observations import Observations
from gaussfold.rows import as_rows, dense_rows
from gaussfold.trace import ONCE, Pass, RowError, Trace, learn_before_failure
from gaussfold.types import Array, ArrayLike, Moments, Program

PARTS = (
    schema.Part("precision", ("d", "d"), "double", symmetric=True),
    schema.Part("precision_mean", ("d",), "double"),
)
"""What a model file holds of it."""


@final
class InformationGaussian:
    """N(mean, Λ⁻¹), kept as Λ and Λ·mean: absorbing a site is an addition."""

    def __init__(self, precision: ArrayLike, precision_mean: ArrayLike) -> None:
        self._precision = np.array(precision, dtype=float)
        self._precision_mean = np.array(precision_mean, dtype=float)

    # What can be read

    @property
    def dim(self) -> int:
        """Number of parameters."""
        return self._precision_mean.size

    @property
    def mean(self) -> Array:
        """Λ⁻¹ (Λ·mean)."""
        return np.linalg.solve(self._precision, self._precision_mean)

    def variance(self) -> Array:
        """Of each parameter."""
        return np.diag(np.linalg.inv(self._precision)).copy()

    def marginal(self, X: ArrayLike) -> Moments:
        """Mean and variance of x'θ for each row; X may be sparse."""
        rows = dense_rows(as_rows(X, self.dim))
        return Moments(rows @ self.mean, np.einsum("ij,ij->i", rows @ np.linalg.inv(self._precision), rows))

    def to_dense(self) -> gf.DenseGaussian:
        """The same with its covariance written out; what is asked rarely may go that way."""
        return gf.DenseGaussian(self.mean, np.linalg.inv(self._precision))

    def sample(self, n: int, rng: np.random.Generator) -> Array:
        """Draws, shape (n, dim)."""
        return self.to_dense().sample(n, rng)

    def log_prob(self, theta: ArrayLike) -> Array:
        """Log density."""
        return self.to_dense().log_prob(theta)

    def entropy(self) -> float:
        """In nats."""
        return self.to_dense().entropy()

    def kl(self, other: InformationGaussian) -> float:
        """KL(self ‖ other), in nats."""
        return self.to_dense().kl(other.to_dense())

    def natural(self) -> tuple[Array, Array]:
        """The parameters that add."""
        return self._precision, self._precision_mean

    @classmethod
    def combine(cls, prior: InformationGaussian, shards: Iterable[InformationGaussian]) -> Self:
        """Prior × Π (shard / prior)."""
        return cls(*combined(prior, shards))

    # What is stored

    def copy(self) -> Self:
        """A twin that shares no memory."""
        return type(self)(*self.natural())

    def become(self, other: InformationGaussian) -> None:
        """Take over another's numbers."""
        self._precision, self._precision_mean = other.natural()

    def state(self) -> dict[str, np.ndarray]:
        """Everything, as named arrays."""
        return {"precision": self._precision.copy(), "precision_mean": self._precision_mean.copy()}

    @classmethod
    def from_state(cls, state: dict[str, np.ndarray]) -> Self:
        """Undo it, bit for bit; a file is checked before it is believed."""
        schema.check(state, PARTS)
        return cls(state["precision"], state["precision_mean"])

    # What can be folded into

    def absorb(self, x: Array, precision: float, shift: float) -> None:
        """Multiply by the site exp(shift·f - ½·precision·f²), f = x'θ."""
        self._precision = self._precision + precision * np.outer(x, x)
        self._precision_mean = self._precision_mean + shift * x

    def relax(self, factor: float, prior: InformationGaussian) -> None:
        """Towards the prior, for forgetting."""
        base, base_mean = prior.natural()
        self._precision = factor * self._precision + (1.0 - factor) * base
        self._precision_mean = factor * self._precision_mean + (1.0 - factor) * base_mean

    def diffuse(self, variance: float) -> None:
        """Add to every parameter's variance, for random walks."""
        mean, cov = self.mean, np.linalg.inv(self._precision) + variance * np.eye(self.dim)
        self._precision = np.linalg.inv(cov)
        self._precision_mean = self._precision @ mean

    def absorb_row(self, row: Array, y: float, program: Program) -> Trace | None:
        """None: there is no quicker way for one row."""
        del row, y, program

    def absorb_stream(self, data: Observations, program: Program, how: Pass = ONCE) -> Trace:
        """Visit rows in order; on an error nothing has changed, or (not ``whole``) the rows before stay learned."""
        dynamics, sites, block_size, whole = how
        if not whole:
            again = Pass(dynamics, sites, block_size)
            return learn_before_failure(lambda part: self.absorb_stream(part, program, again), data)
        worked, trace = self.copy(), Trace.empty(data.y.size)
        for i, learn in enumerate(data.learned):
            if learn and dynamics is not None:
                dynamics.tick(worked)
            old = (0.0, 0.0) if sites is None else (sites.site_precision[i], sites.site_shift[i])
            if not worked._visit(data.part(slice(i, i + 1)), program, old, bool(learn), trace.rows(i, i + 1)):
                raise RowError(i)
        self.become(worked)
        return trace

    def _visit(self, row: Observations, program: Program, old: tuple[float, float], learn: bool, trace: Trace) -> bool:
        """One row: its old site out, marginal, score, site, absorb; False if the site is not finite."""
        x = dense_rows(row.X)[0]
        self.absorb(x, -old[0], -old[1])
        m0, v0 = self.marginal(x[None])
        trace.mean[:], trace.variance[:] = m0, v0
        trace.log_predictive[:] = over_arrays.log_predictive(program.family, row.y, m0, v0)
        if learn:
            gradient, curvature, m, _, _ = over_arrays.sites(*program, row.y, row.weight, m0, v0)
            trace.site_precision[:], trace.site_shift[:] = -curvature, gradient - curvature * m
            self.absorb(x, float(trace.site_precision[0]), float(trace.site_shift[0]))
        return bool(np.isfinite(self._precision_mean).all())
