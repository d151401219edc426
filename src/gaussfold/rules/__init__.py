"""Which Gaussian stands in for the likelihood (rule), and where it looks (at)."""

from gaussfold.rules.at import Extragradient, Posterior, Prior, resolve_at
from gaussfold.rules.base import SiteRule, StreamRule, View
from gaussfold.rules.catalogue import check_defined, resolve, resolve_local
from gaussfold.rules.cavities import Gaussians
from gaussfold.rules.curvature import (
    Curvature,
    Exact,
    GaussNewton,
    Heuristic,
    QuasiNewton,
    Riemannian,
    check_pair,
    resolve_curvature,
)
from gaussfold.rules.energies import likelihood_energy, site_energy
from gaussfold.rules.ep import EP
from gaussfold.rules.linearisation import PL, PL2
from gaussfold.rules.newton import Newton
from gaussfold.rules.quadratic import Quadratic
from gaussfold.rules.site_updates import SiteRecipe, SiteUpdate, update_sites
from gaussfold.rules.taylor import Taylor
from gaussfold.rules.vi import VI

__all__ = [
    "EP",
    "PL",
    "PL2",
    "VI",
    "Curvature",
    "Exact",
    "Extragradient",
    "GaussNewton",
    "Gaussians",
    "Heuristic",
    "Newton",
    "Posterior",
    "Prior",
    "Quadratic",
    "QuasiNewton",
    "Riemannian",
    "SiteRecipe",
    "SiteRule",
    "SiteUpdate",
    "StreamRule",
    "Taylor",
    "View",
    "check_defined",
    "check_pair",
    "likelihood_energy",
    "resolve",
    "resolve_at",
    "resolve_curvature",
    "resolve_local",
    "site_energy",
    "update_sites",
]
