"""Model files of every kind, damaged by accident or altered and signed again; what loads is used and saved.

Half of the cases are accidents: bytes flipped, a piece cut out, zeroed or doubled. The checksum must find them. The
other half is altered with care: a number in the header, an array's shape, dtype or entries, an array removed, renamed
or exchanged with another; then the checksum is made anew, as anybody can who can write a file. Such a file loads or is
refused with a StoreError. What loads predicts, learns two rows and saves itself, with nothing but a ValueError; if all
of its numbers are of ordinary size, so are its predictions.
"""

from __future__ import annotations

import copy
import functools
import importlib.util
import json
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from safetensors import safe_open
from scipy import sparse

import gaussfold as gf
from gaussfold.cli.model import StreamModel, rows_of
from gaussfold.data.chunks import Chunk
from gaussfold.store import StoreError, layout

FILES = Path(__file__).parents[2] / "fixtures" / "v0.1.0"
NUMBERS = (0, 1, -1, 2, 3, 7, 0.5, -0.5, 1e-9, 100, 2**31 - 1, 2**31, -(2**31), 2**40, 2**62, 1e12)
EXTREMES = (float("nan"), float("inf"), float("-inf"), 1e308, -1e308, 5e-324, 1e200, 1e-200)
WORDS = (
    "",
    "x",
    "auto",
    "logit",
    "probit",
    "vi",
    "newton",
    "prior",
    "float32",
    "float64",
    "full",
    "diagonal",
    "lowrank",
)
DTYPES = ("float64", "float32", "int64", "int32", "uint32", "uint8", "bool")
NETWORKS = ("LRVGA", "Posterior", "TrainingState")


class Original(NamedTuple):
    """A file as it was written, and its parts."""

    content: bytes
    header: dict[str, Any]
    arrays: dict[str, np.ndarray]


@functools.cache
def originals() -> list[Original]:
    """One of each fixture; networks only where JAX is installed."""
    found = []
    for path in sorted(FILES.glob("*.model")):
        with safe_open(path, framework="np") as content:
            header = json.loads(content.metadata()["gaussfold"])
            arrays = {name: content.get_tensor(name) for name in content.keys()}  # noqa: SIM118 - not a mapping
        if header["kind"] not in NETWORKS or importlib.util.find_spec("optax"):
            found.append(Original(path.read_bytes(), header, arrays))
    return found


def case(rng: np.random.Generator, folder: Path) -> None:
    """One file."""
    original = originals()[rng.integers(len(originals()))]
    path, moderate = folder / "model", True
    if rng.integers(2):
        path.write_bytes(damaged(rng, original.content))
    else:
        header, arrays = copy.deepcopy(original.header), {name: a.copy() for name, a in original.arrays.items()}
        for _ in range(rng.integers(1, 4)):
            moderate &= alter(rng, header, arrays)
        moderate &= all(np.abs(a[np.isfinite(a)], dtype=float).max(initial=0.0) < 1e15 for a in arrays.values())
        path.write_bytes(signed(header, arrays))
    try:
        model = gf.load(path)
    except StoreError:
        return
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        try:
            predictions = use(model)
            gf.save(model, folder / "again")
        except ValueError:
            return
    if moderate:
        assert all(np.isfinite(part).all() for part in predictions), predictions


# Accidents.


def damaged(rng: np.random.Generator, content: bytes) -> bytes:
    """The bytes after an accident."""
    data = bytearray(content)
    start = int(rng.integers(len(data)))
    length = int(min(rng.geometric(0.02), len(data) - start))
    how = rng.integers(5)
    if how == 0:
        for place in rng.integers(len(data), size=rng.integers(1, 4)):
            data[place] ^= 1 << int(rng.integers(8))
    elif how == 1:
        del data[start:]
    elif how == 2:
        data[start : start + length] = bytes(length)
    elif how == 3:
        del data[start : start + length]
    else:
        data[start:start] = data[start : start + length]
    return bytes(data)


# Alterations.


def signed(header: dict[str, Any], arrays: dict[str, np.ndarray]) -> bytes:
    """A file of these parts with the right checksum."""
    header = json.loads(json.dumps({name: part for name, part in header.items() if name != "sha256"}))
    plain = {name: np.ascontiguousarray(a).reshape(a.shape) for name, a in arrays.items()}
    header["sha256"] = layout.digest(header, plain)
    return b"".join(bytes(piece) for piece in layout.safetensors_pieces(plain, {"gaussfold": json.dumps(header)}))


def alter(rng: np.random.Generator, header: dict[str, Any], arrays: dict[str, np.ndarray]) -> bool:
    """Change one thing in place; False if a number of extraordinary size came in."""
    if rng.random() < 0.4 or not arrays:
        inner = header.get("model")
        return alter_json(rng, inner if isinstance(inner, dict) and rng.random() < 0.9 else header)
    name = str(rng.choice(sorted(arrays)))
    change = CHANGES[rng.integers(len(CHANGES))]
    return change(rng, arrays, name)


def alter_json(rng: np.random.Generator, document: Any) -> bool:
    """Change something in a JSON document, at any depth."""
    keys = sorted(document) if isinstance(document, dict) else list(range(len(document)))
    if not keys:
        return True
    key = keys[rng.integers(len(keys))]
    value = document[key]
    if isinstance(value, dict | list) and value and rng.random() < 0.9:
        return alter_json(rng, value)
    if rng.random() < 0.1:
        del document[key]
        return True
    document[key], usual = other_value(rng, value)
    return usual


def other_value(rng: np.random.Generator, value: object) -> tuple[object, bool]:
    """Something in place of a value, mostly of its kind; whether it is of ordinary size."""
    kind = rng.integers(12)
    if kind == 0:
        return [None, [], {}, True, False][rng.integers(5)], True
    if isinstance(value, bool):
        return not value, True
    if isinstance(value, str) or kind == 1:
        return WORDS[rng.integers(len(WORDS))], True
    if kind == 2:
        return EXTREMES[rng.integers(len(EXTREMES))], False
    number = NUMBERS[rng.integers(len(NUMBERS))]
    if isinstance(value, int) and kind < 7:
        return value + int(rng.integers(-2, 3)), True
    return number, abs(number) < 1e3


Arrays = dict[str, np.ndarray]
Change = Callable[[np.random.Generator, Arrays, str], bool]


def set_entries(rng: np.random.Generator, arrays: Arrays, name: str) -> bool:
    """Other numbers in a few places."""
    array, usual = arrays[name], True
    for _ in range(rng.integers(1, 4) if array.size else 0):
        extreme = rng.random() < 0.3
        number = (EXTREMES if extreme else NUMBERS)[rng.integers(len(EXTREMES if extreme else NUMBERS))]
        usual &= not extreme and abs(number) < 1e3
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            array.reshape(-1)[rng.integers(array.size)] = np.array([float(number)]).astype(array.dtype)[0]
    return usual


def set_dtype(rng: np.random.Generator, arrays: Arrays, name: str) -> bool:
    """The same numbers, if they can be, of another type."""
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        arrays[name] = arrays[name].astype(DTYPES[rng.integers(len(DTYPES))])
    return True


def set_shape(rng: np.random.Generator, arrays: Arrays, name: str) -> bool:
    """Another shape: some rows fewer or more, axes exchanged, added or taken away."""
    array = np.atleast_1d(arrays[name])
    how = rng.integers(7)
    if how == 0:
        array = array[: rng.integers(len(array) + 1)]
    elif how == 1:
        array = np.concatenate([array, array[:1]])
    elif how == 2:
        array = array.T
    elif how == 3:
        array = array.reshape(-1)
    elif how == 4:
        array = array[..., None]
    elif how == 5:
        array = array[0] if len(array) else array
    else:
        array = np.concatenate([array, array[..., :1]], axis=-1)
    arrays[name] = np.array(array)
    return True


def remove(rng: np.random.Generator, arrays: Arrays, name: str) -> bool:
    """Without it."""
    del arrays[name]
    return True


def exchange(rng: np.random.Generator, arrays: Arrays, name: str) -> bool:
    """Two arrays under each other's names."""
    other = str(rng.choice(sorted(arrays)))
    arrays[name], arrays[other] = arrays[other], arrays[name]
    return True


def scale(rng: np.random.Generator, arrays: Arrays, name: str) -> bool:
    """All numbers larger, smaller or of the other sign."""
    factor = (-1.0, 0.0, 1e-6, 1e6)[rng.integers(4)]
    if arrays[name].dtype.kind == "f":
        with np.errstate(all="ignore"):
            arrays[name] = (arrays[name] * factor).astype(arrays[name].dtype)
    return factor != 1e6


CHANGES: tuple[Change, ...] = (set_entries, set_entries, set_entries, set_dtype, set_shape, remove, exchange, scale)


# Use.


def use(model: Any) -> list[np.ndarray]:
    """Predict, learn two rows, predict."""
    rng = np.random.default_rng(7)
    if isinstance(model, StreamModel):
        return use_stream(model, rng)
    kind = type(model).__name__
    if kind in ("TrainingState", "LRVGA") or (kind == "GaussianProcess" and not model.is_fitted):
        return []  # they need a network, or data
    if kind == "Posterior":
        return [model.belief.marginal(rng.normal(size=(2, model.belief.dim)))[0], model.belief.sample(2, rng)]
    if kind == "GaussianProcess":
        return [np.asarray(part) for part in model.predict_latent(rng.normal(size=(3, model.X_.shape[1])))]
    if kind in gf.store.KINDS and hasattr(model, "n_features_in_"):
        return use_estimator(model, rng)
    return use_belief(model, rng)


def use_belief(model: Any, rng: np.random.Generator) -> list[np.ndarray]:
    """A belief: through sparse rows, so that a wide one costs nothing."""
    columns = np.array([0, model.dim - 1, min(1, model.dim - 1), model.dim // 2])
    rows = sparse.csr_matrix((rng.normal(size=4), (np.array([0, 0, 1, 1]), columns)), shape=(2, model.dim))
    before = model.marginal(rows)
    if not isinstance(model, gf.FactorGaussian):
        rule = "newton" if isinstance(model, gf.DiagonalGaussian | gf.DiagonalMixture) else "vi"
        gf.fold(model, gf.likelihoods.Bernoulli(), rows, np.array([0.0, 1.0]), rule=rule)
    after = model.marginal(rows)
    assert not (after.variance < 0.0).any(), after
    return [*before, *after]


def use_stream(model: StreamModel, rng: np.random.Generator) -> list[np.ndarray]:
    """A model of the command line."""
    width = model.reading.width
    indices = np.sort(rng.integers(width, size=(2, 3)), axis=1).astype(np.int32)
    indices[:, 2] = width - 1
    indptr, line = np.array([0, 3, 6], np.int32), np.array([1, 2])
    label, weight = np.array([0.0, 1.0]), np.ones(2)
    chunk = Chunk(indptr, indices.reshape(-1), rng.normal(size=6), label, weight, width, "fuzz", line)
    assert rows_of(chunk).shape[0] == 2
    before = model.predict(chunk)
    trace = model.learn(chunk)
    model.add(chunk, trace, 0, 2)
    return [*before, *model.predict(chunk)]


def use_estimator(model: Any, rng: np.random.Generator) -> list[np.ndarray]:
    """An estimator: every way to predict that it has."""
    X = rng.normal(size=(2, model.n_features_in_))
    if "feature_names_in_" in vars(model):
        import pandas

        X = pandas.DataFrame(X, columns=model.feature_names_in_)
    if isinstance(model, gf.StreamingFactorAnalysis):
        found = [model.transform(X), model.score_samples(X)]
        return [*found, model.partial_fit(X).score_samples(X)]
    found = [model.predict(X)]
    if hasattr(model, "partial_fit"):
        y = model.classes_[[0, -1]] if hasattr(model, "classes_") else np.array([0.0, 1.0])
        model.partial_fit(X, y)
        mean, std = model.predict_latent(X)
        if np.isinf(getattr(model, "noise_std_", 0.0)):  # a noise of which next to nothing is known has no variance
            assert np.isinf(std).all()
            std = mean
        found += [mean, std, model.predict(X)]
    return [np.asarray(part) for part in found if np.asarray(part).dtype.kind == "f"]
