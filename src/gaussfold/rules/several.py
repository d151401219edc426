"""One local update of N sites on R^D: rule, curvature policy and damping put together. bayes-newton (9), Table 1."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gaussfold.likelihoods.chained import AnyCubature, VectorLikelihood
from gaussfold.likelihoods.one_latent import as_vector
from gaussfold.linalg.small import (
    applied,
    eigen,
    inverse,
    lower_roots,
    non_positive,
    smallest_eigenvalues,
    symmetrised,
)
from gaussfold.protocols import Likelihood
from gaussfold.rules.bfgs import QuasiNewtonMemory
from gaussfold.rules.catalogue import AnyLocalRule
from gaussfold.rules.curvature import Curvature, Look
from gaussfold.rules.ep import EP
from gaussfold.rules.linearisation import PL, PL2
from gaussfold.rules.newton import Newton
from gaussfold.rules.taylor import Taylor
from gaussfold.types import Array, Sites, VectorSite


class LocalUpdate(NamedTuple):
    """What :func:`local_update` returns."""

    sites: Sites
    memory: QuasiNewtonMemory | None
    non_positive: int
    """How many of the new sites are not positive semi-definite (only ``exact`` and ``riemannian`` can have any)."""
    first_non_positive: int
    """The first of them, or -1."""


class Gaussians(NamedTuple):
    """N Gaussians on R^D."""

    mean: Array  # (N, D)
    cov: Array  # (N, D, D)


def local_update(
    rule: AnyLocalRule,
    curvature: Curvature,
    likelihood: Likelihood | VectorLikelihood,
    Y: Array,
    mean: Array,
    cov: Array,
    sites: Sites,
    memory: QuasiNewtonMemory | None = None,
    *,
    damping: float = 1.0,
    cubature: AnyCubature = None,
    cavity: Gaussians | None = None,
    rows: np.ndarray | None = None,
) -> LocalUpdate:
    """Look at every posterior marginal N(mean, cov) and move the sites there: (9) with step ``damping`` = ρ.

    Power ep looks at the cavity, posterior / site^α, made here from ``sites`` unless ``cavity`` gives it (a sparse
    prior has other cavities). Rows whose outputs are all NaN get the site that says nothing. Memory is the last
    update's, or None at first. ``rows`` are the rows' numbers in the data, for error messages.
    """
    model = as_vector(likelihood)
    missing = missing_rows(Y)
    if missing.any():
        return _scattered(
            ~missing, rule, curvature, model, Y, mean, cov, sites, memory, damping, cubature, cavity, rows
        )
    if isinstance(rule, EP):
        mean, cov = cavities(mean, cov, sites, rule.alpha) if cavity is None else cavity
    look = Look(rule, model, Y, mean, cov, cubature, sites, damping)
    site, memory = curvature.site(look, memory)
    _refuse_nan(look, site, rows)
    precision = -site.curvature
    shift = site.gradient + applied(precision, mean)
    if damping != 1.0:
        precision = (1.0 - damping) * sites.precision + damping * precision
        shift = (1.0 - damping) * sites.shift + damping * shift
    bad = non_positive(precision)
    count = int(bad.sum())
    return LocalUpdate(Sites(precision, shift), memory, count, int(np.argmax(bad)) if count else -1)


def missing_rows(Y: Array) -> np.ndarray:
    """Which rows have no output at all."""
    return np.asarray(np.isnan(Y[:, 0]) if Y.shape[1] == 1 else np.isnan(Y).all(axis=1))


def cavities(mean: Array, cov: Array, sites: Sites, alpha: float) -> Gaussians:
    """Posterior marginals without the fraction alpha of their site: (I - αCΛ)⁻¹ C and (I - αCΛ)⁻¹ (m - αCλ)."""
    shrunk = np.eye(cov.shape[-1]) - alpha * cov @ sites.precision
    turn = inverse(shrunk)
    with np.errstate(invalid="ignore"):  # a cavity that rounding has eaten is infinite, and refused below
        left = symmetrised(turn @ cov)
    finite = np.asarray(np.isfinite(left).all(axis=(1, 2)))
    smallest = smallest_eigenvalues(np.where(finite[:, None, None], left, 0.0))
    bad = ~(smallest > 0.0)
    if bad.any():
        row = int(np.argmax(bad))
        msg = (
            f"rule='ep': the cavity of row {row} is not a Gaussian (smallest eigenvalue of its covariance "
            f"{float(smallest[row])!r}): its site is stronger than its posterior; use a smaller alpha or damping, or "
            "curvature='heuristic' or 'quasi-newton'"
        )
        raise ValueError(msg)
    away = mean - alpha * applied(cov, sites.shift)
    return Gaussians(applied(turn, away), left)


def cavities_from(others: Gaussians, sites: Sites, alpha: float) -> Gaussians:
    """The same from what all other sites say: times the fraction 1 - alpha of the own one; nothing cancels."""
    root = lower_roots(others.cov, "cov")
    turned = np.swapaxes(root, -1, -2)
    grown = np.eye(root.shape[-1]) + (1.0 - alpha) * symmetrised(turned @ sites.precision @ root)
    cov = symmetrised(root @ inverse(grown) @ turned)
    pull = (1.0 - alpha) * (sites.shift - applied(sites.precision, others.mean))
    return Gaussians(others.mean + applied(cov, pull), cov)


def local_energy(
    rule: AnyLocalRule,
    likelihood: Likelihood | VectorLikelihood,
    Y: Array,
    mean: Array,
    cov: Array,
    sites: Sites,
    cubature: AnyCubature = None,
    cavity: Gaussians | None = None,
    rows: np.ndarray | None = None,
) -> Array:
    """The likelihood's part of the energy, per row, shape (N,); 0 for a missing row.

    E_q log p for vi (16); log p at the mean for newton and taylor (17); (1/α) log E p^α over the cavity for ep (27),
    and with α = 1 for pl and pl2 (§4.3.2). See :func:`site_energy` for the rest.
    """
    model = as_vector(likelihood)
    missing = missing_rows(Y)
    if missing.any():
        out = np.zeros(mean.shape[0])
        if not missing.all():
            out[~missing] = local_energy(
                rule, model, Y[~missing], mean[~missing], cov[~missing], _rows(sites, ~missing), cubature,
                None if cavity is None else Gaussians(*(a[~missing] for a in cavity)), np.flatnonzero(~missing),
            )  # fmt: skip
        return out
    if isinstance(rule, EP | PL | PL2):
        mean, cov = cavities(mean, cov, sites, rule.alpha) if cavity is None else cavity
    value = rule.energy_several(model, Y, mean, cov, cubature)
    if not np.isfinite(value).all():
        at = int(np.argmin(np.isfinite(value)))
        msg = (
            f"rule={rule.name!r}: the energy of {model} is {float(value[at])!r} in row "
            f"{at if rows is None else int(rows[at])} (Y = {Y[at].tolist()!r}, latent mean {mean[at].tolist()!r}); "
            "check the likelihood's log_prob there"
        )
        raise ValueError(msg)
    return value


def site_energy(rule: AnyLocalRule, mean: Array, cov: Array, sites: Sites, cavity: Gaussians | None = None) -> Array:
    """The site's part of the energy, per row: what :func:`local_energy` is for the unnormalised site t.

    With ``t(f) = exp(λ'f - f'Λf/2)``: E_q log t for vi, log t(m) for newton and taylor, (1/α) log E t^α over the
    cavity for ep, pl and pl2. Then ``energy = Σ site_energy - Σ local_energy - log ∫ p(f) Π t(f) df``, for
    sites of any rank: the normalisers of t cancel between the last two terms.
    """
    if isinstance(rule, EP | PL | PL2):
        alpha = rule.alpha
        mean, cov = cavities(mean, cov, sites, alpha) if cavity is None else cavity
        # I + αL'ΛL with cov = LL': symmetric, so that its eigenvalues give determinant and inverse however sharp t is
        root = lower_roots(cov, "cov")
        turned = np.swapaxes(root, -1, -2)
        values, vectors = eigen(np.eye(cov.shape[-1]) + alpha * symmetrised(turned @ sites.precision @ root))
        values = np.where(non_positive(sites.precision)[:, None], values, np.maximum(values, 1.0))
        pull = alpha * (sites.shift - applied(sites.precision, mean))
        pushed = applied(np.swapaxes(root @ vectors, -1, -2), pull)
        gain = 0.5 * (pushed**2 / values).sum(axis=1)
        return np.asarray(_log_site(mean, sites) + (gain - 0.5 * np.log(np.abs(values)).sum(axis=1)) / alpha)
    value = _log_site(mean, sites)
    if isinstance(rule, Newton | Taylor):
        return value
    return np.asarray(value - 0.5 * np.einsum("nde,ned->n", sites.precision, cov))


def _log_site(mean: Array, sites: Sites) -> Array:
    """``λ'm - m'Λm/2``."""
    return np.asarray(((sites.shift - 0.5 * applied(sites.precision, mean)) * mean).sum(axis=1))


def _rows(sites: Sites, rows: np.ndarray) -> Sites:
    return Sites(sites.precision[rows], sites.shift[rows])


def _scattered(
    seen: np.ndarray,
    rule: AnyLocalRule,
    curvature: Curvature,
    model: VectorLikelihood,
    Y: Array,
    mean: Array,
    cov: Array,
    sites: Sites,
    memory: QuasiNewtonMemory | None,
    damping: float,
    cubature: AnyCubature,
    cavity: Gaussians | None,
    rows: np.ndarray | None,
) -> LocalUpdate:
    """Update the rows that have an output; the others get a site of no precision, and keep no memory of their own."""
    precision, shift = np.zeros(cov.shape), np.zeros(mean.shape)
    if not seen.any():
        return LocalUpdate(Sites(precision, shift), memory, 0, -1)
    part = local_update(
        rule, curvature, model, Y[seen], mean[seen], cov[seen], _rows(sites, seen),
        None if memory is None else QuasiNewtonMemory(*(a[seen] for a in memory)),
        damping=damping, cubature=cubature, cavity=None if cavity is None else Gaussians(*(a[seen] for a in cavity)),
        rows=np.flatnonzero(seen) if rows is None else rows[seen],
    )  # fmt: skip
    precision[seen], shift[seen] = part.sites
    remembered = None
    if part.memory is not None:
        grown = [np.zeros((seen.size, *a.shape[1:])) for a in part.memory]
        for whole, some in zip(grown, part.memory, strict=True):
            whole[seen] = some
        remembered = QuasiNewtonMemory(*grown)
    first = int(np.flatnonzero(seen)[part.first_non_positive]) if part.non_positive else -1
    return LocalUpdate(Sites(precision, shift), remembered, part.non_positive, first)


def _refuse_nan(look: Look, site: VectorSite, rows: np.ndarray | None) -> None:
    """A site that is not finite is an error that names rule, row and value."""
    for what, values in (("gradient", site.gradient), ("curvature", site.curvature)):
        if not np.isfinite(values).all():
            fine = np.isfinite(values).reshape(values.shape[0], -1).all(axis=1)
            at = int(np.argmin(fine))
            row = at if rows is None else int(rows[at])
            msg = (
                f"rule={look.rule.name!r}: the {what} of {look.likelihood} is {values[at].tolist()!r} in row {row} "
                f"(Y = {look.Y[at].tolist()!r}, latent mean {look.mean[at].tolist()!r}); check the labels and the "
                "likelihood's log_prob there, or use a smaller damping"
            )
            raise ValueError(msg)
