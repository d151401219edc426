"""Expectations of many rows at once, and tables of steps, against their scalar twins and plain matrix algebra."""

import math

import numpy as np
import pytest

from gaussfold import likelihoods as lk
from gaussfold.engine.kalman.process_noise import add_adjoints, add_adjoints_pair, process_noise, process_noise_pair
from gaussfold.engine.scalar import expectations, quadrature, special, vectors
from gaussfold.gp import Matern32, Matern52
from tests.machine_code import compiled
from tests.problems import name

expected_derivatives, expected_log_density = (
    compiled(expectations.expected_derivatives),
    compiled(expectations.expected_log_density),
)
tilted_moments = compiled(quadrature.tilted_moments)
inverse_mills, log_normal_cdf = compiled(special.inverse_mills), compiled(special.log_normal_cdf)
sort_first = compiled(vectors.sort_first)
LOGIT, PROBIT, POISSON = lk.Bernoulli(), lk.Bernoulli("probit"), lk.Poisson()
RNG = np.random.default_rng(8)


@pytest.mark.parametrize("likelihood", [LOGIT, PROBIT, POISSON], ids=name)
@pytest.mark.parametrize("count", [1, 8, 83])
def test_rows_are_the_scalar_functions(likelihood, count):
    """Also where lanes do not reach: wide and far rows, soft and missing labels; and at the ragged end."""
    m = RNG.normal(size=count) * np.exp(RNG.normal(size=count))
    v = np.exp(2.0 * RNG.normal(size=count) - 1.0)
    y = (RNG.random(count) < 0.5).astype(float)
    if count == 83:
        m[3], v[5], v[11], y[17], y[19], v[23] = 41.0, 30.0, 1e-7, 0.3, np.nan, 0.0
    if likelihood is POISSON:
        y *= 3.0
    first, second = likelihood.row_functions().expected_derivatives(y, m, v)
    value = likelihood.row_functions().expected_log_prob(y, m, v)
    for i in range(count):
        if math.isnan(y[i]):
            assert math.isnan(first[i])
            assert math.isnan(second[i])
            assert math.isnan(value[i])
            continue
        want = expected_derivatives(likelihood.record, y[i], m[i], v[i])
        assert (first[i], second[i]) == pytest.approx(want[:2], rel=1e-11, abs=2e-13)
        assert value[i] == pytest.approx(
            expected_log_density(likelihood.record, y[i], m[i], v[i]), rel=1e-12, abs=1e-13
        )


@pytest.mark.parametrize("likelihood", [LOGIT, PROBIT], ids=name)
def test_tilted_rows_are_the_scalar_function(likelihood):
    """Also for rare labels, soft and missing ones, wide rows and other powers."""
    m, v = 3.0 * RNG.normal(size=61), np.exp(RNG.normal(size=61))
    y = (RNG.random(61) < 0.5).astype(float)
    m[3], y[3], v[5], y[7], y[9], v[11] = -18.0, 1.0, 7.0, 0.3, np.nan, 1e-9
    for power in (1.0, 0.7):
        got = np.array(likelihood.row_functions().tilted(power, y, m, v))
        assert np.isnan(got[:, 9]).all()
        for i in np.flatnonzero(~np.isnan(y)):
            want = tilted_moments(likelihood.record, y[i], power, m[i], v[i])[:3]
            np.testing.assert_allclose(got[:, i], want, rtol=2e-9, atol=1e-13)


@pytest.mark.parametrize("far", [-15.0, -5.0, -0.3, 0.0, 0.7, 6.0])
def test_probit_of_a_certain_latent(far):
    """Without variance the expectations are the function itself, here the normal tail's."""
    y, m, v = np.ones(1), np.array([far]), np.zeros(1)
    rho, excess = inverse_mills(far)
    first, second = PROBIT.row_functions().expected_derivatives(y, m, v)
    assert first[0] == pytest.approx(rho, rel=1e-13)
    assert second[0] == pytest.approx(-rho * excess, rel=2e-12)
    assert PROBIT.row_functions().expected_log_prob(y, m, v)[0] == pytest.approx(log_normal_cdf(far), rel=1e-13)


@pytest.mark.parametrize("covariance", [Matern32(1.3, 0.7), Matern52(0.6, 1.7)], ids=["pair", "any"])
def test_process_noise_and_its_adjoint(covariance):
    space, dt = covariance.state_space(), np.array([0.0, 0.2, 0.9, 3.1])
    A, P = space.transition(dt), space.covariance
    S, is_pair = space.size, space.size == 2
    want = P - A @ P @ A.swapaxes(1, 2)
    bar_A, bar_Q = RNG.normal(size=(2, 4, S, S))
    bar_Q = bar_Q + bar_Q.swapaxes(1, 2)
    B = bar_A - 2.0 * bar_Q @ A @ P
    sums = [
        (B * A).sum(axis=0),
        np.einsum("u,uij,ukj->ik", dt, B, A),
        (bar_Q - A.swapaxes(1, 2) @ bar_Q @ A).sum(axis=0),
    ]
    for noise, adjoints in [(process_noise, add_adjoints), *[(process_noise_pair, add_adjoints_pair)] * is_pair]:
        Q, got = np.empty(A.shape), np.full((3, S, S), 0.25)
        noise(A, P, Q)
        adjoints(dt, A, P, bar_A.copy(), bar_Q, got)
        np.testing.assert_allclose(Q, want, atol=1e-13)
        np.testing.assert_allclose(got - 0.25, sums, rtol=1e-12, atol=1e-12)


def test_sorting_the_first_few():
    x = RNG.normal(size=40)
    want = np.concatenate([np.sort(x[:33]), x[33:]])
    sort_first(x, 33)
    np.testing.assert_array_equal(x, want)
