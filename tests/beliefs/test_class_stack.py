"""Classes by lanes of several priors: the stack against its twin, the promises, and what it is for."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given, settings
from hypothesis import strategies as st

import gaussfold as gf
from gaussfold.dynamics import Forgetting
from gaussfold.trace import RowError
from tests.reference.class_stacking import stacked

SOFTMAX = gf.likelihoods.Softmax(3)


def rows(n=60, d=7, seed=0, K=3):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) * (rng.random((n, d)) < 0.5)
    y = np.argmax(X @ rng.normal(size=(d, K)) + rng.gumbel(size=(n, K)), axis=1).astype(float)
    return X, y, rng.uniform(0.2, 2.5, n)


def equal(one, other):
    return all(np.array_equal(a, b) for a, b in zip(one.state().values(), other.state().values(), strict=True))


def test_it_is_its_twin():
    X, y, w = rows()
    y[[3, 17]] = np.nan
    w[[5, 20]] = 0.0
    belief = gf.DiagonalClassStack.isotropic(3, 7, stds=(0.7, 3.1))
    lanes = [gf.DiagonalBlocks.isotropic(3, 7, std) for std in (0.7, 3.1)]
    result = gf.fold(belief, SOFTMAX, X, y, sample_weight=w)
    met = [gf.fold(lane, SOFTMAX, X, y, sample_weight=w) for lane in lanes]
    means, variances = (np.stack([getattr(m, name) for m in met], axis=1) for name in ("mean", "variance"))
    out, mu, _ = stacked(means, variances, y, w)
    for i, (mean, variance, score) in enumerate(out):
        np.testing.assert_allclose(result.mean[i], mean, rtol=1e-7, atol=1e-7)
        np.testing.assert_allclose(result.variance[i], variance, rtol=1e-7)
        np.testing.assert_allclose(result.log_predictive[i], score, rtol=1e-7, atol=1e-9)
    np.testing.assert_allclose(belief.shares, mu, rtol=1e-6, atol=1e-7)
    for lane, alone in zip(belief.lanes, lanes, strict=True):
        assert equal(lane, alone)


@settings(max_examples=15, deadline=None)
@given(st.lists(st.integers(0, 60), max_size=4), st.sampled_from(["float64", "float32"]), st.booleans())
def test_any_chunking_and_a_stop_in_between(cuts, dtype, forgets):
    X, y, w = rows(seed=1)
    X = scipy.sparse.csr_array(X)
    prior = gf.DiagonalClassStack.isotropic(3, 7, dtype=dtype)
    dynamics = Forgetting(0.97, prior) if forgets else None
    whole, pieces = prior.copy(), prior.copy()
    scores = gf.fold(whole, SOFTMAX, X, y, sample_weight=w, dynamics=dynamics).log_predictive
    found = []
    for a, b in zip([0, *sorted(cuts)], [*sorted(cuts), 60], strict=True):
        found.append(gf.fold(pieces, SOFTMAX, X[a:b], y[a:b], sample_weight=w[a:b], dynamics=dynamics).log_predictive)
        pieces = gf.DiagonalClassStack.from_state(pieces.state())
    assert equal(whole, pieces)
    np.testing.assert_array_equal(scores, np.concatenate(found))


def test_a_row_that_fails_leaves_everything_as_it_was():
    X, y, _ = rows(seed=2)
    X[40] = 1e200
    belief = gf.DiagonalClassStack.isotropic(3, 7)
    gf.fold(belief, SOFTMAX, X[:20], y[:20])
    before = belief.copy()
    with pytest.raises(RowError, match="row 20"):
        gf.fold(belief, SOFTMAX, X[20:], y[20:])
    assert equal(belief, before)
    with pytest.raises(RowError) as caught:
        gf.fold(belief, SOFTMAX, X[20:], y[20:], whole=False)
    gf.fold(before, SOFTMAX, X[20:40], y[20:40])
    assert equal(belief, before)
    assert len(caught.value.trace.log_predictive) == 20


def test_weight_zero_and_no_label_teach_nothing():
    X, y, _ = rows(seed=3)
    belief = gf.DiagonalClassStack.isotropic(3, 7)
    gf.fold(belief, SOFTMAX, X, y)
    before = belief.copy()
    told = gf.fold(belief, SOFTMAX, X, np.full(60, np.nan))
    gf.fold(belief, SOFTMAX, X, y, sample_weight=np.zeros(60))
    assert equal(belief, before)
    assert np.isnan(told.log_predictive).all()
    np.testing.assert_allclose(told.mean, belief.class_marginals(X, 3).mean)


def test_predictions_are_what_was_scored():
    X, y, _ = rows(seed=4)
    belief = gf.DiagonalClassStack.isotropic(3, 7)
    gf.fold(belief, SOFTMAX, X[:30], y[:30])
    f = belief.class_predictions(X[30:31])[0]
    score = gf.fold(belief, SOFTMAX, X[30:31], y[30:31]).log_predictive[0]
    assert score == pytest.approx(f[int(y[30])] - np.log(np.exp(f).sum()), rel=1e-12)


def test_draws_spread_as_the_marginals_say():
    X, y, _ = rows(seed=5)
    belief = gf.DiagonalClassStack.isotropic(3, 7)
    gf.fold(belief, SOFTMAX, X, y)
    draws = belief.sample_latent(X[:5], 20_000, np.random.default_rng(0))
    told = belief.class_marginals(X[:5], 3)
    np.testing.assert_allclose(draws.mean(axis=0), told.mean, atol=5 * np.sqrt(told.variance / 20_000).max())
    weights = belief.weights()
    np.testing.assert_allclose(draws.var(axis=0), X[:5] ** 2 @ weights.variance.T, rtol=0.06)
    np.testing.assert_allclose(
        belief.sample(20_000, np.random.default_rng(1)).var(axis=0), belief.variance(), rtol=0.06
    )


@pytest.mark.parametrize("scale", [0.1, 1.0, 5.0])
def test_it_predicts_no_worse_than_the_best_of_its_lanes(scale):
    """Within a few nats in all, whatever the true weights' size."""
    rng = np.random.default_rng(6)
    n, d, K = 3000, 40, 4
    X = scipy.sparse.random_array((n, d), density=0.15, rng=rng, data_sampler=lambda size: np.ones(size)).tocsr()
    f = X @ (scale * rng.normal(size=(d, K)))
    y = np.argmax(f + rng.gumbel(size=(n, K)), axis=1).astype(float)
    likelihood = gf.likelihoods.Softmax(K)
    stack = gf.DiagonalClassStack.isotropic(K, d)
    lanes = [gf.fold(lane.copy(), likelihood, X, y).log_predictive.sum() for lane in stack.lanes]
    assert gf.fold(stack, likelihood, X, y).log_predictive.sum() > max(lanes) - 4.0


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: gf.DiagonalClassStack([gf.DiagonalBlocks.isotropic(3, 2)]), "lanes"),
        (
            lambda: gf.DiagonalClassStack([gf.DiagonalBlocks.isotropic(3, 2), gf.DiagonalBlocks.isotropic(3, 4)]),
            "features",
        ),
        (lambda: gf.DiagonalClassStack.isotropic(1, 2), "classes"),
        (lambda: gf.fold(gf.DiagonalClassStack.isotropic(3, 2), "bernoulli", np.eye(6), [0, 1] * 3), "Softmax"),
        (lambda: gf.fold(gf.DiagonalClassStack.isotropic(3, 2), SOFTMAX, np.eye(2), [0, 3]), "class numbers"),
        (lambda: gf.DiagonalClassStack.isotropic(3, 2).relax(0.9, gf.DiagonalGaussian.isotropic(6)), "its own kind"),
    ],
)
def test_what_makes_no_sense_is_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make()


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("class_lanes", np.array([2])),
        ("stack.mean", np.zeros(2)),
        ("stack.precision", -np.eye(3)),
        ("stack.precision", np.full((3, 3), np.nan)),
    ],
)
def test_a_file_that_lies_is_refused(name, value):
    state = gf.DiagonalClassStack.isotropic(3, 4).state()
    with pytest.raises(ValueError, match=r"stack|lane"):
        gf.DiagonalClassStack.from_state(state | {name: value})


def test_more_classes_than_a_softmax_takes():
    X, y, _ = rows(30, 4, seed=8)
    with pytest.raises(ValueError, match=r"classes: 1001 of them.*covariance='diagonal'"):
        gf.StreamingClassifier().partial_fit(X, y, classes=np.arange(1001))
    with pytest.raises(ValueError, match="1001 classes"):
        gf.StreamingClassifier(covariance="diagonal", multi_class="softmax").partial_fit(X, y, classes=np.arange(1001))
    apart = gf.StreamingClassifier(covariance="diagonal").partial_fit(X[:2], y[:2], classes=np.arange(1001))
    assert len(apart.posterior_) == 1001


def test_many_classes_of_sparse_rows_take_it_by_default(tmp_path):
    X, y, _ = rows(400, 30, seed=7)
    clf = gf.StreamingClassifier(covariance="diagonal")
    clf.partial_fit(scipy.sparse.csr_array(X[:200]), y[:200], classes=[0, 1, 2])
    assert isinstance(clf.posterior_, gf.DiagonalClassStack)
    gf.save(clf, tmp_path / "model.gf")
    again = gf.load(tmp_path / "model.gf")
    for model in (clf, again):
        model.partial_fit(X[200:], y[200:])
    np.testing.assert_array_equal(clf.predict_proba(X), again.predict_proba(X))
    np.testing.assert_allclose(clf.predict_proba(X).sum(axis=1), 1.0, rtol=1e-12)
    assert clf.score(X, y) > 0.7
    assert clf.coef_.shape == clf.coef_std_.shape == (3, 30)
    assert clf.sample_proba(X[:4], 5, rng=0).shape == (5, 4, 3)
    assert clf.predict_latent(X[:4])[1].shape == (4, 3)
