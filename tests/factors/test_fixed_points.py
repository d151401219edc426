"""lrvga App. B: where EM comes to rest is a stationary point of the likelihood, and it climbs on the way there."""

import numpy as np
import pytest

from gaussfold.engine.lowrank.products import gram
from gaussfold.factors.recursive_em import project_em

ALPHA = 0.7


def problem(seed, d=9, p=2, rows=60):
    """Factors, a diagonal, rows to add with odd weights, and the target written out."""
    rng = np.random.default_rng(seed)
    W, psi = 1.5 * rng.standard_normal((d, p)), rng.uniform(0.5, 2.0, d)
    X, weight = rng.standard_normal((rows, d)), rng.uniform(0.01, 0.04, rows)
    target = ALPHA * (W @ W.T + np.diag(psi)) + (X.T * weight) @ X
    return W, psi, X, weight, target


def projected(W, psi, X, weight, loops):
    W, psi = W.copy(), psi.copy()
    project_em(W, psi, gram(W, psi), X, weight, ALPHA, loops)
    return W, psi


def log_likelihood(W, psi, target):
    """lrvga (73) for one row."""
    model = W @ W.T + np.diag(psi)
    return -0.5 * np.trace(np.linalg.solve(model, target)) - 0.5 * np.linalg.slogdet(model)[1]


@pytest.mark.parametrize("seed", [1, 3, 4])  # 0 and 2 creep: at rest after some 10⁵ loops
def test_em_rests_where_the_likelihood_does(seed):
    """Prop. 1: (79)-(80) and (81)-(83) hold at once, the gradients (74)-(75) are zero."""
    W, psi, X, weight, target = problem(seed)
    W, psi = projected(W, psi, X, weight, 2000)
    model = W @ W.T + np.diag(psi)
    M = np.eye(2) + W.T @ (W / psi[:, None])
    scaled = W / psi[:, None]
    np.testing.assert_allclose(target @ np.linalg.solve(model, W), W, atol=1e-8)
    np.testing.assert_allclose(np.diag(target - W @ W.T), psi, atol=1e-8)
    inner = np.eye(2) + np.linalg.solve(M, scaled.T @ target @ scaled)
    np.testing.assert_allclose(target @ scaled @ np.linalg.inv(inner), W, atol=1e-8)
    np.testing.assert_allclose(np.diag(target - W @ np.linalg.solve(M, scaled.T @ target)), psi, atol=1e-8)
    P = np.linalg.inv(model)
    left = P - P @ target @ P
    np.testing.assert_allclose(left @ W, 0.0, atol=1e-8)
    np.testing.assert_allclose(np.diag(left), 0.0, atol=1e-8)
    # B.1: in the metric of Ψ the factors are eigenvectors of the target, of eigenvalues one above their own strength
    root = np.sqrt(psi)
    values = np.linalg.eigvalsh(target / np.outer(root, root))
    strength = np.linalg.eigvalsh(scaled.T @ W)
    np.testing.assert_allclose(np.abs(values[:, None] - 1.0 - strength).min(axis=0), 0.0, atol=1e-7)


@pytest.mark.parametrize("seed", [3, 4])
def test_no_loop_lowers_the_likelihood(seed):
    W, psi, X, weight, target = problem(seed)
    values = [log_likelihood(*projected(W, psi, X, weight, loops), target) for loops in range(1, 25)]
    assert np.diff(values).min() > 0.0


def test_with_little_noise_a_loop_is_a_step_of_em_for_principal_components():
    """Corollary 1: σ → 0 gives (97), S W (W'SW)⁻¹ W'W, of Roweis (1998)."""
    rng = np.random.default_rng(5)
    W, X = rng.standard_normal((6, 2)), rng.standard_normal((8, 6))
    psi, weight = np.full(6, 1e-9), np.full(8, 0.3)
    target = W @ W.T + np.diag(psi) + 0.3 * X.T @ X
    expected = target @ W @ np.linalg.inv(W.T @ target @ W) @ W.T @ W
    found = W.copy()
    project_em(found, psi, gram(W, psi), X, weight)
    np.testing.assert_allclose(found, expected, atol=1e-6)
