"""The first rows of a stream are looked at again whenever scales, and the width of the prior, are."""

import numpy as np
import pytest

import gaussfold as gf
from gaussfold.estimators import early, learning
from tests.estimators.streams import same_state

RNG = np.random.default_rng(12)
X = RNG.standard_normal((300, 6)) * [1.0, 30.0, 0.2, 1.0, 1.0, 5.0] + [0.0, 4.0, 0.0, 9.0, 0.0, 0.0]
F = ((X - X.mean(0)) / X.std(0)) @ [2.0, -1.5, 1.0, 0.0, 0.0, 0.3]
LABELS = {
    gf.StreamingClassifier: (RNG.random(300) < 1 / (1 + np.exp(-F))).astype(float),
    gf.StreamingPoissonRegressor: RNG.poisson(np.exp(0.4 * F)).astype(float),
}
both = pytest.mark.parametrize("kind", LABELS)
widths = pytest.mark.parametrize("width", [{}, {"prior_std": 0.7}], ids=["learned", "given"])


def _arrays(model):
    mean, cov = model.posterior_.mean, model.posterior_.cov
    return np.concatenate([mean, cov.ravel()])


@widths
@both
def test_any_chunking(kind, width):
    y = LABELS[kind]
    whole, pieces, rows = kind(**width).partial_fit(X, y), kind(**width), kind(**width)
    for start, stop in ((0, 3), (3, 60), (60, 61), (61, 130), (130, 300)):
        pieces.partial_fit(X[start:stop], y[start:stop])
    for i in range(300):
        rows.partial_fit(X[i : i + 1], y[i : i + 1], **({"classes": [0, 1]} if hasattr(whole, "classes_") else {}))
    for other in (pieces, rows):
        np.testing.assert_allclose(_arrays(other), _arrays(whole), rtol=1e-7, atol=1e-10)


@widths
@both
@pytest.mark.parametrize("cut", [0, 5, 100, 127, 128, 200])
def test_a_stream_goes_on_bit_for_bit(kind, cut, width, tmp_path):
    y = LABELS[kind]
    model = kind(**width)
    if cut:
        model.partial_fit(X[:cut], y[:cut])
    else:  # rows without labels
        model.partial_fit(X[:4], np.full(4, np.nan), **({"classes": [0, 1]} if kind is gf.StreamingClassifier else {}))
    gf.save(model, tmp_path / "model")
    again = gf.load(tmp_path / "model")
    model.partial_fit(X[cut:], y[cut:])
    again.partial_fit(X[cut:], y[cut:])
    assert same_state(model, again)


@both
def test_rows_are_kept_for_a_while_only(kind):
    y = LABELS[kind]
    model = kind().partial_fit(X[:100], y[:100])
    assert model.state()["early.X"].shape == (100, 6)
    np.testing.assert_array_equal(model.state()["early.X"], X[:100])
    twice = np.arange(100, 1030) % 300
    assert model.partial_fit(X[twice[:-10]], y[twice[:-10]]).state()["early.X"].shape == (1020, 6)
    assert not any(name.startswith("early") for name in model.partial_fit(X[twice[-10:]], y[twice[-10:]]).state())
    assert not any(name.startswith("early") for name in kind().fit(X, y).state())
    given = kind(prior_std=1.0).partial_fit(X[:9], y[:9])
    assert given.state()["early.X"].shape == (9, 6)
    paper = kind(prior_std=1.0, scale=False).partial_fit(X[:9], y[:9])  # the papers' algorithm, row by row
    assert not any(name.startswith("early") for name in paper.state())
    assert early.ROOM == 1024


def test_rows_told_apart_are_left_out_in_parts():
    """Classes without a mistake: the evidence is too cautious, rows left out say how wide the prior may be."""
    rng = np.random.default_rng(7)
    rows = rng.standard_normal((260, 24))
    labels = (rows @ rng.standard_normal(24) > 0.0).astype(int)
    test = np.arange(260) >= 150
    model = gf.StreamingClassifier().partial_fit(rows[~test], labels[~test], classes=[0, 1])
    narrow = gf.StreamingClassifier(prior_std=1.0).partial_fit(rows[~test], labels[~test], classes=[0, 1])
    assert model.prior_std_[0] > 2.0
    losses = [-each.predict_log_proba(rows[test])[np.arange(110), labels[test]].mean() for each in (model, narrow)]
    assert losses[0] < losses[1]
    again = gf.StreamingClassifier()
    for start in range(0, 150, 7):
        stop = min(start + 7, 150)
        again.partial_fit(rows[start:stop], labels[start:stop], classes=[0, 1])
    np.testing.assert_allclose(_arrays(again), _arrays(model), rtol=1e-7, atol=1e-10)


@widths
@both
def test_missing_labels_and_weight_zero_teach_nothing(kind, width):
    y = LABELS[kind].copy()
    weight = RNG.choice([0.0, 1.0, 2.5], 300)
    y[::7] = np.nan
    kept = ~np.isnan(y) & (weight > 0)
    one = kind(**width).partial_fit(X, y, sample_weight=weight)
    other = kind(**width).partial_fit(X[kept], y[kept], sample_weight=weight[kept])
    np.testing.assert_allclose(_arrays(one), _arrays(other), rtol=1e-7, atol=1e-10)


@widths
@both
def test_a_call_that_fails_changes_nothing(kind, width):
    y = LABELS[kind]
    model, twin = (kind(**width).partial_fit(X[:60], y[:60]) for _ in range(2))
    bad = X[60:120].copy()
    bad[-1] = 1e200
    with pytest.raises(ValueError, match=r"row|large"):
        model.partial_fit(bad, y[60:120])
    assert same_state(model, twin)
    assert same_state(model.partial_fit(X[60:], y[60:]), twin.partial_fit(X[60:], y[60:]))


@widths
@both
def test_one_pass_comes_closer_to_the_optimum(kind, width, monkeypatch):
    """In the median of some streams: where the width is learned, a stream may end at another one than `fit` does."""
    y = LABELS[kind]
    shares = []
    for seed in range(6):
        wide = 1e-4 * np.random.default_rng(seed).standard_normal((300, 14))  # more than the first rows can tell apart
        data = np.column_stack([X, wide])
        best = kind(**width).fit(data, y).posterior_
        with_them = kind(**width).partial_fit(data, y).posterior_
        with monkeypatch.context() as patch:
            patch.setattr(learning.Learner, "_look_at_early_rows", lambda *_: None)
            without = kind(**width).partial_fit(data, y).posterior_
        shares.append(with_them.kl(best) / without.kl(best))
    assert np.median(shares) < 0.7


def test_few_rows_that_say_little_have_a_narrow_prior_at_any_chunking():
    """Labels that hardly follow the features, 70 features, 200 rows: next to nothing is claimed of fresh rows."""
    rng = np.random.default_rng(61)
    X = rng.normal(size=(1200, 70)) * np.geomspace(0.01, 100.0, 70)
    y = (rng.random(1200) < 1.0 / (1.0 + np.exp(-0.4 * X[:, 0] / 0.01))).astype(int)
    whole = gf.StreamingClassifier().partial_fit(X[:200], y[:200], classes=[0, 1])
    parts = gf.StreamingClassifier()
    for start, stop in ((0, 7), (7, 126), (126, 128), (128, 131), (131, 200)):
        parts.partial_fit(X[start:stop], y[start:stop], classes=[0, 1])
    np.testing.assert_allclose(parts.coef_, whole.coef_, rtol=1e-9, atol=1e-12)
    chance = whole.predict_proba(X[200:])[np.arange(1000), y[200:]]
    assert -np.log(chance).mean() < 0.72  # by evidence alone: 0.82
