"""The compiled filter and smoother against the textbook's, and its gradient against differences."""

import numpy as np
import pytest

from gaussfold.gp import Cosine, Matern12, Matern32, Matern52
from gaussfold.gp.kalman import GeneralSmoother, Matrices, PairSmoother
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


def run(step, A, Q, H, P, precision, shift, differentiate=False, passes=GeneralSmoother, stretch=1000, move=None):
    """Filter, then smooth in stretches; with a move, the tangents minus the adjoints."""
    (N, D), S = shift.shape, len(P)
    mine = passes(Matrices(step, A, Q, H))
    filtered, bad = mine.forward(np.zeros(S), P, precision, shift, None)
    f_mean, f_cov, carry = np.empty((N, D)), np.empty((N, D, D)), mine.carry()
    bars = np.zeros(A.shape), np.zeros(A.shape)
    if bad >= 0:
        return filtered.log_z, bad
    moved = None if move is None else mine.tangents(filtered, *move)
    for low in reversed(range(0, N, stretch)):
        rows = slice(low, min(low + stretch, N))
        if moved is None:
            given = bars if differentiate else None
            mine.backward(rows, 0, filtered, carry, f_mean[rows], f_cov[rows], given)
        else:
            mine.backward_moved(rows, 0, filtered, moved, carry, bars)
    r, M, dr, dM = mine.carried(carry)
    bar_P = 0.5 * (np.outer(r, r) - M)
    if moved is not None:
        bar_P = 0.5 * (np.outer(r, dr) + np.outer(dr, r) - dM) - bar_P
    return filtered.log_z, bad, f_mean, f_cov, *bars, bar_P


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


def tricky():
    step, A, Q, H, P, precision, shift = problem([Matern32(1.3, 0.7)], n=40)
    precision[3] = 0.0  # missing
    precision[7] = -0.1  # bends upwards
    return step, A, Q, H, P, precision, shift


@pytest.mark.parametrize("stretch", [1000, 7])
def test_pair_is_the_general_one(stretch):
    given = tricky()
    want = run(*given, differentiate=True)
    got = run(*given, differentiate=True, passes=PairSmoother, stretch=stretch)
    assert (got[1], got[0]) == (want[1], pytest.approx(want[0], rel=1e-13))
    np.testing.assert_allclose(got[2], want[2], rtol=1e-11, atol=1e-13)
    np.testing.assert_allclose(got[3], want[3], rtol=1e-11)
    for mine, other in zip(got[4:], want[4:], strict=True):
        np.testing.assert_allclose(mine, other, rtol=1e-9, atol=1e-11)


def move(precision, shift):
    d_precision = RNG.normal(size=precision.shape)
    return d_precision + d_precision.swapaxes(1, 2), RNG.normal(size=shift.shape)


@pytest.mark.parametrize("covariances", CASES, ids=NAMES)
def test_tangents_are_derivatives_of_the_adjoints(covariances):
    """What the chain through the marginals uses."""
    *fixed, precision, shift = problem(covariances)
    d_precision, d_shift = move(precision, shift)
    got = run(*fixed, precision, shift, move=(d_precision, d_shift), stretch=5)[4:]
    here = run(*fixed, precision, shift, True)[4:]
    sides = [run(*fixed, precision + e * d_precision, shift + e * d_shift, True)[4:] for e in (1e-5, -1e-5)]
    for mine, value, up, down in zip(got, here, *sides, strict=True):
        np.testing.assert_allclose(mine, (up - down) / 2e-5 - value, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("stretch", [1000, 7])
def test_tangents_of_the_pair_are_the_general_ones(stretch):
    given = tricky()
    moves = move(*given[-2:])
    want = run(*given, move=moves)[4:]
    got = run(*given, move=moves, passes=PairSmoother, stretch=stretch)[4:]
    for mine, other in zip(got, want, strict=True):
        np.testing.assert_allclose(mine, other, rtol=1e-9, atol=1e-10)


def test_a_site_that_cancels_the_prior_is_named():
    step, A, Q, H, P, precision, shift = problem([Matern32(1.3, 0.7)])
    precision[5] = -50.0
    assert run(step, A, Q, H, P, precision, shift)[1] == 5
