"""The fused passes for one row against the textbook, strips and precisions included."""

import numpy as np
import pytest

import gaussfold as gf
from gaussfold.engine.lowrank import row as lowrank_row
from gaussfold.engine.lowrank.products import gram
from gaussfold.factors import eigen
from tests.reference import lowrank as reference


def problem(d, p, dtype=float, seed=0):
    rng = np.random.default_rng(seed)
    W, psi = rng.standard_normal((d, p)), rng.uniform(0.2, 2.0, d)
    return tuple(a.astype(dtype) for a in (W, psi, rng.standard_normal(d), rng.standard_normal(d)))


@pytest.mark.parametrize(("d", "p"), [(3, 1), (512, 2), (1100, 3), (40, 16)])
def test_looking_at_a_row(d, p):
    W, psi, mean, x = problem(d, p)
    reach, explained = np.empty(p), np.linspace(-0.5, 0.4, p)
    inner, centre = lowrank_row.look_row(W, psi, mean, x, reach)
    np.testing.assert_allclose(reach, W.T @ (x / psi), rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose([inner, centre], [x @ (x / psi), x @ mean], rtol=1e-12, atol=1e-12)
    rest = x - W @ explained
    np.testing.assert_allclose(lowrank_row.check_row(W, psi, x, explained), rest @ (rest / psi), rtol=1e-12)


@pytest.mark.parametrize(("dtype", "tolerance"), [(np.float64, 1e-10), (np.float32, 1e-4)])
@pytest.mark.parametrize(("d", "p"), [(3, 1), (600, 1), (40, 5), (20, 16)])
@pytest.mark.parametrize("weaken", [False, True])
def test_folding_a_row_is_the_eigen_projection(d, p, weaken, dtype, tolerance):
    W, psi, mean, x = problem(d, p, dtype)
    precision, gain = 1.7, 0.3
    kept, fresh = reference.eigen_projection(
        W.astype(float), psi.astype(float), x[None].astype(float), [precision], 1.0, weaken
    )
    G = gram(W, psi)
    reach = np.asarray(W.T @ (x / psi), float)
    explained = np.linalg.solve(np.eye(p) + G, reach)
    moved = mean + gain * (x - W @ explained) / psi
    due = np.array([0.0, np.inf if weaken else -99.0])
    sight = eigen.Sight(reach, float(x @ (x / psi)), explained)
    G = eigen.project_row(W, psi, G, mean, x, sight, precision, gain, due)
    assert W.dtype == psi.dtype == mean.dtype == dtype
    np.testing.assert_allclose(W @ W.T, kept, rtol=tolerance, atol=10 * tolerance)
    np.testing.assert_allclose(psi, fresh, rtol=tolerance)
    np.testing.assert_allclose(mean, moved, rtol=tolerance, atol=tolerance)
    np.testing.assert_allclose(G, gram(W, psi), rtol=10 * tolerance, atol=10 * tolerance)


@pytest.mark.parametrize("projection", ["eigen", "marginal", "calibrated"])
@pytest.mark.parametrize("p", [1, 3, 16])
def test_many_rows_fused_or_not(p, projection, monkeypatch):
    """The same stream through the fused passes and through the general ones, a well known direction included."""
    rng = np.random.default_rng(2)
    X = rng.standard_normal((60, 30)) * np.sqrt(3.0 / np.arange(1, 31))
    X[30:40] = 100.0 * X[29] + 0.1 * X[30:40]  # x'Px is then a small part of x'Ψ⁻¹x
    y = (rng.random(60) < 0.5).astype(float)
    monkeypatch.setattr("gaussfold.factors.eigen.PATIENCE", 1)  # the general passes correct after p rows
    results = []
    for few in (16, 0):
        monkeypatch.setattr("gaussfold.factors.eigen.FEW", few)
        monkeypatch.setattr("gaussfold.beliefs.lowrank.passes.FEW", few)
        one = gf.LowRankGaussian.isotropic(30, p, 1.3, projection=projection)
        trace = gf.fold(one, gf.likelihoods.Bernoulli(), X, y)
        results.append((one.mean, one.W @ one.W.T, one.psi, trace.mean, trace.variance, trace.log_predictive))
    for fused, general in zip(*results, strict=True):
        np.testing.assert_allclose(fused, general, rtol=1e-6, atol=1e-8)
