"""Time that passes in fractions, and where it leads."""

import numpy as np
import pytest

import gaussfold as gf
from gaussfold.dynamics import Forgetting
from gaussfold.likelihoods import Gaussian
from tests.problems import prior, relative
from tests.reference.dense import Textbook


@pytest.mark.parametrize("ticks", [1.0, 3.0, 0.37])
def test_forgetting_for_a_fraction_of_a_tick(ticks):
    """Λ ← γᵗΛ + (1 - γᵗ)Λ₀, and the same for Λμ."""
    aged, want = gf.DenseGaussian(*prior(4, 9)), Textbook(*prior(4, 9))
    Forgetting(0.97, gf.DenseGaussian(*prior(4))).tick(aged, ticks)
    want.relax(0.97**ticks, *prior(4))
    assert relative(aged.mean, want.mean) < 1e-11
    assert relative(aged.cov, want.cov) < 1e-11


def test_forgetting_reaches_a_steady_state():
    """Unit information per row: Λ - Λ₀ settles at 1/(1 - γ) observations, wherever it started."""
    belief = gf.DenseGaussian.isotropic(1, std=0.7)
    forgetting = Forgetting(0.97, belief.copy())
    gf.fold(belief, Gaussian(1.0), np.ones((2000, 1)), np.full(2000, 0.4), dynamics=forgetting)
    assert 1.0 / belief.cov[0, 0] - 1.0 / 0.49 == pytest.approx(1.0 / 0.03, rel=1e-10)
    assert belief.mean[0] == pytest.approx(0.4 * (1.0 / 0.03) / (1.0 / 0.03 + 1.0 / 0.49), rel=1e-10)
