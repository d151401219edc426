"""Rules by name, and which combinations are defined."""

from __future__ import annotations

from typing import TypeAlias

from gaussfold.protocols import Likelihood
from gaussfold.rules.at import At
from gaussfold.rules.base import SiteRule, StreamRule
from gaussfold.rules.ep import EP
from gaussfold.rules.linearisation import PL, PL2
from gaussfold.rules.newton import Newton
from gaussfold.rules.quadratic import Quadratic
from gaussfold.rules.taylor import Taylor
from gaussfold.rules.vi import VI

AnyRule: TypeAlias = StreamRule
"""A rule of the streaming update."""
_NAMES: dict[str, StreamRule] = {rule.name: rule for rule in (Newton(), Taylor(), VI(), EP(), PL(), Quadratic())}
SITE_RULES: dict[str, SiteRule] = {
    rule.name: rule for rule in (Newton(), Taylor(), VI(), EP(), PL(), PL2(), Quadratic())
}
"""Rules for sites on R^D that are visited again and again: the same, and pl2."""


def resolve(rule: str | AnyRule) -> AnyRule:
    """A rule by name or as an object.

    Examples
    --------
    >>> resolve("vi")
    VI()
    >>> resolve(EP(alpha=0.5))
    EP(alpha=0.5)
    """
    if isinstance(rule, StreamRule):
        return rule
    if isinstance(rule, str) and rule in _NAMES:
        return _NAMES[rule]
    msg = f"rule={rule!r}: allowed are {', '.join(map(repr, _NAMES))}, or an object from gaussfold.rules"
    raise ValueError(msg)


def resolve_local(rule: str | SiteRule) -> SiteRule:
    """A rule for Gaussian processes by name or as an object: those of :func:`resolve`, and "pl2".

    Examples
    --------
    >>> resolve_local("pl2")
    PL2()
    """
    if isinstance(rule, SiteRule):
        return rule
    if isinstance(rule, str) and rule in SITE_RULES:
        return SITE_RULES[rule]
    allowed = ", ".join(map(repr, (*_NAMES, PL2.name)))
    msg = f"rule={rule!r}: allowed are {allowed}, or an object from gaussfold.rules"
    raise ValueError(msg)


def check_defined(rule: AnyRule, at: At, likelihood: Likelihood) -> None:
    """Refuse a combination that has no meaning, and say which ones do, before any data are seen."""
    if rule.needs_bound and not hasattr(likelihood, "quadratic_bound"):
        msg = f"rule='quadratic' needs a quadratic bound, and {likelihood!r} has none; use rule='vi'"
        raise ValueError(msg)
    if rule.needs_log_concave and not likelihood.log_concave and not at.is_implicit:
        msg = (
            f"rule={rule.name!r} at={at.name!r}: {likelihood!r} is not log-concave, so a site made there can cancel "
            "the belief's own precision; use at='posterior', or rule 'ep', 'quadratic', 'taylor' or 'pl'"
        )
        raise ValueError(msg)
    noise = likelihood.conditional(0.0).variance if rule.linearises else 1.0
    if not noise < float("inf"):
        msg = f"rule={rule.name!r}: {likelihood!r} has no finite variance (df > 2 is needed); use rule='vi'"
        raise ValueError(msg)
