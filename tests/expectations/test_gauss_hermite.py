"""The Gauss-Hermite rule against moments known in closed form."""

import numpy as np
import pytest
from scipy.special import factorial2

from gaussfold.expectations import expect, log_expect_exp, nodes
from gaussfold.types import Moments


@pytest.mark.parametrize("order", [1, 2, 5, 20, 64])
def test_exact_for_polynomials_of_degree_2n_minus_1(order):
    x, w = nodes(order)
    assert w.sum() == pytest.approx(1.0, rel=1e-15)
    for degree in range(0, min(2 * order, 30), 2):
        want = factorial2(degree - 1, exact=True) if degree else 1.0
        assert w @ x**degree == pytest.approx(want, rel=1e-11)
    np.testing.assert_array_equal(x, -x[::-1])
    np.testing.assert_array_equal(w, w[::-1])


def test_not_exact_beyond():
    x, w = nodes(5)
    assert w @ x**10 == pytest.approx(945 - 120, rel=1e-12)  # short by 5!


def test_nodes_are_shared_and_protected():
    assert nodes(7)[0] is nodes(7)[0]
    with pytest.raises(ValueError, match="read-only"):
        nodes(7)[0][0] = 1.0


def test_largest_order_keeps_positive_weights():
    assert (nodes(256)[1] > 0.0).all()


@pytest.mark.parametrize("order", [0, -3, 257])
def test_order_out_of_range(order):
    with pytest.raises(ValueError, match=f"order={order}: .*1 to 256"):
        nodes(order)


def test_expect_uses_the_variance_not_the_std():
    mean, variance = np.array([[-1.3], [0.4]]), np.array([0.3, 2.5, 4.0])
    got = expect(lambda f: (f - mean[..., None]) ** 2, Moments(mean, variance))
    np.testing.assert_allclose(got, np.broadcast_to(variance, (2, 3)), rtol=1e-13)
    np.testing.assert_allclose(expect(np.exp, Moments(mean, variance)), np.exp(mean + variance / 2), rtol=1e-12)


def test_leading_axes_share_the_nodes():
    got = expect(lambda f: np.stack([f, f * f]), Moments(np.array([0.4, -2.0]), np.array([0.7, 1.9])))
    np.testing.assert_allclose(got, [[0.4, -2.0], [0.7 + 0.16, 1.9 + 4.0]], rtol=1e-13)


def test_log_expect_exp_stays_in_logs():
    got = log_expect_exp(lambda f: 0.8 * f - 5000.0, Moments(np.array([0.4]), np.array([0.7])))
    np.testing.assert_allclose(got, [0.8 * 0.4 + 0.64 * 0.7 / 2 - 5000.0], rtol=1e-15)


def test_scalars_work():
    assert expect(np.square, Moments(0.4, 0.7)) == pytest.approx(0.86, rel=1e-13)
