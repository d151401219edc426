"""Curvature of first derivatives: a sum of squares."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from gaussfold.rules.bfgs import QuasiNewtonMemory
from gaussfold.rules.curvature.base import Curvature, Target
from gaussfold.rules.curvature.reach import within_reach
from gaussfold.types import VectorSite

FULL_STEP_REACH = 30.0
"""Standard deviations that a site may move its marginal: full steps (ρ = 1) move by 27 in the authors' own runs."""


@dataclass(frozen=True)
class GaussNewton(Curvature):
    """First derivatives only, so the precision is a sum of squares: (38), (40), (43), (44), (46).

    The gradient stays exact, and :func:`within_reach` unless the likelihood is log-concave. Taylor and pl are
    Gauss-Newton methods by themselves: nothing else changes for them.

    Examples
    --------
    >>> import numpy as np
    >>> import gaussfold as gf
    >>> from gaussfold.types import Sites
    >>> model = gf.likelihoods.HeteroscedasticGaussian()
    >>> recipe = gf.rules.SiteRecipe(gf.rules.Newton(), gf.rules.GaussNewton(), model)
    >>> now = gf.rules.Gaussians(mean=np.zeros((1, 2)), cov=np.eye(2)[None])
    >>> sites = Sites(precision=np.eye(2)[None], shift=np.zeros((1, 2)))
    >>> found = gf.rules.update_sites(recipe, np.array([[0.3]]), now, sites)
    >>> found.sites.precision[0].round(3), found.non_positive
    (array([[2.081, 0.45 ],
           [0.45 , 0.097]]), 0)
    """

    name: ClassVar[str] = "gauss-newton"

    def site(self, target: Target, memory: QuasiNewtonMemory | None) -> tuple[VectorSite, QuasiNewtonMemory | None]:
        """The rule's Gauss-Newton site."""
        site = target.rule.gauss_newton_several(target.view)
        if target.view.likelihood.log_concave:
            return site, memory
        return within_reach(target, site, FULL_STEP_REACH), memory
