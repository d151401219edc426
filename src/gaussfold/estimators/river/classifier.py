"""Two classes: Bayesian logistic or probit regression for River."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from river import base

from gaussfold.beliefs.diagonal.coupling import Coupling
from gaussfold.estimators import mixtures
from gaussfold.estimators.parameters import keep
from gaussfold.estimators.river import labels
from gaussfold.estimators.river.features import Example, Named
from gaussfold.estimators.river.model import RiverModel
from gaussfold.estimators.river.weights import Diagonal, Start, Weights
from gaussfold.likelihoods import Bernoulli
from gaussfold.likelihoods.links import Name as Link
from gaussfold.types import Array

if TYPE_CHECKING:
    import pandas as pd


class RiverClassifier(RiverModel, base.MiniBatchClassifier):
    """Bayesian logistic or probit regression without a learning rate: the marginal Gaussian learner for River.

    A numeric feature is used as it is; a text (or any other value) is the feature "name=value" with value 1; a missing
    one (None, NaN) is absent. Features are discovered as they come; one that was never seen counts with its prior.
    Labels are True and False, or 1 and 0; None or NaN is a row without a label, of which nothing is learned.

    Parameters
    ----------
    prior_std
        Standard deviation of each weight before any data, or "auto": eight priors side by side, mixed by how well they
        predict.
    prior_mean
        Mean of each weight before any data.
    link
        "logit" or "probit".
    rule
        Which Gaussian stands in for an observation, see `gaussfold.rules`.
    coupling
        "marginal" or "joint", see `gaussfold.beliefs`.
    forgetting
        In (0, 1]: weights relax towards their prior by this factor per observation; 1 forgets nothing.
    fit_intercept
        Whether to add a constant feature.
    intercept_std
        Its standard deviation before any data.

    Examples
    --------
    >>> from gaussfold.estimators.river import RiverClassifier
    >>> model = RiverClassifier(prior_std=2.0)
    >>> for colour, weight, liked in [("red", 1.0, True), ("blue", 0.5, False), ("red", 0.2, True)]:
    ...     model.learn_one({"colour": colour, "weight": weight}, liked)
    >>> model.predict_one({"colour": "red", "weight": 0.7})
    True
    >>> round(model.predict_proba_one({"colour": "green"})[True], 2)
    0.52
    """

    prior_std: float | str
    prior_mean: float
    link: Link
    rule: str
    coupling: str | Coupling
    forgetting: float
    fit_intercept: bool
    intercept_std: float

    def __init__(  # River reads it: see `keep`
        self,
        prior_std: float | str = 1.0,
        prior_mean: float = 0.0,
        link: Link = "logit",
        rule: str = "newton",
        coupling: str | Coupling = "marginal",
        forgetting: float = 1.0,
        fit_intercept: bool = True,
        intercept_std: float = 1.0,
    ) -> None:
        keep(self, locals())
        start = Start.checked(prior_std, prior_mean, fit_intercept, intercept_std, coupling, forgetting)
        self._weights = Weights(start, Bernoulli(link, "quadrature"), rule)
        self._belief: Diagonal = self._weights.blank()

    @property
    def _multiclass(self) -> bool:
        return False

    def learn_one(self, x: Example, y: object, w: float = 1.0) -> None:
        """Learn from one example; ``w`` is its weight, a label of None is left out."""
        label = 1.0 if y is True else 0.0 if y is False else labels.binary(y)
        if label != label or (w != 1.0 and labels.weight(w) == 0.0):
            return
        entries = self._weights.quick(x)
        if entries is None or not self._weights.learn_quickly(self._belief, entries, label, w)[0]:
            self._learn([self._weights.columns.named(x)], [label], np.array([w]))

    def _label(self, y: object) -> float:
        return labels.binary(y)

    def _learn(self, rows: list[Named], found: list[float], weights: Array) -> None:
        (self._belief,), _ = self._weights.learn([self._belief], rows, [np.array(found)], weights)

    def _members(self) -> list[Diagonal]:
        return [self._belief]

    def _restore(self, described: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> None:
        del described
        (self._belief,) = self._weights.restored(arrays, 1)

    def predict_proba_one(self, x: Example) -> dict[bool, float]:
        """Probability of False and True with the weights integrated out."""
        entries = self._weights.quick(x)
        if entries is not None:
            mean, variance = self._weights.look_quickly(self._belief, entries)
            if mean - mean == 0.0 and variance < math.inf:
                no, yes = self._weights.two_sides(mean, variance)
                return {False: no, True: yes}
        no, yes = self._sides([self._weights.columns.named(x)])[0].tolist()
        return {False: no, True: yes}

    def predict_latent_one(self, x: Example) -> tuple[float, float]:
        """Mean and standard deviation of x'θ."""
        mean, variance = self._weights.look(self._belief, [self._weights.columns.named(x)])
        return float(mean[0]), math.sqrt(variance[0])

    def predict_proba_many(self, X: pd.DataFrame) -> pd.DataFrame:
        """Probabilities for the rows of a dataframe."""
        import pandas as pd

        return pd.DataFrame(self._sides(self._named(X)), columns=[False, True], index=X.index)

    def _sides(self, rows: list[Named]) -> np.ndarray:
        if not rows:
            return np.empty((0, 2))
        latent = self._weights.look(self._belief, rows)
        return mixtures.both_sides(self._weights.likelihood, latent)
