"""Binary labels through the logistic function, as the engine runs them: see ``engine.families``, ``engine.scalar``."""

from __future__ import annotations

import math
from typing import NamedTuple

from gaussfold.engine.seam import compiled_for, expectations, families, logistic, quadrature, special

RARE = 1e-9
"""Below this the logistic moments keep no relative digits, and the tilted density is integrated instead."""


class LogitRecord(NamedTuple):
    """The family in the engine; ``approximate``: expectations by rvga (58) instead of exact."""

    approximate: bool


@compiled_for(LogitRecord)
def log_density(family: LogitRecord, y: float, f: float) -> float:
    """``y f - log(1 + e^f)``, soft labels included."""
    return y * f - special.softplus(f)


@compiled_for(LogitRecord)
def derivatives(family: LogitRecord, y: float, f: float) -> tuple[float, float, float, float]:
    """Of log-odds: σ(-f) or -σ(f), then -σ' and its derivatives, each without cancellation."""
    s = special.sigmoid(f)
    d = special.sigmoid_slope(f)
    return y * special.sigmoid(-f) - (1.0 - y) * s, -d, -d * (1.0 - 2.0 * s), -d * (1.0 - 6.0 * d)


@compiled_for(LogitRecord)
def conditional(family: LogitRecord, f: float) -> tuple[float, float]:
    """``σ(f)`` and ``σ'(f)``."""
    return special.sigmoid(f), special.sigmoid_slope(f)


@compiled_for(LogitRecord)
def fisher(family: LogitRecord, f: float) -> float:
    """``σ'(f)``."""
    return special.sigmoid_slope(f)


@compiled_for(LogitRecord)
def expected_derivatives(family: LogitRecord, y: float, m: float, v: float) -> tuple[float, float, float, float]:
    """By the logistic moments."""
    if family.approximate:
        p, q, d1, d2, d3 = logistic.probit_moments(m, v)
    else:
        p, q, d1, d2, d3 = logistic.logistic_moments(m, v)
    return y * q - (1.0 - y) * p, -d1, -d2, -d3


@compiled_for(LogitRecord)
def expected_log_density(family: LogitRecord, y: float, m: float, v: float) -> float:
    """``y m - E log(1 + e^f)``."""
    return y * m - logistic.expected_softplus(m, v)


@compiled_for(LogitRecord)
def predictive(family: LogitRecord, m: float, v: float) -> tuple[float, float, float, float]:
    """``p = E σ``, ``E σ'``, ``p (1 - p)`` and ``Var σ``, or (62), (63)."""
    if family.approximate:
        p, q, d, _, _ = logistic.probit_moments(m, v)
        x = v * math.pi / 8.0
        r = math.sqrt(1.0 + x)
        return p, d, p * q, p * q * x / (r * (r + 1.0))  # 1 - k = 1 - 1/r without cancellation
    p, q, d, _, _ = logistic.logistic_moments(m, v)
    return p, d, p * q, logistic.logistic_mean_variance(m, v)


@compiled_for(LogitRecord)
def log_mean_density(family: LogitRecord, y: float, m: float, v: float) -> float:
    """``log E σ(±f)``, by the tilted density where that is too small for the moments."""
    if family.approximate:
        k = 1.0 / math.sqrt(1.0 + v * math.pi / 8.0)
        return families.log_density(family, y, k * m)
    p, q, _, _, _ = logistic.logistic_moments(m, v)
    total = 0.0
    if y > 0.0:
        total += y * (math.log(p) if p > RARE else quadrature.tilted_moments(family, 1.0, 1.0, m, v)[0])
    if y < 1.0:
        total += (1.0 - y) * (math.log(q) if q > RARE else quadrature.tilted_moments(family, 0.0, 1.0, m, v)[0])
    return total


@compiled_for(LogitRecord)
def height_normaliser(family: LogitRecord, y: float, m: float, v: float) -> float:
    """sparse-online (8), which goes with (11)."""
    return expectations.log_predictive(LogitRecord(True), y, m, v)


@compiled_for(LogitRecord)
def linearised(family: LogitRecord, y: float, m: float, v: float) -> tuple[float, float]:
    """Divided through by p(1-p): E h'/p and E h'/(1-p), also where p or 1-p has underflown."""
    if family.approximate:
        k = 1.0 / math.sqrt(1.0 + v * math.pi / 8.0)
        up, down = k * special.sigmoid(-k * m), k * special.sigmoid(k * m)
    else:
        p, q, slope, _, _ = logistic.logistic_moments(m, v)
        # The slope of log p in m is the tilted mean of l' = σ(-f).
        up = slope / p if p > RARE else quadrature.tilted_moments(family, 1.0, 1.0, m, v)[1]
        down = slope / q if q > RARE else -quadrature.tilted_moments(family, 0.0, 1.0, m, v)[1]
    return special.binary_regression(y, v, up, down)


@compiled_for(LogitRecord)
def bounded_site(family: LogitRecord, y: float, m: float, v: float) -> tuple[float, float, float, float]:
    """Jaakkola-Jordan."""
    return expectations.logistic_bound(y - 0.5, 1.0, m, v)


@compiled_for(LogitRecord)
def tilted_mode(family: LogitRecord, y: float, power: float, m0: float, v0: float) -> tuple[float, float, int]:
    """A logistic root."""
    return logistic.logistic_root(power * y, power, m0, v0, False)


@compiled_for(LogitRecord)
def averaged_start(family: LogitRecord, y: float, w: float, m0: float, v0: float) -> tuple[float, float, int]:
    """The root as rvga (69)-(70) approximate it."""
    return logistic.logistic_root(w * y, w, m0, v0, True)


@compiled_for(LogitRecord)
def vi_start_is_root(family: LogitRecord) -> bool:
    """Where (58) is taken for exact, (69)-(70) is the root."""
    return family.approximate


@compiled_for(LogitRecord)
def runs_in_lanes(family: LogitRecord) -> bool:
    """Yes: the default of sparse classification."""
    return True


@compiled_for(LogitRecord)
def marginalised(family: LogitRecord, s: float) -> tuple[LogitRecord, float, float]:
    """K = 1/√(1 + πs/8), sparse-online (11)."""
    return family, 1.0 / math.sqrt(1.0 + math.pi / 8.0 * s), 0.0


@compiled_for(LogitRecord)
def has_jets(family: LogitRecord) -> bool:
    """Unless (58) is taken for exact."""
    return not family.approximate
