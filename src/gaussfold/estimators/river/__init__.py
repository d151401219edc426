"""Models for River: one dictionary of features at a time, names instead of columns.

Needs ``pip install 'gaussfold[river]'``. `features` turns dictionaries into entries of a row, `weights` holds beliefs
over as many features as have come, `labels` reads what River passes as y; the three models only put these together.
A row that is nothing out of the ordinary takes a short way (``engine.sparse.one_row``) to the same numbers.
"""

from gaussfold.estimators.river.classifier import RiverClassifier
from gaussfold.estimators.river.multiclass import RiverMulticlassClassifier
from gaussfold.estimators.river.regressor import RiverRegressor

__all__ = ["RiverClassifier", "RiverMulticlassClassifier", "RiverRegressor"]
