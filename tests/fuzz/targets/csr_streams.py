"""Ten sparse matrices in a row for one belief or estimator, most of them broken: each is refused whole, or learned.

As ``csr_matrices``, where a matrix meets a new model; here a model goes on after what it refused, and matrices are put
together from their arrays, so that there is time for many: parts of any type, length and order, entries of any size,
columns twice or backwards, shapes that lie, and other formats with the same kinds of damage.
"""

from __future__ import annotations

import contextlib
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

import gaussfold as gf

MATRICES = 10
PLACES = (-1, 0, 1, 2, 7, 2**31 - 1, 2**31, 2**40, 2**62, -(2**31))
KINDS = ("int8", "uint8", "int16", "uint32", "uint64", "int64", "int32", ">i4", ">i8", "float64", "bool", "object")
VALUES = ("float16", "float32", ">f8", "longdouble", "int8", "uint64", "bool", "object", "complex128", "U8", "M8[s]")
NUMBERS = (np.nan, np.inf, -np.inf, 1e308, -1e308, 1e200, 1e150, 1e30, 5e-324, 0.0, -0.0)


def _parts(rng: np.random.Generator, n: int, dim: int) -> list[Any]:
    """``data``, ``indices`` and ``indptr`` of a good matrix; columns in any order, now and then twice."""
    counts = rng.integers(0, dim + 1, n)
    size = int(counts.sum())
    indices = rng.integers(0, dim, size)
    if n and rng.random() < 0.7:  # no column twice in a row
        indices = np.concatenate([rng.permutation(dim)[:k] for k in counts])
    kind = (np.int32, np.int64)[int(rng.integers(2))]
    return [rng.standard_normal(size), indices.astype(kind), np.r_[0, np.cumsum(counts)].astype(kind)]


def _break(rng: np.random.Generator, parts: list[Any]) -> None:
    """One thing is changed."""
    which = int(rng.integers(3))
    array, how = parts[which], int(rng.integers(8))
    place = int(rng.integers(array.size)) if array.size else 0
    if how <= 2 and array.size:
        with np.errstate(all="ignore"):
            array[place] = (
                NUMBERS[int(rng.integers(len(NUMBERS)))]
                if which == 0
                else np.array(PLACES[int(rng.integers(len(PLACES)))]).astype(array.dtype)
            )
    elif how == 3:
        parts[which] = array[:place]
    elif how == 4:
        parts[which] = np.r_[array, array[: 1 + place]]
    elif how == 5:
        kinds = VALUES if which == 0 else KINDS
        with np.errstate(all="ignore"):
            parts[which] = array.astype("i8" if which == 0 else array.dtype).astype(
                kinds[int(rng.integers(len(kinds)))]
            )
    elif how == 6:
        parts[which] = (array[::-1], np.repeat(array, 3)[::3], array[None], array[:, None])[int(rng.integers(4))]
    else:
        parts[which] = array.copy()
        parts[which].setflags(write=False)


def matrix(rng: np.random.Generator, dim: int) -> Any:
    """A sparse matrix of any format that only looks like one."""
    n, width = int(rng.integers(0, 7)), dim
    kind = (sp.csr_array, sp.csr_matrix, sp.csr_array, sp.csc_array, sp.coo_array, sp.bsr_array)[int(rng.integers(6))]
    parts = _parts(rng, dim, max(n, 1)) if kind is sp.csc_array else _parts(rng, n, dim)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of conversions that lose something
        for _ in range(int(rng.choice([0, 1, 1, 1, 2, 3]))):
            with contextlib.suppress(
                ValueError, TypeError, IndexError, OverflowError
            ):  # what is broken cannot be broken in every way
                _break(rng, parts)
    if rng.random() < 0.1:
        n, width = max(0, n + int(rng.integers(-1, 3))), max(1, dim + int(rng.integers(-1, 3)))
    found = kind((n, width))
    if kind is sp.coo_array:
        found.data, found.coords = parts[0], (parts[1], parts[2] if rng.random() < 0.2 else parts[1])
        return found
    found.data, found.indices, found.indptr = parts
    if kind is sp.bsr_array:
        found.data = np.reshape(parts[0], (-1, 1, 1))
    return found


def _bits(model: Any) -> dict[str, bytes]:
    return {name: np.asarray(array).tobytes() for name, array in model.state().items()}


def _belief(rng: np.random.Generator, dim: int) -> Any:
    kind = int(rng.integers(6))
    if kind == 0:
        return gf.DenseGaussian.isotropic(dim, 0.7)
    if kind == 1:
        return gf.LowRankGaussian.isotropic(dim, min(2, dim), 0.7, block_size=int(rng.choice([1, 4])))
    if kind == 2:
        return gf.DiagonalMixture.isotropic(dim)
    coupling = ("marginal", "joint")[kind % 2]
    return gf.DiagonalGaussian.isotropic(dim, 0.7, coupling=coupling, dtype=("float64", "float32")[kind // 5])


def _estimator(rng: np.random.Generator, dim: int) -> Any:
    covariance = ("full", "lowrank", "diagonal")[int(rng.integers(3))]
    options: dict[str, Any] = {"rank": min(2, dim)} if covariance == "lowrank" else {}
    model = gf.StreamingClassifier(covariance=covariance, prior_std=0.7, **options)
    return model.partial_fit(rng.standard_normal((3, dim)), [0, 1, 0], classes=[0, 1])


def case(rng: np.random.Generator, folder: Path) -> None:
    """One model, ten matrices: learn, then look."""
    dim = int(rng.integers(1, 8))
    estimator = bool(rng.random() < 0.3)
    model = _estimator(rng, dim) if estimator else _belief(rng, dim)
    logit = gf.likelihoods.Bernoulli("logit")
    with np.errstate(over="raise", invalid="raise"):  # nothing may overflow unseen, whoever has warnings on
        for _ in range(MATRICES):
            X = matrix(rng, dim)
            y = rng.integers(0, 2, max(X.shape[0] + int(rng.integers(12) == 0), 0)).astype(float)
            before = _bits(model)
            try:
                if estimator:
                    model.partial_fit(X, y)
                else:
                    gf.fold(model, logit, X, y, rule="newton")
            except (ValueError, OSError):
                assert _bits(model) == before, "a refused call changed the model"
            belief = model.posterior_ if estimator else model
            assert np.isfinite(belief.mean).all()
            assert (belief.variance() > 0).all()
            try:
                told = model.predict_latent(X) if estimator else model.marginal(X)
            except (ValueError, OSError):
                continue
            assert np.isfinite(told[0]).all()
            assert (told[1] >= 0).all()
