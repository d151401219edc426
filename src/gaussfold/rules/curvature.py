"""Which curvature a rule's site carries: the target's own Hessian, or one that is sure to be negative semi-definite.

A policy asks a rule for what it needs (its site, its Gauss-Newton site or its slopes) and returns the site to use, with
whatever it must remember. bayes-newton §4.5.1 and §5-7.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, NamedTuple, TypeAlias

import numpy as np

from gaussfold.checks import between, not_negative, one_of, positive
from gaussfold.likelihoods.chained import AnyCubature, VectorLikelihood
from gaussfold.linalg.small import eigen, inverse, lower_roots, symmetrised
from gaussfold.rules.bfgs import QuasiNewtonMemory, averaged, bfgs_update, first_memory, hessian_block
from gaussfold.rules.catalogue import AnyLocalRule
from gaussfold.rules.ep import EP
from gaussfold.types import Array, Sites, VectorSite

REACH = 8.0
"""Standard deviations that a site may move its marginal: as far as the outermost nodes of the default cubature see."""
GAUSS_NEWTON_REACH = 30.0
"""The same for Gauss-Newton, whose full steps (ρ = 1) move by 27 in the authors' own runs."""


class Look(NamedTuple):
    """What a rule looks at: labels and marginals (cavities for ep) of N rows, none of them wholly missing."""

    rule: AnyLocalRule
    likelihood: VectorLikelihood
    Y: Array
    mean: Array
    cov: Array
    cubature: AnyCubature
    sites: Sites
    damping: float

    def exact(self) -> VectorSite:
        """The rule's own site."""
        return self.rule.site_several(self.likelihood, self.Y, self.mean, self.cov, self.cubature)


@dataclass(frozen=True)
class Exact:
    """The Hessian as it is; a non-positive precision is counted and reported, never patched."""

    name: ClassVar[str] = "exact"
    defined_for: ClassVar[tuple[str, ...]] = ("newton", "taylor", "vi", "ep", "pl", "pl2", "quadratic")

    def site(self, look: Look, memory: QuasiNewtonMemory | None) -> tuple[VectorSite, QuasiNewtonMemory | None]:
        """The rule's own site."""
        return look.exact(), memory


@dataclass(frozen=True)
class Heuristic:
    """Keep the diagonal of the precision only, and put ``floor`` where it is negative: §4.5.1.

    Parameters
    ----------
    floor
        What replaces a negative precision; the paper's 0.01.
    """

    floor: float = 0.01
    name: ClassVar[str] = "heuristic"
    defined_for: ClassVar[tuple[str, ...]] = ("newton", "taylor", "vi", "ep", "pl", "pl2")

    def __post_init__(self) -> None:
        not_negative("floor", self.floor, remedy="it replaces a negative precision, such as floor=0.01")

    def site(self, look: Look, memory: QuasiNewtonMemory | None) -> tuple[VectorSite, QuasiNewtonMemory | None]:
        """Independent latents with positive precisions."""
        gradient, curvature = look.exact()
        diagonal = -np.diagonal(curvature, axis1=-2, axis2=-1)
        diagonal = np.where(diagonal < 0.0, self.floor, diagonal)
        site = VectorSite(gradient, -diagonal[..., None] * np.eye(diagonal.shape[-1]))
        # power ep has scaled its gradient by a curvature that is not kept
        return (within_reach(look, site) if isinstance(look.rule, EP) else site), memory


@dataclass(frozen=True)
class GaussNewton:
    """First derivatives only, so the precision is a sum of squares: (38), (40), (43), (44), (46).

    The gradient stays exact, and :func:`within_reach` unless the likelihood is log-concave. Taylor and pl are
    Gauss-Newton methods by themselves: nothing else changes for them.
    """

    name: ClassVar[str] = "gauss-newton"
    defined_for: ClassVar[tuple[str, ...]] = ("newton", "taylor", "vi", "pl", "pl2")

    def site(self, look: Look, memory: QuasiNewtonMemory | None) -> tuple[VectorSite, QuasiNewtonMemory | None]:
        """The rule's Gauss-Newton site."""
        make = getattr(look.rule, "gauss_newton_several", None)
        site = look.exact() if make is None else make(look.likelihood, look.Y, look.mean, look.cov, look.cubature)
        return (site if look.likelihood.log_concave else within_reach(look, site, GAUSS_NEWTON_REACH)), memory


@dataclass(frozen=True)
class Riemannian:
    """The retraction of Lin et al.: H - (ρ/2) G C̄ G with G = C̄⁻¹ + H: (58), (59).

    Needs site precisions that are positive definite to start from, because the next one is
    ``(Λ + (I - ρGΛ⁻¹) Λ (I - ρΛ⁻¹G))/2``.
    """

    name: ClassVar[str] = "riemannian"
    defined_for: ClassVar[tuple[str, ...]] = ("newton", "vi", "ep", "pl2")

    def site(self, look: Look, memory: QuasiNewtonMemory | None) -> tuple[VectorSite, QuasiNewtonMemory | None]:
        """The rule's own site with the retraction."""
        gradient, curvature = look.exact()
        G = look.sites.precision + curvature
        bend = 0.5 * look.damping * G @ inverse(look.sites.precision) @ G
        return VectorSite(gradient, symmetrised(curvature - bend)), memory


@dataclass(frozen=True)
class QuasiNewton:
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
    """

    damping: float | None = 0.5
    start: float = 100.0
    stored: str = "new"
    ep: str = "safe"
    name: ClassVar[str] = "quasi-newton"
    defined_for: ClassVar[tuple[str, ...]] = ("newton", "vi", "ep", "pl", "pl2")

    def __post_init__(self) -> None:
        if self.damping is not None:
            between("damping", self.damping, 0, 1, "()", owner="(55)", remedy="or None, to reject bad updates instead")
        positive("start", self.start, remedy="B starts at -start I, such as start=100.0")
        one_of("stored", self.stored, ("new", "averaged"))
        one_of("ep", self.ep, ("safe", "printed", "programs"))

    def site(self, look: Look, memory: QuasiNewtonMemory | None) -> tuple[VectorSite, QuasiNewtonMemory]:
        """Update B with the step since the last visit, and use it at once."""
        slopes = look.rule.slopes_several(  # type: ignore[union-attr]  # defined_for has only rules with slopes
            look.likelihood, look.Y, look.mean, look.cov, look.cubature
        )
        rows, dim = look.mean.shape
        if slopes[1] is None:
            point, gradient = look.mean, slopes[0]
        else:
            point = np.concatenate([look.mean, look.cov.reshape(rows, -1)], axis=1)
            gradient = np.concatenate([slopes[0], slopes[1].reshape(rows, -1)], axis=1)
        if memory is None:
            memory = first_memory(rows, dim, point.shape[1], self.start)
        root = bfgs_update(memory, point, gradient, self.damping)
        kept = root if self.stored == "new" else averaged(memory.root, root, look.damping)
        site = VectorSite(slopes[0], hessian_block(root, dim))
        if isinstance(look.rule, EP):
            site = self._through_the_cavity(look.rule, site, look.cov)
        else:
            site = within_reach(look, site)
        return site, QuasiNewtonMemory(kept, point, gradient)

    def _through_the_cavity(self, rule: EP, target: VectorSite, cov: Array) -> VectorSite:
        """From a gradient and a Hessian over the cavity to a site; see ``ep`` above."""
        if self.ep == "printed":
            return rule.scaled(*target, cov)
        eye = np.eye(cov.shape[-1])
        R = inverse(eye - rule.alpha * target.curvature @ cov)
        curvature = symmetrised(R @ target.curvature)
        if self.ep == "safe":
            R = eye - rule.alpha * curvature @ cov
        return VectorSite((R @ target.gradient[..., None])[..., 0], curvature)


def within_reach(look: Look, site: VectorSite, reach: float = REACH) -> VectorSite:
    """The same curvature, with a gradient that moves the marginal's mean by at most ``reach`` standard deviations.

    Gauss-Newton and BFGS curvature need not fit the exact gradient: BFGS knows only what its steps have shown, and the
    other has no precision where nothing but the noise depends on a latent. Where a marginal is so wide that the
    gradient is astronomical (E 1/φ² of the heteroscedastic model grows like exp(2 · variance)), steps would end where
    no likelihood can be evaluated. The site alone moves the mean by ``L u``, ``u = (I + L'ΔΛL)⁻¹ L'ρ(J - J_t)``, with
    C = L L', ΔΛ the change of its precision and J_t the old site's gradient, measured in C + L(I + L'ΔΛL)⁻¹L', the
    covariances before and after. At a fixed point J = J_t: it stays where it is. On the paper's three models at its
    settings no Gauss-Newton or BFGS step but one comes near such lengths.
    """
    if isinstance(look.rule, EP):  # from the cavity, with the fraction α of the new site
        share, old, change = look.rule.alpha, np.zeros_like(look.mean), -look.rule.alpha * site.curvature
    else:
        share, old = look.damping, look.sites.shift - (look.sites.precision @ look.mean[:, :, None])[:, :, 0]
        change = -look.damping * (site.curvature + look.sites.precision)
    root = lower_roots(look.cov, "cov")
    turned = np.swapaxes(root, -1, -2)
    away = site.gradient - old
    values, vectors = eigen(np.eye(root.shape[-1]) + symmetrised(turned @ change @ root))
    # C⁻¹ ⪰ Λ_old: no eigenvalue is below 1 - ρ but by rounding
    values = np.maximum(values, np.maximum(1.0 - share, np.finfo(float).eps * np.abs(values[:, -1:])))
    pushed = np.swapaxes(vectors, -1, -2) @ (turned @ (share * away)[:, :, None])
    length = np.linalg.norm(pushed[:, :, 0] / np.sqrt(values * (values + 1.0)), axis=1)  # in the metric of C + C_new
    far = length > reach
    if not far.any():
        return site
    shorter = np.where(far, reach / np.where(far, length, 1.0), 1.0)[:, None]
    return VectorSite(np.where(far[:, None], old + shorter * away, site.gradient), site.curvature)


Curvature: TypeAlias = Exact | Heuristic | GaussNewton | QuasiNewton | Riemannian
_NAMES: dict[str, Curvature] = {
    policy.name: policy for policy in (Exact(), Heuristic(), GaussNewton(), QuasiNewton(), Riemannian())
}


def resolve_curvature(curvature: str | Curvature) -> Curvature:
    """A policy by name or as an object.

    Examples
    --------
    >>> resolve_curvature("gauss-newton")
    GaussNewton()
    """
    if isinstance(curvature, Exact | Heuristic | GaussNewton | QuasiNewton | Riemannian):
        return curvature
    if isinstance(curvature, str) and curvature in _NAMES:
        return _NAMES[curvature]
    allowed = ", ".join(map(repr, _NAMES))
    msg = f"curvature={curvature!r}: allowed are {allowed}, or an object from gaussfold.rules.curvature"
    raise ValueError(msg)


def check_pair(rule: AnyLocalRule, curvature: Curvature) -> None:
    """Refuse a rule and a curvature that the paper does not define together, and say which ones it does."""
    if rule.name not in curvature.defined_for:
        fits = ", ".join(repr(name) for name, policy in _NAMES.items() if rule.name in policy.defined_for)
        msg = (
            f"curvature={curvature.name!r} is not defined for rule={rule.name!r}; it is for "
            f"{', '.join(map(repr, curvature.defined_for))}, and rule={rule.name!r} goes with {fits}"
        )
        raise ValueError(msg)
