"""The compiled likelihoods against their definitions in mpmath, and against the codes the rest of the package uses."""

import mpmath as mp
import numpy as np
import pytest

from gaussfold import likelihoods as lk
from gaussfold.engine import families
from gaussfold.likelihoods import base
from tests.problems import FAMILIES, name
from tests.reference import likelihoods as reference

CASES = [
    (lk.Gaussian(0.7), [-3.0, 1.3]),
    (lk.Bernoulli(), [0.0, 0.3, 1.0]),
    (lk.Bernoulli("probit"), [0.0, 0.3, 1.0]),
    (lk.Poisson(), [0.0, 3.0]),
    (lk.StudentT(3.5, 0.8), [-4.0, 1.3]),
    (lk.NegativeBinomial(2.5), [0.0, 4.0]),
    (lk.NegativeBinomial(250.5), [7.0]),
]
POINTS = [-40.0, -6.2, -4.9, -0.8, 0.0, 0.37, 2.9, 7.1, 35.0]


@pytest.mark.parametrize(("likelihood", "labels"), CASES, ids=name)
def test_density_and_four_derivatives(likelihood, labels):
    """Derivatives by mpmath.diff of the density's definition; errors relative to the largest term in play."""
    for y in labels:
        for f in POINTS:
            with mp.workdps(70):
                exact = [
                    float(mp.diff(lambda t, y=y: reference.exact_log_density(likelihood.config(), y, t), mp.mpf(f), k))
                    for k in range(5)
                ]
            value = families.log_density(*likelihood.kernel, y, f)
            got = families.derivatives(*likelihood.kernel, y, f)
            scale = 1.0 + abs(y * f) + np.exp(min(f, 709.0)) * (likelihood == lk.Poisson())
            assert value == pytest.approx(exact[0], rel=1e-13, abs=1e-14 * scale)
            np.testing.assert_allclose(got[:2], exact[1:3], rtol=2e-12, atol=1e-300)
            # The last two only steer Newton's method: accurate beside the curvature, not beside themselves.
            np.testing.assert_allclose(got[2:], exact[3:], rtol=2e-12, atol=1e-11 * abs(exact[2]))


@pytest.mark.parametrize("likelihood", FAMILIES, ids=name)
def test_conditional_moments_and_fisher_information(likelihood):
    for f in (-3.1, -0.4, 0.0, 0.9, 2.3):
        mean, variance = families.conditional(*likelihood.kernel, f)
        np.testing.assert_allclose((mean, variance), reference.exact_conditional(likelihood.config(), f), rtol=1e-12)
        step = 1e-5
        slope = (
            families.conditional(*likelihood.kernel, f + step)[0]
            - families.conditional(*likelihood.kernel, f - step)[0]
        ) / (2 * step)
        assert families.fisher(*likelihood.kernel, f) == pytest.approx(slope**2 / variance, rel=1e-8)


@pytest.mark.parametrize("likelihood", FAMILIES, ids=name)
def test_fisher_information_in_the_tails(likelihood):
    """Where h'²/R is 0/0 in floating point: the expected curvature -E_y l'', from mpmath."""
    with mp.workdps(60):
        for f in (-300.0, -38.0, 38.0, 300.0):
            x = mp.mpf(f)
            if isinstance(likelihood, lk.Bernoulli):
                if likelihood.link == "logit":
                    want = 1 / ((1 + mp.exp(x)) * (1 + mp.exp(-x)))
                else:
                    want = mp.npdf(x) ** 2 * mp.exp(-reference.exact_log_ncdf(x) - reference.exact_log_ncdf(-x))
            elif isinstance(likelihood, lk.Poisson):
                want = mp.exp(x)
            elif isinstance(likelihood, lk.NegativeBinomial):
                want = mp.exp(x) / (1 + mp.exp(x) / mp.mpf(likelihood.dispersion))
            else:
                continue
            got = families.fisher(*likelihood.kernel, f)
            assert got == pytest.approx(float(want), rel=3e-12 if abs(f) < 100 else 1e-10, abs=1e-320)


def test_codes_are_those_of_the_likelihoods():
    for code in ("GAUSSIAN", "LOGIT", "PROBIT", "POISSON", "STUDENT_T", "NEGATIVE_BINOMIAL"):
        assert getattr(families, code) == getattr(base, code)
    kernels = {name(likelihood): likelihood.kernel for likelihood in FAMILIES}
    assert kernels["Gaussian"] == (families.GAUSSIAN, 0.7, 0.0)
    assert kernels["logit"] == (families.LOGIT, 0.0, 0.0)
    assert kernels["logit-closed"] == (families.LOGIT, 1.0, 0.0)
    assert kernels["probit"][0] == families.PROBIT
    assert kernels["Poisson"][0] == families.POISSON
    assert kernels["StudentT"] == (families.STUDENT_T, 3.5, 0.8)
    assert kernels["NegativeBinomial"][:2] == (families.NEGATIVE_BINOMIAL, 2.5)


@pytest.mark.parametrize("likelihood", FAMILIES, ids=name)
def test_labels_are_judged_as_the_likelihood_judges_them(likelihood):
    for y in (-2.0, -0.5, 0.0, 0.3, 1.0, 1.5, 7.0, np.inf, -np.inf, np.nan):
        try:
            likelihood.check_labels(np.array([y]))
        except ValueError:
            allowed = False
        else:
            allowed = True
        assert families.explains(likelihood.kernel[0], y) == allowed, y


@pytest.mark.parametrize("r", [0.03, 2.5, 199.0, 201.0, 1e5, 1e12])
@pytest.mark.parametrize("y", [0.0, 1.0, 37.0, 5000.0])
def test_rising_factorial(r, y):
    with mp.workdps(60):
        want = float(mp.loggamma(mp.mpf(r) + y) - mp.loggamma(r))
    assert families.log_rising(r, y) == pytest.approx(want, rel=1e-13, abs=2e-13)
