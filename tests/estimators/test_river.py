"""The River adapter passes River's own checks and learns what the fold learns."""

import math

import numpy as np
import pytest

import gaussfold as gf
from gaussfold.likelihoods import Bernoulli

river = pytest.importorskip("river", reason="pip install 'gaussfold[river]'")
from river import checks, datasets  # noqa: E402

from gaussfold.estimators.river import RiverClassifier  # noqa: E402

OPTIONS = [
    {},
    {"prior_std": "auto", "forgetting": 0.999},
    {"link": "probit", "coupling": "joint", "fit_intercept": False},
]


@pytest.mark.parametrize("options", OPTIONS, ids=["default", "auto", "probit"])
def test_passes_rivers_own_checks(options):
    ran = 0
    for check in checks.yield_checks(RiverClassifier(**options)):
        if check.__name__ not in RiverClassifier()._unit_test_skips():
            check(RiverClassifier(**options))
            ran += 1
    assert ran > 30


@pytest.mark.parametrize("forgetting", [1.0, 0.97])
def test_learns_what_the_fold_learns_while_features_appear(forgetting):
    rng = np.random.default_rng(1)
    names = [f"f{i}" for i in range(150)]  # more than the first room
    model = RiverClassifier(prior_std=0.7, prior_mean=0.1, intercept_std=2.5, forgetting=forgetting)
    X, y = np.zeros((300, 151)), rng.integers(0, 2, size=300).astype(float)
    X[:, -1] = 1.0
    for r in range(300):
        active = rng.choice(min(10 + r, 150), size=4, replace=False)
        X[r, active] = rng.normal(size=4)
        model.learn_one({names[i]: X[r, i] for i in active}, bool(y[r]))
    prior = gf.DiagonalGaussian.independent(np.full(151, 0.1), np.append(np.full(150, 0.7), 2.5))
    belief = prior.copy()
    gf.fold(belief, Bernoulli(), X, y, rule="newton", dynamics=gf.dynamics.Forgetting(forgetting, prior))
    x = {names[3]: 0.4, names[149]: -1.2}
    row = np.zeros((1, 151))
    row[0, [3, 149, 150]] = 0.4, -1.2, 1.0
    mean, variance = belief.marginal(row)
    assert model.predict_latent_one(x) == pytest.approx((mean[0], math.sqrt(variance[0])), rel=1e-9)
    # a feature that was never seen counts with its prior
    mean, variance = mean[0] + 2.0 * 0.1, variance[0] + 4.0 * 0.49
    assert model.predict_latent_one(x | {"new": 2.0}) == pytest.approx((mean, math.sqrt(variance)), rel=1e-9)


def test_texts_and_missing_values():
    a, b = RiverClassifier(), RiverClassifier()
    a.learn_one({"colour": "red", "size": None, "weight": math.nan}, True)
    b.learn_one({"colour=red": 1.0}, True)
    assert a.predict_proba_one({"colour": "red"}) == b.predict_proba_one({"colour=red": 1})
    before = a.predict_proba_one({"colour": "red"})
    with pytest.raises(ValueError, match=r"x\['w'\]=inf"):
        a.learn_one({"w": math.inf}, True)
    with pytest.raises(ValueError, match="out of range"):
        a.learn_one({"w": 1e200}, True)
    assert a.predict_proba_one({"colour": "red"}) == before
    assert "w" not in a._columns


def test_beats_rivers_logistic_regression_on_phishing():
    from river import evaluate, linear_model, metrics, preprocessing

    losses = [
        evaluate.progressive_val_score(
            datasets.Phishing(), preprocessing.StandardScaler() | model, metrics.LogLoss()
        ).get()
        for model in (RiverClassifier(), linear_model.LogisticRegression())
    ]
    assert losses[0] < 0.26 < 0.32 < losses[1]
