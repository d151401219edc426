"""Streaming Bayesian linear regression, with the noise known, learned, or heavy-tailed."""

from __future__ import annotations

import numpy as np

from gaussfold import checks
from gaussfold.beliefs.dense.belief import DenseGaussian
from gaussfold.beliefs.diagonal.coupling import Coupling
from gaussfold.beliefs.lowrank.belief import LowRankGaussian
from gaussfold.estimators import gaussians, robust, settling
from gaussfold.estimators.coordinates import members
from gaussfold.estimators.documented import documented
from gaussfold.estimators.folded import Call, Folded
from gaussfold.estimators.mixtures import MixedMoments
from gaussfold.estimators.noise import NoiseBelief, log_student
from gaussfold.estimators.noise_bank import NoiseBank
from gaussfold.estimators.parameters import RandomState, StreamingParameters, keep
from gaussfold.estimators.priors import AnyBelief
from gaussfold.estimators.regression import RegressionEstimator
from gaussfold.estimators.settling import MOST_VISITS, SETTLED
from gaussfold.folding import FoldResult
from gaussfold.likelihoods import Gaussian, StudentT
from gaussfold.protocols import Likelihood
from gaussfold.rows import Block, Rows, dense_rows
from gaussfold.rules.at import At
from gaussfold.rules.base import StreamRule
from gaussfold.types import Array, ArrayLike, Moments

OPEN_ROWS = 0.1
"""Share of a row that counts for the noise at least, where a low-rank belief has dropped factors."""


@documented(StreamingParameters)
class StreamingRegressor(RegressionEstimator):
    """Bayesian linear regression, folded forward one row at a time.

    ``y = x'θ + ε`` with a Gaussian belief over θ. For Gaussian noise this is the Kalman filter, and one pass
    is the exact posterior (rvga Theorem 2), whatever the rule and in whatever order the rows come.

    Parameters
    ----------
    %(covariance, rank, rule)s
        It matters for Student-t noise only.
    %(at)s
        It matters for Student-t noise only.
    %(coupling, prior_std)s
        With ``noise_std="learn"`` it is in units of the noise: 10 means ten times the (unknown) standard deviation of
        ε. The same goes for ``intercept_std`` and ``drift_std``, but not for ``prior_mean``.
    %(prior_mean, forgetting)s
        If the noise is learned, the belief over it relaxes too.
    %(fit_intercept, random_state)s
    noise_std : float or "learn", default="learn"
        Standard deviation of ε, > 0. "learn": unknown, with an inverse-gamma prior on its square; the
        posterior is still exact (normal-inverse-gamma) and predictions follow a Student-t distribution.
    df : float, default=None
        A number gives ε a Student-t distribution with so many degrees of freedom and scale ``noise_std``:
        outliers lose their pull. With ``noise_std="learn"`` (and ``covariance="full"``) the scale is learned as well,
        see `gaussfold.estimators.robust`, and one pass goes row by row in Python, some 50 µs each.
    noise_guess : float, default=1.0
        For ``noise_std="learn"``: what its value might be, with ``scale=True`` in units of the labels' spread ...
    noise_guess_worth : float, default=0.01
        ... and how many observations that guess is worth, > 0.
    %(intercept_std, drift_std, tick, block_size, second_look, ensemble, scale)s

    Attributes
    ----------
    %(coef_, intercept_)s
    noise_std_ : float
        ``noise_std``, or the root of the posterior mean of the noise's variance if that is learned
        (infinite until about two rows have been seen).
    %(posterior_)s
        In units of the noise, if that is learned.
    %(prior_std_, progressive_log_loss_, n_observations_, n_features_in_, feature_names_in_)s

    Notes
    -----
    A row of weight w counts as w equal rows. A missing label (NaN, None) means: leave that row out. The standard
    deviation of a prediction is infinite where no variance exists: Student-t noise with ``df <= 2``, or learned noise
    before about two rows.

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

    _wide = 1000.0  # in units of the noise, or of the labels' spread
    _reach = 3.0

    noise_std: float | str
    df: float | None
    noise_guess: float
    noise_guess_worth: float

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
        noise_std: float | str = "learn",
        df: float | None = None,
        noise_guess: float = 1.0,
        noise_guess_worth: float = 0.01,
        intercept_std: float | None = None,
        drift_std: float | str = 0.0,
        tick: str = "observation",
        block_size: int | None = None,
        second_look: int = 0,
        ensemble: int = 1,
        scale: bool = True,
    ) -> None:
        keep(self, locals())

    @property
    def noise_std_(self) -> float:
        """Standard deviation (scale, for Student-t noise) of ε: given, or as learned so far."""
        self._require_fitted()
        if isinstance(self._noise, NoiseBank):
            return float(np.sqrt(self._noise.variance(self._bank())))
        return float(self.noise_std) if self._noise is None else float(np.sqrt(self._noise.variance))

    def _label_moments(self, latent: Moments) -> Moments:
        if isinstance(self._noise, NoiseBank) and isinstance(latent, MixedMoments):
            return self._noise.labels(latent)
        if isinstance(self._noise, NoiseBelief):
            wider = 1.0 if self._robust is None else robust.spread(self._robust)
            return Moments(latent.mean, latent.variance + wider * self._noise.variance)
        return Moments(latent.mean, self._likelihood.predictive(latent).variance)

    def _resolve_likelihood(self) -> Likelihood:
        checks.positive("noise_guess", self.noise_guess)
        checks.positive("noise_guess_worth", self.noise_guess_worth)
        if isinstance(self.noise_std, str):
            checks.one_of("noise_std", self.noise_std, ("learn",), also="a number > 0")
            self._check_robust()
            return Gaussian(1.0)
        std = checks.positive("noise_std", self.noise_std)
        return Gaussian(std) if self.df is None else StudentT(checks.positive("df", self.df), std)

    @property
    def _robust(self) -> float | None:
        """Degrees of freedom of a noise whose scale is learned."""
        return self.df if isinstance(self.noise_std, str) else None

    def _check_robust(self) -> None:
        """Refuse heavy tails of unknown scale where that is not defined."""
        if self.df is None:
            return
        checks.positive("df", self.df)
        now = self._settings
        if self.covariance != "full" or now.banks or now.second_look:
            msg = (
                f"df={self.df!r} with noise_std='learn' needs covariance='full', numbers for forgetting and drift_std, "
                "and second_look=0; or give noise_std a number, such as 1.48 times the median of |y - predict(X)| "
                "after a fit without df"
            )
            raise ValueError(msg)

    def _own_fold(self, belief: AnyBelief, design: Rows | Block, call: Call) -> FoldResult | None:
        if self._robust is None or not isinstance(self._noise, NoiseBelief) or not isinstance(belief, DenseGaussian):
            return None
        factor = float(self.forgetting) if self.tick == "observation" else 1.0
        trace, self._noise = robust.one_pass(
            belief, self._noise, _as_rows(design, call), self._robust, self._dynamics(0), factor
        )
        return trace

    def _own_settle(self, belief: AnyBelief, call: Call) -> AnyBelief | None:
        if self._robust is None or not isinstance(self._noise, NoiseBelief):
            return None
        rows, move = _as_rows(self._seen(call.X), call), np.inf
        for _ in range(MOST_VISITS):
            (before,), (prior,), noise = gaussians.dense([belief]), gaussians.dense(self._priors()), self._noises()[0]
            belief, self._noise = robust.again(before, noise, prior, rows, self._robust)
            if self._ways is not None:
                (belief,) = self._look([belief], None)
            move = gaussians.farthest(gaussians.dense([belief]), [before])
            if move <= SETTLED:
                return belief
        settling.warn_unsettled(move)
        return belief

    def _refuse_refine(self, visits: int) -> None:
        if visits and self._robust is not None:
            msg = f"refine={visits} with df={self.df!r} and noise_std='learn': leave refine='auto', until it settles"
            raise ValueError(msg)

    def _judged(self, belief: AnyBelief, prior: AnyBelief) -> tuple[AnyBelief, AnyBelief, Likelihood] | None:
        pair = gaussians.dense([belief, prior])
        if self._robust is None or not isinstance(self._noise, NoiseBelief) or len(pair) != 2:
            return None
        scale = float(np.sqrt(self._noise.scale / self._noise.shape))
        one, other = (DenseGaussian.from_factor(each.mean, scale * each.factor) for each in pair)
        return one, other, StudentT(self._robust, scale)

    def _known_noise(self) -> float | None:
        return None if self._noise is None or self._robust is not None else float(self.noise_std_)

    def _label_noise(self) -> float | None:
        return 0.0 if isinstance(self.noise_std, str) else float(self.noise_std)

    def _noise_guess(self) -> float:
        return self.noise_guess

    def _unknown_noise(self) -> NoiseBelief | None:
        learn = isinstance(self.noise_std, str)
        return NoiseBelief.from_guess(self.noise_guess, self.noise_guess_worth) if learn else None

    def _score(self, folded: Folded) -> Array:
        if self._noise is None or self._robust is not None:
            return folded.log_predictive()
        if isinstance(self._noise, NoiseBank):
            pace = self._settings.ticks_per_row
            self._noise, score = self._noise.learn(self._bank(), folded, per_row=pace, least=self._open_rows())
            return score
        result, rows = folded.results[0], folded.learned
        residual, variance = folded.targets[0][rows] - result.mean[rows], result.variance[rows]
        factor = float(self.forgetting) if self.tick == "observation" else 1.0
        self._noise, shape, scale = self._noise.learn(residual, variance, folded.weight, factor, self._open_rows())
        return log_student(residual, variance, shape, scale)

    def _open_rows(self) -> float:
        """How much of a row counts for the noise at least: all of it, unless factors are dropped."""
        low = [each for each in members(self._beliefs[0]) if isinstance(each, LowRankGaussian)]
        return OPEN_ROWS if any(each.rank < each.dim for each in low) else 1.0


def _as_rows(design: Rows | Block, call: Call) -> tuple[Block, Array, Array]:
    """Design, labels and weights."""
    (target,) = call.targets
    weight = np.ones(target.size) if call.weight is None else call.weight
    return design if isinstance(design, Block) else Block(dense_rows(design)), target, weight
