"""Triangular systems against SciPy's."""

import numpy as np
import pytest
import scipy.linalg

from gaussfold.linalg.triangles import inverse_of_lower, solve_triangular


@pytest.mark.parametrize("size", [1, 2, 7, 40])
@pytest.mark.parametrize("lower", [False, True])
@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize("order", ["C", "F"])
def test_solves_are_scipys(size, lower, turned, order):
    rng = np.random.default_rng(size)
    full = np.asarray(rng.normal(size=(size, size)) + 3.0 * np.sqrt(size) * np.eye(size), order=order)
    for right in (rng.normal(size=size), rng.normal(size=(size, 3)), rng.normal(size=(3, size)).T):
        wanted = scipy.linalg.solve_triangular(full, right, lower=lower, trans="T" if turned else "N")
        before = full.copy(), right.copy()
        np.testing.assert_allclose(
            solve_triangular(full, right, lower=lower, turned=turned), wanted, rtol=1e-12, atol=1e-14
        )
        np.testing.assert_array_equal(full, before[0])  # the other triangle is neither read nor written
        np.testing.assert_array_equal(right, before[1])


@pytest.mark.parametrize("order", ["C", "F"])
def test_an_inverse_is_scipys(order):
    lower = np.asarray(np.tril(np.random.default_rng(3).normal(size=(9, 9))) + 4.0 * np.eye(9), order=order)
    before = lower.copy()
    found = inverse_of_lower(lower)
    np.testing.assert_allclose(
        found, scipy.linalg.solve_triangular(lower, np.eye(9), lower=True), rtol=1e-12, atol=1e-14
    )
    assert not np.triu(found, 1).any()
    np.testing.assert_array_equal(lower, before)


@pytest.mark.parametrize("bad", [0.0, np.nan])
def test_what_is_singular_or_no_number_is_refused(bad):
    lower = np.eye(3)
    lower[1, 1] = bad
    with pytest.raises(np.linalg.LinAlgError, match="singular"):
        solve_triangular(lower, np.ones(3), lower=True)
    with pytest.raises(np.linalg.LinAlgError, match="singular"):
        inverse_of_lower(lower)
