"""What a newcomer meets: raw units, sorted rows, no options."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_diabetes, load_digits, load_iris, load_wine
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from sklearn.preprocessing import StandardScaler

import gaussfold as gf
from gaussfold.estimators.scaling import Reference, Spread

RNG = np.random.default_rng(8)
X = RNG.standard_normal((120, 3))
UNITS, OFFSET = np.array([1e6, 1e-5, 3.0]), np.array([2e9, 0.4, -7.0])
F = X @ [1.2, -0.7, 0.0] + 0.4
LABELS = {
    gf.StreamingClassifier: (RNG.random(120) < 1 / (1 + np.exp(-F))).astype(int),
    gf.StreamingRegressor: F + 0.3 * RNG.standard_normal(120),
    gf.StreamingPoissonRegressor: RNG.poisson(np.exp(F)),
}


@pytest.mark.parametrize("kind", LABELS)
@pytest.mark.parametrize("learn", ["fit", "partial_fit"])
def test_units_do_not_matter(kind, learn):
    y, raw = LABELS[kind], X * UNITS + OFFSET
    plain, odd = getattr(kind(), learn)(X, y), getattr(kind(), learn)(raw, y)
    for got, want in zip(odd.predict_latent(raw[:9]), plain.predict_latent(X[:9]), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(np.ravel(odd.coef_) * UNITS, np.ravel(plain.coef_), rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(np.ravel(odd.coef_std_) * UNITS, np.ravel(plain.coef_std_), rtol=1e-4)
    np.testing.assert_allclose(odd.posterior_.mean[:-1], np.ravel(odd.coef_))


@pytest.mark.parametrize("kind", LABELS)
def test_the_order_of_rows_does_not_matter_to_fit(kind):
    y = LABELS[kind]
    order = np.argsort(y, kind="stable")
    one, other = kind(random_state=3).fit(X, y), kind().fit(X[order], y[order])
    assert one.posterior_.kl(other.posterior_) < 1e-6


@pytest.mark.parametrize(("load", "least"), [(load_wine, 0.97), (load_iris, 0.93)])
def test_sorted_classes(load, least):
    X, y = load(return_X_y=True)
    assert gf.StreamingClassifier().fit(X, y).score(X, y) >= least


def test_a_wide_level_of_the_labels():
    y = 1e7 + 1e3 * LABELS[gf.StreamingRegressor]
    model = gf.StreamingRegressor().partial_fit(X, y)
    np.testing.assert_allclose(model.noise_std_, 300.0, rtol=0.15)
    np.testing.assert_allclose(model.coef_ / 1e3, [1.2, -0.7, 0.0], atol=0.1)


def test_labels_in_other_units():
    y = LABELS[gf.StreamingRegressor]
    one, small = gf.StreamingRegressor().fit(X, y), gf.StreamingRegressor().fit(X, 1e-6 * y)
    np.testing.assert_allclose(
        small.predict(X, return_std=True), 1e-6 * np.array(one.predict(X, return_std=True)), rtol=1e-6
    )


def test_the_width_of_the_prior_is_found():
    weak = RNG.standard_normal((400, 20))
    y = (RNG.random(400) < 0.5).astype(int)
    assert gf.StreamingClassifier().fit(weak, y).prior_std_[0] < 0.2
    assert gf.StreamingClassifier().partial_fit(weak, y).prior_std_[0] < 0.3
    with pytest.raises(AttributeError, match=r"prior_std=0\.7"):
        _ = gf.StreamingClassifier(prior_std=0.7, scale=False).fit(weak, y).prior_std_


def test_a_column_that_comes_to_life_and_an_outlier():
    late = np.column_stack([X, np.where(np.arange(120) < 70, 0.1, 0.1 + X[:, 0] * 1e5)])
    late[40, 1] = 1e9
    y = LABELS[gf.StreamingClassifier]
    whole = gf.StreamingClassifier().partial_fit(late, y)
    rows = gf.StreamingClassifier()
    for k in range(120):
        rows.partial_fit(late[k : k + 1], y[k : k + 1], classes=[0, 1])
    np.testing.assert_allclose(rows.coef_, whole.coef_, rtol=1e-5)
    assert np.isfinite(whole.predict_proba(late)).all()


def test_intervals_of_raw_data():
    X, y = load_diabetes(return_X_y=True)
    mean, std = gf.StreamingRegressor().fit(X[:300], y[:300]).predict(X[300:], return_std=True)
    assert 0.85 < np.mean(np.abs(y[300:] - mean) < 1.645 * std) < 0.95


def test_forgetting_and_drift_keep_their_scales():
    y = LABELS[gf.StreamingClassifier]
    for options in ({"forgetting": 0.97}, {"drift_std": 0.05}, {"drift_std": "auto"}, {"forgetting": "auto"}):
        raw = X * UNITS + OFFSET
        want = gf.StreamingClassifier(**options).partial_fit(X, y).predict_proba(X)
        np.testing.assert_allclose(
            gf.StreamingClassifier(**options).partial_fit(raw, y).predict_proba(raw), want, rtol=1e-4
        )


def test_refusals():
    y = LABELS[gf.StreamingClassifier]
    for options, message in (
        ({"prior_std": None}, "prior_std=None: a number"),
        ({"block_size": 2.5}, "block_size=2.5: a whole number"),
        ({"scale": "yes"}, "scale='yes': True or False"),
    ):
        model = gf.StreamingClassifier(**options)
        with pytest.raises(ValueError, match=message):
            model.fit(X, y)
        assert not hasattr(model, "n_features_in_")
    with pytest.raises(ValueError, match="noise_std='auto': allowed are 'learn'"):
        gf.StreamingRegressor(noise_std="auto").fit(X, F)
    with pytest.raises(ValueError, match="covariance='diagonal'"):
        gf.StreamingClassifier().fit(sp.csr_array((3, 100_000)), [0, 1, 0])
    with pytest.raises(ValueError, match="refine='often'"):
        gf.StreamingClassifier().fit(X, y, refine="often")
    with pytest.warns(UserWarning, match="60 different numbers"):
        gf.StreamingClassifier(covariance="diagonal").fit(RNG.standard_normal((120, 2)), np.arange(120) % 60)


def test_a_rare_entry_is_as_long_as_a_common_one():
    """Of zeros and ones the unit is the same at any rate below a half, however rows are cut or weighted."""
    rng = np.random.default_rng(3)
    rates, weight = np.array([0.01, 0.1, 0.4, 0.9]), rng.uniform(0.5, 2.5, 4000)
    rows = 7.0 * (rng.random((4000, 4)) < rates)
    whole = Spread.nothing(4).add(rows, weight)
    parts = Spread.nothing(4).add(rows[:1], weight[:1]).add(rows[1:900], weight[1:900]).add(rows[900:], weight[900:])
    share = weight @ (rows != 0.0) / weight.sum()
    expected = 7.0 * np.sqrt(share * (1.0 - share) / np.minimum(1.0, 2.0 * share))
    for spread in (whole, parts, Spread.from_state(whole.state(), 4)):
        np.testing.assert_allclose(Reference.of(spread, centred=True).scale, expected, rtol=1e-12)
    np.testing.assert_allclose(expected[:2], 7.0 * np.sqrt((1.0 - share[:2]) / 2.0), rtol=1e-12)
    without = {name: array for name, array in whole.state().items() if name != "active"}  # a file of before
    np.testing.assert_allclose(
        Reference.of(Spread.from_state(without, 4), centred=True).scale,
        7.0 * np.sqrt(share * (1.0 - share)),
        rtol=1e-12,
    )


def test_digits_are_predicted_as_well_as_by_a_peer():
    """Pixels that are white in most rows: without a unit of their own the loss was above the peer's."""
    X, y = load_digits(return_X_y=True)
    order = np.random.default_rng(77).permutation(len(y))
    (X, new), (y, truth) = (np.split(part[order[:900]], [600]) for part in (X, y))
    scaler = StandardScaler().fit(X)
    peer = LogisticRegression(max_iter=2000).fit(scaler.transform(X), y).predict_proba(scaler.transform(new))
    ours = gf.StreamingClassifier().fit(X, y).predict_proba(new)
    assert log_loss(truth, ours) < 1.02 * log_loss(truth, peer)
