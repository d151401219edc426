"""Square roots: values against eigenvalues and inverses, accuracy where squaring would lose it, refusals."""

import mpmath as mp
import numpy as np
import pytest

from gaussfold.linalg.information import InformationRoot
from gaussfold.linalg.roots import inverse_root, log_det, lower_root, root_from_precision, triangularise
from tests import problems


@pytest.mark.parametrize("d", [1, 2, 7])
def test_values(d):
    _, cov = problems.prior(d)
    lower = lower_root(cov, "cov")
    assert (np.diag(lower) > 0.0).all()
    np.testing.assert_array_equal(lower, np.tril(lower))
    np.testing.assert_allclose(lower @ lower.T, cov, rtol=1e-13, atol=1e-15)
    np.testing.assert_allclose(inverse_root(lower) @ lower, np.eye(d), rtol=0, atol=1e-13)
    np.testing.assert_array_equal(inverse_root(lower), np.tril(inverse_root(lower)))
    np.testing.assert_allclose(log_det(lower), np.linalg.slogdet(cov)[1], rtol=1e-12)
    factor = root_from_precision(np.linalg.inv(cov), "precision")
    np.testing.assert_allclose(factor @ factor.T, cov, rtol=1e-11, atol=1e-13)
    assert factor.flags.c_contiguous


def test_a_two_by_two_by_hand():
    np.testing.assert_allclose(lower_root(np.array([[4.0, 3.0], [3.0, 2.5]]), "cov"), [[2.0, 0.0], [1.5, 0.5]])
    np.testing.assert_allclose(inverse_root(np.array([[2.0, 0.0], [1.5, 0.5]])), [[0.5, 0.0], [-1.5, 2.0]])
    assert log_det(np.array([[2.0, 0.0], [1.5, -0.5]])) == pytest.approx(0.0, abs=1e-15)


@pytest.mark.parametrize("columns", [4, 5, 9])
def test_triangularise_square_and_wide(columns):
    factor = np.random.default_rng(3).standard_normal((4, columns))
    lower = triangularise(factor)
    np.testing.assert_allclose(lower, np.linalg.cholesky(factor @ factor.T), rtol=1e-11, atol=1e-13)
    np.testing.assert_array_equal(lower, np.tril(lower))
    assert lower.flags.c_contiguous


def test_triangularise_does_not_square():
    """Singular values of 1 and 1e-10: of their squares' ratio, 1e-20, double precision knows nothing."""
    rng = np.random.default_rng(4)
    left, right = (np.linalg.qr(rng.standard_normal((3, 3)))[0] for _ in range(2))
    spectrum = np.array([1.0, 1e-5, 1e-10])
    lower = triangularise(left * spectrum @ right)
    np.testing.assert_allclose(np.linalg.svd(lower, compute_uv=False), spectrum, rtol=1e-5)
    np.testing.assert_allclose(log_det(lower), 2.0 * np.log(spectrum).sum(), rtol=1e-6)


@pytest.mark.parametrize("function", [lower_root, root_from_precision])
def test_refusals_name_the_matrix(function):
    with pytest.raises(ValueError, match=r"shape of things is not positive definite \(smallest eigenvalue -1\)"):
        function(np.array([[1.0, 2.0], [2.0, 1.0]]), "shape of things")
    with pytest.raises(ValueError, match=r"cov is not symmetric \(largest difference 0.5\)"):
        function(np.array([[1.0, 0.5], [0.0, 1.0]]), "cov")
    with pytest.raises(ValueError, match="cov is not"):
        function(np.array([[1.0, np.nan], [np.nan, 1.0]]), "cov")


def test_no_jitter_and_rounding_is_symmetrised():
    with pytest.raises(ValueError, match="not positive definite"):
        lower_root(np.array([[1.0, 1.0], [1.0, 1.0]]), "cov")
    nearly = np.array([[2.0, 1.0 + 4e-9], [1.0, 3.0]])
    lower = lower_root(nearly, "cov")
    np.testing.assert_allclose(lower @ lower.T, [[2.0, 1.0 + 2e-9], [1.0 + 2e-9, 3.0]], rtol=1e-15)


def test_precise_rows_do_not_drown_the_others():
    """Rows of 1e8 above rows of 1: normal equations would keep none of the small ones' digits.

    The two large rows differ by 0.1, so half of the digits are lost whatever one does.
    """
    rng = np.random.default_rng(8)
    A = rng.standard_normal((9, 4))
    A[3] *= 1e8
    A[7] = A[3] * (1.0 + 1e-9 * rng.standard_normal(4))
    b = rng.standard_normal(9)
    root = InformationRoot(A, b)
    with mp.workdps(60):
        exact = mp.matrix(A.tolist())
        information = mp.eye(4) + exact.T * exact
        minimum = mp.lu_solve(information, exact.T * mp.matrix(b.tolist()))
        covariance = information**-1
        log_determinant = float(mp.log(mp.det(information)))
        z, cov = np.array(minimum.tolist(), float).ravel(), np.array(covariance.tolist(), float)
    np.testing.assert_allclose(root.z, z, rtol=1e-6)
    np.testing.assert_allclose(root.log_det(), log_determinant, rtol=0, atol=1e-7)
    variances = np.einsum("ij,ij->i", root.factor(), root.factor())
    np.testing.assert_allclose(variances, np.diag(cov), rtol=1e-6)
    squared = np.linalg.slogdet(np.eye(4) + A.T @ A)[1]
    assert not abs(squared - log_determinant) < 1e-3
