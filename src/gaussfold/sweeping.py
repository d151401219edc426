"""Repeated visits: absorb (new site - old site), until the sites settle."""

from __future__ import annotations

import numpy as np

from gaussfold.checks import whole
from gaussfold.folding import FoldResult, check_belief, recipe_of
from gaussfold.observations import check
from gaussfold.protocols import Belief, Likelihood
from gaussfold.rules.at import At
from gaussfold.rules.catalogue import AnyRule
from gaussfold.trace import Pass
from gaussfold.types import ArrayLike


def sweep(
    belief: Belief,
    likelihood: Likelihood,
    X: ArrayLike,
    y: ArrayLike,
    sites: FoldResult,
    rule: str | AnyRule = "vi",
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
    """
    check_belief(belief)
    recipe = recipe_of(likelihood, rule, at)  # type: ignore[arg-type]  # the cache wants Hashable: an unhashable one says so
    if recipe.program is None:
        msg = f"likelihood={likelihood!r} has no compiled kernel; sweeps take the families of gaussfold.likelihoods"
        raise ValueError(msg)
    whole("n_sweeps", n_sweeps, least=0)
    data = check(likelihood, X, y, belief.dim, sample_weight)
    if sites.site_precision.size != data.y.size:
        msg = (
            f"sites: {sites.site_precision.size} of them for {data.y.size} rows; pass what the fold over them returned"
        )
        raise ValueError(msg)
    for _ in range(n_sweeps):
        before = sites.site_precision
        sites = belief.absorb_stream(data, recipe.program, Pass(None, sites, block_size))
        change = np.abs(sites.site_precision - before).max(initial=0.0)
        if change <= tolerance * np.abs(sites.site_precision).max(initial=0.0):
            break
    return sites
