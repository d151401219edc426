"""Integrals against a Gaussian at any scale: panels against finer panels, and those against mpmath."""

import numpy as np
import pytest

from gaussfold import likelihoods as lk
from gaussfold.engine.scalar import quadrature as parts
from tests.machine_code import MachineCode
from tests.problems import FAMILIES, extreme_marginals, name
from tests.reference import likelihoods as reference
from tests.reference import quadrature as twin

quadrature = MachineCode(parts)
POWERS = [0.3, 1.0, 2.5]
SMOOTH = [lk.Bernoulli("probit"), lk.StudentT(3.5, 0.8), lk.StudentT(1.3, 0.05)]
CONCAVE = [likelihood for likelihood in FAMILIES if likelihood.log_concave]


@pytest.mark.parametrize("likelihood", SMOOTH, ids=repr)
def test_gaussian_expectations(likelihood):
    """E of log p and of its derivatives, for the families that have no closed form."""
    y, _, m, v = extreme_marginals(likelihood, 60, seed=3)
    for label, mean, variance in zip(y, m, v, strict=True):
        want = reference.expectations(likelihood.config(), label, mean, variance)
        got = quadrature.gaussian_expectations(likelihood.record, label, mean, variance)
        np.testing.assert_allclose(
            got[:3],
            (want.log_prob, want.first, want.second),
            rtol=1e-11,
            atol=1e-11,
            err_msg=f"{label} {mean} {variance}",
        )


@pytest.mark.parametrize("likelihood", CONCAVE, ids=name)
def test_mode_of_the_tilted_density(likelihood):
    """Where power l'(f) = (f - m)/v, in units of |mode| + the tilted standard deviation."""
    y, power, m, v = extreme_marginals(likelihood, 150, seed=4)
    for label, a, mean, variance in zip(y, power, m, v, strict=True):
        mode, laplace, _ = quadrature.tilted_mode(likelihood.record, label, a, mean, variance)
        want = twin.tilted_mode(likelihood.config(), label, a, mean, variance)
        second = float(reference.derivatives(likelihood.config(), label, np.array([mode]))[1][0])
        assert abs(mode - want) <= 2e-13 * (abs(want) + np.sqrt(laplace)) + 3e-16, (label, a, mean, variance)
        assert laplace == pytest.approx(variance / (1.0 - variance * a * second), rel=1e-12)


@pytest.mark.parametrize("likelihood", FAMILIES[1:], ids=name)
def test_tilted_moments(likelihood):
    """log Z, its two derivatives in m, mean and variance of N(f|m, v) p(y|f)^power, all over the range."""
    y, power, m, v = extreme_marginals(likelihood, 120, seed=6)
    for label, a, mean, variance in zip(y, power, m, v, strict=True):
        log_z, gradient, hessian, shift, spread = quadrature.tilted_moments(likelihood.record, label, a, mean, variance)
        want = twin.tilted_moments(likelihood.config(), label, a, mean, variance)
        where = f"y={label} power={a} m={mean} v={variance}"
        assert log_z == pytest.approx(want[0], rel=1e-11, abs=1e-11), where
        assert abs(mean + shift - want[3]) <= 1e-12 * (abs(want[3]) + np.sqrt(want[4])), where
        assert spread == pytest.approx(want[4], rel=1e-10), where
        if spread > 0.5 * variance:  # else (mean - m)/v and the variance say it better, and are what is used
            assert gradient == pytest.approx(want[1], rel=1e-11, abs=1e-12), where
            rounding = min(1e-12 * (1.0 + want[1] ** 2), 1e-10 / variance)
            assert hessian == pytest.approx(want[2], rel=1e-9, abs=rounding), where


@pytest.mark.parametrize(
    ("likelihood", "y", "power", "m", "v"),
    [
        (lk.Bernoulli(), 1.0, 0.5, -3.3, 7.0),
        (lk.Bernoulli("probit"), 0.3, 2.5, 4.0, 30.0),
        (lk.Poisson(), 60.0, 1.0, 1000.0, 1e-8),
        (lk.Poisson(), 0.0, 0.3, 0.75, 400.0),
        (lk.StudentT(3.5, 0.8), -2.0, 2.5, -300.0, 4700.0),
        (lk.NegativeBinomial(2.5), 7.0, 0.3, 2.0, 0.6),
    ],
    ids=str,
)
def test_tilted_moments_to_the_last_word(likelihood, y, power, m, v):
    """The hard corners again, by mpmath in 40 digits: cliffs, far lumps, forces of 1e11."""
    log_z, mean, variance = (float(x) for x in twin.exact_tilted_moments(likelihood.config(), y, power, m, v))
    for got in (
        quadrature.tilted_moments(likelihood.record, y, power, m, v),
        twin.tilted_moments(likelihood.config(), y, power, m, v),
    ):
        assert got[0] == pytest.approx(log_z, rel=1e-12)
        assert got[4] == pytest.approx(variance, rel=1e-10)
    moved = quadrature.tilted_moments(likelihood.record, y, power, m, v)[3]
    assert abs(m + moved - mean) < 1e-13 * (abs(mean) + np.sqrt(variance))
