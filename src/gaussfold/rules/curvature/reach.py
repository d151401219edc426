"""How far one site may move its marginal, where its gradient and its curvature were not made for each other."""

from __future__ import annotations

import numpy as np

from gaussfold.linalg.small import eigen, lower_roots, symmetrised
from gaussfold.rules.curvature.base import Target
from gaussfold.types import VectorSite

REACH = 8.0
"""Standard deviations that a site may move its marginal: as far as the outermost nodes of the default cubature see."""


def within_reach(target: Target, site: VectorSite, reach: float = REACH) -> VectorSite:
    """The same curvature, with a gradient that moves the marginal's mean by at most ``reach`` standard deviations.

    Gauss-Newton and BFGS curvature need not fit the exact gradient: BFGS knows only what its steps have shown, and the
    other has no precision where nothing but the noise depends on a latent. Where a marginal is so wide that the
    gradient is astronomical (E 1/φ² of the heteroscedastic model grows like exp(2 · variance)), steps would end where
    no likelihood can be evaluated. The site alone moves the mean by ``L u``, ``u = (I + L'ΔΛL)⁻¹ L'ρ(J - J_t)``, with
    C = L L', ΔΛ the change of its precision and J_t the old site's gradient, measured in C + L(I + L'ΔΛL)⁻¹L', the
    covariances before and after. At a fixed point J = J_t: it stays where it is. On the paper's three models at its
    settings no Gauss-Newton or BFGS step but one comes near such lengths.
    """
    view, sites = target.view, target.sites
    if target.rule.looks_at_cavity:  # from the cavity, with the fraction α of the new site
        share, old, change = target.rule.alpha, np.zeros_like(view.mean), -target.rule.alpha * site.curvature
    else:
        share, old = target.damping, sites.shift - (sites.precision @ view.mean[:, :, None])[:, :, 0]
        change = -target.damping * (site.curvature + sites.precision)
    root = lower_roots(view.cov, "cov")
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
