"""Repeated visits: absorb (new site - old site), until the sites settle."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from gaussfold.checks import whole
from gaussfold.folding import FoldResult, check_belief, recipe_of, several_latents
from gaussfold.likelihoods.chained import VectorLikelihood
from gaussfold.observations import check
from gaussfold.protocols import Belief, Likelihood
from gaussfold.rules.at import At
from gaussfold.rules.base import SiteRule
from gaussfold.trace import Pass
from gaussfold.types import ArrayLike
from gaussfold.vector_folding import check_vectors, fold_vectors


def sweep(
    belief: Belief,
    likelihood: str | Likelihood | VectorLikelihood,
    X: ArrayLike,
    y: ArrayLike,
    sites: FoldResult,
    rule: str | SiteRule = "vi",
    at: str | At = "posterior",
    *,
    sample_weight: ArrayLike | None = None,
    n_sweeps: int = 1,
    tolerance: float = 1e-10,
    block_size: int | None = None,
) -> FoldResult:
    """Revisit every row ``n_sweeps`` times: take its site out, look again, put the new site in.

    With rule vi the sweeps descend to the batch variational optimum; with newton to the Laplace approximation; with
    ep to its fixed point. Stops early once no site precision moves by more than ``tolerance`` relative to the largest.

    Parameters
    ----------
    belief
        As it was left by the :func:`gaussfold.fold` that returned ``sites``; updated in place.
    sites
        The result of that fold, or of an earlier sweep, on the same rows.

    Returns
    -------
    The marginals *without* each row's own site (leave-one-out, as far as the sites go), and the new sites.

    Examples
    --------
    >>> import numpy as np, gaussfold as gf
    >>> X, y = np.array([[1.0], [1.0], [1.0]]), np.array([1.0, 1.0, 0.0])
    >>> belief = gf.DenseGaussian.isotropic(1, std=2.0)
    >>> sites = gf.fold(belief, "bernoulli", X, y)
    >>> belief.mean.round(3)
    array([0.585])
    >>> sites = gf.sweep(belief, "bernoulli", X, y, sites, n_sweeps=20)
    >>> belief.mean.round(3)
    array([0.595])
    """
    check_belief(belief)
    whole("n_sweeps", n_sweeps, least=0)
    several = several_latents(likelihood, rule, at)
    if several is not None:

        def again(before: FoldResult) -> FoldResult:
            return fold_vectors(belief, several, X, y, sample_weight, Pass(None, before, block_size))

        count = len(check_vectors(several.likelihood, X, y, belief.dim, sample_weight).Y)
        return _repeat(again, sites, count, n_sweeps, tolerance)
    recipe = recipe_of(likelihood, rule, at)  # type: ignore[arg-type]  # the cache wants Hashable: an unhashable one says so
    if recipe.program is None:
        msg = f"likelihood={likelihood!r} has no compiled kernel; sweeps take the families of gaussfold.likelihoods"
        raise ValueError(msg)
    data, program = check(recipe.likelihood, X, y, belief.dim, sample_weight), recipe.program

    def visit(before: FoldResult) -> FoldResult:
        return belief.absorb_stream(data, program, Pass(None, before, block_size))

    return _repeat(visit, sites, data.y.size, n_sweeps, tolerance)


def _repeat(
    visit: Callable[[FoldResult], FoldResult], sites: FoldResult, rows: int, n_sweeps: int, tolerance: float
) -> FoldResult:
    """Visit all rows so often, or until the sites have settled."""
    if len(sites.site_precision) != rows:
        msg = f"sites: {len(sites.site_precision)} of them for {rows} rows; pass what the fold over them returned"
        raise ValueError(msg)
    for _ in range(n_sweeps):
        before = sites.site_precision
        sites = visit(sites)
        change = np.abs(sites.site_precision - before).max(initial=0.0)
        if change <= tolerance * np.abs(sites.site_precision).max(initial=0.0):
            break
    return sites
