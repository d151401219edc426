"""Curvature learned from gradients, with damping that keeps it definite; the algebra is in `gaussfold.rules.bfgs`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from gaussfold.checks import between, one_of, positive
from gaussfold.linalg.small import eigen, inverse, lower_roots, symmetrised
from gaussfold.rules.base import SiteRule
from gaussfold.rules.bfgs import QuasiNewtonMemory, averaged, bfgs_update, first_memory, hessian_block
from gaussfold.rules.curvature.base import Curvature, Target
from gaussfold.rules.curvature.reach import within_reach
from gaussfold.rules.ep import through_cavity
from gaussfold.types import Array, VectorSite

LEFT = 0.1
"""Least of I - αL'CL: a cavity that the site would more than use up says nothing of B."""


@dataclass(frozen=True)
class QuasiNewton(Curvature):
    """One BFGS matrix per site, from the gradients at successive beliefs: (48)-(57).

    Parameters
    ----------
    damping
        ξ of (55), in (0, 1); None rejects an update that would not be negative definite instead, (48).
    start
        B₀ = -start I; the point before the first is mean 0 and covariance start I, with gradient 0. The paper does not
        say; these are the authors' programs'.
    stored
        "new" keeps B as (57) gives it. "averaged" keeps (1 - ρ) B_old + ρ B_new, as the authors' programs do.
    ep
        How B, an estimate of the Hessian over the cavity, becomes a site precision Λ. "printed" is (53),
        ``Λ = ((-B)⁻¹ - αC)⁻¹``: positive only while ``-αB < C⁻¹``, which nothing ensures. "programs" flips that sign:
        always positive, but it no longer matches the tilted mean. "safe" (the default) has that precision, and the
        gradient that does match the mean: ``J = (I + αΛC)∇L``, the same identity that makes (53) match it.

    Examples
    --------
    >>> import numpy as np
    >>> import gaussfold as gf
    >>> from gaussfold.types import Sites
    >>> model = gf.likelihoods.HeteroscedasticGaussian()
    >>> recipe = gf.rules.SiteRecipe(gf.rules.Newton(), gf.rules.QuasiNewton(), model)
    >>> now = gf.rules.Gaussians(mean=np.zeros((1, 2)), cov=np.eye(2)[None])
    >>> sites = Sites(precision=np.eye(2)[None], shift=np.zeros((1, 2)))
    >>> found = gf.rules.update_sites(recipe, np.array([[0.3]]), now, sites)
    >>> np.linalg.eigvalsh(found.sites.precision[0]) > 0, found.memory.root.shape
    (array([ True,  True]), (1, 2, 2))
    """

    damping: float | None = 0.5
    start: float = 100.0
    stored: str = "new"
    ep: str = "safe"
    name: ClassVar[str] = "quasi-newton"
    needs_each_site: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if self.damping is not None:
            between("damping", self.damping, 0, 1, "()", owner="(55)", remedy="or None, to reject bad updates instead")
        positive("start", self.start, remedy="B starts at -start I, such as start=100.0")
        one_of("stored", self.stored, ("new", "averaged"))
        one_of("ep", self.ep, ("safe", "printed", "programs"))

    def site(self, target: Target, memory: QuasiNewtonMemory | None) -> tuple[VectorSite, QuasiNewtonMemory]:
        """Update B with the step since the last visit, and use it at once."""
        view = target.view
        by_mean, by_cov = target.rule.slopes_several(view)
        rows, dim = view.mean.shape
        if by_cov is None:
            point, gradient = view.mean, by_mean
        else:
            point = np.concatenate([view.mean, view.cov.reshape(rows, -1)], axis=1)
            gradient = np.concatenate([by_mean, by_cov.reshape(rows, -1)], axis=1)
        if memory is None:
            memory = first_memory(rows, dim, point.shape[1], self.start)
        root = bfgs_update(memory, point, gradient, self.damping)
        kept = root if self.stored == "new" else averaged(memory.root, root, target.damping)
        site = VectorSite(by_mean, hessian_block(root, dim))
        if target.rule.looks_at_cavity:
            site = self._through_the_cavity(site, view.cov, target.rule.alpha)
        else:
            site = within_reach(target, site)
        return site, QuasiNewtonMemory(kept, point, gradient)

    def informed(self, rule: SiteRule, memory: QuasiNewtonMemory | None, precision: Array) -> QuasiNewtonMemory | None:
        """With these precisions as the mean's block of -B, in place of ``start I``.

        B learns from steps alone. Where a start is so near the answer that the means hardly move, a ``start`` of 100
        would stay, and a posterior as narrow as it says would look like a fixed point. Over a cavity of covariance C
        the site's precision Λ = L L' comes from ``-B = L (I - αL'CL)⁻¹ L'``.
        """
        if memory is None:
            return None
        dim = precision.shape[-1]
        block = lower_roots(precision, "precision")
        if rule.looks_at_cavity:
            cov = memory.point[:, dim:].reshape(-1, dim, dim)
            values, vectors = eigen(symmetrised(np.swapaxes(block, 1, 2) @ cov @ block))
            block = block @ (vectors / np.sqrt(np.maximum(1.0 - rule.alpha * values, LEFT))[:, None, :])
        root = memory.root.copy()
        root[:, :dim, :] = 0.0
        root[:, :, :dim] = 0.0
        root[:, :dim, :dim] = block
        return memory._replace(root=root)

    def _through_the_cavity(self, target: VectorSite, cov: Array, alpha: float) -> VectorSite:
        """From a gradient and a Hessian over the cavity to a site; see ``ep`` above."""
        if self.ep == "printed":
            return through_cavity(target, cov, alpha)
        eye = np.eye(cov.shape[-1])
        R = inverse(eye - alpha * target.curvature @ cov)
        curvature = symmetrised(R @ target.curvature)
        if self.ep == "safe":
            R = eye - alpha * curvature @ cov
        return VectorSite((R @ target.gradient[..., None])[..., 0], curvature)
