"""Which Gaussian stands in for the likelihood (rule), and where it looks (at)."""

from gaussfold.rules.at import Extragradient, Posterior, Prior, resolve_at
from gaussfold.rules.catalogue import check_defined, resolve, resolve_local
from gaussfold.rules.curvature import (
    Exact,
    GaussNewton,
    Heuristic,
    QuasiNewton,
    Riemannian,
    check_pair,
    resolve_curvature,
)
from gaussfold.rules.ep import EP
from gaussfold.rules.linearisation import PL, PL2
from gaussfold.rules.newton import Newton
from gaussfold.rules.quadratic import Quadratic
from gaussfold.rules.several import LocalUpdate, local_energy, local_update, site_energy
from gaussfold.rules.taylor import Taylor
from gaussfold.rules.vi import VI

__all__ = [
    "EP",
    "PL",
    "PL2",
    "VI",
    "Exact",
    "Extragradient",
    "GaussNewton",
    "Heuristic",
    "LocalUpdate",
    "Newton",
    "Posterior",
    "Prior",
    "Quadratic",
    "QuasiNewton",
    "Riemannian",
    "Taylor",
    "check_defined",
    "check_pair",
    "local_energy",
    "local_update",
    "resolve",
    "resolve_at",
    "resolve_curvature",
    "resolve_local",
    "site_energy",
]
