"""CSR matrices with broken parts, for every belief and estimator to learn from and to predict: refused, or finite."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import scipy.sparse as sp

import gaussfold as gf

ODD = (-1, 0, 1, 2**31 - 1, 2**31, 2**40, -(2**31))
KINDS = ("int8", "uint8", "uint64", "int64", ">i4", "float64", "bool", "object")
VALUES = ("float16", "float32", ">f8", "longdouble", "int8", "uint64", "bool", "object", "complex128")


def _belief(rng: np.random.Generator, dim: int):
    kind = rng.integers(4)
    if kind == 0:
        return gf.DenseGaussian.isotropic(dim)
    if kind == 1:
        return gf.LowRankGaussian.isotropic(dim, min(2, dim))
    return gf.DiagonalGaussian.isotropic(dim) if kind == 2 else gf.DiagonalMixture.isotropic(dim)


def _broken(rng: np.random.Generator, n: int, dim: int) -> sp.csr_array:
    X = sp.random_array((n, dim), density=0.4, format="csr", rng=rng)
    for _ in range(rng.integers(3)):
        part = (X.indptr, X.indices, X.data)[rng.integers(3)]
        if part.size == 0:
            continue
        place = rng.integers(part.size)
        if part is X.data:
            part[place] = rng.choice([np.nan, np.inf, 1e308, 0.0, -1e-320])
        else:
            part[place] = np.array(rng.choice(ODD), np.int64).astype(part.dtype)
    if rng.random() < 0.2:
        X.indices = X.indices[: rng.integers(X.indices.size + 1)]
    if rng.random() < 0.2:
        X.indptr = X.indptr[: rng.integers(X.indptr.size + 1)]
    return _odd_arrays(rng, X)


def _odd_arrays(rng: np.random.Generator, X: sp.csr_array) -> sp.csr_array:
    """Other types, gaps in memory, arrays that may not be written to."""
    if rng.random() < 0.1:
        X.indptr = X.indptr.astype(rng.choice(KINDS))
    if rng.random() < 0.1:
        X.indices = X.indices.astype(rng.choice(KINDS))
    if rng.random() < 0.1:
        with np.errstate(all="ignore"):
            X.data = X.data.astype(rng.choice(VALUES))
    if rng.random() < 0.1:
        X.data, X.indices = np.repeat(X.data, 2)[::2], np.repeat(X.indices, 2)[::2]
    return X


def _other_format(rng: np.random.Generator, n: int, dim: int):
    """A broken matrix that is converted on its way."""
    X = sp.random_array((n, dim), density=0.4, format=rng.choice(["csc", "coo"]), rng=rng)
    if X.nnz:
        parts = (X.indptr, X.indices) if X.format == "csc" else X.coords
        part = parts[rng.integers(2)]
        part[rng.integers(part.size)] = np.array(rng.choice(ODD), np.int64).astype(part.dtype)
    return X


def case(rng: np.random.Generator, folder: Path) -> None:
    """One matrix, one belief or estimator: learn, then look."""
    n, dim = int(rng.integers(1, 8)), int(rng.integers(1, 10))
    X = _other_format(rng, n, dim) if rng.random() < 0.1 else _broken(rng, n, dim)
    y = rng.integers(0, 2, n + int(rng.integers(10) == 0)).astype(float)
    with np.errstate(over="raise", invalid="raise"):  # nothing may overflow unseen, whoever has warnings on
        if rng.random() < 0.3:
            _estimator(rng, X, y, dim)
        else:
            _fold(_belief(rng, dim), X, y)


def _fold(belief, X, y) -> None:
    before = belief.mean.copy()
    try:
        trace = gf.fold(belief, gf.likelihoods.Bernoulli("logit"), X, y)
    except (ValueError, OSError):
        assert np.array_equal(belief.mean, before), "a refused call changed the belief"
    else:
        assert np.isfinite(trace.log_predictive).all()
    assert np.isfinite(belief.mean).all()
    assert (belief.variance() > 0).all()
    try:
        mean, variance = belief.marginal(X)
    except (ValueError, OSError):
        return
    assert np.isfinite(mean).all()
    assert (variance >= 0).all()


def _estimator(rng: np.random.Generator, X, y, dim: int) -> None:
    covariance = str(rng.choice(["full", "lowrank", "diagonal"]))
    options = {"rank": int(rng.integers(1, dim + 1))} if covariance == "lowrank" else {}
    if covariance == "diagonal" and rng.random() < 0.5:
        options["prior_std"] = "auto"
    model = gf.StreamingClassifier(covariance=covariance, **options)
    model.partial_fit(rng.standard_normal((3, dim)), [0, 1, 0], classes=[0, 1])
    before = {name: array.tobytes() for name, array in model.state().items()}
    try:
        model.partial_fit(X, y)
    except (ValueError, OSError):
        assert {name: array.tobytes() for name, array in model.state().items()} == before
    assert np.isfinite(model.coef_).all()
    assert (model.coef_std_ > 0).all()
    try:
        p = model.predict_proba(X)
    except (ValueError, OSError):
        return
    assert np.isfinite(p).all()
