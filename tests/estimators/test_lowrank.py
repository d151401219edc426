import numpy as np
import pytest
from scipy import sparse

import gaussfold as gf

ESTIMATORS = {
    "classifier": lambda **kw: gf.StreamingClassifier(covariance="lowrank", **kw),
    "regressor": lambda **kw: gf.StreamingRegressor(covariance="lowrank", noise_std=0.7, **kw),
    "poisson": lambda **kw: gf.StreamingPoissonRegressor(covariance="lowrank", **kw),
}


def data(name, n=60, d=9, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d)) * (rng.random((n, d)) < 0.7)
    f = X @ rng.standard_normal(d) * 0.4
    if name == "classifier":
        return X, (rng.random(n) < 1 / (1 + np.exp(-f))).astype(int)
    return X, rng.poisson(np.exp(f)) if name == "poisson" else f + rng.standard_normal(n)


@pytest.mark.parametrize("name", ESTIMATORS)
def test_full_rank_is_the_full_covariance(name):
    X, y = data(name, n=9)
    low = ESTIMATORS[name](rank=10, prior_std=0.7, scale=False, block_size=1).fit(X, y, refine=0)
    full = (
        ESTIMATORS[name](rank=10, prior_std=0.7, scale=False)
        .set_params(covariance="full", block_size=None)
        .fit(X, y, refine=0)
    )
    np.testing.assert_allclose(low.coef_, full.coef_, rtol=1e-7)
    np.testing.assert_allclose(low.coef_std_, full.coef_std_, rtol=1e-7)
    np.testing.assert_allclose(low.intercept_, full.intercept_, rtol=1e-6)
    np.testing.assert_allclose(low.predict_latent(X)[1], full.predict_latent(X)[1], rtol=1e-7)
    np.testing.assert_allclose(low.progressive_log_loss_, full.progressive_log_loss_, rtol=1e-8)


@pytest.mark.parametrize("name", ESTIMATORS)
@pytest.mark.parametrize("block_size", [None, 1, 7])
def test_chunks_sparse_rows_and_files(name, block_size, tmp_path):
    X, y = data(name)
    make = lambda: ESTIMATORS[name](rank=3, prior_std=0.7, block_size=block_size)  # noqa: E731
    whole = make().fit(X, y, refine=0)
    parts = make()
    for piece in (slice(0, 1), slice(1, 20), slice(20, 43)):
        parts.partial_fit(
            sparse.csr_matrix(X[piece]), y[piece], **({"classes": [0, 1]} if name == "classifier" else {})
        )
    gf.save(parts, tmp_path / "model")
    loaded = gf.load(tmp_path / "model")
    for model in (parts, loaded):
        model.partial_fit(sparse.csr_matrix(X[43:]), y[43:])
        np.testing.assert_allclose(model.coef_, whole.coef_, rtol=1e-8, atol=1e-10)
        np.testing.assert_allclose(model.coef_std_, whole.coef_std_, rtol=1e-8)
    np.testing.assert_array_equal(loaded.coef_, parts.coef_)
    assert isinstance(whole.posterior_, gf.LowRankGaussian)


def test_fewer_weights_than_factors_by_default_is_the_full_covariance():
    X, y = data("regressor", d=4)
    low = gf.StreamingRegressor(covariance="lowrank", noise_std=0.7, prior_std=1.0, scale=False).fit(X, y, refine=0)
    full = gf.StreamingRegressor(noise_std=0.7, prior_std=1.0, scale=False).fit(X, y, refine=0)
    assert low.posterior_.rank == 5
    np.testing.assert_allclose(low.coef_, full.coef_, rtol=1e-7)
    np.testing.assert_allclose(low.coef_std_, full.coef_std_, rtol=1e-7)


@pytest.mark.parametrize(("d", "noise", "condition"), [(60, 0.3, 1.0), (100, 1.0, 100.0), (30, 0.3, 1.0)])
def test_a_learned_noise_level_is_the_full_covariances(d, noise, condition):
    rng = np.random.default_rng(3)
    X = rng.standard_normal((25 * d, d)) * np.geomspace(1.0, condition**-0.5, d)
    y = X @ rng.standard_normal(d) + noise * rng.standard_normal(25 * d)
    options = {"prior_std": 10.0, "noise_std": "learn", "scale": False}
    low = gf.StreamingRegressor(covariance="lowrank", **options).partial_fit(X, y)
    full = gf.StreamingRegressor(**options).partial_fit(X, y)
    np.testing.assert_allclose(low.noise_std_, full.noise_std_, rtol=0.05)


def test_a_learned_noise_level_with_all_factors_is_exactly_the_full_covariances():
    rng = np.random.default_rng(4)
    X = rng.standard_normal((80, 6))
    y = X @ rng.standard_normal(6) + 0.3 * rng.standard_normal(80)
    options = {"prior_std": 10.0, "noise_std": "learn", "scale": False}
    low = gf.StreamingRegressor(covariance="lowrank", **options).partial_fit(X, y, sample_weight=1.0 + X[:, 0] ** 2)
    full = gf.StreamingRegressor(**options).partial_fit(X, y, sample_weight=1.0 + X[:, 0] ** 2)
    np.testing.assert_allclose(low.noise_std_, full.noise_std_, rtol=1e-8)


def test_many_classes_forgetting_and_drift():
    X, _ = data("classifier")
    y = np.array(["a", "b", "c"])[np.argmax(X[:, :3], axis=1)]
    model = gf.StreamingClassifier(covariance="lowrank", rank=3, prior_std=2.0, scale=False).fit(X, y, refine=0)
    assert model.score(X, y) > 0.7
    for moving in ({"forgetting": 0.97}, {"drift_std": 0.1}):
        model = gf.StreamingClassifier(covariance="lowrank", rank=3, **moving).fit(X, y, refine=0)
        assert np.isfinite(model.coef_).all()
        assert (model.coef_std_ <= 1.0 + 1e-9).all() or "drift_std" in moving


@pytest.mark.parametrize(
    ("options", "call", "match"),
    [
        ({"rank": 11}, {}, "rank=11.*1 to 10"),
        ({"rank": 0}, {}, "rank"),
        ({"rank": 2}, {"refine": 2}, "refine=2 needs covariance='full'"),
        ({"rank": 2, "second_look": 5}, {}, "second_look=5 needs covariance='full'"),
        ({"rank": 2, "prior_std": 0.0}, {}, "prior_std"),
    ],
)
def test_what_is_refused(options, call, match):
    X, y = data("classifier")
    with pytest.raises(ValueError, match=match):
        gf.StreamingClassifier(covariance="lowrank", **options).fit(X, y, **call)
