"""One visit per observation: marginal → site → absorb."""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import numpy as np

from gaussfold.dynamics import Dynamics
from gaussfold.expectations.cubature import resolve_cubature
from gaussfold.likelihoods import as_vector, resolve_any
from gaussfold.likelihoods import resolve as resolve_likelihood
from gaussfold.likelihoods.chained import AnyCubature, VectorLikelihood
from gaussfold.observations import LARGEST, Observations, check
from gaussfold.protocols import Belief, Foldable, Likelihood
from gaussfold.rows import Block, dense_rows
from gaussfold.rules import (
    Curvature,
    SiteRule,
    StreamRule,
    check_defined,
    check_defined_several,
    check_pair,
    resolve,
    resolve_at,
    resolve_curvature,
    resolve_local,
)
from gaussfold.rules.at import At
from gaussfold.rules.catalogue import AnyRule
from gaussfold.rules.python_sites import make_site
from gaussfold.rules.vector_sites import VectorRecipe
from gaussfold.trace import Pass, RowError, Trace, learn_before_failure
from gaussfold.types import Array, ArrayLike, Moments, Program
from gaussfold.vector_folding import fold_vectors

FoldResult = Trace
"""Per row, *before* learning it: ``mean`` and ``variance`` of f = x'θ and ``log_predictive``; and the sites."""
_SCALAR = ("vi", "newton", "taylor", "ep", "pl", "quadratic")
"""Names that need no look into the catalogue: a row of a few features costs less than that."""
_DOUBLE = np.dtype(np.float64)


class Recipe(NamedTuple):
    """A likelihood, a rule and an at that go together, and how the engine reads them (None: it cannot)."""

    likelihood: Likelihood
    rule: AnyRule
    at: At
    program: Program | None


@lru_cache(maxsize=256)
def recipe_of(likelihood: str | Likelihood, rule: str | AnyRule, at: str | At) -> Recipe:
    """Resolve names once, at the door, and refuse what is not defined."""
    likelihood, rule, at = resolve_likelihood(likelihood), resolve(rule), resolve_at(at)
    check_defined(rule, at, likelihood)
    family, how = likelihood.record, rule.record
    return Recipe(likelihood, rule, at, None if family is None or how is None else Program(family, how, at.code))


def several_latents(
    likelihood: str | Likelihood | VectorLikelihood,
    rule: str | SiteRule,
    at: str | At,
    curvature: str | Curvature | None = None,
    cubature: AnyCubature = None,
) -> VectorRecipe | None:
    """How rows of several latents are to be seen; None for those of one that the scalar rules know.

    One latent goes this way too where only sites on R^D are defined: rule pl2, a curvature other than the exact one.
    """
    vector = _is_vector(type(likelihood))
    if not vector and rule in _SCALAR and curvature is None and cubature is None:
        return None
    chosen = resolve_local(rule)
    policy = resolve_curvature(_usual_curvature(chosen) if curvature is None else curvature)
    if not vector and isinstance(chosen, StreamRule) and policy.is_exact and cubature is None:
        return None
    check_pair(chosen, policy)
    if policy.needs_each_site:
        msg = f"curvature={policy.name!r} learns from visit to visit, and a stream has one; use 'heuristic'"
        raise ValueError(msg)
    model, where = as_vector(resolve_any(likelihood)), resolve_at(at)
    if cubature is not None:
        resolve_cubature(cubature, model.latents)
    check_defined_several(chosen, where, model)
    return VectorRecipe(model, chosen, where, policy, cubature)


def _usual_curvature(rule: SiteRule) -> str:
    """The rule's own, if it is one of streams; pl2's can be of either sign, and a stream cannot take half a step."""
    return "exact" if isinstance(rule, StreamRule) else "heuristic"


def _of_one_latent(found: Trace) -> Trace:
    """As rows of one latent have it."""
    mean, cov, score, precision, shift = found
    return Trace(mean[:, 0], cov[:, 0, 0], score, precision[:, 0, 0], shift[:, 0])


# ``sweep``, ``LookBack.fold``, ``batch`` and ``metrics`` take their data under the same names in the same order: a
# signature is what one reads in help(), so it is written out and no record stands in for it.


def fold(
    belief: Belief,
    likelihood: str | Likelihood | VectorLikelihood,
    X: ArrayLike,
    y: ArrayLike,
    rule: str | SiteRule = "vi",
    at: str | At = "posterior",
    *,
    sample_weight: ArrayLike | None = None,
    dynamics: Dynamics | None = None,
    block_size: int | None = None,
    whole: bool = True,
    curvature: str | Curvature | None = None,
    cubature: AnyCubature = None,
) -> FoldResult:
    """Fold rows into a belief, in order, each seen once; the belief is updated in place, whole or not at all.

    For each row the marginal of f = x'θ meets the likelihood, the rule replaces the likelihood by a Gaussian site,
    and the belief is multiplied by it (docs/architecture.md, "The one idea" and "The update").

    Parameters
    ----------
    belief
        For example :class:`gaussfold.DenseGaussian`.
    likelihood
        From :mod:`gaussfold.likelihoods`, by name ("bernoulli", "poisson") or as an object; or your own subclass of
        ``likelihoods.ScalarLikelihood`` or ``VectorLikelihood`` (Python, slower).
    X, y
        Rows (array, sparse matrix, or :class:`gaussfold.rows.Rows` as the readers make them) and labels. A NaN label
        means: predict, don't learn. A likelihood of q latents takes a matrix H for each row, (n, q, dim), f = Hθ, and
        labels (n, outputs); or rows (n, dim/q), if θ is made of q blocks of weights, as Softmax(q) takes them.
    rule
        "newton", "taylor", "vi", "ep", "pl", "pl2", "quadratic", or an object such as ``rules.EP(alpha=0.5)``.
    at
        "posterior" (implicit), "prior" (explicit) or "extragradient".
    sample_weight
        Powers of each row's likelihood: 2 counts a row twice, 0 not at all.
    dynamics
        :class:`gaussfold.dynamics.Forgetting` or :class:`gaussfold.dynamics.RandomWalk`; ticks before each learned row.
    block_size
        Rows absorbed per matrix product; any value gives the same numbers up to rounding.
    whole
        Whether a row that cannot be learned undoes the call. If not, the rows before it stay learned and the error,
        a ``RowError``, has their trace: for streams that must not wait, and need not keep what they overwrite.
    curvature, cubature
        As :class:`gaussfold.gp.GaussianProcess` takes them: "exact", "heuristic", "gauss-newton" or "riemannian" (None:
        "exact", for pl2 "heuristic"), and how averages over several latents are taken. Others run in Python.

    Examples
    --------
    The Kalman filter: two looks at one number, with noise of variance 1.

    >>> import gaussfold as gf
    >>> belief = gf.DenseGaussian.isotropic(1, std=1.0)
    >>> result = gf.fold(belief, gf.likelihoods.Gaussian(1.0), [[1.0], [1.0]], [0.6, 0.9])
    >>> print(belief.mean, belief.cov, result.variance)
    [0.5] [[0.33333333]] [1. 0.5]
    """
    check_belief(belief, likelihood)
    try:
        several = several_latents(likelihood, rule, at, curvature, cubature)
        if several is not None:
            found = fold_vectors(belief, several, X, y, sample_weight, Pass(dynamics, None, block_size, whole))
            return found if isinstance(likelihood, VectorLikelihood) else _of_one_latent(found)
        recipe = recipe_of(likelihood, rule, at)  # type: ignore[arg-type]  # the cache wants Hashable: an unhashable one says so
    except (TypeError, AttributeError):
        check_likelihood(likelihood)
        raise
    row = X.array if isinstance(X, Block) else X
    program = recipe.program
    if program is not None and sample_weight is None and dynamics is None and _is_row(row, y, belief.dim):
        quick = _absorbed_row(belief, row, y, program)
        if quick is not None:
            return quick
    data = check(recipe.likelihood, X, y, belief.dim, sample_weight)
    if program is not None:
        return belief.absorb_stream(data, program, Pass(dynamics, None, block_size, whole))

    def learn(part: Observations) -> FoldResult:
        return _fold_in_python(belief, recipe, part, dynamics)

    return learn(data) if whole else learn_before_failure(learn, data)


def check_likelihood(likelihood: object) -> None:
    """Refuse what explains no labels: a name, a class, an array in its place."""
    given = likelihood if isinstance(likelihood, type) else type(likelihood)
    if given is likelihood or not isinstance(likelihood, Likelihood):
        what = "the class" if given is likelihood else "a"
        msg = (
            f"likelihood: {what} {given.__name__}; an object is needed, such as gaussfold.likelihoods.Bernoulli(); the "
            "order is fold(belief, likelihood, X, y)"
        )
        raise ValueError(msg)


def check_belief(belief: object, likelihood: object = None) -> None:
    """Refuse what data cannot be folded into."""
    if not _is_foldable(type(belief)):  # type: ignore[arg-type]  # mypy takes a type's hash for its instances'
        if isinstance(likelihood, Foldable):
            msg = (
                f"belief, likelihood: a {type(belief).__name__} and a {type(likelihood).__name__}, which stand in each "
                "other's place; call fold(belief, likelihood, X, y)"
            )
            raise ValueError(msg)
        msg = (
            f"belief: data cannot be folded into a {type(belief).__name__}; use LowRankGaussian (low rank in the "
            "precision), DenseGaussian, DiagonalGaussian or DiagonalMixture, as in fold(belief, likelihood, X, y)"
        )
        raise ValueError(msg)


@lru_cache
def _is_foldable(kind: type) -> bool:
    """Cached: going through a protocol's methods takes as long as a row."""
    return issubclass(kind, Foldable)


@lru_cache
def _is_vector(kind: type) -> bool:
    """Cached, too: asking an abstract class takes longer than looking it up."""
    return issubclass(kind, VectorLikelihood)


def _is_row(X: ArrayLike, y: ArrayLike, dim: int) -> bool:
    """One row that needs no conversion: the case where checks in Python would cost more than the update."""
    return (
        type(X) is np.ndarray
        and type(y) is np.ndarray
        and X.dtype is _DOUBLE  # any other that is equal to it takes the longer way
        and X.shape == (1, dim)
        and y.shape == (1,)
        and y.dtype.kind in "fiub"
    )


def _absorbed_row(belief: Belief, row: np.ndarray, y: np.ndarray, program: Program) -> FoldResult | None:
    """The quick way; None where a row has to go the longer one, which says what is wrong with it."""
    label = float(y[0])
    return None if abs(label) > LARGEST else belief.absorb_row(np.ascontiguousarray(row), label, program)


def _fold_in_python(belief: Belief, recipe: Recipe, data: Observations, dynamics: Dynamics | None) -> FoldResult:
    """The fold as docs/architecture.md tells it, "The one idea", row by row: for likelihoods written in Python."""
    worked = belief.copy()
    trace = Trace.empty(data.y.size)
    for i, (y, w) in enumerate(zip(data.y, data.weight, strict=True)):
        x = dense_rows(data.X[i : i + 1])[0]
        if not _visit(worked, recipe, x, float(y), float(w), dynamics, trace.rows(i, i + 1)):
            raise RowError(i)
    belief.become(worked)
    return trace


def _visit(
    belief: Belief, recipe: Recipe, x: Array, y: float, w: float, dynamics: Dynamics | None, trace: Trace
) -> bool:
    """One row, and a trace of one row: time passes, marginal, site, absorb; False if the site is not finite."""
    learn = not np.isnan(y) and w > 0.0
    if learn and dynamics is not None:
        dynamics.tick(belief)
    mean, variance = belief.marginal(x[None])
    trace.mean[:], trace.variance[:] = mean, variance
    trace.log_predictive[:] = recipe.likelihood.log_predictive(y, Moments(mean[0], variance[0]))
    if learn and variance[0] > 0.0:
        site = make_site(recipe.rule, recipe.at, recipe.likelihood, y, w, float(mean[0]), float(variance[0]))
        if not np.isfinite(site).all():
            return False
        belief.absorb(x, *site)
        trace.site_precision[0], trace.site_shift[0] = site
    return True
