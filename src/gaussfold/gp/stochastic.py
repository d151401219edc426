"""Sparse inference from batches, bayes-newton algorithm 2: all sites tied to one factor t(u).

Every site counts as ``t_n = t^{1/N}``, so that only the (DM, DM) factor is stored; a batch of B rows moves it by
``t ← t^{1-ρ} (Π_batch t_n)^{ρN/B}``. Power ep takes its cavities from ``q / t^{α/N}`` (stochastic ep).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from gaussfold.gp.local import Local
from gaussfold.gp.progress import Progress
from gaussfold.gp.sparse import Features, Solved, SparsePrior, Tied, gathered
from gaussfold.linalg.small import applied, inverse, symmetrised
from gaussfold.rules import EP, PL, PL2, Exact, GaussNewton, Heuristic, Newton, Taylor, local_energy, local_update
from gaussfold.rules.several import Gaussians
from gaussfold.types import Array, Sites

if TYPE_CHECKING:
    from gaussfold.gp.model import GaussianProcess


def check_batches(local: Local) -> None:
    """Refuse a curvature policy that remembers something about every site."""
    if not isinstance(local.curvature, Exact | Heuristic | GaussNewton):
        msg = (
            f"curvature={local.curvature.name!r} remembers every site, and batches tie them into one; use 'exact', "
            "'heuristic' or 'gauss-newton', or batch_size=None"
        )
        raise ValueError(msg)  # noqa: TRY004 - the option has a value that does not fit, not a wrong type


def fit_in_batches(model: GaussianProcess, iterations: int) -> tuple[Tied, list[float], tuple[int, int]]:
    """Run so many batches; returns the tied factor, energies (noisy, the last one over all rows), and the bad sites."""
    local, prior = model._local, model.prior_
    check_batches(local)
    N, size = len(model.X_), min(model.batch_size or 1, len(model.X_))
    count = sum(len(prior.Z) for _ in prior.covariances)
    tied = Tied(np.zeros((count, count)), np.zeros(count))
    history: list[float] = []
    bad = (0, -1)
    with Progress(iterations, model.verbose) as progress:
        for _ in range(iterations):
            rows = np.sort(model._rng.choice(N, size, replace=False))
            features = prior.features(model.X_[rows])
            history.append(tied_energy(local, model.Y_[rows], features, tied, N))
            progress.show(history[-1])
            new, bad = _batch_sites(local, model.Y_[rows], features, tied, N)
            found = gathered(features, new)
            rho, scale = model.damping, N / size
            tied = Tied(
                (1.0 - rho) * tied.precision + rho * scale * found.precision,
                (1.0 - rho) * tied.shift + rho * scale * found.shift,
            )
            bad = bad[0], int(rows[bad[1]]) if bad[0] else -1
    history.append(full_energy(local, model.X_, model.Y_, prior, tied))
    return tied, history, bad


def _look(local: Local, features: Features, tied: Tied, N: int) -> tuple[Solved, Gaussians | None, Array, Array]:
    """Posterior of v, cavity of f if the rule wants one, and mean and covariance of f."""
    solved = Solved(tied)
    now = solved.marginals(features)
    if not isinstance(local.rule, EP | PL | PL2):
        return solved, None, now.mean, now.cov
    keep = 1.0 - local.rule.alpha / N
    left = Solved(Tied(keep * tied.precision, keep * tied.shift)).marginals(features)
    return solved, Gaussians(left.mean, left.cov), now.mean, now.cov


def _batch_sites(local: Local, Y: Array, features: Features, tied: Tied, N: int) -> tuple[Sites, tuple[int, int]]:
    _, cavity, mean, cov = _look(local, features, tied, N)
    rows, D = mean.shape
    blank = Sites(np.zeros((rows, D, D)), np.zeros((rows, D)))
    update = local_update(
        local.rule, local.curvature, local.likelihood, Y, mean, cov, blank, None,
        cubature=local.cubature, cavity=cavity if isinstance(local.rule, EP) else None,
    )  # fmt: skip
    bad = update.non_positive, update.first_non_positive
    if not isinstance(local.rule, EP):
        return update.sites, bad
    widen = local.rule.alpha * features.open[:, :, None] * np.eye(D)
    turn = inverse(np.eye(D) + update.sites.precision @ widen)
    shift = applied(turn, update.sites.shift)
    return Sites(symmetrised(turn @ update.sites.precision), shift), bad


def tied_energy(local: Local, Y: Array, features: Features, tied: Tied, N: int) -> float:
    """The energy with the likelihood's share scaled up from these rows to all N."""
    solved, cavity, mean, cov = _look(local, features, tied, N)
    rows, D = mean.shape
    blank = Sites(np.zeros((rows, D, D)), np.zeros((rows, D)))
    share = local_energy(local.rule, local.likelihood, Y, mean, cov, blank, local.cubature, cavity)
    m = solved.mean
    site = float(tied.shift @ m - 0.5 * m @ tied.precision @ m)
    if cavity is not None:
        keep = 1.0 - local.rule.alpha / N
        left = Solved(Tied(keep * tied.precision, keep * tied.shift))
        site = float(N / local.rule.alpha * (solved.log_z - left.log_z))
    elif not isinstance(local.rule, Newton | Taylor):
        site -= 0.5 * float(np.vdot(tied.precision, solved.cov))
    return float(site - N / rows * share.sum() - solved.log_z)


def full_energy(local: Local, X: Array, Y: Array, prior: SparsePrior, tied: Tied, block: int = 4096) -> float:
    """The energy over all rows, a block at a time."""
    parts, weights = [], []
    for start in range(0, len(X), block):
        rows = slice(start, start + block)
        parts.append(tied_energy(local, Y[rows], prior.features(X[rows]), tied, len(X)))
        weights.append(len(X[rows]) / len(X))
    return float(np.dot(parts, weights))
