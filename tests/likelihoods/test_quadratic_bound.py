"""Quadratic lower bounds: below the log density everywhere, and the best of their kind in expectation."""

import numpy as np
import pytest

from gaussfold import likelihoods as lk
from gaussfold.types import Moments
from tests.likelihoods.families import FAMILIES, name

BOUNDED = [(family, y) for family, labels in FAMILIES if not isinstance(family, lk.Poisson) for y in labels]
LINE = np.concatenate([np.linspace(-60.0, 60.0, 240_001), np.linspace(-1e4, 1e4, 20_001)])


def expected_bound(likelihood, y, moments, under):
    """E under N(m, v) of the quadratic that belongs to ``moments``, raised until it touches log p."""
    slope, curvature = likelihood.quadratic_bound(y, moments)
    away = LINE - moments.mean
    touch = np.min(likelihood.log_prob(y, LINE) - slope * away - 0.5 * curvature * away**2)
    shift = under.mean - moments.mean
    return touch + slope * shift + 0.5 * curvature * (shift**2 + under.variance)


@pytest.mark.parametrize(("likelihood", "y"), BOUNDED, ids=name)
@pytest.mark.parametrize(("m", "v"), [(0.4, 0.6), (-2.3, 3.7), (6.1, 0.01)])
def test_no_other_bound_of_the_kind_is_better(likelihood, y, m, v):
    under = Moments(m, v)
    ours = expected_bound(likelihood, y, under, under)
    assert np.isfinite(ours)
    assert ours <= likelihood.expected_log_prob(y, under) + 1e-9
    for other in (Moments(m + 0.3, v), Moments(m - 0.3, v), Moments(m, v + 0.5), Moments(m, 0.3 * v)):
        assert expected_bound(likelihood, y, other, under) <= ours + 1e-5 * (1.0 + abs(ours))


@pytest.mark.parametrize("f", [-900.0, -0.3, 0.0, 1e-9, 40.0])
def test_jaakkola_jordan_in_their_own_symbols(f):
    """rvga (85)-(90): ξ = √(v + m²), 1/R = (σ(ξ) - 1/2)/ξ, slope y - 1/2 - m/R."""
    v, y = 0.7, 1.0
    xi = np.hypot(np.sqrt(v), f)
    inverse_r = (1.0 / (1.0 + np.exp(-xi)) - 0.5) / xi
    first, second = lk.Bernoulli().quadratic_bound(y, Moments(f, v))
    assert second == pytest.approx(-inverse_r, rel=1e-13)
    assert first == pytest.approx(0.5 - inverse_r * f, rel=1e-12, abs=1e-13)


def test_limits_at_the_origin():
    first, second = lk.Bernoulli().quadratic_bound(0.0, Moments(0.0, 0.0))
    assert (first, second) == (-0.5, -0.25)
    # dispersion r, at its own origin f = log r: slope (y - r)/2, curvature -(y + r)/4
    first, second = lk.NegativeBinomial(2.5).quadratic_bound(4.0, Moments(np.log(2.5), 0.0))
    np.testing.assert_allclose((first, second), (0.75, -1.625), rtol=1e-14)


def test_poisson_has_none():
    """exp(f) outgrows every quadratic."""
    assert not hasattr(lk.Poisson(), "quadratic_bound")


def test_student_precision_is_never_negative():
    y, m = np.array([-40.0, 1.3])[:, None], np.linspace(-9.0, 9.0, 181)
    likelihood = lk.StudentT(3.5, 0.8)
    assert (likelihood.derivatives(y, m)[1] > 0).any()
    assert (likelihood.quadratic_bound(y, Moments(m, 0.0))[1] < 0).all()
