"""Streaming Bayesian regression for counts: Poisson, or negative binomial when they are overdispersed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from sklearn.utils import Tags

from gaussfold import checks
from gaussfold.beliefs.diagonal.coupling import Coupling
from gaussfold.estimators import mixtures
from gaussfold.estimators.documented import documented
from gaussfold.estimators.parameters import RandomState, StreamingParameters, keep
from gaussfold.estimators.regression import RegressionEstimator
from gaussfold.likelihoods import NegativeBinomial, Poisson
from gaussfold.protocols import Likelihood
from gaussfold.rules.at import At
from gaussfold.rules.base import StreamRule
from gaussfold.types import Array, ArrayLike, Moments


@dataclass(frozen=True)
class PoissonRate(Poisson):
    """Counts per unit of exposure, the exposure being the row's weight.

    A count n over an exposure w has ``log p = n f - w e^f + const = w (y f - e^f) + const`` with
    ``y = n / w``: the Poisson likelihood of y to the power w, where y need not be whole.
    """

    labels: ClassVar[str] = "numbers >= 0"
    remedy: ClassVar[str] = "give counts divided by their exposure, and the exposure as sample_weight"

    def explains(self, y: Array) -> np.ndarray:
        """``y ≥ 0``."""
        return np.asarray(y >= 0.0)


@documented(StreamingParameters)
class StreamingPoissonRegressor(RegressionEstimator):
    """Bayesian regression for counts, folded forward one row at a time.

    ``y ~ Poisson(exp(x'θ))`` with a Gaussian belief over θ; with ``dispersion=r`` the counts are negative
    binomial, mean ``μ = exp(x'θ)`` and variance ``μ + μ²/r``.

    Parameters
    ----------
    %(covariance, rank, rule, at, coupling, prior_std, prior_mean, forgetting, fit_intercept, random_state)s
    dispersion : float, default=None
        None: Poisson. A number r > 0: negative binomial; the smaller, the more the counts scatter.
    target : {"count", "rate"}, default="count"
        What y holds: whole numbers, or counts divided by their exposure, with the exposure as
        ``sample_weight`` (Poisson only; the same posterior as counts with an offset log exposure).
    %(intercept_std, drift_std, tick, block_size, second_look, ensemble, scale)s

    Attributes
    ----------
    %(coef_)s
        They act on the log of the rate.
    %(intercept_, posterior_, prior_std_, progressive_log_loss_)s
        For rates it has a constant too little or too much: compare it between models only.
    %(n_observations_, n_features_in_, feature_names_in_)s

    Notes
    -----
    A missing label (NaN, None) means: leave that row out. One pass is not order-free; `fit`, which visits rows
    until the posterior settles, is. Where the weights are uncertain the expected count ``exp(m + v/2)`` is far
    above the median ``exp(m)``: far from the data, with a wide prior, it can be astronomical, and that is what
    the model says.

    Examples
    --------
    >>> import numpy as np
    >>> from gaussfold import StreamingPoissonRegressor
    >>> X = np.array([[0.0], [0.5], [1.0], [1.5], [2.0]])
    >>> y = np.array([1, 3, 2, 6, 9])
    >>> model = StreamingPoissonRegressor(prior_std=2.0).fit(X, y)
    >>> mean, std = model.predict([[1.0], [2.0]], return_std=True)
    >>> mean.round(1), std.round(1)
    (array([3.2, 9. ]), array([2., 4.]))
    """

    dispersion: float | None
    target: str

    def __init__(  # scikit-learn reads it: see `keep`
        self,
        covariance: str = "full",
        rank: int | None = None,
        rule: str | StreamRule | None = None,
        at: str | At = "posterior",
        coupling: str | Coupling = "marginal",
        prior_std: ArrayLike = "auto",
        prior_mean: ArrayLike = 0.0,
        forgetting: float | str = 1.0,
        fit_intercept: bool = True,
        random_state: RandomState = None,
        dispersion: float | None = None,
        target: str = "count",
        intercept_std: float | None = None,
        drift_std: float | str = 0.0,
        tick: str = "observation",
        block_size: int | None = None,
        second_look: int = 0,
        ensemble: int = 1,
        scale: bool = True,
    ) -> None:
        keep(self, locals())

    def predict_rate_std(self, X: ArrayLike) -> Array:
        """Posterior standard deviation of the rate exp(x'θ) itself, the scatter of the counts apart."""
        (latent,) = self._latent(X)
        return np.sqrt(mixtures.conditional_mean(self._likelihood, latent).variance)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.target_tags.positive_only = True
        return tags

    def _label_moments(self, latent: Moments) -> Moments:
        return mixtures.predictive(self._likelihood, latent)

    def _resolve_likelihood(self) -> Likelihood:
        checks.one_of("target", self.target, ("count", "rate"))
        if self.dispersion is None:
            return PoissonRate() if self.target == "rate" else Poisson()
        if self.target == "rate":
            msg = "target='rate' needs dispersion=None: only for Poisson counts is the exposure the same as a weight"
            raise ValueError(msg)
        return NegativeBinomial(checks.positive("dispersion", self.dispersion))
