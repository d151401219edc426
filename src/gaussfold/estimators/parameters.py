"""The parameters that every streaming estimator takes: their types, their documentation, and how they are kept."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

import numpy as np

from gaussfold.beliefs.diagonal.coupling import Coupling
from gaussfold.rules.at import At
from gaussfold.rules.base import StreamRule
from gaussfold.types import ArrayLike

RandomState: TypeAlias = int | np.random.RandomState | np.random.Generator | None


class StreamingParameters:
    """What the estimators have in common; `gaussfold.estimators.documented` quotes the entries below.

    Parameters
    ----------
    covariance : {"full", "lowrank", "diagonal"}, default="full"
        Shape of the posterior covariance. "lowrank": the precision is low rank plus diagonal, for more features
        than a covariance matrix has room for. "diagonal": one variance per weight, for sparse rows of any width, in
        time proportional to their nonzero entries.
    rank : int, default=None
        Rank of ``covariance="lowrank"``; None: 10, or as many as there are weights if they are fewer.
    rule : str or rule object, default=None
        Which Gaussian stands in for a row's likelihood: "vi" (None; "newton" for ``covariance="diagonal"``), "newton",
        "taylor", "ep", "pl", or "quadratic" where a quadratic bound is known; see `gaussfold.rules`.
    at : {"posterior", "prior", "extragradient"}, default="posterior"
        Which belief the rule looks at: after the row (implicit), before it, or a trial step.
    coupling : {"marginal", "joint"} or object of `gaussfold.beliefs`, default="marginal"
        For ``covariance="diagonal"``: whether each weight looks at a row with the others integrated out
        (sparse-online §3), or all share one site whose diagonal is kept.
    prior_std : float, array of shape (n_features,) or "auto", default="auto"
        Standard deviation of each weight before any data, > 0; with ``scale=True`` of the weight per standard deviation
        of its feature. "auto": for ``covariance="full"`` the one width of most evidence, found from the data by and by
        (``prior_std_`` tells it; of more than two classes in a stream: that under which the first rows, learned again,
        are predicted best; `fit` to 100 rows or more but less than twenty a weight, for labels that are no
        quantities: the width under which rows left out are predicted best); for "diagonal" four priors from 0.06 to 18
        side by side and one that forgets, stacked by how well they predict (`gaussfold.DiagonalStack`; with forgetting
        or drift that is given, eight from 1/16 to 8 mixed; of more than two classes three from 0.3 to 12, stacked,
        `gaussfold.DiagonalClassStack`), at a few times the work; for "lowrank", and for "diagonal"
        with noise or drift that is learned or an ensemble, 1.0, or 10.0 in units of noise that is learned.
    prior_mean : float or array of shape (n_features,), default=0.0
        Mean of each weight before any data, in the units of ``prior_std``. A single number is the intercept's mean too.
    forgetting : float or "auto", default=1.0
        In (0, 1]. Before each learned row the belief relaxes towards the prior by this factor; 0.999
        remembers about 1000 rows. It never becomes wider than the prior. "auto": seven factors from 1 to 0.9 side by
        side, as for ``drift_std``.
    fit_intercept : bool, default=True
        Whether to add a constant feature; its weight is the last one of ``posterior_``.
    random_state : int, RandomState, Generator or None, default=None
        For the sampling methods. Learning is deterministic.
    intercept_std : float, default=None
        Standard deviation of the intercept before any data: of the latent at average features, with ``scale=True``.
        None: wide, so that the data alone decide (10 for logits and logarithms of rates, for a regressor 1000 times the
        noise or the labels' spread, about their mean); with ``scale=False`` and a ``prior_std`` that is given: that
        one, or 1 if it is an array.
    drift_std : float or "auto", default=0.0
        The alternative to forgetting: before each learned row every weight takes a random step of this
        standard deviation. "auto": seven beliefs side by side (`gaussfold.Bank`), which drift by 0, 0.003, 0.01 ... 1,
        mixed by how well they predict, so that a change of pace costs a few nats; at seven times the cost of a drift
        that is given. The weights should be of the order of one, as ``scale=True`` has them.
    tick : {"observation", "clock"}, default="observation"
        Whether forgetting or drift set in before each learned row, or only when `forget` is called.
    block_size : int, default=None
        Rows per block inside `fold`. It changes the speed, not the result; except that a low-rank posterior is
        projected once per block, so there it is part of the method (default: twice
        ``rank``, from 8 to 32, or ``rank`` if that is more, up to 128; and 4 for the first 2d rows of up to 512
        weights).
    second_look : int, default=0
        Keep so many rows after they were learned and visit each once more before it is let go: closer to the batch
        optimum (about four times with twice as many rows as weights), for twice the work. Not with forgetting,
        drift or refine, nor with ``covariance="lowrank"``. With "diagonal" it is the site of each feature that is made
        anew (`gaussfold.DiagonalGaussian.look_again`), and thousands of rows are a good number.
    ensemble : int, default=1
        For ``covariance="diagonal"``: so many copies of the belief, which start apart and learn the same rows. What
        correlated features leave open the copies do not agree on, and ``coef_std_``, `predict_latent` and samples say
        so (8 are enough); for so many times the cost and memory. See ``coef_std_`` for what a single one says.
    scale : bool, default=True
        For ``covariance="full"``: whether the prior is about standardised features, whatever units they come in. Their
        means and standard deviations are learned beside the weights (`fit`: from all rows; `partial_fit`: from the
        rows so far, looked at again before row 1, 2, 4, 8, ... and before a row far outside), and the prior is
        exchanged for one in the new units, exactly; so are ``drift_std`` and, for a regressor, ``noise_guess``, which
        is in units of the labels' spread. A column that is zero in more than half of the rows is measured by the
        others, so that a rare entry is no longer than a common one. ``coef_``, ``posterior_`` and all predictions are
        in the user's units. False: features as they come.

    Attributes
    ----------
    coef_, coef_std_ : arrays of shape (n_features,)
        Posterior mean and standard deviation of the weights. With ``covariance="diagonal"`` the standard deviation is
        how well a weight is known *if the others are*: true of independent features, and far too small of correlated
        ones (correlation 0.8, 500 rows: 90 % intervals cover 27 to 57 %, with ``ensemble=8`` 81 to 87 %). Labels are
        predicted as surely as they should be all the same (85 to 93 %).
    intercept_, intercept_std_ : float
        The same for the intercept.
    posterior_ : belief
        The belief itself, the intercept's weight last.
    progressive_log_loss_ : float
        Mean of -log p(y) of predicting each row before learning it, so far.
    prior_std_ : float
        The width of the prior that ``prior_std="auto"`` has found; for more than two classes one each.
    n_observations_ : int
        Number of rows learned.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : array of shape (n_features,)
        Names of the columns, if X was a dataframe whose names are all strings.
    """

    covariance: str
    rank: int | None
    rule: str | StreamRule | None
    at: str | At
    coupling: str | Coupling
    prior_std: ArrayLike
    prior_mean: ArrayLike
    forgetting: float | str
    fit_intercept: bool
    random_state: RandomState
    intercept_std: float | None
    drift_std: float | str
    tick: str
    block_size: int | None
    second_look: int
    ensemble: int
    scale: bool


def keep(model: object, arguments: Mapping[str, object]) -> None:
    """Keep a constructor's arguments, its ``locals()``, as attributes of the same names, untouched.

    scikit-learn and River read the parameters of an estimator from the signature of its constructor, and clone it from
    these attributes. So every estimator spells its signature out, also what it shares with others: that repetition is
    deliberate.
    """
    vars(model).update({name: value for name, value in arguments.items() if name != "self"})
