"""Scores of predictions: log loss and calibration of probabilities, NLPD of a belief."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.special import xlogy

from gaussfold.checks import one_of, whole
from gaussfold.observations import check_weight, observe
from gaussfold.protocols import Distribution, Likelihood
from gaussfold.types import Array, ArrayLike


class CalibrationCurve(NamedTuple):
    """What was predicted and what happened, per bin that has anything in it."""

    predicted: Array
    """Weighted mean probability in the bin."""
    observed: Array
    """Weighted frequency of the event in the bin."""
    weight: Array
    """Total weight (number of predictions) in the bin."""


def nlpd(
    belief: Distribution, likelihood: Likelihood, X: ArrayLike, y: ArrayLike, *, sample_weight: ArrayLike | None = None
) -> float:
    """Mean negative log predictive density ``-log E_q p(y|x'θ)``, in nats per observation.

    Examples
    --------
    >>> import numpy as np, gaussfold as gf
    >>> belief = gf.DenseGaussian.isotropic(1, std=1.0)
    >>> round(nlpd(belief, gf.likelihoods.Gaussian(0.5), [[1.0], [2.0]], [0.3, -0.1]), 4)
    1.355
    """
    data = observe(likelihood, X, y, belief.dim, sample_weight)
    if not data.y.size:
        msg = "y: no row has both a label and a weight; at least one is needed"
        raise ValueError(msg)
    return float(-np.average(likelihood.log_predictive(data.y, belief.marginal(data.X)), weights=data.weight))


def log_loss(y: ArrayLike, probability: ArrayLike, *, sample_weight: ArrayLike | None = None) -> float:
    """Mean of ``-log`` of the probability given to what happened, in nats; infinite for a certain miss.

    Parameters
    ----------
    y
        For a 1-D ``probability``: labels in [0, 1] (soft ones mix). For (n, K): the class number 0 .. K-1.
        NaN labels do not count.
    probability
        ``P(y = 1)`` per row, or one column per class. Nothing is clipped.

    Examples
    --------
    >>> log_loss([1, 0], [0.8, 0.4])
    0.36698
    >>> log_loss([0, 2], [[0.5, 0.3, 0.2], [0.1, 0.1, 0.8]])
    0.45815
    """
    p = _probabilities(probability)
    labels, weight = _labels(y, p.shape[0], sample_weight)
    keep = weight > 0.0
    p, labels, weight = p[keep], labels[keep], weight[keep]
    if p.ndim == 1:
        _check_unit(labels, "or give one column of probability per class", keep)
        with np.errstate(divide="ignore"):
            loss = -xlogy(labels, p) - xlogy(1.0 - labels, 1.0 - p)
    else:
        bad = (labels != np.floor(labels)) | (labels < 0) | (labels >= p.shape[1])
        if bad.any():
            row = int(np.flatnonzero(keep)[np.argmax(bad)])
            msg = f"y: row {row} is {labels[np.argmax(bad)]}; whole numbers 0 to {p.shape[1] - 1} are allowed"
            raise ValueError(msg)
        with np.errstate(divide="ignore"):
            loss = -np.log(p[np.arange(p.shape[0]), labels.astype(int)])
    return float(np.average(loss, weights=weight))


def calibration_curve(
    y: ArrayLike,
    probability: ArrayLike,
    *,
    n_bins: int = 10,
    strategy: str = "uniform",
    sample_weight: ArrayLike = None,
) -> CalibrationCurve:
    """Mean prediction against observed frequency, in bins of the predicted probability.

    Parameters
    ----------
    y
        Labels in [0, 1]; NaN does not count.
    probability
        ``P(y = 1)`` per row.
    n_bins
        Number of bins; empty ones are left out of the result.
    strategy
        "uniform": equal width. "quantile": equal numbers of predictions, ties kept together.

    Examples
    --------
    >>> curve = calibration_curve([0, 0, 1, 1], [0.1, 0.15, 0.9, 0.6], n_bins=2)
    >>> curve.predicted, curve.observed
    (array([0.125, 0.75 ]), array([0., 1.]))
    """
    p = _probabilities(probability)
    if p.ndim != 1:
        msg = f"probability: shape {p.shape}; one probability per row is needed, so choose a class's column"
        raise ValueError(msg)
    labels, weight = _labels(y, p.size, sample_weight)
    keep = weight > 0.0
    p, labels, weight = p[keep], labels[keep], weight[keep]
    _check_unit(labels, "code the event as 1", keep)
    whole("n_bins", n_bins)
    if one_of("strategy", strategy, ("uniform", "quantile")) == "uniform":
        edges = np.linspace(0.0, 1.0, n_bins + 1)[1:-1]
    else:
        edges = np.unique(np.quantile(p, np.linspace(0.0, 1.0, n_bins + 1)[1:-1], method="inverted_cdf"))
    bins = np.searchsorted(edges, p, side="left" if strategy == "quantile" else "right")
    sums = [np.bincount(bins, value, n_bins) for value in (weight, weight * p, weight * labels)]
    total, predicted, observed = np.array(sums, dtype=float)
    full = total > 0.0
    return CalibrationCurve(predicted[full] / total[full], observed[full] / total[full], total[full])


def calibration_error(  # the arguments of `calibration_curve`, spelled out for who calls it
    y: ArrayLike,
    probability: ArrayLike,
    *,
    n_bins: int = 10,
    strategy: str = "uniform",
    sample_weight: ArrayLike = None,
) -> float:
    """Return the expected calibration error: the weighted mean of ``|observed - predicted|`` over bins.

    Examples
    --------
    >>> calibration_error([0, 0, 1, 1], [0.1, 0.15, 0.9, 0.6], n_bins=2)
    0.1875
    """
    curve = calibration_curve(y, probability, n_bins=n_bins, strategy=strategy, sample_weight=sample_weight)
    return float(np.average(np.abs(curve.observed - curve.predicted), weights=curve.weight))


def _probabilities(probability: ArrayLike) -> Array:
    p = np.asarray(probability, dtype=float)
    if p.ndim not in (1, 2) or not p.size:
        msg = f"probability: shape {p.shape}; (n,) or (n, classes) is needed, with at least one row"
        raise ValueError(msg)
    bad = ~((p >= 0.0) & (p <= 1.0))
    if bad.any():
        row = int(np.argmax(bad.reshape(p.shape[0], -1).any(axis=1)))
        msg = f"probability: row {row} is {p[row]}; numbers in [0, 1] are allowed"
        raise ValueError(msg)
    if p.ndim == 2:
        off = np.abs(p.sum(axis=1) - 1.0) > 1e-6
        if off.any():
            row = int(np.argmax(off))
            msg = f"probability: row {row} sums to {p[row].sum()}; every row must sum to 1"
            raise ValueError(msg)
    return p


def _labels(y: ArrayLike, n: int, sample_weight: ArrayLike | None) -> tuple[Array, Array]:
    """Labels, and weights that are zero where the label is missing."""
    labels = np.asarray(y, dtype=float)
    if labels.shape != (n,):
        msg = f"y: shape {labels.shape}; ({n},) is needed, one value per prediction"
        raise ValueError(msg)
    weight = np.where(np.isnan(labels), 0.0, check_weight(sample_weight, n))
    if not weight.any():
        msg = "y: no row has both a label and a weight; at least one is needed"
        raise ValueError(msg)
    return labels, weight


def _check_unit(labels: Array, remedy: str, keep: np.ndarray) -> None:
    bad = ~((labels >= 0.0) & (labels <= 1.0))
    if bad.any():
        row = int(np.flatnonzero(keep)[np.argmax(bad)])
        msg = f"y: row {row} is {labels[np.argmax(bad)]}; numbers in [0, 1] are allowed: {remedy}"
        raise ValueError(msg)
