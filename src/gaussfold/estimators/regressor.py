"""Streaming Bayesian linear regression, with the noise known, learned, or heavy-tailed."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import RegressorMixin

from gaussfold import checks
from gaussfold.estimators import noise
from gaussfold.estimators._base import StreamingEstimator
from gaussfold.folding import FoldResult
from gaussfold.likelihoods import Gaussian, StudentT
from gaussfold.protocols import Likelihood
from gaussfold.types import Array, ArrayLike, Moments


class StreamingRegressor(RegressorMixin, StreamingEstimator):  # type: ignore[misc]
    """Bayesian linear regression, folded forward one row at a time.

    ``y = x'θ + ε`` with a Gaussian belief over θ. For Gaussian noise this is the Kalman filter, and one pass
    is the exact posterior (rvga Theorem 2), whatever the rule and in whatever order the rows come.

    Parameters
    ----------
    covariance : {"full", "lowrank", "diagonal"}, default="full"
        Shape of the posterior covariance. "lowrank": the precision is low rank plus diagonal, for more features
        than a covariance matrix has room for. "diagonal": one variance per weight, for sparse rows of any width, in
        time proportional to their nonzero entries.
    rank : int, default=10
        Rank of ``covariance="lowrank"``.
    rule : str or rule object, default=None
        Which Gaussian stands in for a row's likelihood ("vi" if None); matters for Student-t noise only.
    at : {"posterior", "prior", "extragradient"}, default="posterior"
        Which belief the rule looks at; matters for Student-t noise only.
    coupling : {"marginal", "joint"} or object of `gaussfold.beliefs`, default="marginal"
        For ``covariance="diagonal"``: whether each weight looks at a row with the others integrated out
        (sparse-online §3), or all share one site whose diagonal is kept.
    prior_std : float, array of shape (n_features,) or "auto", default=1.0
        Standard deviation of each weight before any data, > 0. "auto" (for ``covariance="diagonal"``): eight
        priors from 1/16 to 8 side by side, mixed by how well they predict. With ``noise_std="learn"`` it is in units of
        the noise: 10 means ten times the (unknown) standard deviation of ε. The same goes for
        ``intercept_std`` and ``drift_std``, but not for ``prior_mean``.
    prior_mean : float or array of shape (n_features,), default=0.0
        Mean of each weight before any data. A single number is the intercept's mean too.
    forgetting : float, default=1.0
        In (0, 1]. Before each learned row the belief relaxes towards the prior by this factor (that over
        the noise too, if it is learned).
    fit_intercept : bool, default=True
        Whether to add a constant feature; its weight is the last one of ``posterior_``.
    random_state : int, RandomState, Generator or None, default=None
        For the sampling methods. Learning is deterministic.
    noise_std : float or "learn", default=1.0
        Standard deviation of ε, > 0. "learn": unknown, with an inverse-gamma prior on its square; the
        posterior is still exact (normal-inverse-gamma) and predictions follow a Student-t distribution.
    df : float, default=None
        A number gives ε a Student-t distribution with so many degrees of freedom and scale ``noise_std``:
        outliers lose their pull. Not with ``noise_std="learn"``.
    noise_guess : float, default=1.0
        For ``noise_std="learn"``: what its value might be ...
    noise_guess_worth : float, default=0.01
        ... and how many observations that guess is worth, > 0.
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
        Posterior mean and standard deviation of the weights.
    intercept_, intercept_std_ : float
        The same for the intercept.
    noise_std_ : float
        ``noise_std``, or the root of the posterior mean of the noise's variance if that is learned
        (infinite until about two rows have been seen).
    posterior_ : belief
        The belief itself, the intercept's weight last; in units of the noise if that is learned.
    progressive_log_loss_ : float
        Mean of -log p(y) of predicting each row before learning it, so far.
    n_observations_ : int
        Number of rows learned.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : array of shape (n_features_in_,)
        Names of the columns, if X was a dataframe whose names are all strings.

    Notes
    -----
    A row of weight w counts as w equal rows. A missing label (NaN, None) means: leave that row out.

    References
    ----------
    rvga Theorem 2. The recursion for unknown noise is derived in `gaussfold.estimators.noise`.

    Examples
    --------
    >>> import numpy as np
    >>> from gaussfold import StreamingRegressor
    >>> X = np.linspace(-1, 1, 9)[:, None]
    >>> y = 0.5 + 2 * X[:, 0] + 0.1 * np.cos(40 * X[:, 0])
    >>> model = StreamingRegressor(noise_std="learn", prior_std=100.0)
    >>> for row, label in zip(X, y):
    ...     model = model.partial_fit([row], [label])
    >>> model.coef_.round(2), round(float(model.noise_std_), 2)
    (array([2.]), 0.09)
    >>> mean, std = model.predict([[0.0], [50.0]], return_std=True)
    >>> mean.round(1), std.round(1)
    (array([  0.5, 100.5]), array([0.1, 2.1]))
    """

    _noise: noise.NoiseBelief | None

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
        noise_std: float | str = 1.0,
        df: float | None = None,
        noise_guess: float = 1.0,
        noise_guess_worth: float = 0.01,
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
        self.noise_std = noise_std
        self.df = df
        self.noise_guess = noise_guess
        self.noise_guess_worth = noise_guess_worth
        self.intercept_std = intercept_std
        self.drift_std = drift_std
        self.tick = tick
        self.block_size = block_size
        self.second_look = second_look

    @property
    def noise_std_(self) -> float:
        """Standard deviation (scale, for Student-t noise) of ε: given, or as learned so far."""
        self._require_fitted()
        return float(self.noise_std) if self._noise is None else float(np.sqrt(self._noise.variance))

    def predict(self, X: ArrayLike, return_std: bool = False) -> Any:
        """Return the expected label of each row, and on request how far a label may be from it.

        Parameters
        ----------
        X : array, CSR matrix or dataframe of shape (n_rows, n_features)
            Finite numbers.
        return_std : bool, default=False
            Also return the standard deviation of the label: that of x'θ and the noise together
            (`predict_latent` leaves the noise out). It is infinite where no variance exists: Student-t noise
            with ``df <= 2``, or learned noise before about two rows.

        Returns
        -------
        mean : array of shape (n_rows,)
        std : array of shape (n_rows,), if ``return_std``
        """
        (latent,) = self._latent(X)
        if not return_std:
            return latent.mean
        if self._noise is not None:
            return latent.mean, np.sqrt(latent.variance + self._noise.variance)
        return latent.mean, np.sqrt(self._likelihood.predictive(latent).variance)

    def _resolve_likelihood(self) -> Likelihood:
        checks.positive("noise_guess", self.noise_guess)
        checks.positive("noise_guess_worth", self.noise_guess_worth)
        if isinstance(self.noise_std, str):
            checks.one_of("noise_std", self.noise_std, ("learn",), also="a number > 0")
            if isinstance(self.prior_std, str):
                msg = "prior_std='auto' and noise_std='learn' are alternatives: give one of them a number"
                raise ValueError(msg)  # noqa: TRY004
            if self.df is not None:
                msg = f"df={self.df!r} needs a known scale: give noise_std a number, or leave df=None"
                raise ValueError(msg)
            return Gaussian(1.0)
        std = checks.positive("noise_std", self.noise_std)
        return Gaussian(std) if self.df is None else StudentT(checks.positive("df", self.df), std)

    def _prepare(self) -> None:
        super()._prepare()
        learn = isinstance(self.noise_std, str)
        self._noise = noise.NoiseBelief.from_guess(self.noise_guess, self.noise_guess_worth) if learn else None

    def _score(self, results: list[FoldResult], targets: list[Array], learned: np.ndarray, weight: Array) -> Array:
        if self._noise is None:
            return super()._score(results, targets, learned, weight)
        residual = targets[0][learned] - results[0].mean[learned]
        variance = results[0].variance[learned]
        factor = self.forgetting if self.tick == "observation" else 1.0
        self._noise, shape, scale = self._noise.learn(residual, variance, weight, factor)
        return noise.log_student(residual, variance, shape, scale)

    def _latent(self, X: ArrayLike) -> list[Moments]:
        return [noise.scaled(moments, self._noise) for moments in super()._latent(X)]

    def _weights(self) -> tuple[Array, Array]:
        mean, std = super()._weights()
        return mean, np.sqrt(noise.scaled(Moments(mean, std**2), self._noise).variance)

    def _draws(self, n_samples: int, rng: np.random.Generator) -> list[Array]:
        (draws,) = super()._draws(n_samples, rng)
        if self._noise is not None:
            variance = self._noise.scale / rng.gamma(self._noise.shape, size=n_samples)
            mean = self._beliefs[0].mean
            draws = mean + (draws - mean) * np.sqrt(variance)[:, None]
        return [draws]
