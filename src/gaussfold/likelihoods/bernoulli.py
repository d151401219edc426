"""Binary labels through a logit or probit link; a label between 0 and 1 is a soft label."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Literal, get_args

import numpy as np

from gaussfold.checks import one_of
from gaussfold.engine.seam import compiled_for, expectations_logit, expectations_probit, families, over_arrays
from gaussfold.likelihoods import links
from gaussfold.likelihoods.base import ScalarLikelihood, floats
from gaussfold.likelihoods.bernoulli_logit import LogitRecord
from gaussfold.likelihoods.bernoulli_probit import ProbitRecord
from gaussfold.likelihoods.libraries import library_of
from gaussfold.types import Array, ArrayLike, Moments

if TYPE_CHECKING:
    from gaussfold.engine.arrays.over_arrays import RowFunctions

Expectation = Literal["quadrature", "probit"]


@dataclass(frozen=True)
class Bernoulli(ScalarLikelihood):
    """``p(y = 1 | f) = g(f)``, with g the logistic function (logit) or the normal distribution (probit).

    A soft label ``0 < y < 1`` mixes the two log likelihoods: ``y log g(f) + (1 - y) log g(-f)``.

    Parameters
    ----------
    link : {"logit", "probit"}
        Which g.
    expectation : {"quadrature", "probit"}
        How to integrate the logistic function against a Gaussian. "quadrature" is exact to rounding.
        "probit" is the closed form of rvga (58), (62), (63): with ``k = 1/√(1 + πv/8)``,
        ``E σ ≈ σ(km)``, ``E σ' ≈ k σ'(km)`` and ``Var σ ≈ σ(km) σ(-km) (1 - k)``. The probit link has
        no need of it.

    Examples
    --------
    >>> Bernoulli().conditional(0.4)
    Moments(mean=array(0.5987), variance=array(0.2403))
    >>> Bernoulli("probit").log_prob([0.0, 0.25, 1.0], -2.0)
    array([-0.0230, -0.9631, -3.7832])

    References
    ----------
    rvga (56)-(63).

    Notes
    -----
    (63) is not the exact variance of anything, but it lies between zero and ``E σ (1 - E σ)``. With
    "probit", ``E log p`` has no closed form in the paper and is integrated by quadrature.
    """

    link: links.Name = "logit"
    expectation: Expectation = "quadrature"
    log_concave: ClassVar[bool] = True
    labels: ClassVar[str] = "in [0, 1]"
    remedy: ClassVar[str] = "code the two classes as 0 and 1"

    def __post_init__(self) -> None:
        one_of("link", self.link, links.BY_NAME, owner="Bernoulli")
        one_of("expectation", self.expectation, get_args(Expectation), owner="Bernoulli")
        if self.link == "probit" and self.expectation == "probit":
            msg = (
                "expectation='probit' with link='probit': Bernoulli approximates the logit link by it; the "
                "probit link needs no approximation, so leave expectation='quadrature'"
            )
            raise ValueError(msg)

    @property
    def record(self) -> LogitRecord | ProbitRecord:
        """How the engine knows it."""
        return ProbitRecord() if self.link == "probit" else LogitRecord(self.expectation == "probit")

    def row_functions(self) -> RowFunctions:
        """In lanes, except where the closed form of rvga (58) is asked for."""
        if self.link == "probit":
            return expectations_probit.exact_functions(self.record)
        if self.expectation == "quadrature":
            return expectations_logit.exact_functions(self.record)
        # E log p has no closed form in the paper
        closed = super().row_functions()
        return over_arrays.RowFunctions(
            expectations_logit.expected_log_prob,
            closed.expected_derivatives,
            closed.log_predictive,
            closed.tilted,
            closed.predictive,
        )

    def explains(self, y: Array) -> np.ndarray:
        """``0 ≤ y ≤ 1``."""
        return np.asarray((y >= 0.0) & (y <= 1.0))

    def log_prob(self, y: ArrayLike, f: ArrayLike) -> Array:
        """``y log g(f) + (1 - y) log g(-f)``: no term is positive, so nothing cancels."""
        library = library_of(y, f)
        y, f = library.floats(y, f)
        log_g = library.log_cdf[self.link]
        return library.asarray(y * log_g(f) + (1.0 - y) * log_g(-f))

    def derivatives(self, y: ArrayLike, f: ArrayLike) -> tuple[Array, Array]:
        """``y s(f) - (1 - y) s(-f)`` and ``y s'(f) + (1 - y) s'(-f)``, where ``s = (log g)'``."""
        y, f = floats(y, f)
        score = links.BY_NAME[self.link].score
        first, second = score(f)
        first_mirrored, second_mirrored = score(-f)
        return (
            np.asarray(y * first - (1.0 - y) * first_mirrored),
            np.asarray(y * second + (1.0 - y) * second_mirrored),
        )

    def conditional(self, f: ArrayLike) -> Moments:
        """``g(f)`` and ``g(f) g(-f)``."""
        library = library_of(f)
        (f,) = library.floats(f)
        g = library.cdf[self.link]
        mean = g(f)
        return Moments(library.asarray(mean), library.asarray(mean * g(-f)))

    def conditional_derivatives(self, f: ArrayLike) -> tuple[Moments, Moments]:
        """``g'`` and ``g' (1 - 2g)``; ``g''`` and ``g'' (1 - 2g) - 2g'²``."""
        (f,) = floats(f)
        link = links.BY_NAME[self.link]
        tilt = link.cdf(-f) - link.cdf(f)
        slope, bend = link.slopes(f)
        return Moments(slope, slope * tilt), Moments(bend, bend * tilt - 2.0 * slope**2)

    def quadratic_bound(self, y: ArrayLike, moments: Moments) -> tuple[Array, Array]:
        """Slope and curvature of the tightest quadratic lower bound: Jaakkola-Jordan, or -1 for probit."""
        y, m, v = floats(y, *moments)
        if self.link == "logit":
            return links.logistic_bound(y - 0.5, np.ones_like(y), m, v)
        return self.derivatives(y, m)[0], np.full(np.broadcast_shapes(y.shape, m.shape), -1.0)


# What the engine runs whichever the link; the rest is in ``bernoulli_logit`` and ``bernoulli_probit``.

_Either = LogitRecord | ProbitRecord


@compiled_for(LogitRecord, ProbitRecord)
def is_label(family: _Either, y: float) -> bool:
    """``0 ≤ y ≤ 1``."""
    return 0.0 <= y <= 1.0


@compiled_for(LogitRecord, ProbitRecord)
def has_soft_labels(family: _Either) -> bool:
    """Yes."""
    return True


@compiled_for(LogitRecord, ProbitRecord)
def is_log_concave(family: _Either) -> bool:
    """Yes."""
    return True


@compiled_for(LogitRecord, ProbitRecord)
def is_exponential(family: _Either) -> bool:
    """Yes."""
    return True


@compiled_for(LogitRecord, ProbitRecord)
def taylor_site(family: _Either, y: float, f: float) -> tuple[float, float]:
    """The score, and minus the Fisher information."""
    return families.derivatives(family, y, f)[0], -families.fisher(family, f)


@compiled_for(LogitRecord, ProbitRecord)
def can_marginalise(family: _Either) -> bool:
    """Yes."""
    return True
