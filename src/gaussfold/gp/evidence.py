"""The log marginal likelihood alone, of data that the model need not have been fitted on."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from gaussfold.gp.chain import Chain
from gaussfold.gp.extras import Extras
from gaussfold.gp.markov import TimeOrder
from gaussfold.gp.restarts import twin
from gaussfold.likelihoods import Gaussian
from gaussfold.types import Array

if TYPE_CHECKING:
    from gaussfold.gp.model import GaussianProcess


def log_evidence(model: GaussianProcess, X: Array, Y: Array, extras: Extras) -> float:
    """``log p(Y)`` at the present hyperparameters: exact for normal noise, else minus the energy of a fit."""
    likelihood = model.likelihood
    if model.structure == "markov" and not model.in_space and isinstance(likelihood, Gaussian) and model.mixing is None:
        link = model.map_at(X, extras.offset)
        y = Y[:, 0] if link is None or link.shift is None else Y[:, 0] - link.shift[:, 0]
        return _by_filter(model, X, y, likelihood.std, extras.weights)
    other = twin(model, model.covariances, likelihood)
    return -other.fit(X, Y, offset=extras.offset, sample_weight=extras.weights).energy()


def _by_filter(model: GaussianProcess, X: Array, y: Array, std: float, weights: Array | None) -> float:
    """One pass forward."""
    order = TimeOrder.of(X[:, 0])
    seen = ~np.isnan(y)
    weight = seen.astype(np.float64) if weights is None else np.where(seen, weights, 0.0)
    scaled = np.where(seen, y, 0.0) / std
    precision, shift = order.sorted(weight / std**2, weight * scaled / std)
    log_z = Chain(model.covariances, order.steps).log_z(precision[:, None, None], shift[:, None])
    return float(log_z - 0.5 * (weight @ scaled**2) - weight.sum() * (np.log(std) + 0.5 * np.log(2.0 * np.pi)))
