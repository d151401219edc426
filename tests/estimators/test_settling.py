"""`fit` until nothing moves: the width by evidence, or by rows that are left out; separable classes settle too."""

import warnings

import numpy as np
import pytest
from scipy.optimize import minimize_scalar
from sklearn.datasets import load_digits, load_iris

import gaussfold as gf
from gaussfold.batch import variational
from gaussfold.estimators import settling

RNG = np.random.default_rng(31)


def _pair(one, other):
    X, y = load_digits(return_X_y=True)
    kept = (y == one) | (y == other)
    return X[kept], (y[kept] == one).astype(int)


@pytest.mark.parametrize("learn", [lambda: _pair(2, 4), lambda: _pair(3, 8), lambda: _iris(1)])
def test_separable_classes_settle(learn):
    X, y = learn()
    order = np.argsort(y, kind="stable")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        one, other = gf.StreamingClassifier().fit(X, y), gf.StreamingClassifier().fit(X[order], y[order])
    assert one.posterior_.kl(other.posterior_) < 1e-6
    assert np.isfinite(one.prior_std_).all()


def _iris(left_out):
    X, y = load_iris(return_X_y=True)
    return X[y != left_out], y[y != left_out]


def test_rows_that_are_left_out_are_predicted_better():
    """Digits that do not look alike: a prior of width 1 is far too cautious, and the evidence bound has it so."""
    losses = []
    for one, other in ((2, 5), (0, 7), (6, 7)):
        X, y = _pair(one, other)
        test = np.random.default_rng(4).permutation(len(y)) < 120
        found = [gf.StreamingClassifier(prior_std=std).fit(X[~test], y[~test]) for std in ("auto", 1.0)]
        assert found[0].prior_std_[0] > 2.0
        losses.append([-each.predict_log_proba(X[test])[np.arange(120), y[test]].mean() for each in found])
    chosen, cautious = np.mean(losses, axis=0)
    assert chosen < 0.8 * cautious


def test_where_rows_are_many_the_width_has_most_evidence():
    """Against the bound itself, by a batch optimum at each width."""
    X = RNG.standard_normal((150, 4))
    y = (RNG.random(150) < 1 / (1 + np.exp(-(X @ [2.0, -1.0, 0.5, 0.0])))).astype(float)
    model = gf.StreamingClassifier().fit(X, y)
    Z = np.column_stack([(X - X.mean(0)) / X.std(0), np.ones(150)])

    def worth(log_width):
        prior = gf.DenseGaussian.independent(np.zeros(5), np.append(np.full(4, np.exp(log_width)), 10.0))
        found = variational(prior, gf.likelihoods.Bernoulli(), Z, y)
        bound = gf.metrics.elbo(found, prior, gf.likelihoods.Bernoulli(), Z, y)
        return -(bound - 0.5 * (log_width / 1.5) ** 2)

    best = minimize_scalar(worth, bounds=(-2.0, 2.0), method="bounded", options={"xatol": 1e-6}).x
    np.testing.assert_allclose(np.log(model.prior_std_[0]), best, atol=2e-3)


def test_parts_depend_on_the_features_alone():
    rows = RNG.standard_normal((400, 3))
    order = RNG.permutation(400)
    parts = settling.parts_of(rows)
    np.testing.assert_array_equal(settling.parts_of(rows[order]), parts[order])
    np.testing.assert_array_equal(settling.parts_of(np.repeat(rows, 2, axis=0)), np.repeat(parts, 2))
    assert (np.bincount(parts.astype(int), minlength=settling.PARTS) > 50).all()


def test_the_first_summit_uphill():
    scores = dict(zip(range(-4, 5), [9, 1, 2, 3, 2.5, 2, 7, 8, 1], strict=True))
    assert settling.summit(lambda step, than: scores[step] > scores[than], 3) == -1
    assert settling.summit(lambda step, than: step > than, 3) == 3
