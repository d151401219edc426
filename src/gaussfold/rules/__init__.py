"""Which Gaussian stands in for the likelihood (rule), and where it looks (at)."""

from gaussfold.rules.at import Extragradient, Posterior, Prior, resolve_at
from gaussfold.rules.catalogue import check_defined, resolve
from gaussfold.rules.ep import EP
from gaussfold.rules.linearisation import PL
from gaussfold.rules.newton import Newton
from gaussfold.rules.quadratic import Quadratic
from gaussfold.rules.taylor import Taylor
from gaussfold.rules.vi import VI

__all__ = [
    "EP",
    "PL",
    "VI",
    "Extragradient",
    "Newton",
    "Posterior",
    "Prior",
    "Quadratic",
    "Taylor",
    "check_defined",
    "resolve",
    "resolve_at",
]
