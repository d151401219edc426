"""One update of N sites on R^D: rule, curvature policy and damping put together. bayes-newton (9), Table 1."""

from __future__ import annotations

from typing import NamedTuple, TypeVar, overload

import numpy as np

from gaussfold.likelihoods.chained import AnyCubature, VectorLikelihood
from gaussfold.likelihoods.one_latent import as_vector
from gaussfold.linalg.small import applied, non_positive
from gaussfold.protocols import Likelihood
from gaussfold.rules.base import SiteRule, View
from gaussfold.rules.bfgs import QuasiNewtonMemory
from gaussfold.rules.cavities import Gaussians, cavities
from gaussfold.rules.curvature.base import Curvature, Target
from gaussfold.types import Array, Sites, VectorSite

Record = TypeVar("Record", Gaussians, Sites, QuasiNewtonMemory)


class SiteRecipe(NamedTuple):
    """All that decides what a site is, apart from where it looks from.

    Examples
    --------
    >>> from gaussfold.likelihoods import StudentT
    >>> from gaussfold.rules import Exact, GaussNewton, Newton, VI
    >>> SiteRecipe(VI(), Exact(), StudentT(df=4.0, scale=1.0)).is_stationary
    True
    >>> SiteRecipe(Newton(), GaussNewton(), StudentT(df=4.0, scale=1.0)).model.latents
    1
    """

    rule: SiteRule
    curvature: Curvature
    likelihood: Likelihood | VectorLikelihood
    cubature: AnyCubature = None

    @property
    def model(self) -> VectorLikelihood:
        """The likelihood as one of several latents."""
        return as_vector(self.likelihood)

    @property
    def is_stationary(self) -> bool:
        """Whether the energy is stationary in the sites once these have settled."""
        return self.rule.is_stationary and self.curvature.is_exact

    @property
    def descends(self) -> bool:
        """Whether an update is a natural gradient of the energy."""
        return self.rule.descends and self.curvature.is_exact


class SiteUpdate(NamedTuple):
    """What :func:`update_sites` returns.

    Examples
    --------
    >>> import numpy as np
    >>> from gaussfold.likelihoods import StudentT
    >>> from gaussfold.rules import Exact, Newton
    >>> from gaussfold.types import Sites
    >>> recipe = SiteRecipe(Newton(), Exact(), StudentT(df=4.0, scale=1.0))
    >>> nothing = Sites(precision=np.zeros((2, 1, 1)), shift=np.zeros((2, 1)))
    >>> now = Gaussians(mean=np.zeros((2, 1)), cov=np.ones((2, 1, 1)))
    >>> found = update_sites(recipe, np.array([[0.5], [6.0]]), now, nothing)  # log p is convex at an outlier
    >>> found.non_positive, found.first_non_positive
    (1, 1)
    """

    sites: Sites
    memory: QuasiNewtonMemory | None
    non_positive: int
    """How many of the new sites are not positive semi-definite (only ``exact`` and ``riemannian`` can have any)."""
    first_non_positive: int
    """The first of them, or -1."""


def update_sites(
    recipe: SiteRecipe,
    Y: Array,
    now: Gaussians,
    sites: Sites,
    memory: QuasiNewtonMemory | None = None,
    *,
    damping: float = 1.0,
    cavity: Gaussians | None = None,
) -> SiteUpdate:
    """Look at every posterior marginal ``now`` and move the sites there: (9) with step ``damping`` = ρ.

    Power ep looks at the cavity, posterior / site^α, made here from ``sites`` unless ``cavity`` gives it (a sparse
    prior has other cavities). Rows whose outputs are all NaN get the site that says nothing, and keep no memory of
    their own. Memory is the last update's, or None at first.

    Parameters
    ----------
    recipe
        Rule, curvature and likelihood.
    Y : (N, P)
        Labels, NaN where there is none.
    now
        The posterior's marginals: means (N, D) and covariances (N, D, D).
    sites
        Those of the last visit, which ``damping`` < 1 mixes in; zeros at first.
    memory
        What the last update returned.
    damping
        ρ of (9) in (0, 1].
    cavity
        The marginals without their own site, where they are known otherwise.

    Returns
    -------
    SiteUpdate

    Examples
    --------
    >>> import numpy as np
    >>> from gaussfold.likelihoods import Poisson
    >>> from gaussfold.rules import VI, Exact
    >>> from gaussfold.types import Sites
    >>> recipe = SiteRecipe(VI(), Exact(), Poisson())
    >>> nothing = Sites(precision=np.zeros((2, 1, 1)), shift=np.zeros((2, 1)))
    >>> now = Gaussians(mean=np.array([[0.0], [1.0]]), cov=np.full((2, 1, 1), 0.5))
    >>> found = update_sites(recipe, np.array([[2.0], [np.nan]]), now, nothing, damping=0.5)
    >>> found.sites.precision.ravel(), found.sites.shift.ravel()  # exp(.25)/2, (2 - exp(.25))/2
    (array([0.64201271, 0.        ]), array([0.35798729, 0.        ]))
    """
    seen = ~missing_rows(Y)
    if seen.all():
        return _update(recipe, Y, now, sites, memory, damping, cavity, np.arange(len(Y)))
    blank = Sites(np.zeros(now.cov.shape), np.zeros(now.mean.shape))
    if not seen.any():
        return SiteUpdate(blank, memory, 0, -1)
    rows = np.flatnonzero(seen)
    part = picked(now, seen), picked(sites, seen), picked(memory, seen)
    found = _update(recipe, Y[seen], *part, damping, picked(cavity, seen), rows)
    blank.precision[seen], blank.shift[seen] = found.sites
    remembered = None if found.memory is None else QuasiNewtonMemory(*(_spread(a, seen) for a in found.memory))
    first = int(rows[found.first_non_positive]) if found.non_positive else -1
    return SiteUpdate(blank, remembered, found.non_positive, first)


def missing_rows(Y: Array) -> np.ndarray:
    """Which rows have no output at all."""
    return np.asarray(np.isnan(Y[:, 0]) if Y.shape[1] == 1 else np.isnan(Y).all(axis=1))


@overload
def picked(record: Record, rows: np.ndarray) -> Record: ...
@overload
def picked(record: Record | None, rows: np.ndarray) -> Record | None: ...
def picked(record: Record | None, rows: np.ndarray) -> Record | None:
    """These rows of every array of a record."""
    return None if record is None else type(record)(*(a[rows] for a in record))


def _spread(part: Array, seen: np.ndarray) -> Array:
    """Zeros, but for the rows seen."""
    whole = np.zeros((seen.size, *part.shape[1:]))
    whole[seen] = part
    return whole


def _update(
    recipe: SiteRecipe,
    Y: Array,
    now: Gaussians,
    sites: Sites,
    memory: QuasiNewtonMemory | None,
    damping: float,
    cavity: Gaussians | None,
    rows: np.ndarray,
) -> SiteUpdate:
    """Update sites that all have an output; ``rows`` are their numbers in the data, for error messages."""
    rule = recipe.rule
    if rule.looks_at_cavity:
        now = cavities(*now, sites, rule.alpha) if cavity is None else cavity
    target = Target(rule, View(recipe.model, Y, *now, recipe.cubature), sites, damping)
    site, memory = recipe.curvature.site(target, memory)
    _refuse_nan(target, site, rows)
    precision = -site.curvature
    shift = site.gradient + applied(precision, now.mean)
    if damping != 1.0:
        precision = (1.0 - damping) * sites.precision + damping * precision
        shift = (1.0 - damping) * sites.shift + damping * shift
    bad = non_positive(precision)
    count = int(bad.sum())
    return SiteUpdate(Sites(precision, shift), memory, count, int(np.argmax(bad)) if count else -1)


def _refuse_nan(target: Target, site: VectorSite, rows: np.ndarray) -> None:
    """A site that is not finite is an error that names rule, row and value."""
    view = target.view
    for what, values in (("gradient", site.gradient), ("curvature", site.curvature)):
        if not np.isfinite(values).all():
            fine = np.isfinite(values).reshape(values.shape[0], -1).all(axis=1)
            at = int(np.argmin(fine))
            row = int(rows[at])
            msg = (
                f"rule={target.rule.name!r}: the {what} of {view.likelihood} is {values[at].tolist()!r} in row {row} "
                f"(Y = {view.Y[at].tolist()!r}, latent mean {view.mean[at].tolist()!r}); check the labels and the "
                "likelihood's log_prob there, or use a smaller damping"
            )
            raise ValueError(msg)
