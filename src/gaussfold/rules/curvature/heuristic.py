"""A diagonal of which nothing is negative."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from gaussfold.checks import not_negative
from gaussfold.rules.bfgs import QuasiNewtonMemory
from gaussfold.rules.curvature.base import Curvature, Target
from gaussfold.rules.curvature.reach import within_reach
from gaussfold.types import VectorSite


@dataclass(frozen=True)
class Heuristic(Curvature):
    """Keep the diagonal of the precision only, and put ``floor`` where it is negative: §4.5.1.

    Parameters
    ----------
    floor
        What replaces a negative precision; the paper's 0.01.

    Examples
    --------
    >>> import numpy as np
    >>> import gaussfold as gf
    >>> from gaussfold.types import Sites
    >>> model = gf.likelihoods.HeteroscedasticGaussian()
    >>> recipe = gf.rules.SiteRecipe(gf.rules.Newton(), gf.rules.Heuristic(), model)
    >>> now = gf.rules.Gaussians(mean=np.zeros((1, 2)), cov=np.eye(2)[None])
    >>> sites = Sites(precision=np.eye(2)[None], shift=np.zeros((1, 2)))
    >>> found = gf.rules.update_sites(recipe, np.array([[0.3]]), now, sites)
    >>> found.sites.precision[0].round(3), found.non_positive
    (array([[2.081, 0.   ],
           [0.   , 0.065]]), 0)
    """

    floor: float = 0.01
    name: ClassVar[str] = "heuristic"

    def __post_init__(self) -> None:
        not_negative("floor", self.floor, remedy="it replaces a negative precision, such as floor=0.01")

    def site(self, target: Target, memory: QuasiNewtonMemory | None) -> tuple[VectorSite, QuasiNewtonMemory | None]:
        """Independent latents with positive precisions."""
        gradient, curvature = target.exact()
        diagonal = -np.diagonal(curvature, axis1=-2, axis2=-1)
        diagonal = np.where(diagonal < 0.0, self.floor, diagonal)
        site = VectorSite(gradient, -diagonal[..., None] * np.eye(diagonal.shape[-1]))
        # power ep has scaled its gradient by a curvature that is not kept
        return (within_reach(target, site) if target.rule.looks_at_cavity else site), memory
