"""Rules by name, and which combinations are defined."""

from __future__ import annotations

from typing import TypeAlias

from gaussfold.protocols import Likelihood
from gaussfold.rules.at import At, Posterior
from gaussfold.rules.ep import EP
from gaussfold.rules.linearisation import PL, PL2
from gaussfold.rules.newton import Newton
from gaussfold.rules.quadratic import Quadratic
from gaussfold.rules.taylor import Taylor
from gaussfold.rules.vi import VI

AnyRule: TypeAlias = Newton | Taylor | VI | EP | PL | Quadratic
"""A rule of the streaming update."""
AnyLocalRule: TypeAlias = AnyRule | PL2
"""A rule for sites on R^D that are visited again and again: the same, and pl2."""
_NAMES: dict[str, AnyRule] = {rule.name: rule for rule in (Newton(), Taylor(), VI(), EP(), PL(), Quadratic())}


def resolve(rule: str | AnyRule) -> AnyRule:
    """A rule by name or as an object.

    Examples
    --------
    >>> resolve("vi")
    VI()
    >>> resolve(EP(alpha=0.5))
    EP(alpha=0.5)
    """
    if isinstance(rule, Newton | Taylor | VI | EP | PL | Quadratic):
        return rule
    if isinstance(rule, str) and rule in _NAMES:
        return _NAMES[rule]
    msg = f"rule={rule!r}: allowed are {', '.join(map(repr, _NAMES))}, or an object from gaussfold.rules"
    raise ValueError(msg)


def resolve_local(rule: str | AnyLocalRule) -> AnyLocalRule:
    """A rule for Gaussian processes by name or as an object: those of :func:`resolve`, and "pl2".

    Examples
    --------
    >>> resolve_local("pl2")
    PL2()
    """
    if isinstance(rule, Newton | Taylor | VI | EP | PL | PL2 | Quadratic):
        return rule
    if rule == PL2.name:
        return PL2()
    if isinstance(rule, str) and rule in _NAMES:
        return _NAMES[rule]
    allowed = ", ".join(map(repr, (*_NAMES, PL2.name)))
    msg = f"rule={rule!r}: allowed are {allowed}, or an object from gaussfold.rules"
    raise ValueError(msg)


def check_defined(rule: AnyRule, at: At, likelihood: Likelihood) -> None:
    """Refuse a combination that has no meaning, and say which ones do, before any data are seen."""
    if isinstance(rule, Quadratic) and not hasattr(likelihood, "quadratic_bound"):
        msg = f"rule='quadratic' needs a quadratic bound, and {likelihood!r} has none; use rule='vi'"
        raise ValueError(msg)
    if isinstance(rule, Newton | VI) and not likelihood.log_concave and not isinstance(at, Posterior):
        msg = (
            f"rule={rule.name!r} at={at.name!r}: {likelihood!r} is not log-concave, so a site made there can cancel "
            "the belief's own precision; use at='posterior', or rule 'ep', 'quadratic', 'taylor' or 'pl'"
        )
        raise ValueError(msg)
    noise = likelihood.conditional(0.0).variance if isinstance(rule, Taylor | PL) else 1.0
    if not noise < float("inf"):
        msg = f"rule={rule.name!r}: {likelihood!r} has no finite variance (df > 2 is needed); use rule='vi'"
        raise ValueError(msg)
