"""Is the Gaussian posterior any good? PSIS against the data in memory."""

from __future__ import annotations

from typing import Any

from gaussfold import checks
from gaussfold.estimators import validation
from gaussfold.metrics import diagnose as psis
from gaussfold.types import ArrayLike


def diagnose(model: Any, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike, n_samples: int, rng: Any) -> Any:
    """See `StreamingEstimator.diagnose`."""
    if model._settings.dynamics is not None:
        msg = (
            "diagnose compares with the posterior of all rows alike, which forgetting and drift do not "
            "aim at; it needs forgetting=1.0 and drift_std=0.0"
        )
        raise ValueError(msg)
    X = validation.rows(model, X, reset=False)
    targets = model._targets(y, X.shape[0])
    weight = validation.weights(sample_weight, X.shape[0])
    learned = model._learned(targets, weight)
    if learned.sum() != model.n_observations_:
        msg = (
            f"X, y hold {learned.sum()} rows to learn from, the model has learned {model.n_observations_}; "
            "diagnose needs all the data the posterior was learned from"
        )
        raise ValueError(msg)
    design = validation.with_intercept(X[learned], model.fit_intercept)
    options = {"n_samples": checks.whole("n_samples", n_samples), "rng": model._generator(rng)}
    if weight is not None:
        options["sample_weight"] = weight[learned]
    prior = model._settings.prior()
    found = [
        psis(belief, prior, model._likelihood, design, target[learned], **options)
        for belief, target in zip(model._beliefs, targets, strict=True)
    ]
    return found[0] if len(found) == 1 else found
