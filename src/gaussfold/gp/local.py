"""Where likelihood and prior meet: one visit to all sites, the energy, and its slopes.

The energies (16), (17), (27) are all ``Σ site part - Σ likelihood part - log Z`` with one functional for both parts:
E_q log · (vi), log · at the mean (newton, taylor), (1/α) log E_cavity (·)^α (power ep; pl and pl2 with α = 1).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gaussfold.gp.discrete import is_summed, summed_slopes
from gaussfold.gp.priors import Marginals, Slopes
from gaussfold.likelihoods import as_vector
from gaussfold.likelihoods.chained import AnyCubature, VectorLikelihood
from gaussfold.linalg.small import applied, inverse, non_positive, symmetrised
from gaussfold.protocols import Likelihood
from gaussfold.rules import (
    EP,
    PL,
    PL2,
    VI,
    Exact,
    LocalUpdate,
    Newton,
    Taylor,
    local_energy,
    local_update,
    site_energy,
)
from gaussfold.rules.catalogue import AnyLocalRule
from gaussfold.rules.curvature import Curvature
from gaussfold.rules.several import Gaussians, cavities, cavities_from, missing_rows
from gaussfold.types import Array, Sites


class Local(NamedTuple):
    """All that decides what a site is, apart from where it looks from."""

    rule: AnyLocalRule
    curvature: Curvature
    likelihood: Likelihood | VectorLikelihood
    cubature: AnyCubature = None


def _cavities(local: Local, now: Marginals, sites: Sites) -> tuple[Gaussians, Gaussians] | None:
    """Cavities of what the sites are on, and of f, for the rules that look at them; the same unless sparse."""
    if not isinstance(local.rule, EP | PL | PL2):
        return None
    try:
        inner = cavities(now.mean, now.inner, sites, local.rule.alpha)
    except ValueError:
        if now.others is None or non_positive(sites.precision).any():
            raise
        inner = cavities_from(Gaussians(*now.others()), sites, local.rule.alpha)
    if now.inner is now.cov:
        return inner, inner
    return inner, Gaussians(inner.mean, inner.cov + now.cov - now.inner)


def likelihood_cavity(local: Local, now: Marginals, sites: Sites) -> Gaussians | None:
    """Where the likelihood's share of the energy looks: the cavity of f, or None for the posterior itself."""
    found = _cavities(local, now, sites)
    return None if found is None else found[1]


def visit(local: Local, Y: Array, now: Marginals, sites: Sites, memory: object, damping: float) -> LocalUpdate:
    """One damped update of all sites, (9).

    On a sparse prior, power ep divides ``t_n(u)^α`` out of q(u), not out of the marginal of f_n, and what f keeps open
    given u (covariance E) widens the site that matches the tilted moments: ``Λ_u = Λ_f (I + αEΛ_f)⁻¹``.
    """
    found = _cavities(local, now, sites) if isinstance(local.rule, EP) else None
    outer = None if found is None else found[1]
    update = local_update(
        local.rule, local.curvature, local.likelihood, Y, now.mean, now.cov, sites, memory,  # type: ignore[arg-type]
        damping=damping, cubature=local.cubature, cavity=outer,
    )  # fmt: skip
    if found is None or now.inner is now.cov:
        return update
    if damping == 0.0:
        return update
    widen = local.rule.alpha * (now.cov - now.inner)
    precision = (update.sites.precision - (1.0 - damping) * sites.precision) / damping
    shift = (update.sites.shift - (1.0 - damping) * sites.shift) / damping
    turn = inverse(np.eye(widen.shape[-1]) + precision @ widen)
    precision = symmetrised(turn @ precision)
    shift = applied(turn, shift)
    mixed = Sites(
        (1.0 - damping) * sites.precision + damping * precision, (1.0 - damping) * sites.shift + damping * shift
    )
    return update._replace(sites=mixed)


def energy(local: Local, Y: Array, now: Marginals, sites: Sites) -> float:
    """The energy of the rule: VFE (16), Laplace (17), or PEP (27), (65), (66)."""
    found = _cavities(local, now, sites)
    inner, outer = (None, None) if found is None else found
    likelihood = local_energy(local.rule, local.likelihood, Y, now.mean, now.cov, sites, local.cubature, outer)
    site = site_energy(local.rule, now.mean, now.inner, sites, inner)
    return float(site.sum() - likelihood.sum()) - now.log_z


def slopes(local: Local, Y: Array, now: Marginals, sites: Sites) -> Slopes:
    """Derivatives of ``Σ site part - Σ likelihood part`` with respect to the marginals, sites held.

    Zero where the sites are what the rule makes of these marginals (with exact curvature).
    """
    model = as_vector(local.likelihood)
    pull = sites.shift - applied(sites.precision, now.mean)  # ∇ log t at the mean
    missing = missing_rows(Y)
    if isinstance(local.rule, Newton | Taylor):
        none = np.zeros(now.cov.shape)
        first = np.zeros(now.mean.shape)
        first[~missing] = model.derivatives(Y[~missing], now.mean[~missing])[0]
        return Slopes(pull - first, none, none)
    found = _cavities(local, now, sites)
    if found is None:
        first, spread = _likelihood_slopes(local, Y, now.mean, now.cov, 0.0, missing)
        return Slopes(pull - first, -spread, -0.5 * sites.precision)
    inner, outer = found
    alpha = local.rule.alpha
    first, spread = _likelihood_slopes(local, Y, outer.mean, outer.cov, alpha, missing)
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


def settled_slopes(local: Local, now: Marginals, sites: Sites) -> Slopes | None:
    """What `slopes` would say of vi on a sparse prior at the fixed point, from the sites alone; None for other pairs.

    A sparse prior's open variance enters the likelihood alone: that slope, ``-E l''/2 = Λ/2``, does not vanish there.
    """
    if now.inner is now.cov or not (isinstance(local.rule, VI) and isinstance(local.curvature, Exact)):
        return None
    half = 0.5 * sites.precision
    return Slopes(np.zeros(now.mean.shape), half, -half)


def _likelihood_slopes(
    local: Local, Y: Array, mean: Array, cov: Array, alpha: float, missing: np.ndarray
) -> tuple[Array, Array]:
    """Derivatives in mean and covariance of E log p (alpha 0) or log E p^α; zero where all outputs are missing."""
    if missing.any():
        first, spread, seen = np.zeros(mean.shape), np.zeros(cov.shape), ~missing
        if seen.any():
            part = Y[seen], mean[seen], cov[seen], alpha, missing[seen]
            first[seen], spread[seen] = _likelihood_slopes(local, *part)
        return first, spread
    model = as_vector(local.likelihood)
    if alpha > 0.0:
        return model.tilted_slopes(Y, mean, cov, alpha, local.cubature)
    if is_summed(model, local.cubature):
        return summed_slopes(model, Y, mean, cov, local.cubature)
    first, second = model.expected_derivatives(Y, mean, cov)
    return first, 0.5 * second
