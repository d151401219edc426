"""Iterations until the energy settles: sites from marginals, marginals from sites, shorter steps where it rises."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from gaussfold.gp.damping import Damping
from gaussfold.progress import Progress

if TYPE_CHECKING:
    from gaussfold.gp.model import GaussianProcess


class FitResult(NamedTuple):
    """How the last fit went."""

    iterations: int
    energy: float
    converged: bool
    """Whether the energy's last change was within ``tol``; False too if an exact number of iterations was asked for."""
    history: tuple[float, ...]
    """Energy after every iteration."""
    non_positive: int
    """How many sites of the last iteration have a negative precision (``curvature="exact"`` and "riemannian" only)."""
    first_non_positive: int
    """The first of them in the order of the data, or -1."""


def iterate(model: GaussianProcess, iterations: int | None) -> FitResult:
    """Go on from the model's sites until its energy settles, or for exactly so many iterations."""
    limit = model.max_iter if iterations is None else iterations
    history: list[float] = []
    bad = (0, -1)
    converged = False
    damping = Damping(model.damping, adapts=iterations is None and model.recipe.descends)
    with Progress("inference", limit, 0, model.verbose) as progress:
        while len(history) < limit and not converged:
            bad = model.step(damping.value)
            history.append(model.energy())
            damping.see(history[-1])
            progress.show(len(history), f"energy {history[-1]:.6g}")
            if not np.isfinite(history[-1]):
                msg = (
                    f"the energy became {history[-1]!r} after {len(history)} iterations; use a smaller damping, "
                    f"now {model.damping!r}, or another curvature"
                )
                raise ValueError(msg)
            converged = iterations is None and has_settled(history, model.tol)
    return FitResult(len(history), history[-1] if history else model.energy(), converged, tuple(history), *bad)


def has_settled(history: list[float], tol: float) -> bool:
    """Whether the last change is small, relative to one and to the value itself."""
    return len(history) > 1 and abs(history[-1] - history[-2]) <= tol * (1.0 + abs(history[-1]))
