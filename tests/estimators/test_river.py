"""The River adapters pass River's own checks, learn what the fold learns, and take labels at their word."""

import datetime
import itertools
import math

import numpy as np
import pytest

import gaussfold as gf
from gaussfold.estimators.noise import NoiseBelief
from gaussfold.likelihoods import Bernoulli, Gaussian

river = pytest.importorskip("river", reason="pip install 'gaussfold[river]'")
pd = pytest.importorskip("pandas")
from river import checks, datasets  # noqa: E402

from gaussfold.estimators.river import RiverClassifier, RiverMulticlassClassifier, RiverRegressor  # noqa: E402

OPTIONS = {
    "default": RiverClassifier(),
    "auto": RiverClassifier(prior_std="auto", forgetting=0.999),
    "probit": RiverClassifier(link="probit", coupling="joint", fit_intercept=False),
    "multiclass": RiverMulticlassClassifier(),
    "multiclass forgetting": RiverMulticlassClassifier(forgetting=0.99, prior_std=0.7),
    "regressor": RiverRegressor(),
    "regressor with known noise": RiverRegressor(noise_std=2.5, coupling="marginal", forgetting=0.97),
}


@pytest.mark.parametrize("name", OPTIONS)
def test_passes_rivers_own_checks(name):
    model, ran = OPTIONS[name], 0
    for check in checks.yield_checks(model):
        if check.__name__ not in model._unit_test_skips():
            check(model.clone())
            ran += 1
    assert ran > 25


def stream(n=300, seed=1):
    """Rows of names and numbers, of which more appear as the stream goes on: beyond the first room."""
    rng = np.random.default_rng(seed)
    X = np.zeros((n, 151))
    X[:, -1] = 1.0
    rows = []
    for r in range(n):
        active = rng.choice(min(10 + r, 150), size=4, replace=False)
        X[r, active] = rng.normal(size=4)
        rows.append({f"f{i}": float(X[r, i]) for i in active})
    return rows, X, rng


@pytest.mark.parametrize("forgetting", [1.0, 0.97])
def test_learns_what_the_fold_learns_while_features_appear(forgetting):
    rows, X, rng = stream()
    y = rng.integers(0, 2, size=300).astype(float)
    model = RiverClassifier(prior_std=0.7, prior_mean=0.1, intercept_std=2.5, forgetting=forgetting)
    for x, label in zip(rows, y, strict=True):
        model.learn_one(x, bool(label), w=2.5)
    prior = gf.DiagonalGaussian.independent(np.full(151, 0.1), np.append(np.full(150, 0.7), 2.5))
    belief = prior.copy()
    dynamics = gf.dynamics.Forgetting(forgetting, prior)
    gf.fold(belief, Bernoulli(), X, y, rule="newton", dynamics=dynamics, sample_weight=np.full(300, 2.5))
    x = {"f3": 0.4, "f149": -1.2}
    row = np.zeros((1, 151))
    row[0, [3, 149, 150]] = 0.4, -1.2, 1.0
    mean, variance = belief.marginal(row)
    assert model.predict_latent_one(x) == pytest.approx((mean[0], math.sqrt(variance[0])), rel=1e-9)
    assert model.predict_proba_one(x)[True] == pytest.approx(Bernoulli().predictive(belief.marginal(row)).mean[0])
    # a feature that was never seen counts with its prior
    mean, variance = mean[0] + 2.0 * 0.1, variance[0] + 4.0 * 0.49
    assert model.predict_latent_one(x | {"new": 2.0}) == pytest.approx((mean, math.sqrt(variance)), rel=1e-9)


@pytest.mark.parametrize("forgetting", [1.0, 0.97])
def test_the_regressor_learns_weights_and_noise_as_the_fold_does(forgetting):
    rows, X, rng = stream()
    y = X @ rng.normal(size=151) + 0.5 * rng.normal(size=300)
    model = RiverRegressor(prior_std=0.7, prior_mean=0.1, intercept_std=2.5, forgetting=forgetting)
    for x, label in zip(rows, y, strict=True):
        model.learn_one(x, float(label), w=2.5)
    prior = gf.DiagonalGaussian.independent(np.full(151, 0.1), np.append(np.full(150, 0.7), 2.5), "joint")
    belief, weight = prior.copy(), np.full(300, 2.5)
    dynamics = gf.dynamics.Forgetting(forgetting, prior)
    before = gf.fold(belief, Gaussian(1.0), X, y, rule="newton", dynamics=dynamics, sample_weight=weight)
    noise, _, _ = NoiseBelief.from_guess(1.0, 2.0).learn(y - before.mean, before.variance, weight, forgetting)
    mean, variance = belief.marginal(X[-1:])
    assert model.predict_one(rows[-1]) == pytest.approx(mean[0], rel=1e-9)
    expected = math.sqrt(noise.variance * (1.0 + variance[0]))
    assert model.predict_std_one(rows[-1]) == pytest.approx(expected, rel=1e-9)
    assert model.predict_latent_one(rows[-1])[1] == pytest.approx(math.sqrt(noise.variance * variance[0]), rel=1e-9)


def test_a_class_that_comes_late_knows_what_it_would_have_known():
    rows, _, rng = stream(n=60)
    found = [str(label) for label in rng.choice(["cat", "mouse"], size=60)]
    found[40:60:4] = ["elephant"] * 5
    model = RiverMulticlassClassifier(prior_std=0.7)
    for x, label in zip(rows, found, strict=True):
        model.learn_one(x, label)
    alone = {}
    for kind in ("cat", "mouse", "elephant"):
        one = RiverClassifier(prior_std=0.7)
        for x, label in zip(rows, found, strict=True):
            one.learn_one(x, label == kind)
        alone[kind] = one.predict_proba_one(rows[7])[True]
    proba = model.predict_proba_one(rows[7])
    for kind, own in alone.items():
        assert proba[kind] == pytest.approx(own / sum(alone.values()), rel=1e-9)


@pytest.mark.parametrize("name", OPTIONS)
def test_batches_with_new_columns_weights_and_gaps_are_the_row_loop(name):
    """One call, several calls or one row at a time; missing values, labels without one, columns that come and go."""
    batch, single = OPTIONS[name].clone(), OPTIONS[name].clone()
    rng = np.random.default_rng(2)
    frame = pd.DataFrame(rng.normal(size=(40, 3)), columns=["a", "b", "c"])
    frame["colour"] = rng.choice(["red", "blue"], size=40)
    frame.loc[5:9, "b"] = np.nan
    frame.loc[3, "colour"] = None
    if isinstance(batch, RiverRegressor):
        y = pd.Series(frame["a"] + rng.normal(size=40))
    else:
        y = pd.Series(np.where(frame["a"] + rng.normal(size=40) > 0, True, False), dtype=object)
    y[7] = None
    w = np.where(np.arange(40) % 7 == 0, 0.0, rng.uniform(0.5, 2.0, size=40))
    batch.learn_many(frame.loc[:19, ["a", "b"]], y[:20], w=w[:20])
    batch.learn_many(frame.loc[20:], y[20:], w=w[20:])
    for x, label, weight in zip(frame.loc[:19, ["a", "b"]].to_dict("records"), y[:20], w[:20], strict=True):
        single.learn_one(x, label, w=weight)
    for x, label, weight in zip(frame.loc[20:].to_dict("records"), y[20:], w[20:], strict=True):
        single.learn_one(x, label, w=weight)
    new = frame.loc[:5].assign(never=1.0)
    if isinstance(batch, RiverRegressor):
        np.testing.assert_allclose(batch.predict_many(new), [single.predict_one(x) for x in new.to_dict("records")])
        np.testing.assert_allclose(single.predict_many(new), batch.predict_many(new), rtol=1e-9)
    else:
        proba = batch.predict_proba_many(new)
        assert list(proba.index) == list(new.index)
        one_by_one = [single.predict_proba_one(x) for x in new.to_dict("records")]
        np.testing.assert_allclose(proba, [[p[c] for c in proba.columns] for p in one_by_one], rtol=1e-9)


@pytest.mark.parametrize("name", OPTIONS)
def test_saved_models_go_on_bit_for_bit(name, tmp_path):
    model, path = OPTIONS[name].clone(), tmp_path / "model"
    rows, X, rng = stream(n=120)
    y = X[:, 1] + rng.normal(size=120)
    y = list(y) if isinstance(model, RiverRegressor) else [bool(label > 0) for label in y]
    for x, label in zip(rows[:80], y[:80], strict=True):
        model.learn_one(x | {7: 0.5}, label)
    gf.save(model, path)
    twin = gf.load(path)
    assert twin._get_params() == model._get_params()
    for x, label in zip(rows[80:], y[80:], strict=True):
        model.learn_one(x, label)
        twin.learn_one(x, label)
    ours, theirs = model.state(), twin.state()
    assert ours.keys() == theirs.keys()
    for key in ours:
        np.testing.assert_array_equal(ours[key], theirs[key])


def answers(model, x):
    return model.predict_one(x) if isinstance(model, RiverRegressor) else model.predict_proba_one(x)


BAD_LABELS = {
    RiverClassifier: ["no", -1, 0.3, "path", 2, math.inf, [1]],
    RiverMulticlassClassifier: [math.inf, [1], ("a",), {"a": 1}],
    RiverRegressor: ["no", math.inf, True, "1.5", [1.0]],
}


@pytest.mark.parametrize("kind", BAD_LABELS)
def test_labels_weights_and_features_that_mean_nothing_are_refused(kind):
    model = kind()
    for x, y in itertools.product([{"a": 1.0}, {"b": -0.5, "c": "red"}], [True, False]):
        model.learn_one(x, float(y) + 0.5 if kind is RiverRegressor else y)
    good = 1.5 if kind is RiverRegressor else True
    before, x = answers(model, {"a": 0.7, "c": "red"}), {"a": 0.7}
    for y in BAD_LABELS[kind]:
        with pytest.raises(ValueError, match=r"^y="):
            model.learn_one(x, y)
        with pytest.raises(ValueError, match=r"^y="):
            model.learn_many(pd.DataFrame([x]), pd.Series([y], dtype=object))
    for w in (-1.0, math.nan, math.inf, "2"):
        with pytest.raises(ValueError, match=r"^w="):
            model.learn_one(x, good, w=w)
    for value in (math.inf, -math.inf):
        with pytest.raises(ValueError, match=r"^x\['w'\]=-?inf"):
            model.learn_one({"w": value}, good)
    for value in (datetime.datetime(2020, 1, 2), np.datetime64("2020-01-02"), pd.Timestamp("2020-01-02")):
        with pytest.raises(ValueError, match=r"^x\['when'\].*a date is neither"):
            model.learn_one({"when": value}, good)
    with pytest.raises(ValueError, match="out of range"):
        model.learn_one({"w": 1e200}, good)
    with pytest.raises(ValueError, match="11 labels but X has 10 rows"):
        model.learn_many(pd.DataFrame([x] * 10), pd.Series([good] * 11))
    with pytest.raises(ValueError, match="taken by the intercept"):
        model.learn_one({"gaussfold.intercept": 2.0}, good)
    # nothing was learned, and these teach nothing either
    for y in (None, math.nan, pd.NA):
        model.learn_one({"new": 1.0}, y)
    model.learn_one({"new": 1.0}, good, w=0.0)
    assert answers(model, {"a": 0.7, "c": "red"}) == before
    assert not {"w", "when", "new"} & set(model._weights.columns.places)


@pytest.mark.parametrize("label", ["no", -1, 7, 2.5, "path"])
def test_labels_of_any_kind_are_classes(label):
    model = RiverMulticlassClassifier(prior_std=3.0)
    for _ in range(5):
        model.learn_one({"a": 1.0}, label)
        model.learn_one({"a": -1.0}, "other")
    assert model.predict_one({"a": 1.0}) == label
    assert sum(model.predict_proba_one({"a": 0.3}).values()) == pytest.approx(1.0)


@pytest.mark.parametrize(
    ("kind", "options", "message"),
    [
        (RiverClassifier, {"prior_std": -1.0}, "prior_std=-1.0"),
        (RiverClassifier, {"prior_std": "wide"}, "prior_std='wide'"),
        (RiverClassifier, {"forgetting": 1.5}, "forgetting=1.5"),
        (RiverClassifier, {"fit_intercept": "no"}, "fit_intercept='no'"),
        (RiverClassifier, {"intercept_std": 0.0}, "intercept_std=0.0"),
        (RiverClassifier, {"prior_mean": math.nan}, "prior_mean=nan"),
        (RiverClassifier, {"rule": "guess"}, "rule='guess'"),
        (RiverMulticlassClassifier, {"coupling": "loose"}, "coupling='loose'"),
        (RiverRegressor, {"noise_std": "auto"}, "noise_std='auto'"),
        (RiverRegressor, {"prior_std": "auto"}, "prior_std='auto'"),
    ],
)
def test_parameters_are_checked(kind, options, message):
    with pytest.raises(ValueError, match=message):
        kind(**options)


def test_texts_and_missing_values():
    a, b = RiverClassifier(), RiverClassifier()
    a.learn_one({"colour": "red", "size": None, "weight": math.nan, "id": pd.NA}, True)
    b.learn_one({"colour=red": 1.0}, True)
    assert a.predict_proba_one({"colour": "red"}) == pytest.approx(b.predict_proba_one({"colour=red": 1}), rel=1e-12)
    # a gap in a row whose names are all known
    a.learn_one({"weight": 1.0, "size": 2.0}, True)
    b.learn_one({"weight": 1.0, "size": 2.0}, True)
    a.learn_one({"weight": math.nan, "size": 2.0}, False)
    b.learn_one({"size": 2.0}, False)
    gap = a.predict_proba_one({"size": 1.0, "weight": math.nan})
    assert gap == pytest.approx(b.predict_proba_one({"size": 1.0}), rel=1e-12)


def test_beats_rivers_logistic_regression_on_phishing():
    from river import evaluate, linear_model, metrics, preprocessing

    losses = [
        evaluate.progressive_val_score(
            datasets.Phishing(), preprocessing.StandardScaler() | model, metrics.LogLoss()
        ).get()
        for model in (RiverClassifier(), linear_model.LogisticRegression())
    ]
    assert losses[0] < 0.26 < 0.32 < losses[1]
