"""Rows that see several latents at once: classes by compiled loops, anything else one row after the other in Python.

Two forms of X. A matrix per row, (n, q, d): latents f = Hθ. Or rows of a belief over K blocks of weights, (n, d) with
dim = K d: latent k is x'θ_k, as for ``Softmax``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, Protocol, runtime_checkable

import numpy as np

from gaussfold.checks import doubles, finite_entries
from gaussfold.dynamics import Dynamics
from gaussfold.expectations.classes import predicting_nodes
from gaussfold.expectations.largest import largest_table
from gaussfold.likelihoods.chained import VectorLikelihood
from gaussfold.observations import Observations, check_weight
from gaussfold.protocols import Belief
from gaussfold.rows import Block, Rows, as_rows, dense_rows, is_sparse
from gaussfold.rules.base import SiteRule
from gaussfold.rules.cavities import cavities
from gaussfold.rules.vector_sites import VectorRecipe, make_vector_site
from gaussfold.trace import Pass, RowError, Trace
from gaussfold.types import Array, ArrayLike, ClassProgram, Sites


@runtime_checkable
class TakesClasses(Protocol):
    """A belief over the weights of K classes whose compiled loop visits rows with classes."""

    def absorb_classes(self, data: Observations, program: ClassProgram, how: Pass = ...) -> Trace:
        """Visit checked rows in order; labels are class numbers."""
        ...


@runtime_checkable
class TellsLatents(Protocol):
    """A belief that tells the joint distribution of several latents itself."""

    def latents(self, H: Array) -> tuple[Array, Array]:
        """Mean (q,) and covariance (q, q) of Hθ."""
        ...


class VectorData(NamedTuple):
    """Checked rows: the matrix H of each is ``design(i)``."""

    design: Callable[[int], Array]
    Y: Array
    weight: Array
    rows: Observations | None
    """The same with rows of one block's weights, where they are such."""

    @property
    def learned(self) -> np.ndarray:
        """Which rows say something: some label not missing, weight not zero."""
        return ~np.isnan(self.Y).all(axis=1) & (self.weight > 0.0)


def fold_vectors(
    belief: Belief, recipe: VectorRecipe, X: ArrayLike, Y: ArrayLike, sample_weight: ArrayLike | None, how: Pass
) -> Trace:
    """Fold rows of several latents into a belief; see :func:`gaussfold.fold`."""
    data = check_vectors(recipe.likelihood, X, Y, belief.dim, sample_weight)
    nodes = recipe.likelihood.class_nodes if _is_compiled(recipe) else None
    if nodes is not None and data.rows is not None and isinstance(belief, TakesClasses):
        program = ClassProgram(nodes, predicting_nodes(recipe.likelihood.latents), largest_table())
        try:
            return belief.absorb_classes(data.rows, program, how)
        except RowError as error:
            if how.whole or error.trace is not None:
                raise
            raise RowError(error.row, belief.absorb_classes(data.rows.part(slice(error.row)), program, how)) from error
    worked = belief.copy()
    trace = Trace.several(len(data.Y), recipe.likelihood.latents, how.sites)
    for i in range(len(data.Y)):
        before = None if how.whole else worked.copy()
        try:
            _visit(worked, recipe, data, i, how.dynamics, trace)
        except RowError as error:
            if before is None:
                raise
            belief.become(before)
            raise RowError(i, Trace(*(column[:i].copy() for column in trace))) from error
    belief.become(worked)
    return trace


def check_vectors(
    likelihood: VectorLikelihood, X: ArrayLike, Y: ArrayLike, dim: int, sample_weight: ArrayLike | None
) -> VectorData:
    """Check rows, labels and weights against a likelihood of several latents and a belief's dimension."""
    latents = likelihood.latents
    if isinstance(X, Rows | Block) or is_sparse(X) or np.ndim(X) == 2:
        if dim % latents or (np.ndim(X) == 2 and np.shape(X)[1] != dim // latents):
            msg = (
                f"X: rows of shape {np.shape(X)} for {likelihood} of {latents} latents and a belief over {dim} "
                f"parameters; give a matrix per row, (n, {latents}, {dim}), or rows of m features, (n, m), for a "
                f"belief over {latents} blocks of m weights"
            )
            raise ValueError(msg)
        rows = as_rows(X, dim // latents)
        n = rows.shape[0]
        table = _labels(likelihood, Y, n)
        weight = check_weight(sample_weight, n)
        single = Observations(rows, np.ascontiguousarray(table[:, 0]), weight) if table.shape[1] == 1 else None
        eye = np.eye(latents)
        return VectorData(lambda i: np.asarray(np.kron(eye, dense_rows(rows[i : i + 1]))), table, weight, single)
    block = doubles("X", X, f"an array (n, {latents}, {dim}) of them")
    if block.ndim != 3 or block.shape[1:] != (latents, dim):
        msg = (
            f"X: shape {block.shape}; ({block.shape[0] if block.ndim else 'n'}, {latents}, {dim}) is needed: for each "
            f"row a matrix H from the {dim} parameters of the belief to the {latents} latents of {likelihood}"
        )
        raise ValueError(msg)
    finite_entries("X", block)
    return VectorData(
        lambda i: block[i], _labels(likelihood, Y, len(block)), check_weight(sample_weight, len(block)), None
    )


def joint_latents(belief: Belief, H: Array) -> tuple[Array, Array]:
    """Mean (q,) and covariance (q, q) of Hθ under any belief: its own word, or from the variances of sums."""
    if isinstance(belief, TellsLatents):
        return belief.latents(H)
    q = len(H)
    pairs = [(i, j) for i in range(q) for j in range(i)]
    mean, variance = belief.marginal(np.concatenate([H, *(H[[i]] + H[[j]] for i, j in pairs)]))
    cov = np.diag(variance[:q])
    for (i, j), both in zip(pairs, variance[q:], strict=True):
        cov[i, j] = cov[j, i] = 0.5 * (both - variance[i] - variance[j])
    return mean[:q], cov


def absorb_vector(belief: Belief, H: Array, precision: Array, shift: Array) -> None:
    """Multiply a belief by exp(shift'f - ½ f' precision f), f = Hθ: a site along each eigenvector of the precision."""
    values, vectors = np.linalg.eigh(precision)
    values = np.where(np.abs(values) <= 1e-15 * np.abs(values).max(initial=0.0), 0.0, values)
    for value, x, pull in sorted(zip(values, vectors.T @ H, vectors.T @ shift, strict=True), key=lambda s: -s[0]):
        if value != 0.0 or pull != 0.0:
            belief.absorb(x, float(value), float(pull))


def _visit(
    belief: Belief, recipe: VectorRecipe, data: VectorData, i: int, dynamics: Dynamics | None, trace: Trace
) -> None:
    """One row: time passes, marginal, site, absorb."""
    likelihood = recipe.likelihood.of_row(i)
    learn = bool(data.learned[i])
    if learn and dynamics is not None:
        dynamics.tick(belief)
    H = data.design(i)
    mean, cov = joint_latents(belief, H)
    trace.mean[i], trace.variance[i] = mean, cov
    old_precision, old_shift = trace.site_precision[i].copy(), trace.site_shift[i].copy()
    if old_precision.any() or old_shift.any():
        left = cavities(mean[None], cov[None], Sites(old_precision[None], old_shift[None]), 1.0)
        mean, cov = left.mean[0], left.cov[0]
    if np.isnan(data.Y[i]).all():
        trace.log_predictive[i] = np.nan
        return
    trace.log_predictive[i] = likelihood.log_predictive(data.Y[i : i + 1], mean[None], cov[None], recipe.cubature)[0]
    if not learn or not np.diag(cov).max() > 0.0:
        return
    precision, shift = make_vector_site(
        recipe._replace(likelihood=likelihood), data.Y[i], float(data.weight[i]), mean, cov
    )
    if not (np.isfinite(precision).all() and np.isfinite(shift).all()):
        raise RowError(i)
    absorb_vector(belief, H, precision - old_precision, shift - old_shift)
    trace.site_precision[i], trace.site_shift[i] = precision, shift


def _labels(likelihood: VectorLikelihood, Y: ArrayLike, n: int) -> Array:
    """Labels as (n, P), NaN where missing, all of them possible under the likelihood."""
    table = doubles("y", Y, f"({n}, {likelihood.outputs}) of them")
    table = table[:, None] if table.ndim == 1 and likelihood.outputs == 1 else table
    if table.shape != (n, likelihood.outputs):
        msg = f"y: shape {np.shape(Y)}; ({n}, {likelihood.outputs}) is needed, the outputs of {likelihood} for each row"
        raise ValueError(msg)
    likelihood.check_labels(table, "y")
    return np.ascontiguousarray(table)


def _is_compiled(recipe: VectorRecipe) -> bool:
    """Whether the engine's loops do what is asked: vi with exact curvature at the posterior, by nodes of their own."""
    rule: SiteRule = recipe.rule
    exact = recipe.curvature.is_exact and recipe.cubature is None
    return exact and rule.takes_classes and recipe.at.is_implicit
