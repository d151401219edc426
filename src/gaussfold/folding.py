"""One visit per observation: marginal → site → absorb."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from gaussfold.beliefs.trace import RowError, Trace
from gaussfold.observations import check
from gaussfold.protocols import Likelihood
from gaussfold.rules import check_defined, resolve, resolve_at
from gaussfold.rules.at import At
from gaussfold.rules.catalogue import AnyRule
from gaussfold.rules.visit import visit
from gaussfold.types import Array, ArrayLike, Moments, Program

FoldResult = Trace
"""Per row, *before* learning it: ``mean`` and ``variance`` of f = x'θ and ``log_predictive``; and the sites."""


class Recipe(NamedTuple):
    """A likelihood, a rule and an at that go together, and how the engine reads them (None: it cannot)."""

    likelihood: Likelihood
    rule: AnyRule
    at: At
    program: Program | None


@lru_cache(maxsize=256)
def recipe_of(likelihood: Likelihood, rule: str | AnyRule, at: str | At) -> Recipe:
    """Resolve names once, at the door, and refuse what is not defined."""
    rule, at = resolve(rule), resolve_at(at)
    check_defined(rule, at, likelihood)
    family, how = likelihood.record, rule.record
    return Recipe(likelihood, rule, at, None if family is None or how is None else Program(family, how, at.code))


def fold(
    belief: Any,
    likelihood: Likelihood,
    X: ArrayLike,
    y: ArrayLike,
    rule: str | AnyRule = "vi",
    at: str | At = "posterior",
    *,
    sample_weight: ArrayLike | None = None,
    dynamics: Any = None,
    block_size: int | None = None,
) -> FoldResult:
    """Fold rows into a belief, in order, each seen once; the belief is updated in place, whole or not at all.

    For each row the marginal of f = x'θ meets the likelihood, the rule replaces the likelihood by a Gaussian site,
    and the belief is multiplied by it (DESIGN §1, §2).

    Parameters
    ----------
    belief
        For example :class:`gaussfold.DenseGaussian`.
    likelihood
        From :mod:`gaussfold.likelihoods`, or your own subclass of ``likelihoods.ScalarLikelihood`` (Python, slower).
    X, y
        Rows (array or sparse matrix) and labels. A NaN label means: predict, don't learn.
    rule
        "newton", "taylor", "vi", "ep", "pl", "quadratic", or an object such as ``rules.EP(alpha=0.5)``.
    at
        "posterior" (implicit), "prior" (explicit) or "extragradient".
    sample_weight
        Powers of each row's likelihood: 2 counts a row twice, 0 not at all.
    dynamics
        :class:`gaussfold.dynamics.Forgetting` or :class:`gaussfold.dynamics.RandomWalk`; ticks before each learned row.
    block_size
        Rows absorbed per matrix product; any value gives the same numbers up to rounding.

    Examples
    --------
    The Kalman filter: two looks at one number, with noise of variance 1.

    >>> import gaussfold as gf
    >>> belief = gf.DenseGaussian.isotropic(1, std=1.0)
    >>> result = gf.fold(belief, gf.likelihoods.Gaussian(1.0), [[1.0], [1.0]], [0.6, 0.9])
    >>> print(belief.mean, belief.cov, result.variance)
    [0.5] [[0.33333333]] [1. 0.5]
    """
    recipe = recipe_of(likelihood, rule, at)  # type: ignore[arg-type]
    if recipe.program is not None and sample_weight is None and dynamics is None and _is_row(X, y):
        quick: FoldResult | None = _absorb_row(belief, X, y, recipe)
        if quick is not None:
            return quick
    rows, labels, weight = check(likelihood, X, y, belief.dim, sample_weight)
    if recipe.program is None:
        return _fold_in_python(belief, recipe, rows, labels, weight, dynamics)
    trace: FoldResult = belief.absorb_stream(
        rows, labels, weight, recipe.program, dynamics=dynamics, block_size=block_size
    )
    return trace


def _is_row(X: Any, y: Any) -> bool:
    """One row that needs no conversion: the case where checks in Python would cost more than the update."""
    return (
        type(X) is np.ndarray
        and type(y) is np.ndarray
        and X.dtype == np.float64
        and X.ndim == 2
        and X.shape[0] == 1
        and y.shape == (1,)
        and y.dtype.kind in "fiub"
    )


def _absorb_row(belief: Any, X: Any, y: Any, recipe: Recipe) -> FoldResult | None:
    absorb_row = getattr(belief, "absorb_row", None)
    if absorb_row is None or X.shape[1] != belief.dim:
        return None
    trace: FoldResult | None = absorb_row(np.ascontiguousarray(X), float(y[0]), recipe.program)
    return trace


def _fold_in_python(belief: Any, recipe: Recipe, rows: Any, labels: Array, weight: Array, dynamics: Any) -> FoldResult:
    """The fold as DESIGN §1 tells it, row by row: for likelihoods written in Python."""
    worked = belief.copy()
    trace = Trace.empty(labels.size)
    for i, (y, w) in enumerate(zip(labels, weight, strict=True)):
        learn = not np.isnan(y) and w > 0.0
        if learn and dynamics is not None:
            dynamics.tick(worked)
        x = np.asarray(rows[i].toarray().ravel() if hasattr(rows, "toarray") else rows[i])
        mean, variance = worked.marginal(x[None])
        trace.mean[i], trace.variance[i] = mean[0], variance[0]
        trace.log_predictive[i] = recipe.likelihood.log_predictive(y, Moments(mean[0], variance[0]))
        if learn and variance[0] > 0.0:
            site = visit(recipe.rule, recipe.at, recipe.likelihood, y, w, float(mean[0]), float(variance[0]))
            if not np.isfinite(site).all():
                raise RowError(i)
            worked.absorb(x, *site)
            trace.site_precision[i], trace.site_shift[i] = site
    belief.become(worked)
    return trace
