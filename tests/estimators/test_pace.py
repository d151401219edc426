"""``drift_std="auto"`` and ``forgetting="auto"``: the estimators of each pace side by side, weighed by fixed share."""

import numpy as np
import pytest

import gaussfold as gf
from gaussfold.beliefs.bank.belief import DRIFTS, MEMORIES
from gaussfold.beliefs.bank.weights import SHARES
from gaussfold.estimators import learning
from tests.reference.bank import fixed_share

N, D = 60, 3
PRIOR = np.r_[0.5, np.full(6, 0.5 / 6)]
AUTO = {"drift_std": DRIFTS, "forgetting": MEMORIES}
MODELS = {
    "classifier": (gf.StreamingClassifier, {}),
    "lowrank": (gf.StreamingClassifier, {"covariance": "lowrank", "rank": 2, "block_size": 1}),
    "regressor": (gf.StreamingRegressor, {"noise_std": 0.8}),
    "noise learned": (gf.StreamingRegressor, {"noise_std": "learn", "noise_guess": 0.5, "noise_guess_worth": 3.0}),
    "poisson": (gf.StreamingPoissonRegressor, {}),
}


def _rows(name, seed=3):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((N, D))
    f = np.where(np.arange(N) < N // 2, 1.3, -1.3) * X[:, 0]
    if name in ("classifier", "lowrank"):
        y = (rng.random(N) < 1 / (1 + np.exp(-f))).astype(float)
    else:
        y = rng.poisson(np.exp(f)).astype(float) if name == "poisson" else f + 0.7 * rng.standard_normal(N)
    weight = rng.choice([1.0, 2.5, 0.3], N)
    y[4::13], weight[6::9] = np.nan, 0.0
    return X, y, weight


def _learn(model, X, y, weight):
    options = {"classes": [0.0, 1.0]} if isinstance(model, gf.StreamingClassifier) else {}
    return model.partial_fit(X, y, sample_weight=weight, **options)


def _scores(model, X, y, weight):
    """Log predictive density of each row, 0 where nothing is learned: what the progressive loss grows by."""
    totals = [0.0]
    for i in range(N):
        _learn(model, X[i : i + 1], y[i : i + 1], weight[i : i + 1])
        loss, count = model.progressive_log_loss_, np.where(np.isnan(y[: i + 1]), 0.0, weight[: i + 1]).sum()
        totals.append(-loss * count if count else 0.0)
    counts = np.where(np.isnan(y) | (weight == 0.0), 1.0, weight)
    return np.diff(totals) / counts


@pytest.mark.parametrize("parameter", AUTO)
@pytest.mark.parametrize("name", MODELS)
def test_auto_is_every_pace_side_by_side(name, parameter, monkeypatch):
    # what stands still by itself looks at its first rows again, which members of a bank do not
    monkeypatch.setattr(learning.Learner, "_look_at_early_rows", lambda *_: None)
    kind, options = MODELS[name]
    X, y, weight = _rows(name)
    singles = [kind(prior_std=0.7, random_state=1, **options, **{parameter: rate}) for rate in AUTO[parameter]]
    scores = np.stack([_scores(single, X, y, weight) for single in singles], axis=1)
    before, after = fixed_share(scores, np.where(np.isnan(y), 0.0, weight), PRIOR, SHARES)
    model = _learn(kind(prior_std=0.7, random_state=1, **options, **{parameter: "auto"}), X, y, weight)
    counts = np.where(np.isnan(y), 0.0, weight)
    wanted = -counts @ np.log((before * np.exp(scores)).sum(axis=1)) / counts.sum()
    np.testing.assert_allclose(model.progressive_log_loss_, wanted, rtol=1e-8)
    np.testing.assert_allclose(model.posterior_.weights, after, rtol=1e-6)
    latents = [single.predict_latent(X) for single in singles]
    mean = sum(w * m for w, (m, _) in zip(after, latents, strict=True))
    second = sum(w * (s**2 + m**2) for w, (m, s) in zip(after, latents, strict=True))
    np.testing.assert_allclose(model.predict_latent(X)[0], mean, rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(model.predict_latent(X)[1] ** 2, second - mean**2, rtol=1e-5)
    coefs = np.stack([single.coef_.ravel() for single in singles])
    spread = np.stack([single.coef_std_.ravel() ** 2 for single in singles]) + coefs**2
    np.testing.assert_allclose(model.coef_.ravel(), after @ coefs, rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(model.coef_std_.ravel() ** 2, after @ spread - (after @ coefs) ** 2, rtol=1e-5)
    if isinstance(model, gf.StreamingClassifier):
        wanted = sum(w * single.predict_proba(X) for w, single in zip(after, singles, strict=True))
        np.testing.assert_allclose(model.predict_proba(X), wanted, rtol=1e-6)
    else:
        labels = [single.predict(X, return_std=True) for single in singles]
        mean = sum(w * m for w, (m, _) in zip(after, labels, strict=True))
        second = sum(w * (s**2 + m**2) for w, (m, s) in zip(after, labels, strict=True))
        np.testing.assert_allclose(model.predict(X, return_std=True)[0], mean, rtol=1e-6, atol=1e-9)
        np.testing.assert_allclose(model.predict(X, return_std=True)[1] ** 2, second - mean**2, rtol=1e-5)


@pytest.mark.parametrize("parameter", AUTO)
@pytest.mark.parametrize("name", ["classifier", "noise learned"])
def test_promises(name, parameter, tmp_path):
    kind, options = MODELS[name]
    X, y, weight = _rows(name)
    whole = _learn(kind(random_state=1, **options, **{parameter: "auto"}), X, y, weight)
    parts = kind(random_state=1, **options, **{parameter: "auto"})
    for cut in (slice(0, 1), slice(1, 25), slice(25, N)):
        _learn(parts, X[cut], y[cut], weight[cut])
        gf.save(parts, tmp_path / "model")
        loaded = gf.load(tmp_path / "model")
        for key, array in parts.state().items():
            np.testing.assert_array_equal(array, loaded.state()[key], err_msg=key)
        parts = loaded
    np.testing.assert_allclose(parts.progressive_log_loss_, whole.progressive_log_loss_, rtol=1e-9)
    np.testing.assert_allclose(parts.coef_, whole.coef_, rtol=1e-7)
    np.testing.assert_allclose(parts.coef_std_, whole.coef_std_, rtol=1e-7)
    before = whole.state()
    _learn(whole, X, np.full(N, np.nan), weight)
    _learn(whole, X, y, np.zeros(N))
    X[7, 1] = 1e200
    with pytest.raises(ValueError, match="X"):
        _learn(whole, X, y, np.ones(N))
    for key, array in whole.state().items():
        np.testing.assert_array_equal(array, before[key], err_msg=key)


def test_draws_have_the_moments_that_are_reported():
    X, y, weight = _rows("noise learned")
    for name in ("regressor", "noise learned"):
        kind, options = MODELS[name]
        model = _learn(kind(prior_std=0.7, drift_std="auto", **options), X, y, weight)
        draws = model.sample_posterior(40_000, 5)
        np.testing.assert_allclose(draws[:, :D].mean(axis=0), model.coef_, atol=0.05)
        np.testing.assert_allclose(draws[:, :D].std(axis=0), model.coef_std_, rtol=0.05)


def test_time_by_the_clock():
    X, y, weight = _rows("noise learned")
    kind, options = MODELS["noise learned"]
    singles = [_learn(kind(tick="clock", forgetting=rate, **options), X, y, weight) for rate in MEMORIES]
    singles = [single.forget(2.5) if single.forgetting < 1.0 else single for single in singles]
    model = _learn(kind(tick="clock", forgetting="auto", **options), X, y, weight).forget(2.5)
    w = model.posterior_.weights
    np.testing.assert_allclose(model.coef_, sum(a * s.coef_ for a, s in zip(w, singles, strict=True)), rtol=1e-7)
    wanted = sum(a * s.noise_std_**2 for a, s in zip(w, singles, strict=True))
    np.testing.assert_allclose(model.noise_std_**2, wanted, rtol=1e-7)


def test_several_classes_are_scored_by_the_members_of_each():
    rng = np.random.default_rng(2)
    X = rng.standard_normal((40, 2))
    y = rng.choice(["a", "b", "c"], 40)
    model, total = (
        gf.StreamingClassifier(drift_std="auto", prior_std=1.0, scale=False).partial_fit(
            X[:1], y[:1], classes=["a", "b", "c"]
        ),
        0.0,
    )
    first = model.progressive_log_loss_
    for i in range(1, 40):
        before = model.progressive_log_loss_ * i
        model.partial_fit(X[i : i + 1], y[i : i + 1])
        total += model.progressive_log_loss_ * (i + 1) - before
    whole = gf.StreamingClassifier(drift_std="auto", prior_std=1.0, scale=False).partial_fit(
        X, y, classes=["a", "b", "c"]
    )
    np.testing.assert_allclose(whole.progressive_log_loss_ * 40, first + total, rtol=1e-9)
    assert whole.predict_proba(X).shape == (40, 3)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"drift_std": "auto", "forgetting": 0.9}, "forgetting=0.9 and drift_std='auto' are alternatives"),
        ({"drift_std": "auto", "forgetting": "auto"}, "forgetting='auto' and drift_std='auto' are alternatives"),
        (
            {"drift_std": "fast"},
            "drift_std='fast': a finite number >= 0 is needed; 0 lets",
        ),
        ({"forgetting": "slow"}, "forgetting='slow'"),
        ({"drift_std": "auto", "second_look": 5}, "second_look=5 needs"),
    ],
)
def test_refusals(options, message):
    X, y, _ = _rows("classifier")
    model = gf.StreamingClassifier(**options)
    with pytest.raises(ValueError, match=message):
        model.partial_fit(X, y, classes=[0.0, 1.0])
    with pytest.raises(ValueError, match="refine=2 needs"):
        gf.StreamingClassifier(drift_std="auto", prior_std=1.0, scale=False).fit(X, y, refine=2)
