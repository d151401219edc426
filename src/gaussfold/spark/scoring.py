"""Models of Spark ML: frames are scored where they lie, by Arrow batches."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.ml import Model
from pyspark.ml.functions import array_to_vector
from pyspark.ml.param.shared import HasProbabilityCol, HasRawPredictionCol
from pyspark.sql.types import ArrayType, DoubleType, StructField, StructType
from scipy import sparse

from gaussfold.spark.columns import Columns

STD = "prediction_std"
"""Column of a regressor beside Spark's own: the standard deviation of what was predicted."""


class Fitted(Columns, Model):
    """Adds columns to a frame, batch by batch."""

    def __init__(self, estimator: Any) -> None:
        super().__init__()
        self.estimator = estimator
        """The estimator itself, for `gaussfold.save`."""

    def _transform(self, dataset: Any) -> Any:
        added, features = self._added(), self.getFeaturesCol()
        fields = [StructField(name, kind) for name, kind, _ in added]
        new = {field.name for field in fields}
        old = [field for field in dataset.schema.fields if field.name not in new]
        kept, schema = [field.name for field in old], StructType([*old, *fields])
        held = dataset.sparkSession.sparkContext.broadcast(self.estimator)
        says = [say for _, _, say in added]

        def score(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            for batch in batches:
                X = vectors(batch.column(features), held.value.n_features_in_)
                found = [pa.array(list(say(held.value, X))) for say in says]
                yield pa.RecordBatch.from_arrays(
                    [*(batch.column(name) for name in kept), *found], schema=_named(batch, kept, fields, found)
                )

        return _with_vectors(dataset.mapInArrow(score, schema), fields)

    @abstractmethod
    def _added(self) -> list[tuple[str, Any, Callable[[Any, sparse.csr_matrix], Any]]]:
        """Name, type and maker of each column."""


def _with_vectors(scored: Any, fields: list[Any]) -> Any:
    """Arrays that were added, as Spark's vectors."""
    for field in fields:
        if isinstance(field.dataType, ArrayType):
            scored = scored.withColumn(field.name, array_to_vector(field.name))
    return scored


def _named(batch: pa.RecordBatch, kept: list[str], fields: list[Any], found: list[pa.Array]) -> pa.Schema:
    ours = [pa.field(field.name, array.type) for field, array in zip(fields, found, strict=True)]
    return pa.schema([*(batch.schema.field(name) for name in kept), *ours])


def vectors(column: pa.Array, width: int) -> sparse.csr_matrix:
    """Spark's vectors (a batch of them, as Arrow has them) as rows of so many features, the first in column 1.

    A sparse vector has indices and values, a dense one (type 1) values only.
    """
    indices, values, ends = [], [], [0]
    for kind, _, where, what in zip(*(column.field(k).to_pylist() for k in range(4)), strict=True):
        indices.append(np.arange(len(what)) if kind == 1 else np.asarray(where, np.int64))
        values.append(np.asarray(what, float))
        ends.append(ends[-1] + len(what))
    index = 1 + np.concatenate(indices) if indices else np.empty(0, np.int64)
    if index.size and index.max() >= width:
        msg = f"features: a vector has {index.max()} entries, those learned had {width - 1} at most; use the same ones"
        raise ValueError(msg)
    data = np.concatenate(values) if values else np.empty(0)
    return sparse.csr_matrix((data, index, ends), shape=(len(column), width))


class StreamingClassificationModel(Fitted, HasProbabilityCol, HasRawPredictionCol):
    """What a `StreamingClassifier` has learned: adds log odds, probabilities of both classes, the likelier class."""

    def _added(self) -> list[tuple[str, Any, Callable[[Any, sparse.csr_matrix], Any]]]:
        def odds(model: Any, X: sparse.csr_matrix) -> Any:
            p = np.clip(model.predict_proba(X), np.finfo(float).tiny, 1.0)
            away = np.log(p[:, 1]) - np.log(p[:, 0])
            return np.stack([-away, away], axis=1)

        return [
            (self.getRawPredictionCol(), ArrayType(DoubleType()), odds),
            (self.getProbabilityCol(), ArrayType(DoubleType()), lambda model, X: model.predict_proba(X)),
            (self.getPredictionCol(), DoubleType(), lambda model, X: model.predict(X).astype(float)),
        ]


class StreamingRegressionModel(Fitted):
    """What a `StreamingRegressor` has learned: adds the prediction and its standard deviation, ``prediction_std``."""

    def _added(self) -> list[tuple[str, Any, Callable[[Any, sparse.csr_matrix], Any]]]:
        return [
            (self.getPredictionCol(), DoubleType(), lambda model, X: model.predict(X)),
            (STD, DoubleType(), lambda model, X: model.predict(X, return_std=True)[1]),
        ]
