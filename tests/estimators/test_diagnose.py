"""diagnose(X, y): is the Gaussian posterior any good?"""

import numpy as np
import pytest
from sklearn.base import clone

from gaussfold import StreamingClassifier, StreamingRegressor
from tests.estimators.streams import MODELS, labels, rows, weights

X = rows()


def test_an_exact_posterior_has_nothing_to_hide():
    y, weight = labels("gaussian", X), weights(60)
    for name in ("gaussian", "learn"):
        model = clone(MODELS[name]).fit(X, y, sample_weight=weight, refine=0)
        assert model.diagnose(X, y, sample_weight=weight, rng=1).khat < 0.1


def test_a_good_approximation_is_told_from_a_bad_one():
    y = labels("binary", X)
    good = clone(MODELS["binary"]).fit(X, y, refine=20)
    assert good.diagnose(X, y, rng=1).reliable
    assert good.diagnose(X, y, rng=1).effective_sample_size > 1800
    # a belief that has been made far too sure of itself
    bad = clone(MODELS["binary"]).fit(X, y, refine=0)
    bad._beliefs = [type(good.posterior_)(good.posterior_.mean + 1.0, good.posterior_.cov / 50)]
    assert not bad.diagnose(X, y, rng=1).reliable


def test_one_diagnosis_per_class():
    y = labels("classes", X)
    model = clone(MODELS["classes"]).set_params(multi_class="ovr").fit(X, y, refine=0)
    found = model.diagnose(X, y, rng=1)
    assert len(found) == 3
    assert all(np.isfinite(one.khat) for one in found)
    with pytest.raises(ValueError, match="use multi_class='ovr'"):
        clone(MODELS["classes"]).fit(X, y, refine=0).diagnose(X, y)


def test_missing_labels_and_weight_zero_are_left_out():
    y, weight = labels("binary", X).astype(float), weights(60)
    y[:9] = np.nan
    model = clone(MODELS["binary"]).fit(X, y, sample_weight=weight, refine=0)
    kept = ~np.isnan(y) & (weight > 0)
    np.testing.assert_allclose(
        model.diagnose(X, y, sample_weight=weight, rng=1).khat,
        model.diagnose(X[kept], y[kept], sample_weight=weight[kept], rng=1).khat,
    )


def test_only_all_the_data_will_do():
    y = labels("binary", X)
    model = StreamingClassifier(prior_std=1.0, scale=False).fit(X, y, refine=0)
    with pytest.raises(ValueError, match="X, y hold 59 rows to learn from, the model has learned 60"):
        model.diagnose(X[1:], y[1:])
    drifting = StreamingRegressor(forgetting=0.97, prior_std=1.0, noise_std=1.0, scale=False).fit(
        X, labels("gaussian", X), refine=0
    )
    with pytest.raises(ValueError, match=r"it needs forgetting=1\.0 and drift_std=0\.0"):
        drifting.diagnose(X, labels("gaussian", X))


def test_a_noise_that_was_learned_is_passed_on():
    rng = np.random.default_rng(3)
    X = rng.standard_normal((400, 2))
    y = X @ [3.0, -2.0] + 0.05 * rng.standard_normal(400)
    found = StreamingRegressor().fit(X, y).diagnose(X, y, rng=1)
    assert abs(found.misfit.dispersion) < 3.0  # NaN before: nobody had said what the noise is
    assert "does not fit" not in found.verdict
    assert "more spread" in StreamingRegressor(noise_std=0.01).fit(X, y).diagnose(X, y, rng=1).verdict
