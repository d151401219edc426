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

    Examples
    --------
    >>> import numpy as np
    >>> import gaussfold as gf
    >>> from gaussfold.types import Sites
    >>> model = gf.likelihoods.HeteroscedasticGaussian()
    >>> recipe = gf.rules.SiteRecipe(gf.rules.Newton(), gf.rules.Riemannian(), model)
    >>> now = gf.rules.Gaussians(mean=np.zeros((1, 2)), cov=np.eye(2)[None])
    >>> sites = Sites(precision=np.eye(2)[None], shift=np.zeros((1, 2)))
    >>> found = gf.rules.update_sites(recipe, np.array([[0.3]]), now, sites, damping=0.5)
    >>> found.sites.precision[0].round(3), found.non_positive
    (array([[1.788, 0.467],
           [0.467, 0.743]]), 0)
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
