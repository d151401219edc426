"""Sparse inference from batches, bayes-newton algorithm 2: all sites tied to one factor t(u).

Every site counts as ``t_n = t^{1/N}``, so that only the (DM, DM) factor is stored; a batch of B rows moves it by
``t ← t^{1-ρ} (Π_batch t_n)^{ρN/B}``. Power ep takes its cavities from ``q / t^{α/N}`` (stochastic ep).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from gaussfold.gp.sparse import Features, Solved, SparsePrior, Tied, gathered
from gaussfold.linalg.small import applied, inverse, symmetrised
from gaussfold.progress import Progress
from gaussfold.rules import Gaussians, SiteRecipe, likelihood_energy, update_sites
from gaussfold.types import Array, Sites

if TYPE_CHECKING:
    from gaussfold.gp.fitting import Fitting


def check_batches(recipe: SiteRecipe) -> None:
    """Refuse a curvature policy that remembers something about every site."""
    if recipe.curvature.needs_each_site:
        msg = (
            f"curvature={recipe.curvature.name!r} remembers every site, and batches tie them into one; use 'exact', "
            "'heuristic' or 'gauss-newton', or batch_size=None"
        )
        raise ValueError(msg)


def fit_in_batches(model: Fitting, prior: SparsePrior, iterations: int) -> tuple[Tied, list[float], tuple[int, int]]:
    """Run so many batches; returns the tied factor, energies (noisy, the last one over all rows), and the bad sites."""
    recipe = model.recipe
    check_batches(recipe)
    labels = model.labels
    N, size = len(model.X_), min(model.batch_size or 1, len(model.X_))
    count = sum(len(prior.Z) for _ in prior.covariances)
    tied = Tied(np.zeros((count, count)), np.zeros(count))
    history: list[float] = []
    bad = (0, -1)
    with Progress("batches", iterations, 0, model.verbose) as progress:
        for done in range(iterations):
            rows = np.sort(model.rng.choice(N, size, replace=False))
            features = prior.features(model.X_[rows])
            history.append(tied_energy(recipe, labels[rows], features, tied, N))
            progress.show(done + 1, f"energy {history[-1]:.6g}")
            new, bad = _batch_sites(recipe, labels[rows], features, tied, N)
            found = gathered(features, new)
            rho, scale = model.damping, N / size
            tied = Tied(
                (1.0 - rho) * tied.precision + rho * scale * found.precision,
                (1.0 - rho) * tied.shift + rho * scale * found.shift,
            )
            bad = bad[0], int(rows[bad[1]]) if bad[0] else -1
    history.append(full_energy(recipe, model.X_, labels, prior, tied))
    return tied, history, bad


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
    rows, D = now.mean.shape
    blank = Sites(np.zeros((rows, D, D)), np.zeros((rows, D)))
    update = update_sites(recipe, Y, now, blank, cavity=cavity if recipe.rule.looks_at_cavity else None)
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
    rows, D = now.mean.shape
    blank = Sites(np.zeros((rows, D, D)), np.zeros((rows, D)))
    share = likelihood_energy(recipe, Y, now, blank, cavity)
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
