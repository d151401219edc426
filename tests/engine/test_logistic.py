"""Gaussian expectations of the logistic function against mpmath; the implicit root against the table of 50 digits."""

import mpmath as mp
import numpy as np
import pytest
from scipy import special

from gaussfold.engine.scalar import logistic as parts
from tests.machine_code import MachineCode
from tests.reference import likelihoods as reference
from tests.shared import ORACLES, needs_oracles

logistic = MachineCode(parts)
# Either side of std = 4, where the engine changes its rule; means inside and outside the bulk.
CELLS = [
    (m, v)
    for v in (1e-8, 0.3, 2.0, 15.9, 16.1, 80.0, 1e4, 1e6)
    for m in (0.0, 0.37 * np.sqrt(v), -2.9 * np.sqrt(v) - 0.4)
] + [(-9.3, 0.8), (-60.0, 12.0), (700.0, 1.7), (1000.0, 1e-8)]


LOGIT = {"name": "Bernoulli", "link": "logit"}


def panels(m: float, v: float) -> dict[str, float]:
    """E of σ(f), σ(-f), three derivatives of σ, softplus, and Var σ(f): Gauss-Legendre between breakpoints."""
    u, w = reference.grid(reference.panels(LOGIT, 0.0 if m > 0 else 1.0, m, v, peak=True))
    w = w * np.exp(-0.5 * u * u) / np.sqrt(2.0 * np.pi)
    sign = -1.0 if m > 0 else 1.0  # the side on which σ is small; the other one is its complement
    f = sign * (m + np.sqrt(v) * u)
    p, q = special.expit(f), special.expit(-f)
    rare = p @ w
    return {
        "up": 1.0 - rare if m > 0 else rare,
        "down": rare if m > 0 else 1.0 - rare,
        "slope": (p * q) @ w,
        "second": sign * (p * q * (q - p)) @ w,
        "third": (p * q * (1.0 - 6.0 * p * q)) @ w,
        "softplus": np.logaddexp(0.0, f) @ w + max(m, 0.0),
        "variance": (p - rare) ** 2 @ w,
    }


@pytest.mark.parametrize(("m", "v"), CELLS)
def test_moments(m, v):
    """To 2e-13 of themselves; beyond std = 4 to 1e-15, and the two derivatives that only steer Newton to 1e-11."""
    want = panels(m, v)
    got = logistic.logistic_moments(m, v)
    atol = 1e-22 if v < 16.0 else 1e-15
    np.testing.assert_allclose(got[:3], (want["up"], want["down"], want["slope"]), rtol=2e-13, atol=atol)
    np.testing.assert_allclose(got[3:], (want["second"], want["third"]), rtol=1e-11, atol=1e-11 * want["slope"] + 1e-22)
    assert logistic.expected_softplus(m, v) == pytest.approx(want["softplus"], rel=2e-13, abs=1e-22)
    assert logistic.logistic_mean_variance(m, v) == pytest.approx(want["variance"], rel=1e-10, abs=1e-22)


@pytest.mark.parametrize(("m", "v"), [(0.4, 0.3), (-9.3, 0.8), (2.9, 16.1)])
def test_moments_to_the_last_word(m, v):
    """The same by mpmath, which knows nothing of the panels above."""
    with mp.workdps(25):
        edges = [-14, -9, -6, -4, -2.5, -1, 0, 1, 2.5, 4, 6, 9, 14]

        def mean_of(g):
            return float(mp.quad(lambda u: mp.npdf(u) * g(mp.mpf(m) + mp.sqrt(v) * u), edges))

        up = mean_of(lambda f: 1 / (1 + mp.exp(-f)))
        slope = mean_of(lambda f: 1 / (2 + 2 * mp.cosh(f)))
        soft = mean_of(lambda f: mp.log1p(mp.exp(f)))
    got = logistic.logistic_moments(m, v)
    np.testing.assert_allclose((got[0], got[2]), (up, slope), rtol=2e-13)
    assert logistic.expected_softplus(m, v) == pytest.approx(soft, rel=2e-13)


@pytest.mark.parametrize(("m", "v"), [(0.0, 0.3), (-2.9, 7.0), (41.0, 1e4), (900.0, 1e-8), (-900.0, 3.0)])
def test_closed_form_of_the_paper(m, v):
    """rvga (58), in 50 digits."""
    with mp.workdps(50):
        k = mp.sqrt(8 / mp.pi) / mp.sqrt(mp.mpf(v) + 8 / mp.pi)
        a = k * mp.mpf(m)
        logit = lambda t: 1 / (1 + mp.exp(-t))  # noqa: E731
        want = [logit(a), logit(-a)] + [k**n * mp.diff(logit, a, n) for n in (1, 2, 3)]
    np.testing.assert_allclose(logistic.probit_moments(m, v), [float(x) for x in want], rtol=1e-12, atol=1e-60)


@pytest.mark.parametrize("c", [0.0, 1e-9, 0.02, 0.25, 0.9])
@pytest.mark.parametrize("v0", [1e-8, 0.4, 30.0, 1e6])
def test_scaling_root_solves_the_inner_equation(c, v0):
    """v = v0/(1 + c k(v) v0), rvga (70) for fixed σ'."""
    q = logistic.probit_scaling_root(c, v0)
    v = v0 / (1.0 + c * v0 / q)
    assert q == pytest.approx(np.sqrt(1.0 + v * np.pi / 8.0), rel=1e-14)


@needs_oracles
@pytest.mark.parametrize("block", ["rand", "grid", "stress"])
def test_implicit_root_table(block):
    """All rows, ν0 up to 1e8, to 1e-12; where α0 and ν0(y - σ) cancel (α = 0), to the rounding of what cancels."""
    table = np.load(ORACLES / "rvga" / "implicit_roots.npz")
    columns = (table[f"{block}_{key}"].astype(float) for key in ("alpha0", "nu0", "y", "alpha", "nu"))
    steps = []
    for alpha0, nu0, y, alpha, nu in zip(*columns, strict=True):
        m, v, n = logistic.logistic_root(y, 1.0, alpha0, nu0, True)
        assert m == pytest.approx(alpha, rel=1e-12, abs=2e-16 * abs(alpha0)), (alpha0, nu0, y)
        assert v == pytest.approx(nu, rel=1e-12), (alpha0, nu0, y)
        steps.append(n)
    assert np.mean(steps) < 8.0


@pytest.mark.parametrize("shrink", [True, False])
@pytest.mark.parametrize("b", [0.3, 1.0, 2.5, 63.0])
@pytest.mark.parametrize("share", [0.0, 0.3, 1.0])
def test_root_with_weights_and_soft_labels(shrink, b, share):
    """Both equations, in mpmath, at the answer; the distance is a Newton step in units of |m| + √v."""
    for m0 in (-1e3, -7.7, 0.0, 0.4, 30.0):
        for v0 in (1e-8, 0.9, 130.0, 1e6):
            m, v, _ = logistic.logistic_root(share * b, b, m0, v0, shrink)
            with mp.workdps(40):
                k = mp.sqrt(8 / mp.pi) / mp.sqrt(mp.mpf(v) + 8 / mp.pi) if shrink else mp.mpf(1)
                a = k * mp.mpf(m)
                gradient = mp.mpf(share) * b - b / (1 + mp.exp(-a))
                slope = b * k * mp.exp(-abs(a)) / (1 + mp.exp(-abs(a))) ** 2
                stiffness = 1 + mp.mpf(v0) * slope
                off = (mp.mpf(m) - m0 - mp.mpf(v0) * gradient) / stiffness / (abs(m) + mp.sqrt(v))
                assert abs(off) < 1e-13
                assert abs(mp.mpf(v) / v0 * stiffness - 1) < 1e-13
