"""Which curvature a rule's site carries: the target's own Hessian, or one that is sure to be negative semi-definite.

A policy asks a rule for what it needs (its site, its Gauss-Newton site or its slopes) and returns the site to use, with
whatever it must remember: one policy, one file. bayes-newton §4.5.1 and §5-7.
"""

from __future__ import annotations

from gaussfold.registry import Catalogue
from gaussfold.rules.base import SiteRule
from gaussfold.rules.catalogue import RULES
from gaussfold.rules.curvature.base import Curvature, Target
from gaussfold.rules.curvature.exact import Exact
from gaussfold.rules.curvature.gauss_newton import GaussNewton
from gaussfold.rules.curvature.heuristic import Heuristic
from gaussfold.rules.curvature.quasi_newton import QuasiNewton
from gaussfold.rules.curvature.riemannian import Riemannian

__all__ = [
    "Curvature",
    "Exact",
    "GaussNewton",
    "Heuristic",
    "QuasiNewton",
    "Riemannian",
    "Target",
    "check_pair",
    "resolve_curvature",
]

CURVATURES: Catalogue[Curvature] = Catalogue(
    "curvature",
    (Exact, Heuristic, GaussNewton, QuasiNewton, Riemannian),
    accepts=Curvature,
    also="an object from gaussfold.rules.curvature",
)
"""Every policy. A new one is a file of its own and one entry here."""


def resolve_curvature(curvature: str | Curvature) -> Curvature:
    """A policy by name or as an object.

    Examples
    --------
    >>> resolve_curvature("gauss-newton")
    GaussNewton()
    """
    return CURVATURES.resolve(curvature)


def check_pair(rule: SiteRule, curvature: Curvature) -> None:
    """Refuse a rule and a curvature that the paper does not define together, and say which ones it does.

    Examples
    --------
    >>> from gaussfold.rules import EP, VI
    >>> check_pair(VI(), GaussNewton())
    >>> check_pair(EP(), GaussNewton())
    Traceback (most recent call last):
    ValueError: curvature='gauss-newton' is not defined for rule='ep'; it is for 'newton', 'taylor', 'vi',
        'pl', 'pl2', and rule='ep' goes with 'exact', 'heuristic', 'quasi-newton', 'riemannian'
    """
    if curvature.name not in rule.curvatures:
        fitting = [other.name for other in RULES.members if curvature.name in other.curvatures]
        msg = (
            f"curvature={curvature.name!r} is not defined for rule={rule.name!r}; it is for "
            f"{', '.join(map(repr, fitting))}, and rule={rule.name!r} goes with {', '.join(map(repr, rule.curvatures))}"
        )
        raise ValueError(msg)
