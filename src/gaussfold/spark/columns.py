"""Names of columns, as Spark's own estimators have them."""

from __future__ import annotations

from typing import Any

from pyspark.ml.param.shared import HasFeaturesCol, HasLabelCol, HasPredictionCol


class Columns(HasFeaturesCol, HasLabelCol, HasPredictionCol):
    """Names of columns that learners and models share."""

    def setFeaturesCol(self, value: str) -> Any:
        """Column of the vectors."""
        return self._set(featuresCol=value)

    def setLabelCol(self, value: str) -> Any:
        """Column of the labels."""
        return self._set(labelCol=value)

    def setPredictionCol(self, value: str) -> Any:
        """Column of what is predicted."""
        return self._set(predictionCol=value)
