"""Sequences of calls on one model, beside a twin that learns the same rows in the plainest way.

Whatever form rows come in, however they are cut, and whatever is done to the model in between (saved and loaded,
copied, pickled, shown rows that say nothing or are refused), the two know the same. ``test_sequences.py`` lets
hypothesis choose the calls, ``tests/fuzz/targets/sequences.py`` a generator of random numbers.
"""

from __future__ import annotations

import copy
import pickle
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
import polars as pl
import scipy.sparse as sp

import gaussfold as gf
from gaussfold.dynamics import Forgetting, RandomWalk
from gaussfold.likelihoods import Bernoulli, Gaussian, Poisson

MIXTURES = (gf.DiagonalMixture, gf.Bank)
CLOSE = 1e-6
"""In posterior standard deviations: how far rounding may take two ways of learning the same apart."""


class Setting(NamedTuple):
    """What is tried: an estimator or a belief, and which labels it takes."""

    make: Callable[[int], object]
    labels: str
    forgets: bool = False


class Folded:
    """A belief, a likelihood and a dynamics with the calls of an estimator."""

    def __init__(self, prior, likelihood, dynamics=None, **options):
        self.belief, self.prior = prior.copy(), prior
        self.likelihood, self.dynamics, self.options = likelihood, dynamics, options

    def partial_fit(self, X, y, sample_weight=None):
        """Fold rows in."""
        gf.fold(self.belief, self.likelihood, X, y, sample_weight=sample_weight, dynamics=self.dynamics, **self.options)

    def predict_latent(self, X):
        """Mean and standard deviation of x'θ."""
        mean, variance = self.belief.marginal(X)
        return mean, np.sqrt(variance)

    def forget(self, ticks):
        """Let time pass."""
        self.dynamics.tick(self.belief, ticks)

    def state(self):
        """Of the belief."""
        return self.belief.state()

    def saved(self, path):
        """The same with a belief from a file."""
        gf.save(self.belief, path)
        return self._with(gf.load(path))

    def copied(self):
        """The same with a copy of the belief."""
        return self._with(self.belief.copy())

    def _with(self, belief):
        twin = copy.copy(self)
        twin.belief = belief
        return twin


def _estimator(kind, labels, **options):
    return Setting(lambda d: kind(**{k: min(v, d) if k == "rank" else v for k, v in options.items()}), labels,
                   options.get("forgetting", 1.0) != 1.0 or options.get("drift_std", 0.0) != 0.0)  # fmt: skip


def _forgetting(prior):
    return Forgetting(0.97, prior)


def _belief(make, likelihood, dynamics=None, **options):
    labels = {Bernoulli: "binary", Gaussian: "real", Poisson: "count"}[type(likelihood)]

    def start(d):
        prior = make(d)
        return Folded(prior, likelihood, None if dynamics is None else dynamics(prior), **options)

    return Setting(start, labels, dynamics is not None)


def _lowrank(d):
    return gf.LowRankGaussian.isotropic(d, min(2, d), 0.7, block_size=1)


def _dense(d):
    return gf.DenseGaussian.isotropic(d, 0.7)


def _joint(d):
    return gf.DiagonalGaussian.isotropic(d, 0.7, coupling="joint")


def _blocks(d):
    return gf.LowRankGaussian.isotropic(d, min(2, d), 0.7, block_size=3)


C, R, P = gf.StreamingClassifier, gf.StreamingRegressor, gf.StreamingPoissonRegressor
SETTINGS = {
    "full": _estimator(C, "binary", prior_std=0.7),
    "full forgets": _estimator(C, "binary", prior_std=2.0, forgetting=0.97),
    "full drifts": _estimator(C, "binary", drift_std=0.1, tick="clock"),
    "looks back": _estimator(C, "binary", second_look=8),
    "lowrank": _estimator(C, "binary", covariance="lowrank", rank=2, prior_std=10.0),
    "lowrank blocks": _estimator(C, "binary", covariance="lowrank", rank=2, block_size=5),
    "lowrank blocks that grow": _estimator(C, "binary", covariance="lowrank", rank=2),
    "lowrank forgets": _estimator(C, "binary", covariance="lowrank", rank=2, forgetting=0.97),
    "diagonal": _estimator(C, "binary", covariance="diagonal", prior_std=2.0),
    "diagonal auto": _estimator(C, "binary", covariance="diagonal", prior_std="auto"),
    "diagonal looks again": _estimator(C, "binary", covariance="diagonal", prior_std=2.0, second_look=8),
    "diagonal auto looks again": _estimator(C, "binary", covariance="diagonal", prior_std="auto", second_look=3),
    "diagonal ensemble": _estimator(C, "binary", covariance="diagonal", ensemble=4),
    "diagonal forgets": _estimator(C, "binary", covariance="diagonal", forgetting=0.97),
    "three classes": _estimator(C, "classes", prior_std=0.7),
    "classifier": _estimator(C, "binary"),
    "features as they come": _estimator(C, "binary", prior_std=0.7, scale=False),
    "width learned, no intercept": _estimator(C, "binary", scale=False, fit_intercept=False),
    "noise and width": _estimator(R, "real"),
    "counts": _estimator(P, "count", forgetting=0.97),
    "regressor": _estimator(R, "real", noise_std=0.6),
    "finds its drift": _estimator(C, "binary", prior_std=0.7, drift_std="auto"),
    "noise and pace": _estimator(R, "real", noise_std="learn", forgetting="auto"),
    "noise learned": _estimator(R, "real", noise_std="learn", forgetting=0.97),
    "regressor lowrank": _estimator(R, "real", covariance="lowrank", rank=2, drift_std=0.1),
    "poisson": _estimator(P, "count", prior_std=0.7),
    "poisson diagonal": _estimator(P, "count", covariance="diagonal", prior_std=0.7),
    "belief dense": _belief(_dense, Bernoulli()),
    "belief dense walks": _belief(_dense, Gaussian(0.6), lambda _: RandomWalk(0.1)),
    "belief lowrank": _belief(_lowrank, Bernoulli()),
    "belief lowrank blocks": _belief(_blocks, Poisson()),
    "belief lowrank forgets": _belief(_lowrank, Gaussian(0.6), _forgetting),
    "belief diagonal": _belief(lambda d: gf.DiagonalGaussian.isotropic(d, 0.7), Bernoulli(), rule="newton"),
    "belief looks again": _belief(lambda d: _joint(d).look_again(4), Gaussian(0.6), rule="newton"),
    "belief joint": _belief(_joint, Gaussian(0.6), _forgetting),
    "belief bank": _belief(lambda d: gf.Bank.walking(_dense(d), (0.0, 0.1)), Bernoulli()),
    "belief mixture": _belief(lambda d: gf.DiagonalMixture.isotropic(d), Bernoulli(), rule="newton"),
}  # fmt: skip


def _messy(X):
    """CSR as nobody would write it: columns backwards, every value in two halves, and a zero."""
    csr = sp.csr_array(X)
    indptr, indices, data = [0], [], []
    for a, b in zip(csr.indptr, csr.indptr[1:], strict=False):
        here, values = csr.indices[a:b][::-1], csr.data[a:b][::-1]
        indices += [*here, *here, 0]
        data += [*(values / 2), *(values / 2), 0.0]
        indptr.append(len(indices))
    return sp.csr_array((np.array(data), np.array(indices, np.int64), np.array(indptr)), shape=X.shape)


FORMS = {
    "C": lambda X: X,
    "Fortran": np.asfortranarray,
    "big-endian": lambda X: X.astype(">f8"),
    "float32": lambda X: X.astype(np.float32),
    "object": lambda X: X.astype(object),
    "strided": lambda X: np.repeat(np.repeat(X, 2, 0), 2, 1)[::2, ::2],
    "list": lambda X: X.tolist(),
    "CSR": sp.csr_array,
    "CSR matrix": sp.csr_matrix,
    "CSR float32": lambda X: sp.csr_array(X.astype(np.float32)),
    "CSR messy": _messy,
    "CSC": sp.csc_array,
    "COO": sp.coo_array,
    "LIL": sp.lil_array,
    "pandas": pd.DataFrame,
    "polars": lambda X: pl.DataFrame({f"x{i}": X[:, i] for i in range(X.shape[1])}),
}
WAYS = ("save", "copy", "deepcopy", "pickle")
REFUSED = ("NaN", "infinity", "too many labels", "weight", "width", "indices", "ragged weight", "label")


class Walk:
    """One model, its twin, and the calls."""

    def __init__(self, setting: str, dim: int, folder: Path) -> None:
        self.setting, self.dim, self.folder = SETTINGS[setting], dim, folder
        self.model, self.twin = self.setting.make(dim), self.setting.make(dim)
        self.learned = 0
        self._options = {"classes": [0, 1]} if self.setting.labels == "binary" else {}
        if self.setting.labels == "classes":
            self._options = {"classes": ["a", "b", "c"]}
        if isinstance(self.model, Folded):
            self._options = {}

    def rows(self, seed: int, n: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Rows (some entries zero; numbers that single precision holds), labels, weights; some rows say nothing."""
        rng = np.random.default_rng(seed)
        X = rng.standard_normal((n, self.dim)) * (rng.random((n, self.dim)) < 0.7)
        X = X.astype(np.float32).astype(np.float64)
        labels = {
            "binary": lambda: rng.integers(0, 2, n).astype(float),
            "real": lambda: rng.standard_normal(n),
            "count": lambda: rng.poisson(2.0, n).astype(float),
            "classes": lambda: rng.choice(np.array(["a", "b", "c"], dtype=object), n),
        }[self.setting.labels]()
        labels[rng.random(n) < 0.1] = None if self.setting.labels == "classes" else np.nan
        return X, labels, rng.choice([1.0, 2.5, 0.3, 0.0], n)

    def _fit(self, model, X, y, weight) -> None:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "X (has|does not have valid) feature names")  # forms come as they come
            model.partial_fit(X, y, sample_weight=weight, **self._options)

    def learn(self, seed: int, n: int, form: str, cut: int) -> None:
        """Rows of any form in pieces of ``cut``; the twin takes them as they are, at once."""
        X, y, weight = self.rows(seed, n)
        for a in range(0, n, cut):
            part = slice(a, a + cut)
            self._fit(self.model, FORMS[form](X[part]), y[part], weight[part])
        self._fit(self.twin, X.copy(), y, weight)
        self.learned += 1

    def look(self, seed: int, n: int, form: str) -> None:
        """Predictions agree, and do not depend on the form of the rows; to look changes nothing."""
        if not self.learned:
            return
        X, _, _ = self.rows(seed, n)
        before = self._state()
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "X (has|does not have valid) feature names")
            mean, std = self.model.predict_latent(FORMS[form](X))
        want, scale = self.twin.predict_latent(X)
        assert np.array_equal(np.isinf(std), np.isinf(scale)), "a standard deviation is infinite for one of the two"
        std, scale = np.where(np.isinf(std), 1.0, std), np.where(np.isinf(scale), 1.0, scale)
        unit = np.maximum(scale, 1e-3)
        assert np.isfinite(mean).all(), "a prediction is not finite"
        assert np.max(np.abs(mean - want) / unit, initial=0.0) < CLOSE, "means differ"
        assert np.max(np.abs(std - scale) / unit, initial=0.0) < CLOSE, "standard deviations differ"
        assert self._state() == before, "looking changed the model"

    def through(self, way: str) -> None:
        """Save and load, or copy: bit for bit the same."""
        if not self.learned:
            return
        before = self._state()
        if way == "pickle":
            self.model = pickle.loads(pickle.dumps(self.model)) if not isinstance(self.model, Folded) else self.model
        elif way == "save":
            path = self.folder / "model.gf"
            self.model = self.model.saved(path) if isinstance(self.model, Folded) else _through_file(self.model, path)
        elif way == "copy" and isinstance(self.model, Folded):
            self.model = self.model.copied()
        else:
            self.model = copy.deepcopy(self.model)
        assert self._state() == before, f"{way} changed the model"

    def say_nothing(self, seed: int, n: int, missing: bool) -> None:
        """Missing labels or weights of zero: to the last bit nothing is learned."""
        if not self.learned:
            return
        X, y, weight = self.rows(seed, n)
        if missing:
            y = np.full(n, None, dtype=object) if self.setting.labels == "classes" else np.full(n, np.nan)
        before = self._state()
        self._fit(self.model, X, y, weight if missing else np.zeros(n))
        assert self._state() == before, "rows that say nothing were learned"

    def refuse(self, seed: int, n: int, how: str) -> None:
        """Something is wrong with the last row: a ValueError, and the model is as it was."""
        if not self.learned:
            return
        X, y, weight = self.rows(seed, n)
        weight = np.maximum(weight, 0.3)
        if how in ("NaN", "infinity"):
            X[-1, 0] = np.nan if how == "NaN" else np.inf
        elif how == "too many labels":
            y = np.append(y, y[-1:])
        elif how == "weight":
            weight[-1] = -1.0
        elif how == "width":
            X = np.column_stack([X, X[:, 0]])
        elif how == "indices":
            X = sp.csr_matrix(np.ones((n, self.dim)))
            X.indices[-1] = 2**30
        elif how == "ragged weight":
            weight = [[1.0, 2.0], *[1.0] * n]
        else:
            y = np.array([*y[:-1], "nonsense"], dtype=object)
        before = self._state()
        try:
            self._fit(self.model, X, y, weight)
        except ValueError:
            assert self._state() == before, "a refused call changed the model"
            return
        raise AssertionError(f"{how} was accepted")

    def forget(self, ticks: float) -> None:
        """Time passes."""
        if self.learned and self.setting.forgets:
            self.model.forget(ticks)
            self.twin.forget(ticks)

    def combine(self) -> None:
        """A belief put together from its prior and itself is itself, where that is exact."""
        model = self.model
        if not isinstance(model, Folded) or model.dynamics is not None or isinstance(model.belief, MIXTURES):
            return
        again = type(model.belief).combine(model.prior, [model.belief])
        scale = np.sqrt(model.belief.variance())
        assert np.max(np.abs(again.mean - model.belief.mean) / scale) < CLOSE, "combining moved the mean"
        assert (again.variance() > 0).all()

    def check(self) -> None:
        """Every variance is positive, whatever happened."""
        if self.learned:
            beliefs = [self.model.belief] if isinstance(self.model, Folded) else self.model.posterior_
            for belief in beliefs if isinstance(beliefs, list) else [beliefs]:
                variance = belief.variance()
                assert np.isfinite(belief.mean).all()
                assert ((variance > 0) & (variance < np.inf)).all()

    def _state(self) -> dict[str, bytes]:
        return {name: np.asarray(array).tobytes() for name, array in self.model.state().items()}


def _through_file(model, path):
    gf.save(model, path)
    return gf.load(path)
