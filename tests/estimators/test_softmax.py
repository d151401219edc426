"""More than two classes by a softmax: losses beside one-vs-rest, probabilities beside chance, promises, bad input."""

import numpy as np
import pytest
from scipy.sparse import csr_array
from scipy.special import softmax
from sklearn.datasets import load_digits, load_iris, make_classification
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler

import gaussfold as gf
from gaussfold import StreamingClassifier
from gaussfold.batch.softmax import ClassRows
from gaussfold.batch.softmax import rows as batch_rows

ODD = {"scale": False, "prior_std": 0.7, "intercept_std": 2.5, "random_state": 3}
KINDS = {
    "joint": {"class_covariance": "joint"},
    "block": {"class_covariance": "block"},
    "lowrank": {"covariance": "lowrank", "rank": 2},
    "diagonal": {"covariance": "diagonal", "prior_std": 0.7},
}


def stream(seed=0, n=60, K=4, d=3):
    rng = np.random.default_rng(seed)
    X, W = rng.normal(size=(n, d)), rng.normal(size=(K, d))
    return X, np.array(["a", "b", "c", "d", "e", "f"][:K])[(X @ W.T + rng.gumbel(size=(n, K))).argmax(axis=1)]


def split(load, seed=0):
    X, y = load(return_X_y=True)
    order = np.random.default_rng(seed).permutation(len(y))
    X, y, cut = X[order], y[order], int(0.7 * len(y))
    scaler = StandardScaler().fit(X[:cut])
    return scaler.transform(X[:cut]), y[:cut], scaler.transform(X[cut:]), y[cut:]


@pytest.mark.parametrize("kind", KINDS)
def test_a_softmax_is_below_one_vs_rest(kind):
    X, y = stream(5, n=1300)
    options = KINDS[kind]
    plain = {name: value for name, value in options.items() if name != "class_covariance"}
    for refine in (0, "auto"):
        together = StreamingClassifier(**options).fit(X[:300], y[:300], refine=refine)
        apart = StreamingClassifier(**plain, multi_class="ovr").fit(X[:300], y[:300], refine=refine)
        assert log_loss(y[300:], together.predict_proba(X[300:])) < log_loss(y[300:], apart.predict_proba(X[300:]))


def test_iris():
    X, y = load_iris(return_X_y=True)
    loss, peer = [], []
    for seed in range(3):
        A, B, a, b = train_test_split(X, y, test_size=0.3, random_state=seed, stratify=y)
        loss.append(log_loss(b, StreamingClassifier().fit(A, a).predict_proba(B)))
        scaler = StandardScaler().fit(A)
        fitted = LogisticRegression().fit(scaler.transform(A), a)
        peer.append(log_loss(b, fitted.predict_proba(scaler.transform(B))))
    assert np.mean(loss) < 1.02 * np.mean(peer)


def test_digits_in_one_pass():
    X, y, new, truth = split(load_digits)
    model = StreamingClassifier().fit(X, y, refine=0)
    assert isinstance(model.posterior_, gf.BlockGaussian)
    apart = StreamingClassifier(multi_class="ovr").fit(X, y, refine=0)
    assert log_loss(truth, model.predict_proba(new)) < log_loss(truth, apart.predict_proba(new))


@pytest.mark.parametrize("kind", KINDS)
def test_probabilities_are_averages_over_the_posterior(kind):
    X, y = stream()
    model = StreamingClassifier(**{**KINDS[kind], **ODD}).fit(X, y, refine=0)
    new = stream(1, n=5)[0] * 2.0
    draws = model.sample_proba(new, 40_000, rng=1)
    p = model.predict_proba(new)
    np.testing.assert_allclose(p.sum(axis=1), 1.0, rtol=1e-12)
    np.testing.assert_allclose(p, draws.mean(axis=0), atol=0.006)
    np.testing.assert_allclose(model.predict_proba_std(new), draws.std(axis=0), atol=0.006)
    np.testing.assert_allclose(np.exp(model.predict_log_proba(new)), p, rtol=1e-12)
    np.testing.assert_array_equal(model.predict(new), model.classes_[p.argmax(axis=1)])
    np.testing.assert_array_equal(model.decision_function(new).argmax(axis=1), p.argmax(axis=1))
    latent = model.sample_latent(new, 3, rng=2)
    np.testing.assert_allclose(model.sample_proba(new, 3, rng=2), softmax(latent, axis=2), rtol=1e-10)
    mean, std = model.predict_latent(new)
    np.testing.assert_allclose(mean, new @ model.coef_.T + model.intercept_, rtol=1e-10, atol=1e-12)
    assert model.coef_.shape == model.coef_std_.shape == (4, 3)
    assert model.sample_posterior(7, rng=1).shape == (7, 4, 4)
    assert (std > 0).all()


def test_the_belief_is_that_of_the_fold():
    X, y = stream()
    model = StreamingClassifier(**ODD).fit(X, y, refine=0)
    rows = np.hstack([X, np.ones((60, 1))])
    belief = gf.DenseGaussian.independent(np.zeros(16), np.tile([0.7, 0.7, 0.7, 2.5], 4))
    result = gf.fold(belief, gf.likelihoods.Softmax(4), rows, np.searchsorted(model.classes_, y))
    np.testing.assert_array_equal(model.posterior_.mean, belief.mean)
    np.testing.assert_array_equal(model.posterior_.cov, belief.cov)
    assert model.progressive_log_loss_ == pytest.approx(-result.log_predictive.mean(), rel=1e-12)


@pytest.mark.parametrize(
    "scaled", [{}, {"scale": True}, {"scale": True, "prior_std": "auto"}], ids=["plain", "scaled", "auto"]
)
@pytest.mark.parametrize("moves", [{}, {"forgetting": 0.97}, {"drift_std": 0.1}], ids=["still", "forgets", "drifts"])
@pytest.mark.parametrize("kind", KINDS)
def test_promises(kind, moves, scaled, tmp_path):
    """Chunks, files, weight 0, missing labels, sparse rows, an error half way."""
    if scaled and kind not in ("joint", "block"):
        pytest.skip("scales are learned with a full covariance")
    X, y = stream(n=24)
    options = {**KINDS[kind], **ODD, **moves, **scaled}
    weight = np.resize([1.0, 2.5, 1.0], 24)
    names = ["a", "b", "c", "d"]
    whole = StreamingClassifier(**options).partial_fit(X, y, classes=names, sample_weight=weight)
    parts = StreamingClassifier(**options).partial_fit(X[:1], y[:1], classes=names, sample_weight=weight[:1])
    parts.partial_fit(csr_array(X[1:9]), y[1:9], sample_weight=weight[1:9])
    gf.save(parts, tmp_path / "model")
    parts = gf.load(tmp_path / "model")
    parts.partial_fit(X[:3], [None] * 3)
    parts.partial_fit(X[:3], y[:3], sample_weight=np.zeros(3))
    before = parts.state()
    with pytest.raises(ValueError, match="row 2"):
        parts.partial_fit(np.where(np.arange(3)[:, None] == 2, 1e200, X[9:12]), y[9:12])
    with pytest.raises(ValueError, match=r"y\[1\] = 'z' is not one of the classes"):
        parts.partial_fit(X[:2], ["a", "z"])
    for name, array in before.items():
        np.testing.assert_array_equal(parts.state()[name], array, err_msg=name)
    parts.partial_fit(X[9:], y[9:], sample_weight=weight[9:])
    if scaled:  # moments of chunks are joined to rounding
        np.testing.assert_allclose(parts.posterior_.mean, whole.posterior_.mean, rtol=1e-8, atol=1e-11)
        np.testing.assert_allclose(parts.posterior_.variance(), whole.posterior_.variance(), rtol=1e-8)
    else:
        for name, array in whole.posterior_.state().items():
            np.testing.assert_array_equal(parts.posterior_.state()[name], array, err_msg=name)
    assert parts.progressive_log_loss_ == pytest.approx(whole.progressive_log_loss_, rel=1e-12)
    if moves:
        np.testing.assert_array_less(whole.posterior_.variance(), 0.999 * whole.forget(50).posterior_.variance() + 1.0)


@pytest.mark.parametrize("options", [{}, ODD], ids=["default", "odd"])
@pytest.mark.parametrize("kind", ["joint", "block"])
def test_fit_forgets_the_order_and_is_where_visits_lead(kind, options, monkeypatch):
    """The batch optimum, found at once, and by visiting rows one after the other under the same prior."""
    monkeypatch.setattr(batch_rows, "MOST_NODES", 128)  # as visits have them
    X, y = stream(n=40)
    model = StreamingClassifier(**{**KINDS[kind], **options}).fit(X, y)
    turned = StreamingClassifier(**{**KINDS[kind], **options}).fit(X[::-1], y[::-1])
    np.testing.assert_allclose(model.predict_log_proba(X), turned.predict_log_proba(X), atol=1e-7)
    if options:
        visits = StreamingClassifier(**{**KINDS[kind], **options}).fit(X, y, refine=200)
        np.testing.assert_allclose(visits.coef_ / model.coef_std_, model.coef_ / model.coef_std_, atol=3e-3)
        np.testing.assert_allclose(visits.coef_std_, model.coef_std_, rtol=3e-3)


def test_units_do_not_matter():
    X, y = stream(n=50)
    units = np.array([1e-3, 1.0, 1e4])
    for options in ({}, {"class_covariance": "block"}):
        for refine in (0, "auto"):
            plain = StreamingClassifier(**options).fit(X, y, refine=refine)
            other = StreamingClassifier(**options).fit(X * units + 3.0 * units, y, refine=refine)
            np.testing.assert_allclose(
                other.predict_log_proba(X * units + 3.0 * units), plain.predict_log_proba(X), atol=1e-5
            )
            np.testing.assert_allclose(other.coef_ * units, plain.coef_, rtol=1e-4, atol=1e-6)
            assert plain.prior_std_.shape == (1,)


def test_auto_is_one_vs_rest_where_only_that_is_defined():
    X, y = stream(n=30)
    for options in (
        {"link": "probit"},
        {"rule": "newton"},
        {"at": "prior"},
        {"second_look": 8},
        {"multi_class": "ovr"},
    ):
        assert len(StreamingClassifier(**options).fit(X, y, refine=0).posterior_) == 4
        if "multi_class" not in options:
            with pytest.raises(ValueError, match="use multi_class='ovr'"):
                StreamingClassifier(**options, multi_class="softmax").fit(X, y)
    assert StreamingClassifier().fit(X, y == "a").coef_.shape == (1, 3)


def test_class_weight():
    X, y = stream(n=50)
    shares = {"a": 2.5, "b": 0.5}
    weight = np.array([shares.get(label, 1.0) for label in y])
    by_class, by_row = StreamingClassifier(class_weight=shares).fit(X, y), StreamingClassifier().fit(X, y, weight)
    np.testing.assert_array_equal(by_class.coef_, by_row.coef_)
    again = StreamingClassifier(class_weight=shares).partial_fit(X, y, classes=["a", "b", "c", "d"])
    once = StreamingClassifier().fit(X, y, weight, refine=0)
    np.testing.assert_array_equal(again.coef_, once.coef_)
    balanced = StreamingClassifier(class_weight="balanced").fit(X, y == "a")
    counts = np.where(y == "a", 25 / (y == "a").sum(), 25 / (y != "a").sum())
    np.testing.assert_allclose(balanced.coef_, StreamingClassifier().fit(X, y == "a", counts).coef_, rtol=1e-6)
    for bad, words in (("even", "class_weight='even'"), ({"a": -1.0}, r"class_weight\['a'\]=-1.0")):
        with pytest.raises(ValueError, match=words):
            StreamingClassifier(class_weight=bad).fit(X, y)
    with pytest.raises(ValueError, match="give partial_fit a dict"):
        StreamingClassifier(class_weight="balanced").partial_fit(X, y)


@pytest.mark.parametrize(("options", "y", "words"), [
    ({}, ["a"] * 6, "one class only"),
    ({}, ["a", 1, "b", "c", "a", "b"], "mixes text and numbers"),
    ({"multi_class": "many"}, ["a", "b", "c"] * 2, "multi_class='many': allowed are 'auto', 'softmax', 'ovr'"),
    ({"class_covariance": "all"}, ["a", "b", "c"] * 2, "class_covariance='all'"),
], ids=["one class", "mixed", "multi_class", "class_covariance"])  # fmt: skip
def test_bad_input(options, y, words):
    model = StreamingClassifier(**options)
    with pytest.raises(ValueError, match=words):
        model.fit(stream(n=6)[0], np.array(y, dtype=object))
    assert not hasattr(model, "classes_")


def test_too_many_classes_say_what_to_take():
    X, y = np.zeros((2, 200)), [0, 1]
    with pytest.raises(ValueError, match=r"covariance='full': 10000 classes of 201 weights need .* GB.*'diagonal'"):
        StreamingClassifier().partial_fit(X, y, classes=np.arange(10_000))
    with pytest.raises(ValueError, match="at most 4000 are allowed, so use class_covariance='block'"):
        StreamingClassifier(class_covariance="joint").partial_fit(X, y, classes=np.arange(100))


@pytest.mark.parametrize("kind", ["joint", "block"])
def test_a_weight_of_two_is_a_row_twice(kind):
    X, y = stream(n=40)
    twice = np.repeat(np.arange(40), np.resize([1, 2], 40))
    model = StreamingClassifier(**KINDS[kind]).fit(X, y, sample_weight=np.resize([1.0, 2.0], 40))
    again = StreamingClassifier(**KINDS[kind]).fit(X[twice], y[twice])
    np.testing.assert_allclose(model.predict_log_proba(X), again.predict_log_proba(X), atol=1e-6)


def test_widths_are_compared_by_some_of_many_rows():
    X, y = stream(n=3000)
    places = np.searchsorted(np.unique(y), y)
    rows = ClassRows(X, places, np.ones(3000), 4, np.zeros(3), np.ones(3))
    turned = ClassRows(X[::-1], places[::-1], np.ones(3000), 4, np.zeros(3), np.ones(3))
    assert rows.some(3000) is rows
    assert 200 < len(rows.some(300).y) < 400
    np.testing.assert_array_equal(rows.some(300).X, turned.some(300).X[::-1])
    same = ClassRows(np.ones((3000, 3)), places, np.ones(3000), 4, np.zeros(3), np.ones(3))
    assert len(same.some(300).y) == 3000


def test_the_width_of_some_rows_leads_to_the_optimum_of_all():
    X, y = make_classification(3000, 20, n_informative=15, n_classes=20, n_clusters_per_class=1, random_state=4)
    X, y = X[:2000], y[:2000]
    model = StreamingClassifier().fit(X, y)  # a warning, if it has not settled, fails
    (width,) = set(model.prior_std_)
    alone = StreamingClassifier(prior_std=width).fit(X, y)
    np.testing.assert_allclose(model.predict_log_proba(X), alone.predict_log_proba(X), atol=1e-4)
