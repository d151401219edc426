"""Student-t noise of unknown scale: ``StreamingRegressor(df=4)`` and nothing else."""

import numpy as np
import pytest

import gaussfold as gf
from tests.estimators.streams import same_state

RNG = np.random.default_rng(17)
X = RNG.standard_normal((240, 3)) * [1.0, 20.0, 0.1] + [0.0, 5.0, 0.0]
TRUTH = np.array([2.0, -0.1, 10.0])
CLEAN = X @ TRUTH + 3.0 + 0.5 * RNG.standard_normal(240)
Y = CLEAN + np.where(RNG.random(240) < 0.1, 40.0 * RNG.standard_normal(240), 0.0)


@pytest.mark.parametrize("learn", ["fit", "partial_fit"])
def test_outliers_lose_their_pull(learn):
    plain, robust = (getattr(gf.StreamingRegressor(df=df), learn)(X, Y) for df in (None, 3.0))
    off = [np.abs((model.coef_ - TRUTH) * X.std(0)).max() for model in (plain, robust)]
    assert off[1] < 0.2 < off[0]
    assert plain.noise_std_ > 5.0
    assert 0.3 < robust.noise_std_ < 1.0
    z = (robust.coef_ - TRUTH) / robust.coef_std_
    assert np.abs(z).max() < 3.5


def test_it_agrees_with_a_scale_that_is_given():
    y = X @ TRUTH + 0.7 * np.random.default_rng(2).standard_t(4.0, 240)
    learned = gf.StreamingRegressor(df=4.0, prior_std=100.0).fit(X, y)
    np.testing.assert_allclose(learned.noise_std_, 0.7, rtol=0.15)
    given = gf.StreamingRegressor(df=4.0, noise_std=float(learned.noise_std_), prior_std=70.0).fit(X, y)
    assert (np.abs(learned.coef_ - given.coef_) < 0.4 * given.coef_std_).all()
    np.testing.assert_allclose(learned.coef_std_, given.coef_std_, rtol=0.2)
    _, std = learned.predict(X, return_std=True)
    np.testing.assert_allclose(std.mean(), learned.noise_std_ * np.sqrt(2.0), rtol=0.05)


def test_many_degrees_of_freedom_are_normal_noise():
    for learn in ("fit", "partial_fit"):
        normal, nearly = (getattr(gf.StreamingRegressor(df=df), learn)(X, CLEAN) for df in (None, 1e9))
        np.testing.assert_allclose(nearly.coef_, normal.coef_, rtol=1e-6)
        np.testing.assert_allclose(nearly.coef_std_, normal.coef_std_, rtol=1e-6)
        np.testing.assert_allclose(nearly.noise_std_, normal.noise_std_, rtol=1e-6)


def test_order_chunks_files_and_rows_that_say_nothing(tmp_path):
    order = np.argsort(Y)
    one, other = gf.StreamingRegressor(df=4.0).fit(X, Y), gf.StreamingRegressor(df=4.0).fit(X[order], Y[order])
    np.testing.assert_allclose(one.coef_, other.coef_, rtol=1e-6)
    whole, pieces = gf.StreamingRegressor(df=4.0).partial_fit(X, Y), gf.StreamingRegressor(df=4.0)
    for start, stop in ((0, 1), (1, 50), (50, 240)):
        pieces.partial_fit(X[start:stop], Y[start:stop])
    np.testing.assert_allclose(pieces.coef_, whole.coef_, rtol=1e-9)
    np.testing.assert_allclose(pieces.progressive_log_loss_, whole.progressive_log_loss_, rtol=1e-9)
    half = gf.StreamingRegressor(df=4.0).partial_fit(X[:100], Y[:100])
    gf.save(half, tmp_path / "half")
    assert same_state(gf.load(tmp_path / "half").partial_fit(X[100:], Y[100:]), half.partial_fit(X[100:], Y[100:]))
    weight, y = RNG.choice([0.0, 1.0, 2.0], 240), Y.copy()
    y[::9] = np.nan
    kept = ~np.isnan(y) & (weight > 0)
    for learn in ("fit", "partial_fit"):
        some = getattr(gf.StreamingRegressor(df=4.0), learn)(X, y, sample_weight=weight)
        alone = getattr(gf.StreamingRegressor(df=4.0), learn)(X[kept], y[kept], sample_weight=weight[kept])
        np.testing.assert_allclose(some.coef_, alone.coef_, rtol=1e-6)


def test_what_is_said_of_it():
    model = gf.StreamingRegressor(df=3.0).fit(X, Y)
    assert model.diagnose(X, Y, rng=0).reliable
    assert np.isinf(gf.StreamingRegressor(df=1.5).fit(X, Y).predict(X[:2], return_std=True)[1]).all()
    drifting = gf.StreamingRegressor(df=3.0, forgetting=0.98).partial_fit(X, Y)
    assert np.isfinite(drifting.coef_).all()
    for options, words in (
        ({"covariance": "diagonal"}, "needs covariance='full'"),
        ({"drift_std": "auto"}, "needs covariance='full', numbers for"),
        ({"second_look": 5}, "second_look=0"),
    ):
        with pytest.raises(ValueError, match=words):
            gf.StreamingRegressor(df=3.0, **options).fit(X, Y)
    with pytest.raises(ValueError, match="leave refine='auto'"):
        gf.StreamingRegressor(df=3.0).fit(X, Y, refine=2)
    with pytest.raises(ValueError, match="df=-1"):
        gf.StreamingRegressor(df=-1).fit(X, Y)
