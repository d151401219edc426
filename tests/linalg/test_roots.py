"""Square roots of covariances: Cholesky factors, and QR where squaring would lose digits."""

import mpmath as mp
import numpy as np
import pytest

from gaussfold.linalg.information import InformationRoot
from gaussfold.linalg.roots import inverse_root, log_det, lower_root, root_from_precision, triangularise
from tests.problems import prior, relative


def test_lower_root_and_its_inverse():
    _, cov = prior(5)
    lower = lower_root(cov, "cov")
    np.testing.assert_array_equal(lower, np.tril(lower))
    assert relative(lower @ lower.T, cov) < 1e-15
    assert relative(inverse_root(lower) @ lower, np.eye(5)) < 1e-13
    assert log_det(lower) == pytest.approx(np.linalg.slogdet(cov)[1], rel=1e-13)


def test_root_from_precision():
    _, cov = prior(5)
    factor = root_from_precision(np.linalg.inv(cov), "precision")
    assert relative(factor @ factor.T, cov) < 1e-12


@pytest.mark.parametrize("columns", [5, 9])
def test_triangularise(columns):
    """Square or wide; the same product, lower triangular, positive on the diagonal."""
    factor = np.random.default_rng(3).standard_normal((5, columns))
    lower = triangularise(factor)
    np.testing.assert_allclose(lower, np.tril(lower), atol=1e-15)
    assert (np.diag(lower) > 0.0).all()
    assert relative(lower @ lower.T, factor @ factor.T) < 1e-14


def test_triangularise_does_not_square():
    """A factor of condition 1e12 keeps its small direction, which F F' would have lost."""
    factor = np.random.default_rng(4).standard_normal((3, 3)) @ np.diag([1e6, 1.0, 1e-6])
    lower = triangularise(factor)
    assert abs(np.prod(np.diag(lower))) == pytest.approx(abs(np.linalg.det(factor)), rel=1e-9)


@pytest.mark.parametrize(
    ("matrix", "message"),
    [
        ([[1.0, 2.0], [2.0, 1.0]], "belief is not positive definite .smallest eigenvalue -1.; all must be above zero"),
        ([[1.0, 1.0], [1.0, 1.0]], "belief is not positive definite"),
        ([[1.0, 0.3], [0.1, 1.0]], "belief is not symmetric .largest difference 0.2.; symmetrise it first"),
        ([[np.nan, 0.0], [0.0, 1.0]], "belief is not symmetric"),
    ],
)
def test_no_jitter(matrix, message):
    with pytest.raises(ValueError, match=message):
        lower_root(np.array(matrix), "belief")


def exact_solution(A, b):
    """The minimum of |Az - b|² + |z|² and (I + A'A)⁻¹, in 60 digits."""
    with mp.workdps(60):
        M = mp.matrix(A.tolist())
        information = M.T * M + mp.eye(A.shape[1])
        inverse = information**-1
        z = inverse * (M.T * mp.matrix(b.tolist()))
        return np.array([float(x) for x in z]), np.array(inverse.tolist(), dtype=float)


@pytest.mark.parametrize("scale", [1.0, 1e8])
def test_information_root(scale):
    """Rows of very different sizes: I + A'A squared has a condition number of 1e16."""
    rng = np.random.default_rng(7)
    A = rng.standard_normal((12, 4))
    A[3] *= scale
    b = rng.standard_normal(12)
    z, inverse = exact_solution(A, b)
    root = InformationRoot(A, b)
    np.testing.assert_allclose(root.z, z, rtol=1e-10)
    factor = root.factor()
    assert relative(factor @ factor.T, inverse) < 1e-11
    with mp.workdps(60):
        M = mp.matrix(A.tolist())
        want = float(mp.log(mp.det(M.T * M + mp.eye(4))))
    assert root.log_det() == pytest.approx(want, rel=1e-12)
    right = rng.standard_normal(4)
    np.testing.assert_allclose(root.solve(right), inverse @ right, rtol=1e-6, atol=1e-10)
    whitened = root.whiten(A[:3])
    np.testing.assert_allclose((whitened**2).sum(axis=1), np.diag(A[:3] @ inverse @ A[:3].T), rtol=1e-9)


def test_information_root_without_right_side():
    A = np.random.default_rng(8).standard_normal((3, 5))  # fewer rows than columns
    root = InformationRoot(A)
    np.testing.assert_array_equal(root.z, np.zeros(5))
    factor = root.factor()
    assert relative(factor @ factor.T, np.linalg.inv(np.eye(5) + A.T @ A)) < 1e-13
