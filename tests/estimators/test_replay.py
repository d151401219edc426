"""The width of a softmax's prior in a stream: from the first rows, learned again; promises of every option hold."""

import numpy as np
import pytest

import gaussfold as gf
from gaussfold.estimators import early, replay
from tests.estimators.streams import same_state

JOINT = pytest.mark.parametrize("way", ["joint", "block"])


def stream(K, d, n, std, seed):
    rng = np.random.default_rng(seed)
    X, W = rng.standard_normal((n, d)), std * rng.standard_normal((K, d))
    f = X @ W.T
    return X * np.geomspace(0.1, 30.0, d), np.argmax(f + rng.gumbel(size=f.shape), axis=1)


def loss(model, X, y):
    return -model.predict_log_proba(X)[np.arange(len(y)), y].mean()


def numbers(model):
    belief = model.posterior_
    return np.concatenate([belief.mean, belief.variance(), model.prior_std_])


@pytest.mark.parametrize(("K", "d", "n", "std"), [(10, 40, 400, 0.2), (40, 8, 500, 0.6), (4, 6, 200, 2.0)])
def test_the_width_is_near_that_of_the_weights_and_no_worse_than_one_vs_rest(K, d, n, std):
    widths, ours, apart = [], [], []
    for seed in range(3):
        X, y = stream(K, d, n + 500, std, seed)
        models = [gf.StreamingClassifier(multi_class=kind) for kind in ("softmax", "ovr")]
        for model, losses in zip(models, (ours, apart), strict=True):
            losses.append(loss(model.partial_fit(X[:n], y[:n], classes=np.arange(K)), X[n:], y[n:]))
        widths.append(models[0].prior_std_[0])
    assert std / 2.5 < np.exp(np.mean(np.log(widths))) < 2.5 * std
    assert np.mean(ours) < np.mean(apart)


@JOINT
def test_any_chunking(way):
    X, y = stream(3, 4, 150, 5.0, 5)
    whole, pieces, rows = (gf.StreamingClassifier(class_covariance=way) for _ in range(3))
    whole.partial_fit(X, y, classes=[0, 1, 2])
    for start, stop in ((0, 3), (3, 60), (60, 61), (61, 130), (130, 150)):
        pieces.partial_fit(X[start:stop], y[start:stop], classes=[0, 1, 2])
    for i in range(150):
        rows.partial_fit(X[i : i + 1], y[i : i + 1], classes=[0, 1, 2])
    assert whole.prior_std_[0] != 1.0
    for other in (pieces, rows):
        np.testing.assert_allclose(numbers(other), numbers(whole), rtol=1e-7, atol=1e-10)


@JOINT
@pytest.mark.parametrize("cut", [1, 50, 64, 100])
def test_a_stream_goes_on_bit_for_bit(way, cut, tmp_path):
    X, y = stream(3, 4, 150, 1.5, 6)
    model = gf.StreamingClassifier(class_covariance=way).partial_fit(X[:cut], y[:cut], classes=[0, 1, 2])
    gf.save(model, tmp_path / "model")
    again = gf.load(tmp_path / "model")
    for each in (model, again):
        each.partial_fit(X[cut:], y[cut:])
    assert same_state(model, again)


@JOINT
def test_missing_labels_and_weight_zero_teach_nothing(way):
    X, y = stream(3, 4, 150, 1.5, 7)
    rng = np.random.default_rng(8)
    weight, labels = rng.choice([0.0, 1.0, 2.5], 150), y.astype(float)
    labels[::7] = np.nan
    kept = ~np.isnan(labels) & (weight > 0)
    one, other = (gf.StreamingClassifier(class_covariance=way) for _ in range(2))
    one.partial_fit(X, labels, classes=[0, 1, 2], sample_weight=weight)
    other.partial_fit(X[kept], labels[kept], classes=[0, 1, 2], sample_weight=weight[kept])
    np.testing.assert_allclose(numbers(one), numbers(other), rtol=1e-7, atol=1e-10)


@JOINT
def test_a_call_that_fails_changes_nothing(way):
    X, y = stream(3, 4, 150, 1.5, 9)
    model, twin = (
        gf.StreamingClassifier(class_covariance=way).partial_fit(X[:60], y[:60], classes=[0, 1, 2]) for _ in range(2)
    )
    bad = X[60:120].copy()
    bad[-1] = 1e200
    with pytest.raises(ValueError, match=r"row|large"):
        model.partial_fit(bad, y[60:120])
    assert same_state(model, twin)
    assert same_state(model.partial_fit(X[60:], y[60:]), twin.partial_fit(X[60:], y[60:]))


def test_rows_are_kept_for_a_while_and_the_width_then_stands():
    X, y = stream(3, 4, early.ROOM + 200, 1.0, 10)
    model = gf.StreamingClassifier().partial_fit(X[:100], y[:100], classes=[0, 1, 2])
    assert model.state()["early.X"].shape == (100, 4)
    assert not any("precision" in name for name in model.state() if name.startswith("early"))
    model.partial_fit(X[100 : early.ROOM], y[100 : early.ROOM])
    width = model.prior_std_.copy()
    assert not any(name.startswith("early") for name in model.state())
    np.testing.assert_array_equal(model.partial_fit(X[early.ROOM :], y[early.ROOM :]).prior_std_, width)
    given = gf.StreamingClassifier(prior_std=0.7).partial_fit(X[:100], y[:100], classes=[0, 1, 2])
    assert not any(name.startswith("early") for name in given.state())


def test_what_a_replay_leaves_is_one_pass_under_its_width():
    """Scales off, so that coordinates stand still: the belief is that of `fold` from the prior of the width found."""
    X, y = stream(3, 4, 64, 1.5, 11)
    model = gf.StreamingClassifier(scale=False, fit_intercept=False).partial_fit(X[:63], y[:63], classes=[0, 1, 2])
    model.partial_fit(X[63:], y[63:])
    plain = gf.DenseGaussian.isotropic(12, float(model.prior_std_[0]))
    gf.fold(plain, gf.likelihoods.Softmax(3), X, y.astype(float))
    np.testing.assert_allclose(model.posterior_.mean, plain.mean, rtol=1e-8, atol=1e-10)
    np.testing.assert_allclose(model.posterior_.cov, plain.cov, rtol=1e-8, atol=1e-10)
    assert replay.FEWEST < 63
