"""The projection whose scale is learned: against d×d arrays, and what its ledger promises."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import gaussfold as gf
from gaussfold.dynamics import Forgetting
from gaussfold.engine.lowrank.products import add_evidence
from gaussfold.factors.calibrated import Account
from tests.reference import lowrank as reference

NOISE = 0.6
LINEAR = gf.likelihoods.Gaussian(NOISE)


def stream(n=120, d=14, condition=100.0, seed=0):
    rng = np.random.default_rng(seed)
    turn = np.linalg.qr(rng.standard_normal((d, d)))[0]
    X = rng.standard_normal((n, d)) * np.logspace(0.0, -0.5 * np.log10(condition), d) @ turn
    return X, X @ rng.standard_normal(d) + NOISE * rng.standard_normal(n)


@pytest.mark.parametrize("prior", [0.7, 20.0])
@pytest.mark.parametrize(("p", "block"), [(1, 1), (3, 1), (3, 4), (3, 9), (14, 5)])
def test_a_stream_is_the_textbook(p, block, prior):
    """Fused rows and blocks; deviations larger (prior 0.7) and smaller (prior 20) than predicted."""
    X, y = stream()
    y[50] += 40.0  # an outlier counts no more than ten
    one = gf.LowRankGaussian.isotropic(14, p, prior, mean=0.2, block_size=block)
    start = one.W, one.psi, one.mean
    gf.fold(one, LINEAR, X[:108], y[:108])
    mean, low, psi = reference.calibrated_regression(*start, X[:108], y[:108], NOISE, block)
    np.testing.assert_allclose(one.mean, mean, rtol=1e-7, atol=1e-9)
    np.testing.assert_allclose(one.W @ one.W.T, low, rtol=1e-7, atol=1e-8 * np.abs(low).max())
    np.testing.assert_allclose(one.psi, psi, rtol=1e-7)


def test_evidence_is_the_slope_of_the_predictive_density():
    """Times the weight 1 - 0.9h; of rows without a site nothing is counted, and an outlier is bounded."""
    y, mean, variance, noise = 1.3, 0.4, 0.7, 0.36
    evidence = np.zeros(6)
    one = np.ones(1)
    add_evidence(one / noise, one * y / noise, one * mean, one * variance, evidence)

    def density(log_scale):
        total = np.exp(log_scale) * variance + noise
        return -0.5 * (np.log(total) + (y - mean) ** 2 / total)

    weight = 1.0 - 0.9 * variance / (variance + noise)
    np.testing.assert_allclose(evidence[0], weight * (density(1e-5) - density(-1e-5)) / 2e-5, rtol=1e-6)
    np.testing.assert_allclose(evidence[1], weight * 0.5 * (variance / (variance + noise)) ** 2, rtol=1e-12)
    before = evidence.copy()
    add_evidence(np.array([0.0, -0.3]), np.ones(2), np.ones(2), np.ones(2), evidence)
    np.testing.assert_array_equal(evidence, before)
    for far in (1e3, 1e9):
        evidence[:] = 0.0
        add_evidence(one, one * far, one, one, evidence)
        np.testing.assert_allclose(evidence[0], 0.5 * 0.5 * (1 - 0.45) * 9.0)


def test_where_nothing_is_dropped_nothing_is_in_doubt():
    X, y = stream()
    one = gf.LowRankGaussian.isotropic(14, 14, 0.05, block_size=3)  # a prior that the data contradict
    exact = gf.DenseGaussian.isotropic(14, 0.05)
    for belief in (one, exact):
        gf.fold(belief, LINEAR, X, y)
    assert one.kl(exact) < 1e-9
    np.testing.assert_allclose(one.state()["ledger"][2:], Account()[2:], atol=1e-12)


@settings(max_examples=25, deadline=None)
@given(
    seed=st.integers(0, 2**20),
    p=st.integers(1, 4),
    block=st.integers(1, 6),
    prior=st.sampled_from([0.03, 0.7, 300.0]),
    forgetting=st.sampled_from([1.0, 0.97]),
)
def test_no_variance_exceeds_the_priors_whatever_comes(seed, p, block, prior, forgetting):
    """Ψ stays above its base; columns that were never seen keep the prior; labels may contradict everything."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((40, 6)) * 10.0 ** rng.uniform(-2, 2, 6)
    X[:, 4] = 0.0
    y = 10.0 ** rng.uniform(-3, 3) * rng.standard_normal(40)
    one = gf.LowRankGaussian.isotropic(6, p, prior, block_size=block if forgetting == 1.0 else 1)
    start = one.copy()
    dynamics = None if forgetting == 1.0 else Forgetting(forgetting, start)
    gf.fold(one, LINEAR, X, y, dynamics=dynamics)
    state = one.state()
    assert (state["base"] <= state["psi"]).all()
    assert (one.variance() <= prior**2 * (1 + 1e-9)).all()
    np.testing.assert_allclose(one.variance()[4], prior**2, rtol=1e-9)
    numbers = Account(*state["ledger"])
    assert numbers.uncertainty >= 0.0
    assert numbers.scale >= -numbers.room - 1e-9
    assert 0.0 < numbers.free <= 1.0


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"ledger": None}, "base"),
        ({"base": None, "ledger": None}, "base, ledger.*has both"),
        ({"ledger": np.array([0.0, -1.0, 0.0, 0.0, 0.0, 1.0])}, "ledger.*cannot be negative"),
        ({"ledger": np.array([0.0, 1.0, 0.0, 0.0, 0.0, 0.0])}, "ledger.*free"),
        ({"base": -np.ones(14)}, "base"),
    ],
)
def test_a_damaged_ledger_is_refused(change, message):
    X, y = stream()
    one = gf.LowRankGaussian.isotropic(14, 2, block_size=4)
    gf.fold(one, LINEAR, X[:30], y[:30])
    state = {name: array for name, array in (one.state() | change).items() if array is not None}
    with pytest.raises(ValueError, match=message):
        gf.LowRankGaussian.from_state(state)
