"""The shares of likelihood and site in an energy: bayes-newton (16), (17), (27), one functional for both.

E_q log · (vi), log · at the mean (newton, taylor), (1/α) log E_cavity (·)^α (power ep; pl and pl2 with α = 1).
"""

from __future__ import annotations

import numpy as np

from gaussfold.linalg.small import applied, eigen, lower_roots, non_positive, symmetrised
from gaussfold.rules.base import SiteRule, View
from gaussfold.rules.cavities import Gaussians, cavities
from gaussfold.rules.site_updates import SiteRecipe, missing_rows, picked
from gaussfold.types import Array, Sites


def likelihood_energy(
    recipe: SiteRecipe,
    Y: Array,
    now: Gaussians,
    sites: Sites,
    cavity: Gaussians | None = None,
    rows: np.ndarray | None = None,
) -> Array:
    """The likelihood's part of the energy, per row, shape (N,); 0 for a missing row.

    E_q log p for vi (16); log p at the mean for newton and taylor (17); (1/α) log E p^α over the cavity for ep (27),
    and with α = 1 for pl and pl2 (§4.3.2). See :func:`site_energy` for the rest. ``rows`` are the rows' numbers in the
    data, for error messages.

    Examples
    --------
    >>> import numpy as np
    >>> from gaussfold.likelihoods import Bernoulli
    >>> from gaussfold.rules import VI, Exact
    >>> recipe = SiteRecipe(VI(), Exact(), Bernoulli())
    >>> blank = Sites(precision=np.zeros((2, 1, 1)), shift=np.zeros((2, 1)))
    >>> now = Gaussians(mean=np.zeros((2, 1)), cov=np.array([[[1e-12]], [[4.0]]]))
    >>> likelihood_energy(recipe, np.ones((2, 1)), now, blank).round(4)  # log 1/2 where f is known, and less
    array([-0.6931, -1.0677])
    """
    seen = ~missing_rows(Y)
    if not seen.all():
        out = np.zeros(len(Y))
        if seen.any():
            part = picked(now, seen), picked(sites, seen), picked(cavity, seen)
            out[seen] = likelihood_energy(recipe, Y[seen], *part, np.flatnonzero(seen))
        return out
    rule, likelihood = recipe.rule, recipe.model
    if rule.energy_over_cavity:
        now = cavities(*now, sites, rule.alpha) if cavity is None else cavity
    value = rule.energy_several(View(likelihood, Y, *now, recipe.cubature))
    if not np.isfinite(value).all():
        at = int(np.argmin(np.isfinite(value)))
        msg = (
            f"rule={rule.name!r}: the energy of {likelihood} is {float(value[at])!r} in row "
            f"{at if rows is None else int(rows[at])} (Y = {Y[at].tolist()!r}, latent mean {now.mean[at].tolist()!r}); "
            "check the likelihood's log_prob there"
        )
        raise ValueError(msg)
    return value


def site_energy(rule: SiteRule, now: Gaussians, sites: Sites, cavity: Gaussians | None = None) -> Array:
    """The site's part of the energy, per row: what :func:`likelihood_energy` is for the unnormalised site t.

    With ``t(f) = exp(λ'f - f'Λf/2)``: E_q log t for vi, log t(m) for newton and taylor, (1/α) log E t^α over the
    cavity for ep, pl and pl2. Then ``energy = Σ site_energy - Σ likelihood_energy - log ∫ p(f) Π t(f) df``, for
    sites of any rank: the normalisers of t cancel between the last two terms.

    Examples
    --------
    >>> import numpy as np
    >>> from gaussfold.rules import VI
    >>> sites = Sites(precision=np.full((1, 1, 1), 2.0), shift=np.array([[1.0]]))
    >>> site_energy(VI(), Gaussians(mean=np.array([[0.5]]), cov=np.full((1, 1, 1), 0.1)), sites)  # m - m² - v
    array([0.15])
    """
    if rule.energy_over_cavity:
        alpha = rule.alpha
        mean, cov = cavities(*now, sites, alpha) if cavity is None else cavity
        # I + αL'ΛL with cov = LL': symmetric, so that its eigenvalues give determinant and inverse however sharp t is
        root = lower_roots(cov, "cov")
        turned = np.swapaxes(root, -1, -2)
        values, vectors = eigen(np.eye(cov.shape[-1]) + alpha * symmetrised(turned @ sites.precision @ root))
        values = np.where(non_positive(sites.precision)[:, None], values, np.maximum(values, 1.0))
        pull = alpha * (sites.shift - applied(sites.precision, mean))
        pushed = applied(np.swapaxes(root @ vectors, -1, -2), pull)
        gain = 0.5 * (pushed**2 / values).sum(axis=1)
        return np.asarray(_log_site(mean, sites) + (gain - 0.5 * np.log(np.abs(values)).sum(axis=1)) / alpha)
    value = _log_site(now.mean, sites)
    if rule.looks_at_mean:
        return value
    return np.asarray(value - 0.5 * np.einsum("nde,ned->n", sites.precision, now.cov))


def _log_site(mean: Array, sites: Sites) -> Array:
    """``λ'm - m'Λm/2``."""
    return np.asarray(((sites.shift - 0.5 * applied(sites.precision, mean)) * mean).sum(axis=1))
