"""What the engine asks of a likelihood family, one observation and one latent at a time: the seam to ``likelihoods``.

Each function here is generic (``engine.dispatch``): the family's file registers its own body for its record, and the
body below is what the others get. Two must be given: ``log_density`` and ``derivatives``; the NumPy definitions in the
same file are their twins. Integrals over the latent are generic too, and live with their quadrature in
``engine.scalar``: ``expected_derivatives``, ``expected_log_density``, ``predictive``, ``log_mean_density``,
``linearised``, ``bounded_site``, ``ep_site``, ``tilted_mode`` and the starts of ``scalar.initial_guess``.
"""

from __future__ import annotations

import math
from typing import TypeAlias

from gaussfold.engine.dispatch import by_family, required
from gaussfold.types import Record

Family: TypeAlias = Record
"""A record of a family's parameters, such as ``PoissonRecord()``."""


# What a family must say.


@required
def log_density(family: Family, y: float, f: float) -> float:
    """Log p(y|f), soft labels included where the family has them."""
    raise NotImplementedError


@required
def derivatives(family: Family, y: float, f: float) -> tuple[float, float, float, float]:
    """The first four derivatives of log p(y|f) in f; the last two only steer Newton's method."""
    raise NotImplementedError


@by_family
def log_ratio(family: Family, y: float, f: float, g: float, at_g: float) -> float:
    """Log p(y|f)/p(y|g), where ``at_g`` is log p(y|g): families leave out what does not depend on f."""
    return log_density(family, y, f) - at_g


# Answers that are no for most families are alike but for the question: each is a function, since a family overrides
# them one by one.

# What it may say.


@by_family
def is_label(family: Family, y: float) -> bool:
    """Whether y, which is not NaN, is a label of the family: the compiled twin of ``Likelihood.check_labels``."""
    return -math.inf < y < math.inf


@by_family
def has_soft_labels(family: Family) -> bool:
    """Whether a label between 0 and 1 mixes the two log likelihoods."""
    return False


@by_family
def is_log_concave(family: Family) -> bool:
    """Whether ``l'' ≤ 0`` everywhere, so that a site's precision is never negative; False is the safe answer."""
    return False


@by_family
def is_exponential(family: Family) -> bool:
    """Whether y enters log p(y|f) linearly, so that the score is the gradient of the linearised model; or say False."""
    return False


@by_family
def landmark(family: Family, y: float) -> tuple[float, float]:
    """Where log p(y|f) bends as a function of f, and on what length: guides the quadrature panels.

    The length is the distance of the nearest complex singularity (or the decay of e^f).
    """
    return 0.0, 2.0


@by_family
def conditional(family: Family, f: float) -> tuple[float, float]:
    """Mean and variance of y given f; NaN where the family does not say, so that nothing is made of it."""
    return math.nan, math.nan


@by_family
def conditional_slope(family: Family, f: float) -> float:
    """∂ E[y|f]/∂f, by central differences."""
    step = 1e-5 * (1.0 + abs(f))
    return 0.5 * (conditional(family, f + step)[0] - conditional(family, f - step)[0]) / step


@by_family
def fisher(family: Family, f: float) -> float:
    """(∂ E[y|f]/∂f)² / Var[y|f]: the curvature of the linearised model, bayes-newton (32)."""
    slope = conditional_slope(family, f)
    return slope * slope / conditional(family, f)[1]


@by_family
def taylor_site(family: Family, y: float, f: float) -> tuple[float, float]:
    """J and H of the model linearised at f, bayes-newton (32); for an exponential family J is the score."""
    mean, variance = conditional(family, f)
    slope = conditional_slope(family, f)
    return slope * (y - mean) / variance, -slope * slope / variance


@by_family
def closed_form(family: Family, y: float, w: float, m0: float, v0: float) -> tuple[bool, float, float]:
    """(True, J at the new mean, H) where the posterior is Gaussian and all rules agree; else (False, ...)."""
    return False, 0.0, 0.0


# What sparse beliefs ask.


@by_family
def runs_in_lanes(family: Family) -> bool:
    """Whether ``sparse.visit_logit`` and ``sparse.logit_scores`` are written for this family."""
    return False


@by_family
def can_marginalise(family: Family) -> bool:
    """Whether :func:`marginalised` is defined."""
    return False


@by_family
def has_spread(family: Family, s: float) -> bool:
    """Whether a Gaussian of variance s added to the latent changes the likelihood beyond rounding."""
    return True


@by_family
def marginalised(family: Family, s: float) -> tuple[Family, float, float]:
    """(record, k, shift): the likelihood averaged over N(0, s) added to its latent is that of k (f + shift)."""
    return family, math.nan, math.nan


@by_family
def only_shifts(family: Family) -> bool:
    """Whether :func:`marginalised` shifts the likelihood and does not widen it: features' own steps then add up."""
    return False
