"""``gf.spark``: estimators for the pipelines of Spark ML, learned and scored by its executors.

The conventions are those of Spark's own classifiers and regressors: a column of vectors, a column of numbers as
labels, columns ``rawPrediction``, ``probability`` and ``prediction``. Executors write label and vectors once as text,
read it back by ranges of lines and learn in rounds (`gaussfold.distributed`): the model is the same, bit for bit, for
any number of executors, with tasks that fail and speculative copies. Frames are scored where they lie, by batches of
Arrow.
"""

from __future__ import annotations

from gaussfold.spark.learning import StreamingClassifier, StreamingRegressor
from gaussfold.spark.scoring import StreamingClassificationModel, StreamingRegressionModel

__all__ = ["StreamingClassificationModel", "StreamingClassifier", "StreamingRegressionModel", "StreamingRegressor"]
