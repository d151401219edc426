"""What an observation says of one feature when the other features of its row are integrated out.

The others add a Gaussian N(μ₋ᵢ, s) to xᵢ wᵢ. Averaged over it, the likelihood is again one of the engine's families, of
the latent k (f + shift) with f = μ₋ᵢ + xᵢ wᵢ:

- logit: k = 1/√(1 + πs/8), sparse-online (11); probit: k = 1/√(1 + s), exact, (25); Gaussian: the noise's variance
  grows by s, exact.
- Poisson and negative binomial: a count whose rate is log-normal. The gamma distribution with the same mean and
  variance of the logarithm stands in, which makes it a negative binomial: ψ'(r) = s (+ ψ'(r₀)), shift = log r - ψ(r)
  (- the same at r₀). For small s that is the mean e^{s/2} and the overdispersion s of the log-normal.
"""

from __future__ import annotations

import math

from gaussfold.engine.compiled import compiled
from gaussfold.engine.families import GAUSSIAN, LOGIT, NEGATIVE_BINOMIAL, POISSON, PROBIT

NARROW = 1e-9
"""Below this variance of the others a count is a Poisson count to rounding."""


@compiled
def digamma_trigamma(x: float) -> tuple[float, float]:
    """ψ(x) and ψ'(x) for x > 0: up by the recurrence to 10, from there the asymptotic series."""
    psi = 0.0
    slope = 0.0
    while x < 10.0:
        psi -= 1.0 / x
        slope += 1.0 / (x * x)
        x += 1.0
    t = 1.0 / (x * x)
    psi_tail = 1 / 12 - t * (1 / 120 - t * (1 / 252 - t * (1 / 240 - t * (1 / 132 - t * 691 / 32760))))
    slope_tail = 1 / 6 - t * (1 / 30 - t * (1 / 42 - t * (1 / 30 - t * (5 / 66 - t * 691 / 2730))))
    psi += math.log(x) - 0.5 / x - t * psi_tail
    slope += (1.0 + 0.5 / x + t * slope_tail) / x
    return psi, slope


@compiled
def inverse_trigamma(s: float) -> float:
    """R with ψ'(r) = s: Newton on 1/ψ', which is convex and nearly straight, so it only ascends."""
    r = 0.5 + 1.0 / s
    if s > 1e7:
        return 1.0 / math.sqrt(s)
    for _ in range(50):
        _, slope = digamma_trigamma(r)
        h = 1e-4 * r
        _, above = digamma_trigamma(r + h)
        _, below = digamma_trigamma(r - h)
        step = slope * (1.0 - slope / s) / ((above - below) / (2.0 * h))
        r += step
        if abs(step) <= 1e-13 * r:
            break
    return r


@compiled
def excluding(code: int, p0: float, s: float) -> tuple[int, float, float, float]:
    """(code, p0, k, shift) of the likelihood averaged over N(0, s) added to its latent."""
    if code == LOGIT:
        return code, p0, 1.0 / math.sqrt(1.0 + math.pi / 8.0 * s), 0.0
    if code == PROBIT:
        return code, p0, 1.0 / math.sqrt(1.0 + s), 0.0
    if code == GAUSSIAN:
        return code, math.sqrt(p0 * p0 + s), 1.0, 0.0
    if code == POISSON:
        if s < NARROW:
            return code, p0, 1.0, 0.0
        r = inverse_trigamma(s)
        psi, _ = digamma_trigamma(r)
        return NEGATIVE_BINOMIAL, r, 1.0, math.log(r) - psi
    psi0, slope0 = digamma_trigamma(p0)
    r = inverse_trigamma(slope0 + s)
    psi, _ = digamma_trigamma(r)
    return NEGATIVE_BINOMIAL, r, 1.0, (math.log(r) - psi) - (math.log(p0) - psi0)
