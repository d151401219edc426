"""Gaussian processes as scikit-learn estimators: its checks, classes of any name, units, and model files."""

import os

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import ConstantKernel, Matern, WhiteKernel
from sklearn.utils.estimator_checks import parametrize_with_checks

import gaussfold as gf
from gaussfold import GPClassifier, GPRegressor
from gaussfold.gp import Matern32, SquaredExponential

RNG = np.random.default_rng(6)
X = RNG.uniform(-3.0, 3.0, (40, 2))
TARGET = np.sin(X[:, 0]) + 0.3 * X[:, 1] + 0.1 * RNG.normal(size=40)


@pytest.mark.filterwarnings("ignore:learning has not converged after max_iter=5")
@parametrize_with_checks(
    [
        GPClassifier(learn_hyperparameters=False),
        GPClassifier(link="probit", rule="newton", structure="sparse", inducing=10, learn_hyperparameters=False),
        GPRegressor(learning_steps=5),
    ]
)
def test_scikit_learn_s_checks(estimator, check):
    if getattr(check.func, "__name__", "") == "check_array_api_input" and os.environ.get("SCIPY_ARRAY_API") != "1":
        pytest.skip("needs SCIPY_ARRAY_API=1 before SciPy is imported")
    check(estimator)


def test_regression_finds_scikit_learn_s_optimum():
    scaled = (TARGET - TARGET.mean()) / TARGET.std()
    kernel = ConstantKernel(1.0) * Matern(1.0, nu=1.5) + WhiteKernel(0.25)
    theirs = GaussianProcessRegressor(kernel, alpha=1e-12).fit(X, scaled)
    mine = GPRegressor(learning_steps=100).fit(X, TARGET)
    assert mine.log_marginal_likelihood_ == pytest.approx(theirs.log_marginal_likelihood_value_, abs=1e-4)
    mean, std = mine.predict(X[:5], return_std=True)
    their_mean, their_std = theirs.predict(X[:5] + 1e-9, return_std=True)
    np.testing.assert_allclose(mean, TARGET.mean() + TARGET.std() * their_mean, rtol=1e-3, atol=1e-3)
    np.testing.assert_allclose(std, TARGET.std() * their_std, rtol=2e-3)


@pytest.mark.filterwarnings("ignore:learning has not converged after max_iter=5")
def test_units_of_the_target_do_not_matter():
    one = GPRegressor(learning_steps=5).fit(X, TARGET)
    other = GPRegressor(learning_steps=5).fit(X, 1e4 * TARGET - 3e5)
    mean, std = one.predict(X, return_std=True)
    scaled_mean, scaled_std = other.predict(X, return_std=True)
    np.testing.assert_allclose(1e4 * mean - 3e5, scaled_mean, rtol=1e-6)
    np.testing.assert_allclose(1e4 * std, scaled_std, rtol=1e-4)


def test_heavy_tails_ignore_outliers():
    y = TARGET.copy()
    y[::13] += 25.0
    options = {"normalize_y": False, "noise_std": 0.1, "learn_hyperparameters": False}
    normal = GPRegressor(Matern32(1.0, 2.0), **options).fit(X, y)
    robust = GPRegressor(Matern32(1.0, 2.0), df=3.0, rule="ep", damping=0.5, max_iter=300, **options).fit(X, y)
    clean = np.sin(X[:, 0]) + 0.3 * X[:, 1]
    assert np.abs(robust.predict(X) - clean).mean() < 0.25 * np.abs(normal.predict(X) - clean).mean()


def test_three_classes_by_name():
    features, codes = load_iris(return_X_y=True)
    names = np.array(["setosa", "versicolor", "virginica"])[codes]
    train = np.arange(150) % 3 > 0
    model = GPClassifier(Matern32(5.0, 3.0), learn_hyperparameters=False).fit(features[train], names[train])
    p = model.predict_proba(features[~train])
    np.testing.assert_allclose(p.sum(axis=1), 1.0)
    assert (model.predict(features[~train]) == names[~train]).mean() > 0.93
    assert len(model.processes_) == 3


def test_learning_raises_the_evidence():
    y = (TARGET > 0.0).astype(int)
    fixed = GPClassifier(learn_hyperparameters=False).fit(X, y)
    learned = GPClassifier(learning_steps=8).fit(X, y)
    assert learned.log_marginal_likelihood_ > fixed.log_marginal_likelihood_ + 0.5
    assert learned.processes_[0].parameters() != fixed.processes_[0].parameters()


@pytest.mark.filterwarnings("ignore:learning has not converged after max_iter=3")
@pytest.mark.parametrize(
    "model",
    [
        GPClassifier(Matern32(2.0, 1.5), structure="sparse", inducing=7, learn_hyperparameters=False, random_state=3),
        GPRegressor(learning_steps=3),
    ],
    ids=["classifier", "regressor"],
)
def test_saved_and_loaded_it_predicts_the_same_bits(model, tmp_path):
    y = np.where(TARGET > 0.0, "up", "down") if isinstance(model, GPClassifier) else TARGET
    fitted = clone(model).fit(X, y)
    gf.save(fitted, tmp_path / "model")
    loaded = gf.load(tmp_path / "model")
    if isinstance(model, GPClassifier):
        np.testing.assert_array_equal(loaded.predict(X), fitted.predict(X))
        np.testing.assert_array_equal(loaded.predict_proba(X), fitted.predict_proba(X))
    else:
        np.testing.assert_array_equal(loaded.predict(X, return_std=True), fitted.predict(X, return_std=True))
    assert loaded.get_params()["covariance"] == fitted.get_params()["covariance"]


@pytest.mark.filterwarnings("ignore:learning has not converged")  # there is no noise, and no end but the bound
def test_noise_is_not_learned_below_what_double_precision_bears():
    X = np.linspace(0.0, 6.0, 60)[:, None]
    y = 1e4 * np.sin(X[:, 0])
    for options in ({}, {"normalize_y": False}):
        model = GPRegressor(SquaredExponential(1.0, 1.0), learning_steps=200, **options).fit(X, y)
        spread = 1.0 if not options else y.std()
        assert model.process_.likelihood.std >= 0.999e-5 * spread
        assert np.isfinite(model.log_marginal_likelihood_)
    own = GPRegressor(noise_std=1e-7, learning_steps=1).fit(X, y)
    assert own.process_.likelihood.std >= 0.999e-7


def test_dates_are_refused_since_their_unit_would_be_lost():
    days = np.datetime64("2024-03-01") + np.arange(40)
    for when in (days[:, None], days.astype("datetime64[s]")[:, None], pd.DataFrame({"when": pd.DatetimeIndex(days)})):
        with pytest.raises(ValueError, match=r"holds dates or durations .*; give what matters of them as numbers"):
            GPRegressor().fit(when, TARGET)
