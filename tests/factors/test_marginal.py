"""The projection that keeps marginal variances, against d×d arrays and against what it promises."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gaussfold.engine.lowrank.products import gram
from gaussfold.factors import eigen, marginal
from gaussfold.factors.marginal import project_marginal
from tests.factors.test_projections import problem
from tests.reference import lowrank as reference


def covariance(W, psi):
    return np.linalg.inv(W @ W.T + np.diag(psi))


@pytest.mark.parametrize("alpha", [1.0, 0.7])
@pytest.mark.parametrize("K", [1, 4, 9])
@pytest.mark.parametrize("p", [1, 3, 8])
def test_one_loop_is_the_textbook(K, p, alpha):
    W, psi, X, weights = problem(K, K=K, p=p, scale=0.8)
    kept, fresh = reference.marginal_projection(W, psi, X, weights, alpha)
    G = project_marginal(W, psi, gram(W, psi), X, weights, alpha)
    np.testing.assert_allclose(W @ W.T, kept, rtol=1e-9, atol=1e-11)
    np.testing.assert_allclose(psi, fresh, rtol=1e-9)
    np.testing.assert_allclose(G, gram(W, psi), rtol=1e-12)


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_many_loops_keep_every_variance(sign):
    """The minimum of KL(target ‖ projection) over Ψ has the target's variances; a negative site included."""
    W, psi, X, weights = problem(3, K=2)
    weights[0] *= sign * 0.05
    target = np.linalg.inv(W @ W.T + np.diag(psi) + (X.T * weights) @ X)
    away = []
    for loops in (1, 3, 60):
        one, diagonal = W.copy(), psi.copy()
        project_marginal(one, diagonal, gram(one, diagonal), X, weights, 1.0, loops)
        away.append(np.abs(np.diag(covariance(one, diagonal)) / np.diag(target) - 1.0).max())
    assert away[0] > away[1] > away[2]
    assert away[2] < 1e-6


def test_with_as_many_factors_as_parameters_nothing_is_lost_a_negative_site_included():
    W, psi, X, weights = problem(2, d=7, p=7, K=3)
    weights[1] = -0.6 / float(X[1] @ np.linalg.solve(W @ W.T + np.diag(psi), X[1]))
    target = W @ W.T + np.diag(psi) + (X.T * weights) @ X
    project_marginal(W, psi, gram(W, psi), X, weights)
    np.testing.assert_allclose(W @ W.T + np.diag(psi), target, rtol=1e-10, atol=1e-12)
    assert (psi > 0.0).all()


def test_a_target_that_is_no_precision_is_refused():
    for p in (3, 12):
        W, psi, X, _ = problem(4, p=p)
        beyond = np.array([-1.5 / float(X[0] @ np.linalg.solve(W @ W.T + np.diag(psi), X[0]))])
        with pytest.raises(ValueError, match="not positive definite"):
            project_marginal(W, psi, gram(W, psi), X, beyond)


@pytest.mark.parametrize(("dtype", "tolerance"), [(np.float64, 1e-10), (np.float32, 1e-4)])
@pytest.mark.parametrize(("d", "p"), [(3, 1), (600, 1), (40, 5), (20, 16), (16, 16)])
def test_folding_a_row_is_the_same_projection(d, p, dtype, tolerance):
    rng = np.random.default_rng(d)
    W, psi, mean, x = (
        a.astype(dtype)
        for a in (rng.standard_normal((d, p)), rng.uniform(0.2, 2.0, d), rng.standard_normal(d), rng.standard_normal(d))
    )
    kept, fresh = reference.marginal_projection(W.astype(float), psi.astype(float), x[None].astype(float), [1.7])
    reach = np.asarray(W.T @ (x / psi), float)
    explained = np.linalg.solve(np.eye(p) + gram(W, psi), reach)
    moved = mean + 0.3 * (x - W @ explained) / psi
    sight = eigen.Sight(reach, float(x @ (x / psi)), explained)
    G = marginal.project_row(W, psi, gram(W, psi), mean, x, sight, 1.7, 0.3)
    np.testing.assert_allclose(W @ W.T, kept, rtol=tolerance, atol=10 * tolerance)
    np.testing.assert_allclose(psi, fresh, rtol=tolerance)
    np.testing.assert_allclose(mean, moved, rtol=tolerance, atol=tolerance)
    np.testing.assert_allclose(G, gram(W, psi), rtol=10 * tolerance, atol=10 * tolerance)


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 10**6), K=st.integers(1, 5), p=st.integers(1, 8), strength=st.floats(-8, 12))
def test_whatever_comes_the_diagonal_stays_a_diagonal(seed, K, p, strength):
    """Rows of any strength, near-noiseless ones included: Ψ only grows, and stays finite."""
    W, psi, X, weights = problem(seed, d=8, p=p, K=K)
    before = psi.copy()
    G = gram(W, psi)
    for _ in range(3):
        G = project_marginal(W, psi, G, X, weights * 10.0**strength)
    assert np.isfinite(W).all()
    assert (psi >= before * (1.0 - 1e-9)).all()
    assert np.isfinite(psi).all()
