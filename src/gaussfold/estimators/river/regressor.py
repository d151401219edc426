"""Numbers: Bayesian linear regression for River."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from river import base

from gaussfold import checks, schema
from gaussfold.beliefs.diagonal.coupling import Coupling
from gaussfold.estimators.noise import NoiseBelief, scaled
from gaussfold.estimators.parameters import keep
from gaussfold.estimators.river import labels
from gaussfold.estimators.river.features import Example, Named
from gaussfold.estimators.river.model import RiverModel
from gaussfold.estimators.river.weights import Diagonal, Start, Weights
from gaussfold.likelihoods import Gaussian
from gaussfold.types import Array, Moments

if TYPE_CHECKING:
    import pandas as pd

LEARN = "learn"
START = 1.0
"""Shape and scale of the noise's belief before any data: a guess of 1 that counts for two observations."""
NOISE = schema.Part("noise", (2,), "double", positive=True)


class RiverRegressor(RiverModel, base.MiniBatchRegressor):
    """Bayesian linear regression without a learning rate, one mean and one variance per feature, for River.

    Features, missing values and labels that are missing are as in `RiverClassifier`. Scale features first
    (``StandardScaler() | RiverRegressor()``); a target far from 0 is the intercept's, whose prior is wide.

    Parameters
    ----------
    prior_std
        Standard deviation of each weight before any data; where the noise is learned, in units of it.
    prior_mean
        Mean of each weight before any data.
    noise_std
        Standard deviation of the target given the features, or "learn".
    rule
        Which Gaussian stands in for an observation, see `gaussfold.rules`; for this likelihood all agree.
    coupling
        "joint" or "marginal", see `gaussfold.beliefs`.
    forgetting
        In (0, 1]: weights (and the noise) relax towards their prior by this factor per observation; 1 forgets nothing.
    fit_intercept
        Whether to add a constant feature.
    intercept_std
        Its standard deviation before any data.

    Examples
    --------
    >>> from gaussfold.estimators.river import RiverRegressor
    >>> model = RiverRegressor(prior_std=3.0)
    >>> for size, price in [(0.5, 1.1), (1.0, 1.9), (1.5, 3.1), (2.0, 4.0)]:
    ...     model.learn_one({"size": size}, price)
    >>> round(model.predict_one({"size": 3.0}), 1)
    5.1
    """

    prior_std: float
    prior_mean: float
    noise_std: float | str
    rule: str
    coupling: str | Coupling
    forgetting: float
    fit_intercept: bool
    intercept_std: float

    def __init__(  # River reads it: see `keep`
        self,
        prior_std: float = 1.0,
        prior_mean: float = 0.0,
        noise_std: float | str = LEARN,
        rule: str = "newton",
        coupling: str | Coupling = "joint",
        forgetting: float = 1.0,
        fit_intercept: bool = True,
        intercept_std: float = 100.0,
    ) -> None:
        keep(self, locals())
        checks.positive("prior_std", prior_std)
        learn = isinstance(noise_std, str) and noise_std == LEARN
        std = 1.0 if learn else checks.positive("noise_std", noise_std, remedy="or 'learn'")
        start = Start.checked(prior_std, prior_mean, fit_intercept, intercept_std, coupling, forgetting)
        self._weights = Weights(start, Gaussian(std), rule)
        self._belief: Diagonal = self._weights.blank()
        self._shape_scale = (START, START) if learn else None

    def learn_one(self, x: Example, y: object, w: float = 1.0) -> None:
        """Learn from one example; ``w`` is its weight, a label of None is left out."""
        label, weight = labels.number(y), labels.weight(w)
        if label != label or weight == 0.0:
            return
        entries = self._weights.quick(x)
        if entries is not None:
            good, mean, variance = self._weights.learn_quickly(self._belief, entries, label, weight)
            if good:
                self._learn_noise(label - mean, variance, weight)
                return
        self._learn([self._weights.columns.named(x)], [label], np.array([weight]))

    def _label(self, y: object) -> float:
        return labels.number(y)

    def _learn(self, rows: list[Named], found: list[float], weights: Array) -> None:
        target = np.array(found)
        (self._belief,), (before,) = self._weights.learn([self._belief], rows, [target], weights)
        for residual, variance, w in zip(target - before.mean, before.variance, weights, strict=True):
            self._learn_noise(float(residual), float(variance), float(w))

    def _learn_noise(self, residual: float, variance: float, w: float) -> None:
        """As `NoiseBelief.learn` for one row, in numbers: a record takes as long as the row."""
        if self._shape_scale is not None:
            shape, scale = self._shape_scale
            keep = self.forgetting
            back = (1.0 - keep) * START
            gain = 0.5 * w * residual * residual / (1.0 + w * variance)
            self._shape_scale = keep * shape + back + 0.5 * w, keep * scale + back + gain

    @property
    def _noise(self) -> NoiseBelief | None:
        return None if self._shape_scale is None else NoiseBelief(*self._shape_scale, START, START)

    def predict_one(self, x: Example) -> float:
        """Mean of the target."""
        entries = self._weights.quick(x)
        if entries is not None:
            mean, _ = self._weights.look_quickly(self._belief, entries)
            if mean - mean == 0.0:
                return mean
        return float(self._weights.look(self._belief, [self._weights.columns.named(x)]).mean[0])

    def predict_std_one(self, x: Example) -> float:
        """Standard deviation of the target, noise and what is not known of the weights; infinite while all is open."""
        return math.sqrt(self._target([self._weights.columns.named(x)]).variance[0])

    def predict_latent_one(self, x: Example) -> tuple[float, float]:
        """Mean and standard deviation of x'θ, noise apart."""
        moments = self._weights.look(self._belief, [self._weights.columns.named(x)])
        mean, variance = scaled(moments, self._noise)
        return float(mean[0]), math.sqrt(variance[0])

    def predict_many(self, X: pd.DataFrame) -> pd.Series:
        """Means of the target for the rows of a dataframe."""
        import pandas as pd

        rows = self._named(X)
        means = self._weights.look(self._belief, rows).mean if rows else np.empty(0)
        return pd.Series(means, index=X.index, dtype=float)

    def _target(self, rows: list[Named]) -> Moments:
        mean, variance = self._weights.likelihood.predictive(self._weights.look(self._belief, rows))
        return scaled(Moments(mean, variance), self._noise)

    def _members(self) -> list[Diagonal]:
        return [self._belief]

    # Model files: see `gaussfold.store`.

    def state(self) -> dict[str, np.ndarray]:
        """Everything numeric that was learned, as plain named arrays."""
        arrays = super().state()
        return arrays if self._shape_scale is None else arrays | {"noise": np.array(self._shape_scale)}

    def _restore(self, described: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> None:
        del described
        (self._belief,) = self._weights.restored(arrays, 1)
        learns = self._shape_scale is not None
        schema.equal("noise", "noise" in arrays, learns, "as noise_std says whether it is learned")
        if learns:
            schema.check(arrays, (NOISE,))
            shape, scale = arrays["noise"].tolist()
            self._shape_scale = shape, scale
