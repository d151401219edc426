"""Estimators of Spark ML: learned and scored by executors, what one process learns and says."""

import os
import shutil
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest
from scipy import sparse

import gaussfold as gf

pyspark = pytest.importorskip("pyspark", reason="gaussfold[spark] is not installed")
pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]
ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def session():
    if shutil.which("java") is None:
        pytest.skip("Spark needs Java")
    with pytest.MonkeyPatch.context() as patch, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        patch.setenv("PYSPARK_PYTHON", sys.executable)
        patch.setenv("PYTHONPATH", f"{ROOT / 'src'}{os.pathsep}{ROOT}")
        made = (
            pyspark.sql.SparkSession.builder.master("local[2, 3]")
            .config("spark.ui.enabled", "false")
            .config("spark.driver.host", "127.0.0.1")
            .config("spark.driver.bindAddress", "127.0.0.1")
            .getOrCreate()
        )
        yield made
        made.stop()


def rows(n=1200, d=20):
    rng = np.random.default_rng(5)
    X = sparse.random(n, d, density=0.3, format="csr", random_state=rng)
    latent = X @ rng.normal(size=d) * 2.0 - 0.3
    return X, (rng.random(n) < 1.0 / (1.0 + np.exp(-latent))).astype(float), latent + 0.1 * rng.normal(size=n)


def frame(session, X, **columns):
    from pyspark.ml.linalg import Vectors

    vectors = [
        Vectors.sparse(X.shape[1], x.indices.tolist(), x.data.tolist()) if k % 3 else Vectors.dense(x.toarray()[0])
        for k, x in enumerate(X)
    ]
    values = zip(vectors, *(column.tolist() for column in columns.values()), strict=True)
    return session.createDataFrame(list(values), ["x", *columns]).repartition(3).sortWithinPartitions(*columns)


def test_a_classifier_in_a_pipeline(session, tmp_path):
    from pyspark.ml import Pipeline
    from pyspark.ml.evaluation import BinaryClassificationEvaluator

    X, y, _ = rows()
    data = frame(session, X, click=y, row=np.arange(len(y), dtype=float)).cache()
    scheme = gf.distributed.Scheme(head=200, most=6)
    stage = gf.spark.StreamingClassifier(
        featuresCol="x", labelCol="click", scheme=scheme, prior_std="auto", staging=str(tmp_path)
    )
    model = Pipeline(stages=[stage]).fit(data)
    again = stage.setPredictionCol("p").fit(data)
    np.testing.assert_array_equal(model.stages[0].estimator.coef_, again.estimator.coef_)
    scored = model.transform(data)
    assert scored.columns == ["x", "click", "row", "rawPrediction", "probability", "prediction"]
    found = scored.orderBy("row").collect()
    inner = model.stages[0].estimator
    assert inner.n_observations_ == 1200
    padded = sparse.hstack([sparse.csr_matrix((1200, 1)), X, sparse.csr_matrix((1200, 11))], format="csr")
    expected = inner.predict_proba(padded)
    np.testing.assert_allclose([row.probability.toArray() for row in found], expected, rtol=1e-12)
    np.testing.assert_array_equal([row.prediction for row in found], inner.predict(padded))
    np.testing.assert_allclose(
        [row.rawPrediction[1] for row in found], np.log(expected[:, 1] / expected[:, 0]), rtol=1e-9
    )
    area = BinaryClassificationEvaluator(labelCol="click").evaluate(scored)
    assert area > 0.6
    gf.save(inner, tmp_path / "m")
    np.testing.assert_array_equal(gf.load(tmp_path / "m").predict_proba(padded), expected)


def test_a_regressor_says_how_sure_it_is(session):
    X, _, price = rows()
    data = frame(session, X, price=price, row=np.arange(len(price), dtype=float)).orderBy("row")
    learner = gf.spark.StreamingRegressor(featuresCol="x", labelCol="price", noise_std=0.7, prior_std=2.0)
    model = learner.fit(data)
    scored = model.transform(data).orderBy("row").collect()
    padded = sparse.hstack([sparse.csr_matrix((1200, 1)), X, sparse.csr_matrix((1200, 11))], format="csr")
    order = gf.StreamingRegressor(covariance="diagonal", noise_std=0.7, prior_std=2.0).partial_fit(padded, price)
    mean, std = order.predict(padded, return_std=True)
    np.testing.assert_allclose([row.prediction for row in scored], mean, atol=1e-3)
    np.testing.assert_allclose([row.prediction_std for row in scored], std, rtol=1e-3)


def test_frames_are_sources_and_wrong_columns_are_named(session, tmp_path):
    X, y, _ = rows()
    data = frame(session, X, click=y)
    with pytest.raises(ValueError, match="column 'label': the frame has x, click"):
        gf.spark.StreamingClassifier(featuresCol="x").fit(data)
    plain = data.select("click", data["click"].cast("string").alias("same"))
    model = gf.distributed.fit(
        gf.StreamingClassifier(covariance="diagonal", prior_std=1.0), plain, label="click", bits=8
    )
    assert model.n_observations_ == 1200
    assert model.progressive_log_loss_ < 0.05
