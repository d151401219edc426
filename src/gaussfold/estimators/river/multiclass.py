"""Any number of classes, which may appear at any time."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from river import base
from scipy.special import logsumexp

from gaussfold.beliefs.diagonal.coupling import Coupling
from gaussfold.estimators import mixtures
from gaussfold.estimators.parameters import keep
from gaussfold.estimators.river import labels, storage
from gaussfold.estimators.river.features import Example, Named
from gaussfold.estimators.river.labels import Label
from gaussfold.estimators.river.model import RiverModel
from gaussfold.estimators.river.weights import Diagonal, Start, Weights
from gaussfold.likelihoods import Bernoulli
from gaussfold.likelihoods.links import Name as Link
from gaussfold.types import Array

if TYPE_CHECKING:
    import pandas as pd


class RiverMulticlassClassifier(RiverModel, base.MiniBatchClassifier):
    """Bayesian logistic or probit regression for River, one belief per class, one class against the rest.

    Labels are texts, numbers or truth values, and are discovered as they come. A class that appears late starts with a
    belief that has seen every earlier row as "not this class": it knows what it would have known had it been announced
    at the start. Features and missing values are as in `RiverClassifier`. The probability of a class is that of its
    belief, divided by the sum over the classes seen so far.

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
    >>> from gaussfold.estimators.river import RiverMulticlassClassifier
    >>> model = RiverMulticlassClassifier(prior_std=2.0)
    >>> for size, kind in [(0.1, "mouse"), (3.0, "elephant"), (0.4, "cat"), (2.8, "elephant"), (0.1, "mouse")]:
    ...     model.learn_one({"size": size}, kind)
    >>> model.predict_one({"size": 2.5})
    'elephant'
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
        self._unseen: Diagonal = self._weights.blank()
        """Of a class that no row had so far."""
        self._beliefs: dict[Label, Diagonal] = {}

    @property
    def _multiclass(self) -> bool:
        return True

    def learn_one(self, x: Example, y: object, w: float = 1.0) -> None:
        """Learn from one example; ``w`` is its weight, a label of None is left out."""
        label, weight = labels.class_label(y), labels.weight(w)
        if label is None or weight == 0.0:
            return
        entries = self._weights.quick(x) if label in self._beliefs else None
        if entries is None or not self._weights.learn_all(self._members(), entries, self._against(label), weight):
            self._learn([self._weights.columns.named(x)], [label], np.array([weight]))

    def _label(self, y: object) -> Label | None:
        return labels.class_label(y)

    def _learn(self, rows: list[Named], found: list[Label], weights: Array) -> None:
        new = [label for label in dict.fromkeys(found) if label not in self._beliefs]
        classes = [*self._beliefs, *new]
        # the row's class is not that of the belief which stands for classes to come
        targets = [np.zeros(len(found)), *(np.array([label == key for label in found], float) for key in classes)]
        beliefs = [*self._members(), *(self._unseen for _ in new)]
        (unseen, *known), _ = self._weights.learn(beliefs, rows, targets, weights)
        self._unseen, self._beliefs = unseen, dict(zip(classes, known, strict=True))

    def _members(self) -> list[Diagonal]:
        return [self._unseen, *self._beliefs.values()]

    def _against(self, label: Label) -> list[float]:
        return [0.0, *(float(key == label) for key in self._beliefs)]

    def predict_proba_one(self, x: Example) -> dict[Label, float]:
        """Probability of every class seen so far, the weights integrated out; nothing before the first row."""
        entries = self._weights.quick(x)
        if entries is None or not self._beliefs:
            return dict(zip(self._beliefs, self._shares([self._weights.columns.named(x)])[0].tolist(), strict=True))
        found = []
        for belief in self._beliefs.values():
            mean, variance = self._weights.look_quickly(belief, entries)
            if not (mean - mean == 0.0 and variance < math.inf):
                return dict(zip(self._beliefs, self._shares([self._weights.columns.named(x)])[0].tolist(), strict=True))
            found.append(self._weights.two_sides(mean, variance)[1])
        total = sum(found)
        if not total > 0.0:  # all underflow
            return dict(zip(self._beliefs, self._shares([self._weights.columns.named(x)])[0].tolist(), strict=True))
        return {label: share / total for label, share in zip(self._beliefs, found, strict=True)}

    def predict_proba_many(self, X: pd.DataFrame) -> pd.DataFrame:
        """Probabilities for the rows of a dataframe, a column for each class seen so far."""
        import pandas as pd

        return pd.DataFrame(self._shares(self._named(X)), columns=list(self._beliefs), index=X.index)

    def _shares(self, rows: list[Named]) -> Array:
        """Each class's own probability over the sum of them all, shape (n, classes)."""
        if not rows or not self._beliefs:
            return np.empty((len(rows), len(self._beliefs)))
        likelihood = self._weights.likelihood
        latents = [self._weights.look(belief, rows) for belief in self._beliefs.values()]
        log_p = np.stack([mixtures.log_predictive(likelihood, 1.0, latent) for latent in latents], axis=1)
        return np.asarray(np.exp(log_p - logsumexp(log_p, axis=1, keepdims=True)))

    # Model files: see `gaussfold.store`.

    def store_header(self) -> dict[str, object]:
        """Parameters, names of the features and classes, as JSON can hold them."""
        return super().store_header() | {"classes": storage.plain_names(self._beliefs, "class")}

    def _restore(self, described: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> None:
        classes = storage.distinct("classes", described["classes"])
        self._unseen, *known = self._weights.restored(arrays, len(classes) + 1)
        self._beliefs = dict(zip(classes, known, strict=True))
