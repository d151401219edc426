"""The compiled filter and smoother against the textbook's, and its gradient against differences."""

import numpy as np
import pytest

from gaussfold.engine import kalman, kalman_pair
from gaussfold.gp import Cosine, Matern12, Matern32, Matern52
from tests.reference import kalman as reference

RNG = np.random.default_rng(5)


def problem(covariances, n=14):
    spaces = [c.state_space() for c in covariances]
    dt = RNG.uniform(0.05, 0.9, 4)
    step = RNG.integers(0, 4, n)
    S, D = sum(s.size for s in spaces), len(spaces)
    A, Q, P, H = np.zeros((4, S, S)), np.zeros((4, S, S)), np.zeros((S, S)), np.zeros((D, S))
    at = 0
    for d, space in enumerate(spaces):
        w = slice(at, at + space.size)
        A[:, w, w] = space.transition(dt)
        Q[:, w, w] = space.noise(dt, space.transition(dt))
        P[w, w] = space.covariance
        H[d, w] = space.measurement
        at += space.size
    roots = RNG.normal(size=(n, D, D))
    precision = roots @ roots.swapaxes(1, 2) + 0.3 * np.eye(D)
    return step, A, Q, H, P, precision, RNG.normal(size=(n, D))


def run(step, A, Q, H, P, precision, shift, differentiate=False):
    (N, D), S = shift.shape, len(P)
    kind = np.result_type(precision, shift)
    precision = precision.astype(kind)
    A, Q, H, P = (a.astype(kind) for a in (A, Q, H, P))
    mean, cov, cross = np.empty((N, S), kind), np.empty((N, S, S), kind), np.empty((N, D, S), kind)
    pull, weight = np.empty((N, D), kind), np.empty((N, D, D), kind)
    log_z, bad = kalman.forward(step, A, Q, H, np.zeros(S, kind), P, precision, shift, mean, cov, cross, pull, weight)
    f_mean, f_cov = np.empty((N, D), kind), np.empty((N, D, D), kind)
    bar_A, bar_Q, bar_P = np.zeros(A.shape, kind), np.zeros(A.shape, kind), np.zeros(P.shape, kind)
    if bad < 0:
        kalman.backward(
            step, A, H, precision, mean, cov, cross, pull, weight, f_mean, f_cov, differentiate, bar_A, bar_Q, bar_P
        )
    return log_z, bad, f_mean, f_cov, bar_A, bar_Q, bar_P


CASES = [
    [Matern12(1.3, 0.7)],
    [Matern32(1.3, 0.7)],
    [Matern52(0.6, 1.7) * Cosine(2.0)],
    [Matern32(1.3, 0.7), Matern52(0.4, 2.2)],
]
NAMES = ["matern12", "matern32", "product", "two-latents"]


@pytest.mark.parametrize("covariances", CASES, ids=NAMES)
def test_agrees_with_the_textbook(covariances):
    step, A, Q, H, P, precision, shift = problem(covariances)
    log_z, bad, f_mean, f_cov, *_ = run(step, A, Q, H, P, precision, shift)
    want, means, covs = reference.smooth(A[step], Q[step], H, np.zeros(len(P)), P, precision, shift)
    assert bad == -1
    assert log_z == pytest.approx(want, rel=1e-11, abs=1e-11)
    np.testing.assert_allclose(f_mean, means @ H.T, atol=1e-10)
    np.testing.assert_allclose(f_cov, H @ covs @ H.T, atol=1e-10)


@pytest.mark.parametrize("covariances", CASES, ids=NAMES)
def test_adjoints_are_derivatives(covariances):
    step, A, Q, H, P, precision, shift = problem(covariances)
    *_, bar_A, bar_Q, bar_P = run(step, A, Q, H, P, precision, shift, differentiate=True)
    arrays = {"A": (A, bar_A), "Q": (Q, bar_Q), "P": (P, bar_P)}
    for name, (array, bar) in arrays.items():
        direction = RNG.normal(size=array.shape)
        if name != "A":
            direction = direction + np.swapaxes(direction, -1, -2)
        values = []
        for h in (1e-5, -1e-5):
            moved = {k: a + h * direction if k == name else a for k, (a, _) in arrays.items()}
            values.append(run(step, moved["A"], moved["Q"], H, moved["P"], precision, shift)[0])
        assert np.vdot(bar, direction) == pytest.approx((values[0] - values[1]) / 2e-5, rel=1e-6, abs=1e-7), name


def test_pair_is_the_general_one():
    step, A, Q, H, P, precision, shift = problem([Matern32(1.3, 0.7)], n=40)
    precision[3] = 0.0  # missing
    precision[7] = -0.1  # bends upwards
    want = run(step, A, Q, H, P, precision, shift, differentiate=True)
    store = np.empty((40, 7))
    y, s = precision[:, 0, 0].copy(), shift[:, 0].copy()
    log_z, bad = kalman_pair.forward_pair(step, A, Q, np.zeros(2), P, y, s, store)
    f_mean, f_var = np.empty(40), np.empty(40)
    bars = np.zeros(A.shape), np.zeros(A.shape), np.zeros(P.shape)
    kalman_pair.backward_pair(step, A, y, store, f_mean, f_var, True, *bars)
    assert (bad, log_z) == (want[1], pytest.approx(want[0], rel=1e-13))
    np.testing.assert_allclose(f_mean, want[2][:, 0], rtol=1e-11, atol=1e-13)
    np.testing.assert_allclose(f_var, want[3][:, 0, 0], rtol=1e-11)
    for mine, other in zip(bars, want[4:], strict=True):
        np.testing.assert_allclose(mine, other, rtol=1e-9, atol=1e-11)


def test_complex_step_differentiates_the_gradient():
    """What the chain through the marginals uses: the imaginary part is the directional derivative."""
    step, A, Q, H, P, precision, shift = problem(CASES[3])
    d_shift = RNG.normal(size=shift.shape)
    d_precision = RNG.normal(size=precision.shape)
    d_precision = d_precision + d_precision.swapaxes(1, 2)
    h = 1e-20
    stepped = run(step, A, Q, H, P, precision + 1j * h * d_precision, shift + 1j * h * d_shift, True)[4].imag / h
    sides = [run(step, A, Q, H, P, precision + e * d_precision, shift + e * d_shift, True)[4] for e in (1e-5, -1e-5)]
    np.testing.assert_allclose(stepped, (sides[0] - sides[1]) / 2e-5, rtol=1e-6, atol=1e-6)


def test_a_site_that_cancels_the_prior_is_named():
    step, A, Q, H, P, precision, shift = problem([Matern32(1.3, 0.7)])
    precision[5] = -50.0
    assert run(step, A, Q, H, P, precision, shift)[1] == 5
