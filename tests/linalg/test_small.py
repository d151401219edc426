"""Many small matrices at once."""

import numpy as np
import pytest

from gaussfold.linalg.small import root_adjoint

RNG = np.random.default_rng(7)


@pytest.mark.parametrize("shape", [(4, 4), (3, 2, 2), (2, 1, 1)])
def test_the_adjoint_of_a_root_is_its_derivative_s(shape):
    """``d tr(bar' L) = tr(adjoint dK)`` for a symmetric change of K, against a central difference."""
    wide = RNG.normal(size=(*shape[:-1], 3 * shape[-1]))
    K = wide @ np.swapaxes(wide, -1, -2)
    bar, change = RNG.normal(size=shape), RNG.normal(size=shape)
    change = change + np.swapaxes(change, -1, -2)
    up, down = (np.linalg.cholesky(K + s * change) for s in (1e-6, -1e-6))
    want = (bar * (up - down)).sum() / 2e-6
    found = root_adjoint(np.linalg.cholesky(K), bar)
    np.testing.assert_allclose(found, np.swapaxes(found, -1, -2), rtol=1e-10)
    assert (found * change).sum() == pytest.approx(want, rel=1e-6)
