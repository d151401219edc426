"""Streaming Bayesian regression for counts: Poisson, or negative binomial when they are overdispersed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from sklearn.base import RegressorMixin

from gaussfold import checks
from gaussfold.estimators import mixtures
from gaussfold.estimators._base import StreamingEstimator
from gaussfold.likelihoods import NegativeBinomial, Poisson
from gaussfold.protocols import Likelihood
from gaussfold.types import Array, ArrayLike


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


class StreamingPoissonRegressor(RegressorMixin, StreamingEstimator):  # type: ignore[misc]
    """Bayesian regression for counts, folded forward one row at a time.

    ``y ~ Poisson(exp(x'θ))`` with a Gaussian belief over θ; with ``dispersion=r`` the counts are negative
    binomial, mean ``μ = exp(x'θ)`` and variance ``μ + μ²/r``.

    Parameters
    ----------
    covariance : {"full", "lowrank", "diagonal"}, default="full"
        Shape of the posterior covariance. "lowrank": the precision is low rank plus diagonal, for more features
        than a covariance matrix has room for. "diagonal": one variance per weight, for sparse rows of any width, in
        time proportional to their nonzero entries.
    rank : int, default=10
        Rank of ``covariance="lowrank"``.
    rule : str or rule object, default=None
        Which Gaussian stands in for a row's likelihood: "vi" (None; "newton" for
        ``covariance="diagonal"``), "newton", "taylor", "ep", "pl";
        see `gaussfold.rules`.
    at : {"posterior", "prior", "extragradient"}, default="posterior"
        Which belief the rule looks at: after the row (implicit), before it, or a trial step.
    coupling : {"marginal", "joint"} or object of `gaussfold.beliefs`, default="marginal"
        For ``covariance="diagonal"``: whether each weight looks at a row with the others integrated out
        (sparse-online §3), or all share one site whose diagonal is kept.
    prior_std : float, array of shape (n_features,) or "auto", default=1.0
        Standard deviation of each weight before any data, > 0. "auto" (for ``covariance="diagonal"``): eight
        priors from 1/16 to 8 side by side, mixed by how well they predict.
    prior_mean : float or array of shape (n_features,), default=0.0
        Mean of each weight before any data. A single number is the intercept's mean too.
    forgetting : float, default=1.0
        In (0, 1]. Before each learned row the belief relaxes towards the prior by this factor.
    fit_intercept : bool, default=True
        Whether to add a constant feature; its weight is the last one of ``posterior_``.
    random_state : int, RandomState, Generator or None, default=None
        For the sampling methods. Learning is deterministic.
    dispersion : float, default=None
        None: Poisson. A number r > 0: negative binomial; the smaller, the more the counts scatter.
    target : {"count", "rate"}, default="count"
        What y holds: whole numbers, or counts divided by their exposure, with the exposure as
        ``sample_weight`` (Poisson only; the same posterior as counts with an offset log exposure).
    intercept_std : float, default=None
        Standard deviation of the intercept before any data. None: ``prior_std`` if that is one number,
        else 1.
    drift_std : float, default=0.0
        The alternative to forgetting: before each learned row every weight takes a random step of this
        standard deviation.
    tick : {"observation", "clock"}, default="observation"
        Whether forgetting or drift set in before each learned row, or only when `forget` is called.
    block_size : int, default=None
        Rows per block inside `fold`. It changes the speed, not the result; except that a low-rank posterior is
        projected once per block, so there it is part of the method (default: ``rank``, at most 32).
    second_look : int, default=0
        Keep so many rows after they were learned and visit each once more before it is let go: closer to the batch
        optimum (about four times with twice as many rows as weights), for twice the work. Not with forgetting,
        drift or refine.

    Attributes
    ----------
    coef_, coef_std_ : arrays of shape (n_features,)
        Posterior mean and standard deviation of the weights (of the log rate).
    intercept_, intercept_std_ : float
        The same for the intercept.
    posterior_ : belief
        The belief itself, the intercept's weight last.
    progressive_log_loss_ : float
        Mean of -log p(y) of predicting each row before learning it, so far. For rates it has a constant
        too little or too much: compare it between models only.
    n_observations_ : int
        Number of rows learned.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : array of shape (n_features_in_,)
        Names of the columns, if X was a dataframe whose names are all strings.

    Notes
    -----
    A missing label (NaN, None) means: leave that row out. One pass is not order-free; ``fit(..., refine=30)``
    is. Where the weights are uncertain the expected count ``exp(m + v/2)`` is far above the median
    ``exp(m)``: far from the data, with a wide prior, it can be astronomical, and that is what the model says.

    Examples
    --------
    >>> import numpy as np
    >>> from gaussfold import StreamingPoissonRegressor
    >>> X = np.array([[0.0], [0.5], [1.0], [1.5], [2.0]])
    >>> y = np.array([1, 3, 2, 6, 9])
    >>> model = StreamingPoissonRegressor(prior_std=2.0).fit(X, y)
    >>> mean, std = model.predict([[1.0], [2.0]], return_std=True)
    >>> mean.round(1), std.round(1)
    (array([3. , 8.9]), array([1.9, 4. ]))
    """

    def __init__(
        self,
        covariance: str = "full",
        rank: int = 10,
        rule: Any = None,
        at: str = "posterior",
        coupling: str = "marginal",
        prior_std: Any = 1.0,
        prior_mean: Any = 0.0,
        forgetting: float = 1.0,
        fit_intercept: bool = True,
        random_state: Any = None,
        dispersion: float | None = None,
        target: str = "count",
        intercept_std: float | None = None,
        drift_std: float = 0.0,
        tick: str = "observation",
        block_size: int | None = None,
        second_look: int = 0,
    ) -> None:
        self.covariance = covariance
        self.rank = rank
        self.rule = rule
        self.at = at
        self.coupling = coupling
        self.prior_std = prior_std
        self.prior_mean = prior_mean
        self.forgetting = forgetting
        self.fit_intercept = fit_intercept
        self.random_state = random_state
        self.dispersion = dispersion
        self.target = target
        self.intercept_std = intercept_std
        self.drift_std = drift_std
        self.tick = tick
        self.block_size = block_size
        self.second_look = second_look

    def predict(self, X: ArrayLike, return_std: bool = False) -> Any:
        """Return the expected count (or rate) of each row, and on request how far a count may be from it.

        Parameters
        ----------
        X : array, CSR matrix or dataframe of shape (n_rows, n_features)
            Finite numbers.
        return_std : bool, default=False
            Also return the standard deviation of the count: that of the rate and of the count given the
            rate together.

        Returns
        -------
        mean : array of shape (n_rows,)
        std : array of shape (n_rows,), if ``return_std``
        """
        (latent,) = self._latent(X)
        mean, variance = mixtures.predictive(self._likelihood, latent)
        return (mean, np.sqrt(variance)) if return_std else mean

    def predict_rate_std(self, X: ArrayLike) -> Array:
        """Posterior standard deviation of the rate exp(x'θ) itself, the scatter of the counts apart."""
        (latent,) = self._latent(X)
        return np.sqrt(mixtures.conditional_mean(self._likelihood, latent).variance)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.positive_only = True
        return tags

    def _resolve_likelihood(self) -> Likelihood:
        checks.one_of("target", self.target, ("count", "rate"))
        if self.dispersion is None:
            return PoissonRate() if self.target == "rate" else Poisson()
        if self.target == "rate":
            msg = "target='rate' needs dispersion=None: only for Poisson counts is the exposure the same as a weight"
            raise ValueError(msg)
        return NegativeBinomial(checks.positive("dispersion", self.dispersion))
