"""Rows of features that are known well go by a series, others are solved, and eight priors go side by side."""

import numpy as np
import pytest

import gaussfold as gf
from gaussfold.beliefs.diagonal.mixture import PRIOR_GRID, DiagonalMixture
from gaussfold.folding import recipe_of
from gaussfold.likelihoods import Bernoulli
from gaussfold.observations import Observations
from gaussfold.rows import sparse_rows
from gaussfold.trace import Pass, RowError
from tests.beliefs.sparse_streams import dicts, draw
from tests.reference import diagonal as paper

APPROXIMATE = Bernoulli("logit", "probit")
DIM = 23


def variances_of(kind, rng):
    if kind == "known":
        return rng.uniform(1e-7, 3e-4, DIM)
    if kind == "middling":  # too much for the short series, not for the long one
        return rng.uniform(3e-4, 2e-3, DIM)
    return np.where(rng.random(DIM) < 0.5, rng.uniform(0.1, 2.0, DIM), rng.uniform(1e-7, 3e-4, DIM))


@pytest.mark.parametrize("kind", ["known", "middling", "mixed"])
@pytest.mark.parametrize("weight", [1.0, 2.5, 0.01])
def test_algorithm_1_where_features_are_known(kind, weight):
    X, y, rng = draw(120, DIM, seed=5, active=13)
    mean, variance = rng.normal(0, 1.3, DIM), variances_of(kind, rng)
    belief = gf.DiagonalGaussian(mean, variance)
    y[::7] = 0.3
    gf.fold(
        belief, APPROXIMATE, X[y != 0.3], y[y != 0.3], rule="newton", sample_weight=np.full((y != 0.3).sum(), weight)
    )
    means, variances = mean.tolist(), variance.tolist()
    for row, label in zip(dicts(X[y != 0.3]), y[y != 0.3], strict=True):
        paper.marginal_logit(means, variances, row, 1 if label > 0.5 else -1, weight)
    np.testing.assert_allclose(belief.mean, means, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(belief.var, variances, rtol=1e-12)
    # what the row did, not only where it led: the changes themselves agree
    np.testing.assert_allclose(belief.mean - mean, np.array(means) - mean, rtol=1e-9, atol=1e-15)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("forgetting", [1.0, 0.97])
def test_eight_priors_side_by_side_are_eight_learners(dtype, forgetting):
    X, y, rng = draw(300, DIM, seed=6, active=13)
    w = rng.choice([0.3, 1.0, 2.5], size=len(y))
    together = DiagonalMixture.isotropic(DIM, PRIOR_GRID, mean=0.1, dtype=dtype)
    apart = [gf.DiagonalGaussian.isotropic(DIM, std, 0.1, dtype=dtype) for std in PRIOR_GRID]
    scores = []
    for belief in (together, *apart):
        dynamics = gf.dynamics.Forgetting(forgetting, belief.copy()) if forgetting < 1 else None
        result = gf.fold(belief, Bernoulli(), X, y, rule="newton", sample_weight=w, dynamics=dynamics)
        scores.append(result.log_predictive)
    tolerance = 1e-12 if dtype == "float64" else 1e-5
    for belief, component in zip(apart, together.components, strict=True):
        np.testing.assert_allclose(component.mean, belief.mean, rtol=tolerance, atol=tolerance)
        np.testing.assert_allclose(component.var, belief.var, rtol=tolerance)
    log_weights = w @ np.array(scores[1:]).T
    log_weights -= np.logaddexp.reduce(log_weights)
    np.testing.assert_allclose(together.log_weights, log_weights, atol=1e-8 if dtype == "float64" else 1e-2)


def test_a_wide_belief_is_stored_by_its_touched_cells_and_goes_on_bit_for_bit(tmp_path):
    X, y, _ = draw(80, 5000, seed=7, active=9)
    whole = gf.DiagonalGaussian.isotropic(5000, std=0.7)
    gf.fold(whole, Bernoulli(), X, y, rule="newton")
    part = gf.DiagonalGaussian.isotropic(5000, std=0.7)
    gf.fold(part, Bernoulli(), X[:40], y[:40], rule="newton")
    assert set(part.touched().tolist()) == set(X[:40].indices.tolist())
    assert part.state()["cells"].shape[0] == part.touched().size < 400
    gf.save(part, tmp_path / "part")
    again = gf.load(tmp_path / "part")
    gf.fold(again, Bernoulli(), X[40:], y[40:], rule="newton")
    np.testing.assert_array_equal(again.mean, whole.mean)
    np.testing.assert_array_equal(again.var, whole.var)


@pytest.mark.parametrize("make", [gf.DiagonalGaussian.isotropic, lambda dim, std: DiagonalMixture.isotropic(dim)])
def test_rows_before_one_that_fails_may_stay_learned(make):
    X, y, _ = draw(30, DIM, seed=8)
    bad = X.copy()
    row = int(np.flatnonzero(np.diff(bad.indptr) > 1)[5])
    bad.data[bad.indptr[row]] = 1e200
    program = recipe_of(Bernoulli(), "newton", "posterior").program
    whole = Observations(sparse_rows(bad, DIM), y, np.ones(len(y)))
    belief, wanted = make(DIM, 0.7), make(DIM, 0.7)
    with pytest.raises(RowError) as caught:
        belief.absorb_stream(whole, program, Pass(whole=False))
    assert caught.value.row == row
    trace = wanted.absorb_stream(Observations(sparse_rows(X[:row], DIM), y[:row], np.ones(row)), program)
    np.testing.assert_array_equal(caught.value.trace.log_predictive, trace.log_predictive)
    for name, array in wanted.state().items():
        np.testing.assert_array_equal(belief.state()[name], array)
    with pytest.raises(RowError):
        make(DIM, 0.7).absorb_stream(whole, program)
