"""Which Gaussian stands in for the likelihood (rule), and where it looks (at).

One rule, one file, with what the engine compiles for it; ``base`` says what a rule is, ``catalogue`` lists them, ``at``
has prior, posterior and extragradient, ``curvature`` the policies. ``python_sites`` makes one site of a stream in plain
Python (``implicit`` is its solver), ``site_updates`` many on R^D that are visited again, ``energies`` and ``cavities``
are what these need. A new rule is a file and a line in ``catalogue``: docs/skeletons/rule.py.

What must not be broken: a rule never sees a belief, so nothing is counted twice; it says what it is by its attributes,
and nobody asks for its type. Twins: ``tests/reference/sites.py``.
"""

from gaussfold.rules import catalogue
from gaussfold.rules.at import Extragradient, Posterior, Prior, resolve_at
from gaussfold.rules.base import SiteRule, StreamRule, View
from gaussfold.rules.catalogue import *  # noqa: F403 - there is one list of rules, and it is there
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
from gaussfold.rules.site_updates import SiteRecipe, SiteUpdate, update_sites

__all__ = [
    "Curvature",
    "Exact",
    "Extragradient",
    "GaussNewton",
    "Gaussians",
    "Heuristic",
    "Posterior",
    "Prior",
    "QuasiNewton",
    "Riemannian",
    "SiteRecipe",
    "SiteRule",
    "SiteUpdate",
    "StreamRule",
    "View",
    "check_pair",
    "likelihood_energy",
    "resolve_at",
    "resolve_curvature",
    "site_energy",
    "update_sites",
]
__all__ += catalogue.__all__
