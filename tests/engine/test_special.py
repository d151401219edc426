"""Scalar special functions against SciPy and mpmath, in both tails."""

import mpmath as mp
import numpy as np
import pytest
from scipy import special as scipy_special

from gaussfold.engine.scalar import special as parts
from tests.machine_code import MachineCode

special = MachineCode(parts)

POINTS = [-700.0, -120.3, -37.7, -5.1, -5.0, -4.9, -0.8, -1e-9, 0.0, 1e-9, 0.3, 4.9, 5.1, 8.3, 36.9, 120.0, 700.0]

EXACT = {
    "sigmoid": lambda f: 1 / (1 + mp.exp(-f)),
    "sigmoid_slope": lambda f: mp.exp(-abs(f)) / (1 + mp.exp(-abs(f))) ** 2,
    "softplus": lambda f: mp.log1p(mp.exp(f)),
    "normal_pdf": lambda f: mp.npdf(f),
    "normal_cdf": lambda f: mp.erfc(-f / mp.sqrt(2)) / 2,
    "log_normal_cdf": lambda f: (
        mp.log(mp.erfc(-f / mp.sqrt(2)) / 2) if f < 0 else mp.log1p(-mp.erfc(f / mp.sqrt(2)) / 2)
    ),
}


@pytest.mark.parametrize("name", EXACT)
@pytest.mark.parametrize("f", POINTS)
def test_full_relative_precision(name, f):
    with mp.workdps(700):  # 1 - 1e-300 must not be 1
        want = float(EXACT[name](mp.mpf(f)))
    if want == 0.0 or abs(want) < 1e-300:  # beyond the range of a double
        assert abs(getattr(special, name)(f)) < 1e-300
        return
    # A Gaussian's exponent f²/2 is itself rounded: a relative error of f²/2 · 1e-16 cannot be helped.
    slack = 0.5 * f * f * 1.2e-16 if name.startswith("normal") else 0.0
    assert getattr(special, name)(f) == pytest.approx(want, rel=4e-15 + 2 * slack)


@pytest.mark.parametrize("f", POINTS)
def test_inverse_mills_and_its_excess(f):
    """ρ = φ/Φ and ρ + f: the second is 1/|f| far to the left, a difference of equal numbers if done naively."""
    with mp.workdps(400):
        x = mp.mpf(f)
        rho = mp.npdf(x) / (mp.erfc(-x / mp.sqrt(2)) / 2)
        want = float(rho), float(rho + x)
    got = special.inverse_mills(f)
    if want[0] < 1e-300:
        assert got[0] < 1e-300
    else:
        assert got[0] == pytest.approx(want[0], rel=1e-14 + f * f * 2e-16 * (f > 0))
    assert got[1] == pytest.approx(want[1], rel=1e-13)


@pytest.mark.parametrize("z", [-800.0, -31.0, -29.9, -3.0, -0.5, 0.0, 0.99, 1.0, 1.01, 2.7, 40.0, 1e3, 1e6])
def test_wright_omega(z):
    assert special.wright_omega(z) == pytest.approx(float(scipy_special.wrightomega(z)), rel=1e-13, abs=1e-320)


@pytest.mark.parametrize("u", [-50.0, -0.31, -0.29, -1e-3, -1e-9, 1e-12, 1e-5, 0.1, 0.299, 0.301, 1.0, 30.0])
def test_expm1_minus(u):
    with mp.workdps(60):
        want = float(mp.expm1(mp.mpf(u)) - mp.mpf(u))
    assert special.expm1_minus(u) == pytest.approx(want, rel=5e-15)


def test_bounded_exp_is_exp_until_it_would_overflow():
    assert special.bounded_exp(0.7) == np.exp(0.7)
    assert special.bounded_exp(708.9) == pytest.approx(np.exp(708.9), rel=1e-15)
    assert special.bounded_exp(1e6) == special.bounded_exp(709.0) < np.inf
