"""The square root of I + A'A by QR: every method, against 60 digits where the normal equations would fail."""

import mpmath as mp
import numpy as np
import pytest

from gaussfold.linalg.information import InformationRoot
from tests.problems import relative


@pytest.mark.parametrize("scale", [1.0, 1e8])
def test_every_method(scale):
    """One row of 1e8: I + A'A has a condition number of 1e16."""
    rng = np.random.default_rng(7)
    A = rng.standard_normal((12, 4))
    A[3] *= scale
    b, right = rng.standard_normal(12), rng.standard_normal(4)
    with mp.workdps(60):
        M = mp.matrix(A.tolist())
        information = M.T * M + mp.eye(4)
        inverse = information**-1
        z = np.array((inverse * (M.T * mp.matrix(b.tolist()))).tolist(), dtype=float).ravel()
        solved = np.array((inverse * mp.matrix(right.tolist())).tolist(), dtype=float).ravel()
        seen = [float((M[i, :] * inverse * M[i, :].T)[0]) for i in range(12)]
        log_det = float(mp.log(mp.det(information)))
        cov = np.array(inverse.tolist(), dtype=float)
    root = InformationRoot(A, b)
    np.testing.assert_allclose(root.z, z, rtol=1e-10)
    assert root.log_det() == pytest.approx(log_det, rel=1e-12)
    assert relative(root.factor() @ root.factor().T, cov) < 1e-11
    np.testing.assert_allclose(root.solve(right), solved, rtol=1e-10)
    np.testing.assert_allclose((root.whiten(A) ** 2).sum(axis=1), seen, rtol=1e-9)


def test_fewer_rows_than_columns_and_no_right_side():
    A = np.random.default_rng(8).standard_normal((3, 5))
    root = InformationRoot(A)
    np.testing.assert_array_equal(root.z, np.zeros(5))
    assert relative(root.factor() @ root.factor().T, np.linalg.inv(np.eye(5) + A.T @ A)) < 1e-13
