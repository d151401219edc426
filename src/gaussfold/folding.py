"""One visit per observation: marginal → site → absorb."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from gaussfold.beliefs.trace import Trace
from gaussfold.observations import check
from gaussfold.protocols import Likelihood
from gaussfold.rules import check_defined, resolve, resolve_at
from gaussfold.rules.at import At
from gaussfold.rules.catalogue import AnyRule
from gaussfold.types import ArrayLike

FoldResult = Trace
"""Per row, *before* learning it: ``mean`` and ``variance`` of f = x'θ and ``log_predictive``; and the sites."""


class Recipe(NamedTuple):
    """A likelihood, a rule and an at that go together, and how the engine reads them."""

    likelihood: Likelihood
    rule: AnyRule
    at: At
    program: tuple[int, float, float, int, float, int]


@lru_cache(maxsize=256)
def recipe_of(likelihood: Likelihood, rule: str | AnyRule, at: str | At) -> Recipe:
    """Resolve names once, at the door, and refuse what is not defined."""
    rule, at = resolve(rule), resolve_at(at)
    check_defined(rule, at, likelihood)
    if likelihood.kernel is None:
        msg = (
            f"likelihood={likelihood!r} has no compiled kernel; streaming takes the built-in likelihoods of "
            "gaussfold.likelihoods"
        )
        raise ValueError(msg)
    return Recipe(likelihood, rule, at, (*likelihood.kernel, rule.code, rule.alpha, at.code))


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
        From :mod:`gaussfold.likelihoods`.
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
    if sample_weight is None and dynamics is None and _is_row(X, y):
        quick: FoldResult | None = _absorb_row(belief, X, y, recipe)
        if quick is not None:
            return quick
    rows, labels, weight = check(likelihood, X, y, belief.dim, sample_weight)
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


def replay(belief: Any, X: Any, trace: FoldResult) -> None:
    """Absorb the sites of a pass as they are: rebuilds a posterior from its prior and its sites."""
    for x, precision, shift in zip(np.asarray(X), trace.site_precision, trace.site_shift, strict=True):
        belief.absorb(x, float(precision), float(shift))
