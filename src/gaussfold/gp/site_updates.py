"""Where likelihood and prior meet: one update of all sites, the energy, and its slopes.

The energies (16), (17), (27) are all ``Σ site part - Σ likelihood part - log Z`` with one functional for both parts:
E_q log · (vi), log · at the mean (newton, taylor), (1/α) log E_cavity (·)^α (power ep; pl and pl2 with α = 1).
"""

from __future__ import annotations

import numpy as np

from gaussfold.gp.discrete import is_summed
from gaussfold.gp.priors import Marginals, Slopes
from gaussfold.linalg.small import applied, inverse, non_positive, symmetrised
from gaussfold.rules import SiteRecipe, SiteUpdate, energies, site_updates
from gaussfold.rules.bfgs import QuasiNewtonMemory
from gaussfold.rules.cavities import Gaussians, cavities, cavities_from
from gaussfold.types import Array, Sites


def _cavities(recipe: SiteRecipe, now: Marginals, sites: Sites) -> tuple[Gaussians, Gaussians] | None:
    """Cavities of what the sites are on, and of f, for the rules that look at them; the same unless sparse."""
    if not recipe.rule.energy_over_cavity:
        return None
    try:
        inner = cavities(now.mean, now.inner, sites, recipe.rule.alpha)
    except ValueError:
        if now.others is None or non_positive(sites.precision).any():
            raise
        inner = cavities_from(Gaussians(*now.others()), sites, recipe.rule.alpha)
    if now.inner is now.cov:
        return inner, inner
    return inner, Gaussians(inner.mean, inner.cov + now.cov - now.inner)


def likelihood_cavity(recipe: SiteRecipe, now: Marginals, sites: Sites) -> Gaussians | None:
    """Where the likelihood's share of the energy looks: the cavity of f, or None for the posterior itself."""
    found = _cavities(recipe, now, sites)
    return None if found is None else found[1]


def update_sites(
    recipe: SiteRecipe, Y: Array, now: Marginals, sites: Sites, memory: QuasiNewtonMemory | None, damping: float
) -> SiteUpdate:
    """One damped update of all sites, (9).

    On a sparse prior, power ep divides ``t_n(u)^α`` out of q(u), not out of the marginal of f_n, and what f keeps open
    given u (covariance E) widens the site that matches the tilted moments: ``Λ_u = Λ_f (I + αEΛ_f)⁻¹``.
    """
    found = _cavities(recipe, now, sites) if recipe.rule.looks_at_cavity else None
    outer = None if found is None else found[1]
    update = site_updates.update_sites(
        recipe, Y, Gaussians(now.mean, now.cov), sites, memory, damping=damping, cavity=outer
    )
    if found is None or now.inner is now.cov:
        return update
    if damping == 0.0:
        return update
    widen = recipe.rule.alpha * (now.cov - now.inner)
    precision = (update.sites.precision - (1.0 - damping) * sites.precision) / damping
    shift = (update.sites.shift - (1.0 - damping) * sites.shift) / damping
    turn = inverse(np.eye(widen.shape[-1]) + precision @ widen)
    precision = symmetrised(turn @ precision)
    shift = applied(turn, shift)
    mixed = Sites(
        (1.0 - damping) * sites.precision + damping * precision, (1.0 - damping) * sites.shift + damping * shift
    )
    return SiteUpdate(mixed, *update[1:])


def energy(recipe: SiteRecipe, Y: Array, now: Marginals, sites: Sites) -> float:
    """The energy of the rule: VFE (16), Laplace (17), or PEP (27), (65), (66)."""
    site, likelihood = energy_parts(recipe, Y, now, sites)
    return site - likelihood - now.log_z


def energy_parts(recipe: SiteRecipe, Y: Array, now: Marginals, sites: Sites) -> tuple[float, float]:
    """The sites' share of the energy, and the likelihood's."""
    found = _cavities(recipe, now, sites)
    inner, outer = (None, None) if found is None else found
    likelihood = energies.likelihood_energy(recipe, Y, Gaussians(now.mean, now.cov), sites, outer)
    site = energies.site_energy(recipe.rule, Gaussians(now.mean, now.inner), sites, inner)
    return float(site.sum()), float(likelihood.sum())


def summed_parts(
    recipe: SiteRecipe, Y: Array, now: Marginals, sites: Sites
) -> tuple[float, float, tuple[Array, Array]]:
    """As `energy_parts`, of vi where (16) is a sum over nodes, with the slopes of that sum: the nodes are the same."""
    value, by_mean, by_cov = recipe.model.summed(Y, now.mean, now.cov, recipe.cubature)
    site = energies.site_energy(recipe.rule, Gaussians(now.mean, now.inner), sites)
    return float(site.sum()), float(value.sum()), (by_mean, by_cov)


def slopes(recipe: SiteRecipe, Y: Array, now: Marginals, sites: Sites) -> Slopes:
    """Derivatives of ``Σ site part - Σ likelihood part`` with respect to the marginals, sites held.

    Zero where the sites are what the rule makes of these marginals (with exact curvature).
    """
    model = recipe.model
    pull = sites.shift - applied(sites.precision, now.mean)  # ∇ log t at the mean
    missing = site_updates.missing_rows(Y)
    if recipe.rule.looks_at_mean:
        none = np.zeros(now.cov.shape)
        first = np.zeros(now.mean.shape)
        first[~missing] = model.derivatives(Y[~missing], now.mean[~missing])[0]
        return Slopes(pull - first, none, none)
    found = _cavities(recipe, now, sites)
    if found is None:
        first, spread = likelihood_slopes(recipe, Y, now.mean, now.cov)
        return Slopes(pull - first, -spread, -0.5 * sites.precision)
    inner, outer = found
    alpha = recipe.rule.alpha
    first, spread = likelihood_slopes(recipe, Y, outer.mean, outer.cov, alpha)
    first, spread = first / alpha, spread / alpha
    reach = sites.precision @ now.inner @ sites.precision
    site = 0.5 * (alpha * pull[:, :, None] * pull[:, None, :] - sites.precision + alpha * reach)
    # From the cavity C\ = TC, m\ = T(m - αCλ), T = (I - αCΛ)⁻¹ back to the posterior.
    T = inverse(np.eye(now.inner.shape[-1]) - alpha * now.inner @ sites.precision)
    back = np.swapaxes(T, 1, 2)
    by_mean = applied(back, pull - first)
    move = applied(sites.precision, inner.mean) - sites.shift
    by_inner = back @ (site - spread) @ T + alpha * symmetrised(by_mean[:, :, None] * move[:, None, :])
    # cov - inner, what f keeps open given u, only enters the likelihood's cavity.
    return Slopes(by_mean, -spread, by_inner + spread)


def settled_slopes(recipe: SiteRecipe, now: Marginals, sites: Sites) -> Slopes | None:
    """What `slopes` would say of vi on a sparse prior at the fixed point, from the sites alone; None for other pairs.

    A sparse prior's open variance enters the likelihood alone: that slope, ``-E l''/2 = Λ/2``, does not vanish there.
    """
    if now.inner is now.cov or not recipe.descends:
        return None
    half = 0.5 * sites.precision
    return Slopes(np.zeros(now.mean.shape), half, -half)


def likelihood_slopes(recipe: SiteRecipe, Y: Array, mean: Array, cov: Array, alpha: float = 0.0) -> tuple[Array, Array]:
    """Derivatives in mean and covariance of E log p (alpha 0) or log E p^α; zero where all outputs are missing."""
    missing = site_updates.missing_rows(Y)
    if missing.any():
        first, spread, seen = np.zeros(mean.shape), np.zeros(cov.shape), ~missing
        if seen.any():
            first[seen], spread[seen] = likelihood_slopes(recipe, Y[seen], mean[seen], cov[seen], alpha)
        return first, spread
    model = recipe.model
    if alpha > 0.0:
        return model.tilted_slopes(Y, mean, cov, alpha, recipe.cubature)
    if is_summed(model, recipe.cubature):
        return model.summed_slopes(Y, mean, cov, recipe.cubature)
    first, second = model.expected_derivatives(Y, mean, cov)
    return first, 0.5 * second
