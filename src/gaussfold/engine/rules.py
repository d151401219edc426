"""What the engine asks of a rule: the seam to ``rules``, where each rule's file registers its own bodies.

All functions here are generic in the rule (``engine.dispatch``), and through what they call in the family. A rule must
give ``rule_site``; the rest has defaults that hold for any rule. ``w`` is the power to which the likelihood is raised
(the row's weight), N(m0, v0) the belief before, N(m, v) where the rule looks. The Python rules of the same file are the
readable twins.
"""

from __future__ import annotations

import math
from typing import TypeAlias

from gaussfold.engine.dispatch import by_rule
from gaussfold.engine.families import Family
from gaussfold.engine.scalar.expectations import expected_log_density
from gaussfold.engine.scalar.initial_guess import mode_start
from gaussfold.types import Record

RuleRecord: TypeAlias = Record
"""A record of a rule's parameters: ``seam.BuiltInRule``, or one of its own for a rule from outside."""


@by_rule
def rule_site(
    family: Family, rule: RuleRecord, y: float, w: float, m: float, v: float, m0: float, v0: float
) -> tuple[float, float]:
    """(J at m, H) when the belief before is N(m0, v0) and the rule looks at N(m, v); NaN if the rule has none."""
    return math.nan, math.nan


@by_rule
def site_with_slopes(
    family: Family, rule: RuleRecord, y: float, w: float, m: float, v: float, m0: float, v0: float
) -> tuple[float, float, float, float, float, float]:
    """J and H with their derivatives in m and log v: (J, H, J_m, J_logv, H_m, H_logv), by differences."""
    j, h = rule_site(family, rule, y, w, m, v, m0, v0)
    step = 1e-6 * math.sqrt(v)
    j_plus, h_plus = rule_site(family, rule, y, w, m + step, v, m0, v0)
    j_minus, h_minus = rule_site(family, rule, y, w, m - step, v, m0, v0)
    jm = 0.5 * (j_plus - j_minus) / step
    hm = 0.5 * (h_plus - h_minus) / step
    j_plus, h_plus = rule_site(family, rule, y, w, m, v * (1.0 + 1e-6), m0, v0)
    return j, h, jm, 1e6 * (j_plus - j), hm, 1e6 * (h_plus - h)


@by_rule
def start(family: Family, rule: RuleRecord, y: float, w: float, m0: float, v0: float) -> tuple[float, float, int]:
    """Where the implicit solver starts: a marginal near the root, and the steps it took to find it."""
    return mode_start(family, y, w, m0, v0)


@by_rule
def nearby_root(
    family: Family, rule: RuleRecord, y: float, w: float, m0: float, v0: float
) -> tuple[bool, float, float, float, float, int]:
    """(True, J, H, m, v, steps) where a rule knows a short way to its root, as beside a narrow belief."""
    return False, 0.0, 0.0, m0, v0, 0


@by_rule
def nearby_root_and_score(
    family: Family, rule: RuleRecord, y: float, w: float, m0: float, v0: float
) -> tuple[bool, float, float, float, float, float, int]:
    """As :func:`nearby_root`, with log E p(y|f) under N(m0, v0) as its second number, where one look serves both."""
    return False, 0.0, 0.0, 0.0, m0, v0, 0


# Questions to which most rules answer no: alike but for the question, and functions, since a rule overrides them one by
# one.


@by_rule
def starts_at_root(family: Family, rule: RuleRecord) -> bool:
    """Whether :func:`start` finds the mean of the root itself, so that nothing is left to solve."""
    return False


@by_rule
def looks_at_prior_only(family: Family, rule: RuleRecord) -> bool:
    """Whether the site depends on the belief before alone: ``at`` makes no difference then."""
    return False


@by_rule
def may_vanish(family: Family, rule: RuleRecord) -> bool:
    """Whether the site may vanish, and the prior be the answer, where the solver does not settle from its start."""
    return False


@by_rule
def finds_mode(family: Family, rule: RuleRecord) -> bool:
    """Whether the posterior form is the mode and the curvature there: what sparse-online (17) and (18) vary."""
    return False


@by_rule
def has_objective(family: Family, rule: RuleRecord) -> bool:
    """Whether the posterior form minimises :func:`objective`, by which one of several roots is chosen."""
    return False


@by_rule
def objective(family: Family, rule: RuleRecord, y: float, w: float, m0: float, v0: float, m: float, v: float) -> float:
    """KL from N(m, v) to prior × likelihood, up to a constant: what the variational posterior form minimises."""
    fit = expected_log_density(family, y, m, v)
    return 0.5 * (v / v0 + (m - m0) * (m - m0) / v0 - math.log(v / v0)) - w * fit
