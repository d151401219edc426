"""A classifier for River: one dictionary of features at a time, names instead of columns.

Needs ``pip install 'gaussfold[river]'``.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from river import base

from gaussfold.beliefs.diagonal.belief import DiagonalGaussian
from gaussfold.beliefs.diagonal.coupling import Coupling, resolve_coupling
from gaussfold.beliefs.diagonal.mixture import DiagonalMixture
from gaussfold.dynamics import Forgetting
from gaussfold.estimators import mixtures
from gaussfold.estimators.parameters import keep
from gaussfold.estimators.priors import AUTO, Prior
from gaussfold.folding import fold, recipe_of
from gaussfold.likelihoods import Bernoulli
from gaussfold.likelihoods.links import Name as Link
from gaussfold.rows import Rows
from gaussfold.types import Moments

if TYPE_CHECKING:
    import pandas as pd

Example: TypeAlias = Mapping[Hashable, object]
"""Names of features and their values."""
INTERCEPT = "gaussfold.intercept"
FIRST_ROOM = 64


class RiverClassifier(base.MiniBatchClassifier):
    """Bayesian logistic or probit regression without a learning rate: the marginal Gaussian learner for River.

    A numeric feature is used as it is; a text (or any other value) is the feature "name=value" with value 1; a missing
    one (None, NaN) is absent. Features are discovered as they come; one that was never seen counts with its prior.

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
        if isinstance(prior_std, str) and prior_std != AUTO:
            msg = f"prior_std={prior_std!r}: a number > 0 or 'auto' is needed"
            raise ValueError(msg)
        self._likelihood = Bernoulli(link, "quadrature")
        recipe_of(self._likelihood, rule, "posterior")  # refuses an unknown rule here, not at the first row
        self._columns: dict[Hashable, int] = {INTERCEPT: 0} if fit_intercept else {}
        self._belief = self._prior(FIRST_ROOM)
        self._dynamics = Forgetting(forgetting, self._prior(FIRST_ROOM)) if forgetting != 1.0 else None
        self._unseen = self._belief.state()["cells"][-1]  # means and variances of a feature before any data

    @property
    def _multiclass(self) -> bool:
        return False

    def _prior(self, dim: int) -> DiagonalGaussian | DiagonalMixture:
        """A belief with room for so many features, the intercept in the first place."""
        std = self.prior_std if isinstance(self.prior_std, str) else np.asarray(float(self.prior_std))
        mean, last = np.asarray(float(self.prior_mean)), float(self.intercept_std) if self.fit_intercept else None
        belief = Prior("diagonal", dim, mean, std, resolve_coupling(self.coupling), last).diagonal_belief()
        if not self.fit_intercept:
            return belief
        state = belief.state()
        state["cells"] = np.ascontiguousarray(state["cells"][::-1])  # a prior has the intercept last
        return belief.from_state(state)

    def _make_room(self) -> None:
        """Double the belief until every known feature has a place; new places hold the prior."""
        dim = self._belief.dim
        if len(self._columns) <= dim:
            return
        while dim < len(self._columns):
            dim *= 2
        prior, state = self._prior(dim), self._belief.state()
        grown = prior.state()
        cells = np.array(np.broadcast_to(grown["cells"], (dim, *grown["cells"].shape[1:])))
        cells[: self._belief.dim] = state["cells"]
        state |= {"cells": cells, "dim": grown["dim"]}
        if "seen" in state:  # the prior does not age
            state["seen"] = np.concatenate([state["seen"], np.full(dim - self._belief.dim, state["clock"][0])])
            state["prior"] = np.array(np.broadcast_to(grown["cells"], cells.shape))
        self._belief = self._belief.from_state(state)
        if self._dynamics is not None:
            self._dynamics = Forgetting(self.forgetting, prior)

    def _features(self, x: Example) -> list[tuple[Hashable, float]]:
        """Names and values, in an order that does not depend on the dictionary's."""
        found: list[tuple[Hashable, float]] = [(INTERCEPT, 1.0)] if self.fit_intercept else []
        for name, value in x.items():
            if value is None:
                continue
            if isinstance(value, int | float | np.number | np.bool_):
                number = float(value)
                if math.isnan(number):
                    continue
                if math.isinf(number):
                    msg = f"x[{name!r}]={value!r}: finite numbers are allowed, so clip or drop it"
                    raise ValueError(msg)
                found.append((name, number))
            else:
                found.append((f"{name}={value}", 1.0))
        found.sort(key=lambda feature: (type(feature[0]).__name__, str(feature[0])))
        return found

    def _rows(self, parts: Iterable[list[tuple[Hashable, float]]]) -> Rows:
        indptr, indices, data = [0], [], []
        for part in parts:
            indices += [self._columns[name] for name, _ in part]
            data += [value for _, value in part]
            indptr.append(len(indices))
        width = self._belief.dim
        return Rows(np.array(indptr), np.array(indices, dtype=np.int64), np.array(data, dtype=np.float64), width)

    def _learn(self, xs: Sequence[Example], labels: np.ndarray, weights: np.ndarray) -> None:
        parts = [self._features(x) for x in xs]
        known = len(self._columns)
        for part in parts:
            for name, _ in part:
                self._columns.setdefault(name, len(self._columns))
        try:
            self._make_room()
            fold(
                self._belief,
                self._likelihood,
                self._rows(parts),
                labels,
                self.rule,
                sample_weight=weights,
                dynamics=self._dynamics,
            )
        except ValueError:
            for name in list(self._columns)[known:]:
                del self._columns[name]
            raise

    def _latent(self, x: Example) -> Moments:
        """Moments of x'θ; features never seen add their prior."""
        part = self._features(x)
        mean, variance = self._belief.marginals(self._rows([[f for f in part if f[0] in self._columns]]))
        for name, value in part:
            if name not in self._columns:
                mean = mean + value * self._unseen[0]
                variance = variance + value * value * self._unseen[1]
        if self._belief.log_weights.size == 1:
            return Moments(mean[:, 0], variance[:, 0])
        return mixtures.mixed(Moments(mean, variance), self._belief.log_weights)

    def learn_one(self, x: Example, y: object, w: float = 1.0) -> None:
        """Learn from one example; ``w`` is its weight, a label of None is left out."""
        if y is not None:
            self._learn([x], np.array([float(bool(y))]), np.array([float(w)]))

    def predict_proba_one(self, x: Example) -> dict[bool, float]:
        """Probability of False and True with the weights integrated out."""
        no, yes = mixtures.both_sides(self._likelihood, self._latent(x))[0].tolist()
        return {False: no, True: yes}

    def predict_latent_one(self, x: Example) -> tuple[float, float]:
        """Mean and standard deviation of x'θ."""
        mean, variance = self._latent(x)
        return float(mean[0]), math.sqrt(variance[0])

    def learn_many(self, X: pd.DataFrame, y: pd.Series) -> None:
        """Learn from the rows of a dataframe in order: the same as one by one."""
        self._learn(X.to_dict(orient="records"), np.array([float(bool(label)) for label in y]), np.ones(len(X)))

    def predict_proba_many(self, X: pd.DataFrame) -> pd.DataFrame:
        """Probabilities for the rows of a dataframe."""
        import pandas as pd

        return pd.DataFrame([self.predict_proba_one(x) for x in X.to_dict(orient="records")], index=X.index)
