"""Expectations under N(m, v), by the engine, against panels of Gauss-Legendre checked by mpmath."""

import numpy as np
import pytest

from gaussfold import likelihoods as lk
from gaussfold.types import Moments
from tests.likelihoods.families import APPROXIMATE, COUNTS, FAMILIES, name
from tests.reference import likelihoods as reference

MEANS = [-1000.0, -300.0, -37.0, -6.5, -0.8, 0.0, 0.3, 2.7, 11.0, 60.0, 300.0, 1000.0]
VARIANCES = [1e-8, 1e-4, 0.1, 1.0, 7.0, 100.0, 1e4, 1e6]
CASES = [(likelihood, y) for likelihood, labels in FAMILIES for y in labels]
CASES += [(APPROXIMATE, y) for y in (0.0, 0.3, 1.0)]
CELLS = [(m, v) for m in MEANS for v in VARIANCES]
M, V = (np.array(column) for column in zip(*CELLS, strict=True))


def wanted(likelihood, y):
    if likelihood == APPROXIMATE:
        return [reference.probit_expectations(y, m, v) for m, v in CELLS]
    return [reference.expectations(likelihood.config(), y, m, v) for m, v in CELLS]


def compute(likelihood, y, moments):
    """Everything the likelihood promises, by the reference's names."""
    first, second = likelihood.expected_derivatives(y, moments)
    mean, total = likelihood.predictive(moments)
    same_mean, epistemic = likelihood.conditional_mean(moments)
    np.testing.assert_array_equal(same_mean, mean)
    return {
        "log_prob": likelihood.expected_log_prob(y, moments),
        "first": first,
        "second": second,
        "log_predictive": likelihood.log_predictive(y, moments),
        "mean": mean,
        "total_variance": total,
        "epistemic_variance": epistemic,
    }


@pytest.mark.parametrize(("likelihood", "y"), CASES, ids=name)
def test_whole_range(likelihood, y):
    got, want = compute(likelihood, y, Moments(M, V)), wanted(likelihood, y)
    wrong = []
    for i, (m, v) in enumerate(CELLS):
        for quantity, value in want[i].items():
            # A variance is a small number when v is: hold it to the unit it comes in.
            unit = min(v, 1.0) if quantity == "epistemic_variance" else 1.0
            mine = float(got[quantity][i])
            if np.isinf(value):  # e^(m + v/2) beyond a double: saturated, and with the right sign
                ok = np.sign(mine) == np.sign(value) and abs(mine) > 1e300
            else:
                ok = abs(mine - value) <= 1e-10 * max(unit, abs(value))
            if not ok:
                wrong.append(f"{quantity} at m={m:g}, v={v:g}: {mine!r}, not {value!r}")
    assert not wrong, "\n".join([f"{len(wrong)} cells of {len(CELLS)}", *wrong])


@pytest.mark.parametrize(("likelihood", "y"), CASES, ids=name)
def test_small_variance_is_the_delta_method(likelihood, y):
    """Var E[y | f] → v (d E[y | f]/df)², to relative precision: error bars matter when they are small."""
    m, v = np.array([-6.5, -0.8, 0.3, 2.7, 11.0]), 1e-8
    at = -np.abs(m) if isinstance(likelihood, lk.Bernoulli) else m  # a slope of 1e-27 beside 1.0 is lost
    slope = (likelihood.conditional(at + 1e-5).mean - likelihood.conditional(at - 1e-5).mean) / 2e-5
    if likelihood == APPROXIMATE:  # (63) has its own limit: σσ(1 - k) → σσ πv/16
        slope = np.sqrt(np.pi / 16 * likelihood.conditional(m).variance)
    _, epistemic = likelihood.conditional_mean(Moments(m, np.full(5, v)))
    np.testing.assert_allclose(epistemic, v * slope**2, rtol=2e-5)


@pytest.mark.parametrize(("likelihood", "labels"), FAMILIES, ids=name)
def test_units_by_monte_carlo(likelihood, labels):
    """Draw f, then y: the variances returned are variances, of what they say, within five standard errors."""
    rng = np.random.default_rng(20261116)
    n, m, v = 400_000, 0.4, 0.6
    f = rng.normal(m, np.sqrt(v), n)
    conditional, noise = likelihood.conditional(f)
    if isinstance(likelihood, lk.Poisson):
        y = rng.poisson(conditional)
    elif isinstance(likelihood, lk.NegativeBinomial):
        y = rng.poisson(rng.gamma(likelihood.dispersion, conditional / likelihood.dispersion))
    elif isinstance(likelihood, lk.Bernoulli):
        y = rng.random(n) < conditional
    elif isinstance(likelihood, lk.StudentT):
        y = f + likelihood.scale * rng.standard_t(likelihood.df, n)
    else:
        y = f + likelihood.std * rng.standard_normal(n)
    y = y.astype(float)
    moments = Moments(m, v)
    mean, total = likelihood.predictive(moments)
    _, epistemic = likelihood.conditional_mean(moments)
    assert abs(y.mean() - mean) < 5 * np.sqrt(total / n)
    assert abs(conditional.var() - epistemic) < 5 * np.std((conditional - mean) ** 2) / np.sqrt(n)
    assert total == pytest.approx(noise.mean() + epistemic, rel=0.03)  # the law of total variance
    if not isinstance(likelihood, lk.StudentT) or likelihood.df > 4:  # else no fourth moment to go by
        assert abs(y.var() - total) < 5 * np.std((y - mean) ** 2) / np.sqrt(n)


@pytest.mark.parametrize("likelihood", COUNTS, ids=name)
@pytest.mark.parametrize("v", [0.01, 0.6])
def test_predictive_of_counts_adds_up(likelihood, v):
    """exp(log_predictive) is a distribution over y with the moments that predictive() says."""
    y, moments = np.arange(3000.0), Moments(0.4, v)
    p = np.exp(likelihood.log_predictive(y, moments))
    mean, variance = likelihood.predictive(moments)
    assert p.sum() == pytest.approx(1.0, rel=1e-9)
    assert p @ y == pytest.approx(float(mean), rel=1e-8)
    assert p @ (y - mean) ** 2 == pytest.approx(float(variance), rel=1e-6)


@pytest.mark.parametrize(("likelihood", "labels"), [*FAMILIES, (APPROXIMATE, [0.0, 0.3, 1.0])], ids=name)
def test_shapes_broadcast_and_come_back(likelihood, labels):
    y, m, v = np.array(labels)[:, None], np.array([-0.8, 0.3, 2.7]), 0.37
    got = compute(likelihood, y, Moments(m, v))
    for quantity in ("log_prob", "first", "second", "log_predictive"):
        assert got[quantity].shape == (len(labels), 3)
    for quantity in ("mean", "total_variance", "epistemic_variance"):
        assert got[quantity].shape == (3,)
    for i, label in enumerate(labels):
        for j, mean in enumerate(m):
            single = compute(likelihood, label, Moments(mean, v))
            for quantity, value in single.items():
                assert value.shape == ()
                assert value == (got[quantity][i, j] if got[quantity].ndim == 2 else got[quantity][j])


@pytest.mark.parametrize(("likelihood", "labels"), [*FAMILIES, (APPROXIMATE, [0.0, 0.3, 1.0])], ids=name)
def test_missing_label_touches_only_its_own_row(likelihood, labels):
    y = np.array([labels[0], np.nan, labels[-1]])
    moments = Moments(np.array([0.3, 0.3, -0.8]), np.array([0.6, 0.6, 1.7]))
    filled = np.where(np.isnan(y), labels[0], y)
    for method in (likelihood.expected_log_prob, likelihood.log_predictive):
        got = method(y, moments)
        assert np.isnan(got[1])
        np.testing.assert_array_equal(got[[0, 2]], method(filled, moments)[[0, 2]])


@pytest.mark.parametrize(("likelihood", "labels"), FAMILIES, ids=name)
def test_no_variance_is_the_point_itself(likelihood, labels):
    y, m = np.array(labels)[:, None], np.array([-0.8, 0.3, 2.7])
    moments = Moments(m, np.zeros(3))
    np.testing.assert_allclose(likelihood.expected_log_prob(y, moments), likelihood.log_prob(y, m), rtol=1e-12)
    np.testing.assert_allclose(likelihood.expected_derivatives(y, moments), likelihood.derivatives(y, m), rtol=1e-12)
    np.testing.assert_allclose(likelihood.log_predictive(y, moments), likelihood.log_prob(y, m), rtol=1e-12)
    np.testing.assert_allclose(likelihood.predictive(moments), likelihood.conditional(m), rtol=1e-12)
    np.testing.assert_array_equal(likelihood.conditional_mean(moments).variance, 0.0)


def test_negative_variance_is_refused():
    with pytest.raises(ValueError, match=r"moments.variance\[1\] = -0.2: a variance is never negative"):
        lk.Poisson().predictive(Moments(np.zeros(3), np.array([0.1, -0.2, -0.3])))


@pytest.mark.parametrize("df", [0.6, 1.0, 1.5, 2.0])
def test_student_variance_that_does_not_exist(df):
    """The latent's own moments are still finite, and so are the expectations that learning needs."""
    likelihood, moments = lk.StudentT(df=df, scale=0.8), Moments(0.4, 7.0)
    assert likelihood.predictive(moments) == (0.4, np.inf)
    assert likelihood.conditional_mean(moments) == (0.4, 7.0)
    first, second = likelihood.expected_derivatives(-3.0, moments)
    want = reference.expectations({**likelihood.config(), "df": df}, -3.0, 0.4, 7.0)
    np.testing.assert_allclose((first, second), (want.first, want.second), rtol=1e-10)


@pytest.mark.parametrize("dispersion", [1e6, 1e10])
def test_negative_binomial_becomes_poisson(dispersion):
    """With v small enough that only the terms in 1/dispersion differ; log-gammas of 1e10 must not cancel."""
    y, moments = np.array([0.0, 4.0, 40.0]), Moments(1.4, 0.01)
    many, poisson = lk.NegativeBinomial(dispersion), lk.Poisson()
    tolerance = {"rtol": 1e-9 + 1e4 / dispersion, "atol": 0.0}
    np.testing.assert_allclose(many.expected_log_prob(y, moments), poisson.expected_log_prob(y, moments), **tolerance)
    np.testing.assert_allclose(many.log_predictive(y, moments), poisson.log_predictive(y, moments), **tolerance)


@pytest.mark.parametrize("likelihood", COUNTS, ids=name)
def test_variance_of_a_wide_log_normal(likelihood):
    """exp(2m + v)(exp(v) - 1) is in range here though exp(v) is not."""
    m, v = -895.0, 1146.0
    _, total, epistemic = reference.predictive(likelihood.config(), m, v)
    assert likelihood.predictive(Moments(m, v)).variance == pytest.approx(total, rel=1e-10)
    assert likelihood.conditional_mean(Moments(m, v)).variance == pytest.approx(epistemic, rel=1e-10)
