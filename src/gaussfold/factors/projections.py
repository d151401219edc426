"""The projections by name."""

from __future__ import annotations

from typing import Protocol

from gaussfold.checks import one_of
from gaussfold.factors.eigen import project_eigen
from gaussfold.factors.marginal import project_marginal
from gaussfold.factors.recursive_em import Seen, project_em
from gaussfold.rows import Matrix
from gaussfold.types import Array


class Projection(Protocol):
    """Brings α(WW' + Ψ) + X'BX back to low rank plus diagonal, in place; returns the new W'Ψ⁻¹W."""

    # The projections repeat these parameters, names and defaults included: a type checker compares them.

    def __call__(
        self,
        W: Array,
        psi: Array,
        G: Array,
        X: Matrix,
        weight: Array,
        alpha: float = 1.0,
        inner_loops: int = 1,
        seen: Seen | None = None,
        due: Array | None = None,
    ) -> Array:
        """Project."""
        ...


PROJECTIONS: dict[str, Projection] = {
    "eigen": project_eigen,
    "em": project_em,
    "marginal": project_marginal,
    "calibrated": project_marginal,
}
"""In this order in model files. What is calibrated needs a ledger besides, which a belief keeps: ``calibrated``."""
OF_COVARIANCES = ("eigen", "em")
"""Those that make sense for a covariance, too: keeping variances of the inverse is for precisions."""


def resolve_projection(name: str) -> Projection:
    """A projection by name."""
    return PROJECTIONS[one_of("projection", name, PROJECTIONS)]
