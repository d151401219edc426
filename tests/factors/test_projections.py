import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from gaussfold.engine.lowrank.products import gram
from gaussfold.factors import PROJECTIONS
from gaussfold.factors.recursive_em import em_loop, project_em
from tests.reference import lowrank as reference
from tests.shared import ORACLES as ALL_ORACLES
from tests.shared import needs_oracles

ORACLES = ALL_ORACLES / "lrvga"
STREAMS = ["fa_d100_p10", "fa_breastcancer_p3", "fa_breastcancer_p5", "fa_wdbc_p5", "fa_d1000_p5"]


def problem(seed, d=12, p=3, K=1, scale=1.0, dtype=float):
    rng = np.random.default_rng(seed)
    W = (rng.standard_normal((d, p)) * scale).astype(dtype)
    psi = rng.uniform(0.2, 2.0, d).astype(dtype)
    X = rng.standard_normal((K, d)).astype(dtype)
    return W, psi, X, rng.uniform(0.1, 2.5, K)


@pytest.mark.parametrize("loops", [1, 2, 3])
@pytest.mark.parametrize("alpha", [1.0, 0.7, 1.3])
@pytest.mark.parametrize("K", [1, 4])
def test_em_is_algorithm_1(K, alpha, loops):
    W, psi, X, weights = problem(K + loops, K=K)
    W_ref, psi_ref = reference.algorithm_1(W, psi, X, weights, alpha, loops)
    G = project_em(W, psi, gram(W, psi), X, weights, alpha, loops)
    np.testing.assert_allclose(W, W_ref, rtol=1e-11, atol=1e-13)
    np.testing.assert_allclose(psi, psi_ref, rtol=1e-11)
    np.testing.assert_allclose(G, W_ref.T @ (W_ref / psi_ref[:, None]), rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("alpha", [1.0, 0.7])
@pytest.mark.parametrize("K", [1, 4, 9])
@pytest.mark.parametrize("weaken", [False, True])
def test_eigen_keeps_the_strongest_directions_and_the_diagonal(K, alpha, weaken):
    W, psi, X, weights = problem(K, K=K, scale=0.8)
    target = alpha * (W @ W.T + np.diag(psi)) + (X.T * weights) @ X
    kept, psi_ref = reference.eigen_projection(W, psi, X, weights, alpha, weaken)
    G = PROJECTIONS["eigen"](W, psi, gram(W, psi), X, weights, alpha, due=None if weaken else np.array([0.0, -99.0]))
    np.testing.assert_allclose(W @ W.T, kept, rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(psi, psi_ref, rtol=1e-10)
    np.testing.assert_allclose(np.diag(W @ W.T) + psi, np.diag(target), rtol=1e-12)
    np.testing.assert_allclose(G, gram(W, psi), rtol=1e-12)


@pytest.mark.parametrize("name", PROJECTIONS)
@pytest.mark.parametrize("loops", [1, 3])
def test_sparse_rows_and_float32_agree(name, loops):
    W, psi, X, weights = problem(5, d=40, K=3)
    X[np.abs(X) < 0.8] = 0.0
    expected = W.copy(), psi.copy()
    PROJECTIONS[name](*expected, gram(W, psi), X, weights, 1.0, loops)
    again = W.copy(), psi.copy()
    PROJECTIONS[name](*again, gram(W, psi), sparse.csr_matrix(X), weights, 1.0, loops)
    np.testing.assert_allclose(again[0], expected[0], rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(again[1], expected[1], rtol=1e-11)
    single = W.astype(np.float32), psi.astype(np.float32)
    PROJECTIONS[name](*single, gram(*single), X.astype(np.float32), weights, 1.0, loops)
    assert single[0].dtype == single[1].dtype == np.float32
    np.testing.assert_allclose(single[0] @ single[0].T, expected[0] @ expected[0].T, rtol=2e-4, atol=2e-4)
    np.testing.assert_allclose(single[1], expected[1], rtol=2e-4)


def test_tiles_do_not_change_the_result(monkeypatch):
    results = []
    for size in (1 << 19, 1):
        monkeypatch.setattr("gaussfold.engine.lowrank.products.TILE_BYTES", size)
        W, psi, X, weights = problem(8, d=300, p=5, K=2)
        G = project_em(W, psi, gram(W, psi), X, weights, 0.9, 3)
        results.append((W, psi, G))
    for one, other in zip(*results, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-11, atol=1e-13)


def test_negative_weight_takes_information_back():
    W, psi, X, _ = problem(2)
    weights = np.array([-0.5 / float(X[0] @ np.linalg.solve(W @ W.T + np.diag(psi), X[0]))])
    W_ref, psi_ref = reference.algorithm_1(W, psi, X, weights, 1.0, 2)
    PROJECTIONS["eigen"](W, psi, gram(W, psi), X, weights, 1.0, 2)
    np.testing.assert_allclose(psi, psi_ref, rtol=1e-10)
    np.testing.assert_allclose(W, W_ref, rtol=1e-10, atol=1e-12)
    assert (psi > 0).all()


def test_noise_waits_until_as_many_rows_as_factors_have_gone_by_of_single_rows_eight():
    W, psi, X, weights = problem(3, K=1)
    due, before = np.zeros(2), psi.copy()
    G = PROJECTIONS["eigen"](W, psi, gram(W, psi), X, weights, due=due)
    first = np.mean(1.0 - before / psi)
    np.testing.assert_allclose(due, [first, 1.0])
    before = psi.copy()
    G = PROJECTIONS["eigen"](W, psi, G, X[:, ::-1].copy(), weights, due=due)
    second = np.mean(1.0 - before / psi)
    np.testing.assert_allclose(due, [(1.0 - second) * first + second, 2.0])
    for count in range(3, 8):
        G = PROJECTIONS["eigen"](W, psi, G, X**2 / count, weights, due=due)
        assert due[1] == count
    PROJECTIONS["eigen"](W, psi, G, X**2, weights, due=due)
    np.testing.assert_array_equal(due, [0.0, 0.0])
    W, psi, X, weights = problem(3, K=3)
    PROJECTIONS["eigen"](W, psi, gram(W, psi), X, weights, due=due)
    np.testing.assert_array_equal(due, [0.0, 0.0])


def test_nothing_is_lost_while_the_rank_suffices():
    rng = np.random.default_rng(0)
    W, psi = np.zeros((20, 6)), rng.uniform(0.5, 1.5, 20)
    X = rng.standard_normal((6, 20))
    exact = np.diag(psi) + X.T @ X
    G = gram(W, psi)
    for x in X:
        G = PROJECTIONS["eigen"](W, psi, G, x[None], np.ones(1))
    np.testing.assert_allclose(W @ W.T + np.diag(psi), exact, rtol=1e-12, atol=1e-12)


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    d=st.integers(2, 15),
    K=st.integers(1, 5),
    alpha=st.sampled_from([1.0, 0.5, 0.97, 1.4]),
    log_scale=st.floats(-4, 4),
)
def test_no_inner_loop_decreases_the_likelihood(seed, d, K, alpha, log_scale):
    p = min(3, d)
    W, psi, X, weights = problem(seed, d, p, K, 10.0**log_scale)
    target = alpha * (W @ W.T + np.diag(psi)) + (X.T * weights) @ X
    before = reference.log_likelihood(W, psi, target)
    base, base_psi = W.copy(), psi.copy()
    G = project_em(W, psi, gram(W, psi), X, weights, alpha)
    for _ in range(4):
        after = reference.log_likelihood(W, psi, target)
        assert after >= before - 1e-7 * max(1.0, abs(before))
        assert (psi > 0).all()
        before = after
        G = em_loop(W, psi, G, base, base_psi, X, weights, alpha)


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 10**6), name=st.sampled_from(sorted(PROJECTIONS)), flat=st.sampled_from([1.0, 1e-3, 1e-8]))
def test_psi_stays_positive_over_a_stream(seed, name, flat):
    rng = np.random.default_rng(seed)
    W, psi = 1e-4 * rng.standard_normal((8, 2)), np.full(8, flat)
    G = gram(W, psi)
    X = rng.standard_normal((60, 8)) * rng.choice([0.0, 1.0, 30.0], (60, 8))
    for x in X:
        G = PROJECTIONS[name](W, psi, G, x[None], np.ones(1), 1.0, 2)
    assert np.isfinite(W).all()
    assert (psi > 0).all()


@needs_oracles
def test_single_steps_of_the_authors():
    z = np.load(ORACLES / "fa_single_steps.npz")
    for i in range(12):
        cases = (
            (z["rec_x"][i][None], z["rec_alpha"][i], z["rec_beta"][i], z["rec_W_out"][i], z["rec_psi_out"][i]),
            (z["mb_X"][i].T.copy(), 1.0, z["mb_sigma"][i] ** -2.0, z["mb_W_out"][i], z["mb_psi_out"][i]),
        )
        for X, alpha, beta, W_out, psi_out in cases:
            W, psi = z["rec_W"][i].copy(), z["rec_psi"][i].copy()
            project_em(W, psi, gram(W, psi), X, np.full(len(X), beta), float(alpha), int(z["rec_loops"][i]))
            assert np.abs(W - W_out).max() <= 1e-12 * np.abs(W_out).max()
            assert np.abs(psi - psi_out).max() <= 1e-12 * np.abs(psi_out).max()


@needs_oracles
@pytest.mark.parametrize("name", STREAMS)
@pytest.mark.parametrize("loops", [1, 3])
def test_recursive_em_of_the_authors(name, loops):
    z = np.load(ORACLES / f"{name}.npz")
    for kind in ("shift1", "sum"):
        W, psi = z["W0"].copy(), z["psi0"].copy()
        G = gram(W, psi)
        for t, x in enumerate(z["X"], start=1):
            alpha, beta = (t / (t + 1), 1 / (t + 1)) if kind == "shift1" else (1.0, 1.0)
            G = project_em(W, psi, G, x[None], np.array([beta]), alpha, loops)
        W_out, psi_out = z[f"recem{loops}_{kind}_W"], z[f"recem{loops}_{kind}_psi"]
        expected = W_out @ W_out.T + np.diag(psi_out)
        assert np.abs(W @ W.T + np.diag(psi) - expected).max() <= 1e-7 * np.abs(expected).max()
