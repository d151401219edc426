"""Sparse inference from batches, bayes-newton algorithm 2: all sites tied to one factor t(u).

Every site counts as ``t_n = t^{1/N}``, so that only the (DM, DM) factor is stored; a batch of B rows moves it by
``t ← t^{1-ρ} (Π_batch t_n)^{ρN/B}``. Power ep takes its cavities from ``q / t^{α/N}`` (stochastic ep).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from gaussfold.gp.priors import Marginals
from gaussfold.gp.sparse import Features, Solved, SparsePrior, Tied, gathered
from gaussfold.gp.starts import mode_sites
from gaussfold.linalg.small import applied, inverse, symmetrised
from gaussfold.progress import Progress
from gaussfold.rules import VI, Gaussians, SiteRecipe, likelihood_energy, update_sites
from gaussfold.types import Array, Sites

if TYPE_CHECKING:
    from gaussfold.gp.fitting import Fitting


HALVINGS = 12
SLACK = 1e-9
"""Relative rise of a batch's energy that is rounding."""


def check_batches(recipe: SiteRecipe) -> None:
    """Refuse a curvature policy that remembers something about every site."""
    if recipe.curvature.needs_each_site:
        msg = (
            f"curvature={recipe.curvature.name!r} remembers every site, and batches tie them into one; use 'exact', "
            "'heuristic' or 'gauss-newton', or batch_size=None"
        )
        raise ValueError(msg)


class InBatches(NamedTuple):
    """How a fit from batches ended."""

    tied: Tied
    history: tuple[float, ...]
    """Energies: noisy ones from every batch, and the last over all rows."""
    bad: tuple[int, int]
    """Number of sites in the last batch that are not positive, and the first."""


def fit_in_batches(model: Fitting, prior: SparsePrior, iterations: int, *, chosen: bool) -> InBatches:
    """Run so many batches.

    ``chosen``: begin with the modes of the first batch's rows, let ρ fall as 2/(t + 2) from the model's damping on, so
    that the last batches do not outweigh the others, and with vi check every step; else begin with nothing, keep ρ.
    """
    recipe = model.recipe
    check_batches(recipe)
    labels = model.labels
    N, size = len(model.X_), min(model.batch_size or 1, len(model.X_))
    tied = Tied(np.zeros((len(prior.covariances) * len(prior.Z),) * 2), np.zeros(len(prior.covariances) * len(prior.Z)))
    history: list[float] = []
    bad = (0, -1)
    with Progress("batches", iterations, 0, model.verbose) as progress:
        for done in range(iterations):
            rows = np.sort(model.rng.choice(N, size, replace=False))
            features = prior.features(model.X_[rows])
            if chosen and not done:
                tied = _first(model, features, rows, tied)
            history.append(tied_energy(recipe, labels[rows], features, tied, N))
            progress.show(done + 1, f"energy {history[-1]:.6g}")
            rho = min(model.damping, 2.0 / (done + 2.0)) if chosen and size < N else model.damping
            if chosen and isinstance(recipe.rule, VI):
                tied = lowered(recipe, labels[rows], features, Here(tied, Solved(tied)), N, rho)[0].tied
                continue
            new, bad = _batch_sites(recipe, labels[rows], features, tied, N)
            tied = mixed(tied, features, new, N, rho)
            bad = bad[0], int(rows[bad[1]]) if bad[0] else -1
    history.append(full_energy(recipe, model.X_, labels, prior, tied))
    return InBatches(tied, tuple(history), bad)


def _first(model: Fitting, features: Features, rows: np.ndarray, nothing: Tied) -> Tied:
    """What these rows' own modes say, as if all rows were such; nothing where they say nothing."""
    moments = model.prior_moments(model.X_[rows], None)
    sites = mode_sites(model.recipe, moments, model.labels[rows], 0.0)
    if sites is None or model.start_precision is not None:
        return nothing
    return mixed(nothing, features, sites, len(model.X_), 1.0)


def mixed(tied: Tied, features: Features, sites: Sites, N: int, rho: float) -> Tied:
    """The factor after a step of ρ towards what a batch's sites say of all N rows."""
    found, scale = gathered(features, sites), N / len(sites.shift)
    precision = (1.0 - rho) * tied.precision + rho * scale * found.precision
    return Tied(precision, (1.0 - rho) * tied.shift + rho * scale * found.shift)


class Here(NamedTuple):
    """A tied factor, and the posterior of the inducing variables that it leaves."""

    tied: Tied
    solved: Solved


def lowered(recipe: SiteRecipe, Y: Array, features: Features, here: Here, N: int, rho: float) -> tuple[Here, Marginals]:
    """A step of at most ρ towards what a batch says, halved until the batch's own energy falls, and marginals; vi.

    (9) is the natural gradient of that energy, so that short steps lower it wherever it is finite.
    """
    now = here.solved.marginals(features)
    before = _vi_energy(recipe, Y, here, now, N)
    new = update_sites(recipe, Y, Gaussians(now.mean, now.cov), blank_sites(now.mean)).sites
    for _ in range(HALVINGS):
        tied = mixed(here.tied, features, new, N, rho)
        try:
            there = Here(tied, Solved(tied))
            then = there.solved.marginals(features)
            after = _vi_energy(recipe, Y, there, then, N)
        except ValueError:  # no posterior, or none with a finite energy
            after = np.inf
        if after <= before + SLACK * (1.0 + abs(before)):
            return there, then
        rho *= 0.5
    return here, now


def _vi_energy(recipe: SiteRecipe, Y: Array, here: Here, now: Marginals, N: int) -> float:
    """(16), the likelihood's share scaled up from these rows to all N; a ValueError if it is not finite."""
    share = likelihood_energy(recipe, Y, Gaussians(now.mean, now.cov), blank_sites(now.mean))
    (precision, shift), (m, C) = here.tied, (here.solved.mean, here.solved.cov)
    site = float(shift @ m - 0.5 * m @ precision @ m) - 0.5 * float(np.vdot(precision, C))
    return site - N / len(Y) * float(share.sum()) - here.solved.log_z


def blank_sites(mean: Array) -> Sites:
    """Sites that say nothing, one for every row of marginals."""
    rows, D = mean.shape
    return Sites(np.zeros((rows, D, D)), np.zeros((rows, D)))


def _look(recipe: SiteRecipe, features: Features, tied: Tied, N: int) -> tuple[Solved, Gaussians | None, Gaussians]:
    """Posterior of v, cavity of f if the rule's energy wants one, and the marginals of f."""
    solved = Solved(tied)
    now = solved.marginals(features)
    if not recipe.rule.energy_over_cavity:
        return solved, None, Gaussians(now.mean, now.cov)
    keep = 1.0 - recipe.rule.alpha / N
    left = Solved(Tied(keep * tied.precision, keep * tied.shift)).marginals(features)
    return solved, Gaussians(left.mean, left.cov), Gaussians(now.mean, now.cov)


def _batch_sites(recipe: SiteRecipe, Y: Array, features: Features, tied: Tied, N: int) -> tuple[Sites, tuple[int, int]]:
    _, cavity, now = _look(recipe, features, tied, N)
    D = now.mean.shape[1]
    update = update_sites(recipe, Y, now, blank_sites(now.mean), cavity=cavity if recipe.rule.looks_at_cavity else None)
    bad = update.non_positive, update.first_non_positive
    if not recipe.rule.looks_at_cavity:
        return update.sites, bad
    widen = recipe.rule.alpha * features.open[:, :, None] * np.eye(D)
    turn = inverse(np.eye(D) + update.sites.precision @ widen)
    shift = applied(turn, update.sites.shift)
    return Sites(symmetrised(turn @ update.sites.precision), shift), bad


def tied_energy(recipe: SiteRecipe, Y: Array, features: Features, tied: Tied, N: int) -> float:
    """The energy with the likelihood's share scaled up from these rows to all N."""
    solved, cavity, now = _look(recipe, features, tied, N)
    rows = len(now.mean)
    share = likelihood_energy(recipe, Y, now, blank_sites(now.mean), cavity)
    m = solved.mean
    site = float(tied.shift @ m - 0.5 * m @ tied.precision @ m)
    if cavity is not None:
        keep = 1.0 - recipe.rule.alpha / N
        left = Solved(Tied(keep * tied.precision, keep * tied.shift))
        site = float(N / recipe.rule.alpha * (solved.log_z - left.log_z))
    elif not recipe.rule.looks_at_mean:
        site -= 0.5 * float(np.vdot(tied.precision, solved.cov))
    return float(site - N / rows * share.sum() - solved.log_z)


def full_energy(recipe: SiteRecipe, X: Array, Y: Array, prior: SparsePrior, tied: Tied, block: int = 4096) -> float:
    """The energy over all rows, a block at a time."""
    parts, weights = [], []
    for start in range(0, len(X), block):
        rows = slice(start, start + block)
        parts.append(tied_energy(recipe, Y[rows], prior.features(X[rows]), tied, len(X)))
        weights.append(len(X[rows]) / len(X))
    return float(np.dot(parts, weights))
