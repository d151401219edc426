"""Faces for scikit-learn and River: names and validation only, all the work is `gaussfold.fold` (or `gp`, `factors`).

The faces are `classifier`, `regressor`, `poisson`, `gp`, `factor_analysis` and `river`. What goes in is checked at the
door: rows, weights and labels by `validation`, `frames` (dataframes) and `labels` (classes), parameters by `settings`,
which turns names into objects once; `priors` makes the first belief. `streaming` is the way through `fold` and back,
`readout` what can be asked afterwards, `storage` the way to a model file. Whatever is wrong with a call, the model is
as it was before.

`parameters` documents what the estimators share, once; `documented` quotes it. Constructors repeat their signatures
because scikit-learn reads the parameters there.
"""

from gaussfold.estimators.classifier import StreamingClassifier
from gaussfold.estimators.poisson import StreamingPoissonRegressor
from gaussfold.estimators.regressor import StreamingRegressor

__all__ = ["StreamingClassifier", "StreamingPoissonRegressor", "StreamingRegressor"]
