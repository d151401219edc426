"""The promises: a batch is the row loop, weight 0 and missing labels are no-ops, all or nothing."""

import numpy as np
import pytest
from sklearn.base import clone

from tests.estimators.streams import MODELS, close_state, labels, rows, same_state, weights

X = rows()
BAD_ROW = 17


def first_call(model, y):
    return {"classes": np.unique(y)} if hasattr(model, "predict_proba") else {}


def learn(name, chunks, y, weight=None, **parameters):
    model = clone(MODELS[name]).set_params(**parameters)
    for chunk in chunks:
        w = None if weight is None else weight[chunk]
        model.partial_fit(X[chunk], y[chunk], sample_weight=w, **first_call(model, y))
    return model


@pytest.mark.parametrize("name", MODELS)
def test_any_chunking_gives_the_same_posterior(name):
    y, weight = labels(name, X), weights(60)
    whole = clone(MODELS[name]).fit(X, y, sample_weight=weight, refine=0)
    rng = np.random.default_rng(3)
    for cuts in ([], [1], range(1, 60), np.sort(rng.choice(59, 7, replace=False)) + 1):
        parts = learn(name, np.split(np.arange(60), cuts), y, weight)
        close_state(parts, whole, rtol=1e-9)
        assert parts.n_observations_ == np.count_nonzero(weight)
        np.testing.assert_allclose(parts.progressive_log_loss_, whole.progressive_log_loss_, rtol=1e-9)


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("block_size", [1, 7])
def test_the_block_size_does_not_matter(name, block_size):
    y = labels(name, X)
    close_state(learn(name, [slice(None)], y, block_size=block_size), learn(name, [slice(None)], y), rtol=1e-9)


@pytest.mark.parametrize("name", MODELS)
def test_weight_zero_is_a_no_op(name):
    y, weight = labels(name, X), weights(60)
    kept = weight > 0
    everything = clone(MODELS[name]).fit(X, y, sample_weight=weight, refine=0)
    only = clone(MODELS[name]).fit(X[kept], y[kept], sample_weight=weight[kept], refine=0)
    close_state(everything, only, rtol=1e-9)
    before = everything.state()
    everything.partial_fit(X, y, sample_weight=np.zeros(60))
    after = everything.state()
    assert all(np.array_equal(before[key], after[key]) for key in before)


@pytest.mark.parametrize("name", MODELS)
def test_a_missing_label_means_predict_do_not_learn(name):
    y = labels(name, X)
    missing = np.random.default_rng(4).random(60) < 0.3
    holes = y.astype(object)
    holes[missing] = None
    with_holes = clone(MODELS[name]).fit(X, holes, refine=0)
    close_state(with_holes, clone(MODELS[name]).fit(X[~missing], y[~missing], refine=0), rtol=1e-9)
    assert with_holes.n_observations_ == np.count_nonzero(~missing)
    before = with_holes.state()
    with_holes.partial_fit(X, np.full(60, np.nan))
    after = with_holes.state()
    assert all(np.array_equal(before[key], after[key]) for key in before)


@pytest.mark.parametrize("name", ["gaussian", "learn"])
def test_a_weight_is_a_number_of_rows(name):
    y = labels(name, X)
    twice = clone(MODELS[name]).fit(np.repeat(X, 2, axis=0), np.repeat(y, 2), refine=0)
    weighted = clone(MODELS[name]).fit(X, y, sample_weight=np.full(60, 2.0), refine=0)
    np.testing.assert_allclose(weighted.posterior_.mean, twice.posterior_.mean, rtol=1e-10)
    np.testing.assert_allclose(weighted.posterior_.cov, twice.posterior_.cov, rtol=1e-10, atol=1e-14)
    np.testing.assert_allclose(weighted.noise_std_, twice.noise_std_, rtol=1e-10)


BAD_CALLS = {
    "NaN in X": lambda X, y, w: (
        np.where(np.arange(len(X))[:, None] == BAD_ROW, np.nan, X),
        y,
        w,
        f"row {BAD_ROW}",
    ),
    "infinity in X": lambda X, y, w: (
        np.where(np.arange(len(X))[:, None] == BAD_ROW, np.inf, X),
        y,
        w,
        "infinity",
    ),
    "too many features": lambda X, y, w: (np.hstack([X, X]), y, w, "8 features"),
    "too few labels": lambda X, y, w: (X, y[1:], w, "y has 59 labels"),
    "no labels": lambda X, y, w: (X, None, w, "y is None"),
    "infinite label": lambda X, y, w: (
        X,
        np.where(np.arange(len(X)) == BAD_ROW, np.inf, 0.0),
        w,
        f"{BAD_ROW}",
    ),
    "negative weight": lambda X, y, w: (
        X,
        y,
        np.where(np.arange(len(X)) == BAD_ROW, -1.0, w),
        rf"sample_weight: row {BAD_ROW} is",
    ),
    "NaN weight": lambda X, y, w: (
        X,
        y,
        np.where(np.arange(len(X)) == BAD_ROW, np.nan, w),
        rf"sample_weight: row {BAD_ROW} is",
    ),
    "no rows": lambda X, y, w: (X[:0], y[:0], w[:0], "0 sample"),
    "one dimension": lambda X, y, w: (X[0], y, w, "Reshape your data"),
    "text": lambda X, y, w: (np.full(X.shape, "a"), y, w, "could not convert"),
}


@pytest.mark.parametrize("bad", BAD_CALLS)
@pytest.mark.parametrize("name", MODELS)
def test_a_chunk_that_fails_changes_nothing(name, bad):
    y = labels(name, X)
    model = clone(MODELS[name]).fit(X[:30], y[:30], refine=0)
    attributes, state, generator = dict(vars(model)), model.state(), model._rng.bit_generator.state
    rows_, labels_, weights_, message = BAD_CALLS[bad](X, y, np.ones(60))
    for call in (model.partial_fit, model.fit):
        if bad == "too many features" and call == model.fit:
            continue  # a new model may have other features
        with pytest.raises(ValueError, match=message):
            call(rows_, labels_, sample_weight=weights_)
        assert vars(model).keys() == attributes.keys()
        after = model.state()
        assert all(np.array_equal(state[key], after[key]) for key in state)
        assert model._rng.bit_generator.state == generator
    # and it goes on as if nothing had been
    twin = clone(MODELS[name]).fit(X[:30], y[:30], refine=0)
    assert same_state(model.partial_fit(X[30:], y[30:]), twin.partial_fit(X[30:], y[30:]))


def test_a_class_that_fails_late_leaves_the_first_as_it_was(monkeypatch):
    """One-vs-rest folds several beliefs: if the third cannot be folded the first two must not have moved."""
    y = labels("classes", X)
    model = clone(MODELS["classes"]).set_params(multi_class="ovr").fit(X[:30], y[:30], refine=0)
    state = model.state()
    from gaussfold.estimators import learning

    real, calls = learning.fold, []

    def failing(*args, **kwargs):
        calls.append(1)
        if len(calls) == 3:
            raise ValueError("out of luck")
        return real(*args, **kwargs)

    monkeypatch.setattr(learning, "fold", failing)
    with pytest.raises(ValueError, match="out of luck"):
        model.partial_fit(X[30:], y[30:])
    after = model.state()
    assert all(np.array_equal(state[key], after[key]) for key in state)


@pytest.mark.parametrize(
    ("name", "options", "rtol"),
    [
        *((name, {}, 1e-10) for name in MODELS if name != "classes"),
        ("classes", {"multi_class": "ovr"}, 1e-10),
        ("classes", {}, 1e-10),
        ("classes", {"class_covariance": "block"}, 1e-10),
    ],
)
def test_progressive_loss_is_predict_then_learn(name, options, rtol):
    """The mean of -log p(y) that a user would get by asking before each row."""
    y, weight = labels(name, X), weights(60)
    model, total = clone(MODELS[name]).set_params(forgetting=1.0, drift_std=0.0, **options), 0.0
    model.partial_fit(X[:1], [None], **first_call(model, y))
    for x, label, w in zip(X, y, weight, strict=True):
        if w > 0:
            total -= w * log_density(name, model, x[None], label)
        model.partial_fit(x[None], [label], sample_weight=[w])
    np.testing.assert_allclose(model.progressive_log_loss_, total / weight.sum(), rtol=rtol)


def log_density(name, model, x, y):
    from scipy import stats

    if hasattr(model, "predict_proba"):
        return model.predict_log_proba(x)[0, model.classes_.tolist().index(y)]
    if name.startswith("learn"):
        a, b = model._noise.shape, model._noise.scale
        m, v = model.posterior_.marginal(np.append(x, 1.0)[None])
        return stats.t.logpdf(y, 2 * a, m[0], np.sqrt(b / a * (1 + v[0])))
    return float(model._likelihood.log_predictive(float(y), model.posterior_.marginal(np.append(x, 1.0)[None]))[0])


@pytest.mark.parametrize("parameters", [{"forgetting": 0.97}, {"drift_std": 0.3}])
@pytest.mark.parametrize("name", ["binary", "classes", "gaussian", "learn", "poisson"])
def test_the_clock_ticks_as_observations_do(name, parameters):
    y = labels(name, X)
    by_row = clone(MODELS[name]).set_params(**parameters)
    by_clock = clone(MODELS[name]).set_params(tick="clock", **parameters)
    by_row.partial_fit(X[:1], [None], **first_call(by_row, y))
    by_clock.partial_fit(X[:1], [None], **first_call(by_clock, y))
    for x, label in zip(X, y, strict=True):
        by_row.partial_fit(x[None], [label])
        by_clock.forget().partial_fit(x[None], [label])
    close_state(by_clock, by_row, rtol=1e-9)
    before = by_clock.state()
    by_clock.forget(2).forget(3)
    for _ in range(5):
        by_row.forget()
    close_state(by_clock, by_row, rtol=1e-9)
    assert any(not np.allclose(by_clock.state()[key], before[key]) for key in before)


@pytest.mark.parametrize("name", ["binary", "learn"])
def test_a_clock_that_stands_still_forgets_nothing(name):
    y = labels(name, X)
    close_state(
        clone(MODELS[name]).set_params(tick="clock", forgetting=0.97).fit(X, y, refine=0),
        clone(MODELS[name]).fit(X, y, refine=0),
        rtol=1e-12,
    )


@pytest.mark.parametrize("name", MODELS)
def test_forgetting_ends_in_the_prior(name):
    y = labels(name, X)
    model = clone(MODELS[name]).set_params(forgetting=0.97, drift_std=0.0).fit(X, y, refine=0)
    prior = clone(model).partial_fit(X[:1], [None], **first_call(model, y))
    model.forget(5000)
    for belief, start in zip(model._beliefs, prior._beliefs, strict=True):
        np.testing.assert_allclose(belief.mean, start.mean, atol=1e-10)
        np.testing.assert_allclose(belief.cov, start.cov, atol=1e-10)
        assert (belief.variance() <= start.variance() * (1 + 1e-12)).all()
    if name.startswith("learn"):
        np.testing.assert_allclose(model.state()["noise"], prior.state()["noise"], rtol=1e-10)


@pytest.mark.parametrize("ticks", [-1, np.nan, "two"])
def test_bad_ticks(ticks):
    model = clone(MODELS["forgetting"]).fit(X, labels("binary", X), refine=0)
    with pytest.raises(ValueError, match=r"ticks=.*: a finite number >= 0 is needed"):
        model.forget(ticks)


def test_nothing_to_forget_is_said():
    model = clone(MODELS["binary"]).fit(X, labels("binary", X), refine=0)
    with pytest.raises(ValueError, match="needs forgetting < 1 or drift_std > 0"):
        model.forget()
