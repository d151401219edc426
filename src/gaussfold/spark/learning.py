"""Estimators of Spark ML: what is learned by executors."""

from __future__ import annotations

import tempfile
from abc import abstractmethod
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pyspark.ml import Estimator
from pyspark.ml.param.shared import HasProbabilityCol, HasRawPredictionCol
from pyspark.sql.functions import col

from gaussfold import estimators
from gaussfold.distributed.fitting import fit
from gaussfold.distributed.frames import files_in
from gaussfold.distributed.plan import Scheme
from gaussfold.spark.columns import Columns
from gaussfold.spark.scoring import StreamingClassificationModel, StreamingRegressionModel

LEARNED = {"covariance": "diagonal"}
"""What executors can learn apart."""


class Learner(Columns, Estimator):
    """Writes label and vectors once, and has executors learn them."""

    def __init__(
        self, made: Callable[..., Any], options: dict[str, Any], staging: str | None, scheme: Scheme | None
    ) -> None:
        super().__init__()
        self._made, self._options, self._staging, self._scheme = made, options, staging, scheme

    def _fit(self, dataset: Any) -> Any:
        features, label = self.getFeaturesCol(), self.getLabelCol()
        for name in (features, label):
            if name not in dataset.columns:
                msg = f"column {name!r}: the frame has {', '.join(dataset.columns)}; set featuresCol and labelCol"
                raise ValueError(msg)
        first = dataset.select(features).first()
        if first is None:
            msg = "dataset: it has no rows; give some"
            raise ValueError(msg)
        bits = max(1, len(first[0]).bit_length())  # the first feature of a vector is number 1 of a line
        with tempfile.TemporaryDirectory(prefix="gaussfold-", dir=self._staging) as folder:
            rows = Path(folder) / "rows"
            dataset.select(col(label).cast("double").alias("label"), features).write.format("libsvm").save(
                rows.absolute().as_uri()
            )
            model = fit(
                self._made(**{**LEARNED, **self._options}), files_in(rows, ".libsvm"), bits=bits,
                client=dataset.sparkSession, scheme=self._scheme,
            )  # fmt: skip
        return self._copyValues(self._fitted(model))

    @abstractmethod
    def _fitted(self, model: Any) -> Any:
        """The model of Spark ML that scores by a fitted estimator."""


class StreamingClassifier(Learner, HasProbabilityCol, HasRawPredictionCol):
    """A `gaussfold.StreamingClassifier` (labels 0 and 1, diagonal covariance) as an estimator of Spark ML.

    ``options`` are those of `gaussfold.StreamingClassifier`. ``staging`` is a folder that driver and executors reach
    (None: a temporary one, for a master ``local``), ``scheme`` how rounds grow.
    """

    def __init__(
        self, *, featuresCol: str = "features", labelCol: str = "label", predictionCol: str = "prediction",
        probabilityCol: str = "probability", rawPredictionCol: str = "rawPrediction", staging: str | None = None,
        scheme: Scheme | None = None, **options: Any,
    ) -> None:  # fmt: skip
        super().__init__(estimators.StreamingClassifier, options, staging, scheme)
        self._set(
            featuresCol=featuresCol, labelCol=labelCol, predictionCol=predictionCol, probabilityCol=probabilityCol,
            rawPredictionCol=rawPredictionCol,
        )  # fmt: skip

    def _fitted(self, model: Any) -> Any:
        return StreamingClassificationModel(model)


class StreamingRegressor(Learner):
    """A `gaussfold.StreamingRegressor` with a number for ``noise_std`` and a diagonal covariance, for Spark ML.

    ``options`` are those of `gaussfold.StreamingRegressor`; the rest is as for `StreamingClassifier`.
    """

    def __init__(
        self, *, featuresCol: str = "features", labelCol: str = "label", predictionCol: str = "prediction",
        staging: str | None = None, scheme: Scheme | None = None, **options: Any,
    ) -> None:  # fmt: skip
        super().__init__(estimators.StreamingRegressor, options, staging, scheme)
        self._set(featuresCol=featuresCol, labelCol=labelCol, predictionCol=predictionCol)

    def _fitted(self, model: Any) -> Any:
        return StreamingRegressionModel(model)
