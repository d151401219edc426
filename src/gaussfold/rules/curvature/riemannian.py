"""A step along the manifold of positive definite matrices."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from gaussfold.linalg.small import inverse, symmetrised
from gaussfold.rules.bfgs import QuasiNewtonMemory
from gaussfold.rules.curvature.base import Curvature, Target
from gaussfold.types import VectorSite


@dataclass(frozen=True)
class Riemannian(Curvature):
    """The retraction of Lin et al.: H - (ρ/2) G C̄ G with G = C̄⁻¹ + H: (58), (59).

    Needs site precisions that are positive definite to start from, because the next one is
    ``(Λ + (I - ρGΛ⁻¹) Λ (I - ρΛ⁻¹G))/2``.
    """

    name: ClassVar[str] = "riemannian"
    needs_each_site: ClassVar[bool] = True
    bends_with_step: ClassVar[bool] = True

    def site(self, target: Target, memory: QuasiNewtonMemory | None) -> tuple[VectorSite, QuasiNewtonMemory | None]:
        """The rule's own site with the retraction."""
        gradient, curvature = target.exact()
        G = target.sites.precision + curvature
        bend = 0.5 * target.damping * G @ inverse(target.sites.precision) @ G
        return VectorSite(gradient, symmetrised(curvature - bend)), memory
