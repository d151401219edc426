"""The target's own Hessian."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from gaussfold.rules.bfgs import QuasiNewtonMemory
from gaussfold.rules.curvature.base import Curvature, Target
from gaussfold.types import VectorSite


@dataclass(frozen=True)
class Exact(Curvature):
    """The Hessian as it is; a non-positive precision is counted and reported, never patched.

    Examples
    --------
    >>> import numpy as np
    >>> import gaussfold as gf
    >>> from gaussfold.types import Sites
    >>> model = gf.likelihoods.HeteroscedasticGaussian()
    >>> recipe = gf.rules.SiteRecipe(gf.rules.Newton(), gf.rules.Exact(), model)
    >>> now = gf.rules.Gaussians(mean=np.zeros((1, 2)), cov=np.eye(2)[None])
    >>> sites = Sites(precision=np.eye(2)[None], shift=np.zeros((1, 2)))
    >>> found = gf.rules.update_sites(recipe, np.array([[0.3]]), now, sites)
    >>> found.sites.precision[0].round(3), found.non_positive
    (array([[2.081, 0.901],
           [0.901, 0.065]]), 1)
    """

    name: ClassVar[str] = "exact"
    is_exact: ClassVar[bool] = True

    def site(self, target: Target, memory: QuasiNewtonMemory | None) -> tuple[VectorSite, QuasiNewtonMemory | None]:
        """The rule's own site."""
        return target.exact(), memory
