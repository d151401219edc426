"""An estimator learned from files by many workers is one that has learned them."""

import numpy as np
import pytest

import gaussfold as gf
from gaussfold.distributed import Scheme, fitting

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")
SMALL = Scheme(head=200, most=6)


@pytest.fixture
def here(monkeypatch):
    """Workers that are not there: shards run in this process."""
    import contextlib

    from tests.distributed.helpers import Here

    monkeypatch.setattr(fitting, "_engine", lambda _client, workers: contextlib.nullcontext(Here(workers or 0)))


@pytest.fixture
def files(tmp_path):
    rng = np.random.default_rng(3)
    effect = rng.normal(size=25)
    for k in range(3):
        user, age = rng.integers(0, 25, 1200), rng.normal(size=1200)
        latent = effect[user] + 0.5 * age
        table = {
            "click": (rng.random(1200) < 1.0 / (1.0 + np.exp(-latent))).astype(int),
            "price": latent + 0.3 * rng.normal(size=1200),
            "user": user.astype(str),
            "age": age,
        }
        pq.write_table(pa.table(table), tmp_path / f"{k}.parquet", row_group_size=100)
    return str(tmp_path / "*.parquet")


def columns(model):
    return (
        {"label": "click", "ignore": ["price"]} if hasattr(model, "link") else {"label": "price", "ignore": ["click"]}
    )


@pytest.mark.parametrize("prior_std", [0.7, "auto"])
@pytest.mark.parametrize("kind", ["classifier", "regressor"])
def test_it_has_learned_all_rows_whoever_worked(here, files, kind, prior_std, tmp_path):
    def new():
        if kind == "classifier":
            return gf.StreamingClassifier(covariance="diagonal", prior_std=prior_std)
        return gf.StreamingRegressor(covariance="diagonal", prior_std=prior_std, noise_std=0.3)

    models = [
        gf.distributed.fit(new(), files, bits=10, workers=seed, scheme=SMALL, **columns(new())) for seed in (1, 2)
    ]
    order = new()
    labels = "binary" if kind == "classifier" else "real"
    batches = list(gf.data.read(files, bits=10, labels=labels, **columns(order)))
    for X, y, weight in batches:
        if kind == "classifier":
            order.partial_fit(X, y, classes=[0, 1], sample_weight=weight)
        else:
            order.partial_fit(X, y, sample_weight=weight)
    one, two = models
    np.testing.assert_array_equal(one.coef_, two.coef_)
    assert one.n_observations_ == 3600 == order.n_observations_
    assert one.progressive_log_loss_ == pytest.approx(order.progressive_log_loss_, rel=0.05)
    X = batches[-1].X
    np.testing.assert_allclose(one.predict_latent(X)[0], order.predict_latent(X)[0], atol=0.25)
    gf.save(one, tmp_path / "m")
    np.testing.assert_array_equal(gf.load(tmp_path / "m").predict(X), one.predict(X))
    if kind == "classifier":
        one.partial_fit(X, batches[-1].y)  # goes on
    assert two.get_params() == new().get_params()


def test_what_cannot_be_learned_apart_is_refused(here, files):
    def refused(match, model, **options):
        with pytest.raises(ValueError, match=match):
            gf.distributed.fit(model, files, bits=10, scheme=SMALL, **{"label": "click", **options})
        assert not hasattr(model, "n_features_in_")

    diagonal = {"covariance": "diagonal", "prior_std": 1.0}
    refused("covariance", gf.StreamingClassifier())
    refused("forgetting", gf.StreamingClassifier(forgetting=0.99, **diagonal))
    refused("drift_std", gf.StreamingClassifier(drift_std=0.1, **diagonal))
    refused("ensemble", gf.StreamingClassifier(ensemble=4, **diagonal))
    refused("noise_std", gf.StreamingRegressor(**diagonal))
    refused("no column 'clack'", gf.StreamingClassifier(**diagonal), label="clack")
    with pytest.raises(ValueError, match="StreamingPoissonRegressor"):
        gf.distributed.fit(gf.StreamingPoissonRegressor(**diagonal), files, label="click")
