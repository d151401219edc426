"""Small data sets and models at odd parameters, shared by the tests of the estimators."""

import numpy as np

from gaussfold import StreamingClassifier, StreamingPoissonRegressor, StreamingRegressor

ODD = {"prior_std": 0.7, "prior_mean": 0.2, "intercept_std": 3.1, "random_state": 5, "scale": False}

MODELS = {
    "binary": StreamingClassifier(**ODD),
    "probit": StreamingClassifier(link="probit", **ODD),
    "classes": StreamingClassifier(**ODD),
    "forgetting": StreamingClassifier(forgetting=0.97, **ODD),
    "drift": StreamingClassifier(drift_std=0.05, **ODD),
    "gaussian": StreamingRegressor(noise_std=0.6, **ODD),
    "learn": StreamingRegressor(noise_std="learn", **ODD),
    "learn-forgetting": StreamingRegressor(noise_std="learn", forgetting=0.97, **ODD),
    "student": StreamingRegressor(noise_std=0.4, df=4.0, **ODD),
    "poisson": StreamingPoissonRegressor(**ODD),
    "negative-binomial": StreamingPoissonRegressor(dispersion=2.5, **ODD),
}


def rows(n=60, d=4, seed=0):
    return np.random.default_rng(seed).normal(size=(n, d)) * [1.0, 0.5, 2.0, 0.8][:d]


def labels(name, X, seed=1):
    """Labels that the model of that name can learn from."""
    rng = np.random.default_rng(seed)
    f = X @ np.array([0.9, -1.1, 0.4, 0.3])[: X.shape[1]] + 0.5
    if name == "classes":
        return np.array(["red", "green", "blue"])[np.digitize(f + rng.normal(size=len(f)), [-0.5, 1.0])]
    if name in ("binary", "probit", "forgetting", "drift"):
        return (rng.random(len(f)) < 1 / (1 + np.exp(-f))).astype(int)
    if name in ("poisson", "negative-binomial"):
        return rng.poisson(np.exp(np.clip(f, -3, 2)))
    return f + rng.normal(scale=0.6, size=len(f))


def weights(n, seed=2):
    """Odd weights, some of them zero."""
    rng = np.random.default_rng(seed)
    return np.where(rng.random(n) < 0.2, 0.0, rng.choice([0.3, 1.0, 2.5], size=n))


def same_state(first, second):
    """Whether two models learned exactly the same, to the last bit."""
    one, other = first.state(), second.state()
    return one.keys() == other.keys() and all(np.array_equal(one[k], other[k], equal_nan=True) for k in one)


def close_state(first, second, rtol):
    """Check that two models learned the same up to rounding, relative to the size of each quantity.

    A belief's square root is determined up to a rotation only, so covariances are compared.
    """
    one, other = _learned(first), _learned(second)
    assert one.keys() == other.keys()
    for key in one:
        atol = rtol * np.abs(one[key]).max()
        np.testing.assert_allclose(other[key], one[key], rtol=rtol, atol=atol, err_msg=key)


def _learned(model):
    found = {key: value for key, value in model.state().items() if not key.startswith("belief")}
    for k, belief in enumerate(model._beliefs):
        found[f"mean {k}"], found[f"cov {k}"] = belief.mean, belief.cov
    return found
