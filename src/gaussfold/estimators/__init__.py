"""scikit-learn faces: validation and naming only, all the work is `gaussfold.fold`."""

from gaussfold.estimators.classifier import StreamingClassifier
from gaussfold.estimators.poisson import StreamingPoissonRegressor
from gaussfold.estimators.regressor import StreamingRegressor

__all__ = ["StreamingClassifier", "StreamingPoissonRegressor", "StreamingRegressor"]
