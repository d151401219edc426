"""Rules by name, and which combinations are defined.

What ``__all__`` names is offered by `gaussfold.rules`; the order in ``_ALL`` is that of the engine's numbers.
"""

from __future__ import annotations

from typing import TypeAlias, cast

from gaussfold.engine import seam
from gaussfold.likelihoods.chained import VectorLikelihood
from gaussfold.protocols import Likelihood, QuadraticallyBounded
from gaussfold.registry import Catalogue
from gaussfold.rules.at import At
from gaussfold.rules.base import SiteRule, StreamRule
from gaussfold.rules.ep import EP
from gaussfold.rules.linearisation import PL, PL2
from gaussfold.rules.newton import Newton
from gaussfold.rules.quadratic import Quadratic
from gaussfold.rules.taylor import Taylor
from gaussfold.rules.vi import VI

__all__ = [
    "EP",
    "PL",
    "PL2",
    "VI",
    "Newton",
    "Quadratic",
    "Taylor",
    "check_defined",
    "check_defined_several",
    "resolve",
    "resolve_local",
]

AnyRule: TypeAlias = StreamRule
"""A rule of the streaming update."""
_ALL: tuple[type[SiteRule], ...] = (Newton, Taylor, VI, EP, PL, Quadratic, PL2)
RULES: Catalogue[SiteRule] = Catalogue(
    "rule",
    _ALL,
    accepts=SiteRule,
    also="an object from gaussfold.rules",
)
"""Every rule, for sites on R^D that are visited again and again; those of the streaming update are StreamRules.

A new one is a file of its own and its entries here.
"""
# Loops choose among these by number; a rule with a record type of its own (vi) has loops of its own.
seam.number_built_in(*(rule for rule in _ALL if issubclass(rule, StreamRule) and rule.record is StreamRule.record))


def resolve(rule: str | AnyRule) -> AnyRule:
    """A rule of the streaming update by name or as an object.

    Examples
    --------
    >>> resolve("vi")
    VI()
    >>> resolve(EP(alpha=0.5))
    EP(alpha=0.5)
    """
    return cast("StreamRule", RULES.resolve(rule, among=StreamRule))


# A resolver for each kind of thing, here as in ``rules.curvature``: a type, an example, and one line.


def resolve_local(rule: str | SiteRule) -> SiteRule:
    """A rule for Gaussian processes by name or as an object: those of :func:`resolve`, and "pl2".

    Examples
    --------
    >>> resolve_local("pl2")
    PL2()
    """
    return RULES.resolve(rule)


def check_defined(rule: AnyRule, at: At, likelihood: Likelihood) -> None:
    """Refuse a combination that has no meaning, and say which ones do, before any data are seen.

    Parameters
    ----------
    rule, at, likelihood
        What :func:`fold` was asked to join.

    Raises
    ------
    ValueError
        It says what does make sense instead.

    Examples
    --------
    >>> from gaussfold.likelihoods import Bernoulli, StudentT
    >>> from gaussfold.rules import Posterior, Prior
    >>> check_defined(Newton(), Prior(), Bernoulli())
    >>> check_defined(Newton(), Prior(), StudentT(df=4.0, scale=1.0))
    Traceback (most recent call last):
    ValueError: rule='newton' at='prior': StudentT(df=4.0, scale=1.0) is not log-concave, so a site made
        there can cancel the belief's own precision; use at='posterior', or rule 'ep', 'quadratic', 'taylor'
        or 'pl'
    """
    if rule.needs_bound and not isinstance(likelihood, QuadraticallyBounded):
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


def check_defined_several(rule: SiteRule, at: At, likelihood: VectorLikelihood) -> None:
    """The same for a likelihood of several latents.

    Examples
    --------
    >>> from gaussfold.likelihoods import Softmax
    >>> from gaussfold.rules import Posterior
    >>> check_defined_several(VI(), Posterior(), Softmax(3))
    >>> check_defined_several(PL2(), Posterior(), Softmax(3))
    Traceback (most recent call last):
    ValueError: rule='pl2' at='posterior': no site need settle there; use at='prior' or at='extragradient'
    """
    if at.is_implicit and not rule.settles:
        msg = f"rule={rule.name!r} at={at.name!r}: no site need settle there; use at='prior' or at='extragradient'"
        raise ValueError(msg)
    if rule.needs_bound:
        msg = f"rule={rule.name!r}: {likelihood} has no quadratic bound here; use rule='vi'"
        raise ValueError(msg)
    if rule.needs_log_concave and not likelihood.log_concave and not at.is_implicit:
        msg = (
            f"rule={rule.name!r} at={at.name!r}: {likelihood} is not log-concave, so a site made there can cancel the "
            "belief's own precision; use at='posterior', or rule 'ep', 'taylor' or 'pl'"
        )
        raise ValueError(msg)
