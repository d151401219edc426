"""The compiled likelihoods against their definitions in mpmath, and against the codes the rest of the package uses."""

from typing import NamedTuple

import mpmath as mp
import numpy as np
import pytest

from gaussfold import likelihoods as lk
from gaussfold.engine import families as parts
from gaussfold.engine.scalar import special
from gaussfold.engine.seam import compiled_for
from gaussfold.likelihoods.bernoulli_logit import LogitRecord
from gaussfold.likelihoods.bernoulli_probit import ProbitRecord
from gaussfold.likelihoods.gaussian import GaussianRecord
from gaussfold.likelihoods.poisson import GammaPoissonRecord, PoissonRecord
from gaussfold.likelihoods.student_t import StudentTRecord
from tests.machine_code import MachineCode, compiled
from tests.problems import FAMILIES, name
from tests.reference import likelihoods as reference

families = MachineCode(parts)
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
            value = families.log_density(likelihood.record, y, f)
            got = families.derivatives(likelihood.record, y, f)
            scale = 1.0 + abs(y * f) + np.exp(min(f, 709.0)) * (likelihood == lk.Poisson())
            assert value == pytest.approx(exact[0], rel=1e-13, abs=1e-14 * scale)
            np.testing.assert_allclose(got[:2], exact[1:3], rtol=2e-12, atol=1e-300)
            # The last two only steer Newton's method: accurate beside the curvature, not beside themselves.
            np.testing.assert_allclose(got[2:], exact[3:], rtol=2e-12, atol=1e-11 * abs(exact[2]))


@pytest.mark.parametrize("likelihood", FAMILIES, ids=name)
def test_conditional_moments_and_fisher_information(likelihood):
    for f in (-3.1, -0.4, 0.0, 0.9, 2.3):
        mean, variance = families.conditional(likelihood.record, f)
        np.testing.assert_allclose((mean, variance), reference.exact_conditional(likelihood.config(), f), rtol=1e-12)
        step = 1e-5
        slope = (
            families.conditional(likelihood.record, f + step)[0] - families.conditional(likelihood.record, f - step)[0]
        ) / (2 * step)
        assert families.fisher(likelihood.record, f) == pytest.approx(slope**2 / variance, rel=1e-8)


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
            got = families.fisher(likelihood.record, f)
            assert got == pytest.approx(float(want), rel=3e-12 if abs(f) < 100 else 1e-10, abs=1e-320)


def test_every_family_has_a_record_of_its_own():
    records = {name(likelihood): likelihood.record for likelihood in FAMILIES}
    assert records["Gaussian"] == GaussianRecord(0.7)
    assert records["logit"] == LogitRecord(False)
    assert records["logit-closed"] == LogitRecord(True)
    assert records["probit"] == ProbitRecord()
    assert records["Poisson"] == PoissonRecord()
    assert records["StudentT"] == StudentTRecord(3.5, 0.8)
    assert records["NegativeBinomial"] == GammaPoissonRecord(2.5)
    assert len({type(record) for record in records.values()}) == 6


class Stranger(NamedTuple):
    scale: float


def test_a_record_that_nobody_registered_fails():
    """Never another family's formula: a code that the engine did not know used to mean negative binomial."""
    with pytest.raises(TypeError, match=r"Stranger: the engine knows no functions for this record; register"):
        parts.log_density(Stranger(1.0), 0.0, 0.0)
    with pytest.raises(TypeError, match="Stranger: the engine knows no functions"):
        families.log_density(Stranger(1.0), 0.0, 0.0)


class Half(NamedTuple):
    scale: float


def test_a_family_must_say_what_has_no_default():
    compiled_for(Half)(lambda family, y, f: 0.0)
    with pytest.raises(TypeError, match=r"Half does not say derivatives\(family: .*, y: .*, f: .*\).*compiled_for"):
        parts.derivatives(Half(1.0), 0.0, 0.0)
    assert parts.landmark(Half(1.0), 0.3) == (0.0, 2.0)


@pytest.mark.parametrize("likelihood", FAMILIES, ids=name)
def test_labels_are_judged_as_the_likelihood_judges_them(likelihood):
    for y in (-2.0, -0.5, 0.0, 0.3, 1.0, 1.5, 7.0, np.inf, -np.inf, np.nan):
        try:
            likelihood.check_labels(np.array([y]))
        except ValueError:
            allowed = False
        else:
            allowed = True
        assert (np.isnan(y) or families.is_label(likelihood.record, y)) == allowed, y


@pytest.mark.parametrize("r", [0.03, 2.5, 199.0, 201.0, 1e5, 1e12])
@pytest.mark.parametrize("y", [0.0, 1.0, 37.0, 5000.0])
def test_rising_factorial(r, y):
    with mp.workdps(60):
        want = float(mp.loggamma(mp.mpf(r) + y) - mp.loggamma(r))
    assert compiled(special.log_rising)(r, y) == pytest.approx(want, rel=1e-13, abs=2e-13)
