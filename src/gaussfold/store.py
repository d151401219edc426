"""Model files: named arrays and one JSON header in the safetensors format.

No pickle: loading a file can only ever build one of the classes in :data:`KINDS`. A file is written
beside its target, synced and renamed, so a crash leaves the old file or the new one, never a
mixture. A SHA-256 over the header and every array refuses what was truncated or altered by accident;
it is not a signature, so it proves nothing about who wrote the file.

What can be stored implements ``state() -> dict[str, ndarray]`` and either

* ``from_state(arrays)`` (a belief: the arrays are everything), or
* ``store_header() -> dict`` and ``from_store(header, arrays)`` (a model with parameters). The header
  must survive ``json``; `gaussfold.store_codecs` has helpers for labels and random states.

Layout of a file, format version 1::

    metadata["gaussfold"]  JSON: {"format", "kind", "version", "fortran", "model", "sha256"}
    tensors                state(), C order; "fortran" lists the arrays that were Fortran-ordered

``sha256`` covers the rest of that header and each array's name, dtype, shape and bytes.
"""

from __future__ import annotations

import hashlib
import importlib
import json
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from safetensors import SafetensorError, safe_open

import gaussfold
from gaussfold.atomic import write_atomically
from gaussfold.store_codecs import decode_labels, decode_rng, encode_labels, encode_rng

__all__ = [
    "KINDS",
    "StoreError",
    "decode_labels",
    "decode_rng",
    "encode_labels",
    "encode_rng",
    "load",
    "save",
]

Arrays: TypeAlias = dict[str, np.ndarray[Any, Any]]
Header: TypeAlias = dict[str, Any]
Migration: TypeAlias = Callable[[str, Header, Arrays], tuple[Header, Arrays]]

FORMAT = 1
"""Version of what is written. Raise it, and add a migration, when any kind changes its arrays or header."""

KINDS: dict[str, str] = {
    "DenseGaussian": "gaussfold.beliefs.dense.belief",
    "DiagonalGaussian": "gaussfold.beliefs.diagonal.belief",
    "DiagonalMixture": "gaussfold.beliefs.diagonal.mixture",
    "FactorGaussian": "gaussfold.beliefs.factor",
    "Posterior": "gaussfold.deep.posterior",
    "TrainingState": "gaussfold.deep.state",
    "GaussianProcess": "gaussfold.gp",
    "GPClassifier": "gaussfold.estimators.gp",
    "GPRegressor": "gaussfold.estimators.gp",
    "StreamModel": "gaussfold.cli.model",
    "LRVGA": "gaussfold.deep.lrvga",
    "LowRankGaussian": "gaussfold.beliefs.lowrank.belief",
    "StreamingClassifier": "gaussfold.estimators",
    "StreamingFactorAnalysis": "gaussfold.estimators.factor_analysis",
    "StreamingPoissonRegressor": "gaussfold.estimators",
    "StreamingRegressor": "gaussfold.estimators",
}
"""What a file may contain: class name -> the module to import it from. A new kind is one line here."""

MIGRATIONS: dict[int, Migration] = {}
"""Version -> ``(kind, model header, arrays)`` brought up to the next version, so old files keep loading."""

_RESTORE = "restore it from a copy, or save the model again"
_OTHER_FILE = "give the path of a file written by gaussfold.save"
_KEY = "gaussfold"
_DTYPES = (
    *("float64", "float32", "float16", "bool"),
    *("int64", "int32", "int16", "int8", "uint64", "uint32", "uint16", "uint8"),
)


class StoreError(ValueError):
    """A model file, or a path for one, that cannot be used."""


class MissingFileError(StoreError, FileNotFoundError):
    """There is no such file or directory; ``except FileNotFoundError`` catches it too."""


def save(model: Any, path: str | os.PathLike[str]) -> None:
    """Write a belief or an estimator to ``path``, whole or not at all.

    Parameters
    ----------
    model
        A belief or an estimator of this package. Saving does not change it.
    path
        The file to create or to replace. Its directory must exist; a symbolic link is followed, and an
        existing file keeps its permissions.

    Raises
    ------
    StoreError
        The model is not of a kind that can be stored, or ``path`` cannot be a file.
    OSError
        The disk is full, or the directory cannot be written. The old file is as it was.

    Examples
    --------
    >>> import gaussfold as gf, tempfile, os
    >>> path = os.path.join(tempfile.mkdtemp(), "belief.safetensors")
    >>> gf.save(gf.DenseGaussian.isotropic(2, std=0.7), path)
    >>> gf.load(path).variance()
    array([0.49, 0.49])
    """
    target = Path(os.path.realpath(path))
    _check_target(target)
    write_atomically(target, *_pieces(model))


def load(path: str | os.PathLike[str]) -> Any:
    """Read back what `save` wrote; a loaded model continues its stream bit for bit.

    Raises
    ------
    StoreError
        ``path`` is missing, a directory, truncated, altered, not a gaussfold file, or written by a later
        version. The message says which.
    """
    file = Path(path)
    text, arrays = _read(file)
    header = _parse(file, text)
    if header["sha256"] != _digest(header, arrays):
        raise _refusal(file, "its contents do not match its checksum: it was altered or damaged", _RESTORE)
    return _build(file, header, arrays)


def _build(file: Path, header: Header, arrays: Arrays) -> Any:
    """Make the object of an intact file: memory order restored, brought up to date, handed to its class."""
    kind, model = header["kind"], header["model"]
    try:
        for name in header["fortran"]:
            # BLAS may round differently for another memory order, and "bit for bit" is a promise.
            arrays[name] = np.asfortranarray(arrays[name])
        for version in range(header["format"], FORMAT):
            model, arrays = MIGRATIONS[version](kind, model, arrays)
        cls = _resolve(file, kind)
        return cls.from_store(model, arrays) if hasattr(cls, "from_store") else cls.from_state(arrays)
    except StoreError:
        raise
    except (KeyError, TypeError, ValueError) as error:
        found = f"its contents do not make a {kind}: {error!r}"
        raise _refusal(file, found, "save the model again") from error


def _serialise(model: Any) -> bytes:
    return b"".join(_pieces(model))


def _pieces(model: Any) -> list[bytes | memoryview]:
    """The parts of a file; arrays are views of the model's, so that saving takes no memory of their size."""
    kind = type(model).__name__
    if kind not in KINDS or getattr(importlib.import_module(KINDS[kind]), kind) is not type(model):
        allowed = ", ".join(sorted(KINDS))
        msg = f"model: {type(model).__module__}.{kind} cannot be stored; allowed are {allowed}"
        raise StoreError(msg)
    header = model.store_header() if hasattr(model, "store_header") else {}
    arrays = {name: np.asarray(value) for name, value in model.state().items()}
    for name, value in arrays.items():
        if value.dtype.name not in _DTYPES:
            allowed = ", ".join(_DTYPES)
            msg = f"model: array {name!r} of {kind} has dtype {value.dtype}; allowed are {allowed}"
            raise StoreError(msg)
    document = {
        "format": FORMAT,
        "kind": kind,
        "version": gaussfold.__version__,
        "fortran": sorted(name for name, value in arrays.items() if _is_fortran(value)),
        "model": header,
    }
    try:
        document = json.loads(json.dumps(document))
    except (TypeError, ValueError) as error:
        msg = f"model: a parameter of {kind} cannot be JSON ({error}); use plain numbers and strings"
        raise StoreError(msg) from error
    # the format is raw memory: C order and native bytes
    plain = {name: np.asarray(a, a.dtype.newbyteorder("="), order="C") for name, a in arrays.items()}
    document["sha256"] = _digest(document, plain)
    return _safetensors(plain, {_KEY: json.dumps(document)})


def _safetensors(arrays: Arrays, metadata: dict[str, str]) -> list[bytes | memoryview]:
    """Length of the header, header, arrays one after the other: the safetensors format, largest alignment first."""
    names = sorted(arrays, key=lambda name: (-arrays[name].dtype.itemsize, name))
    header: dict[str, Any] = {"__metadata__": metadata}
    start = 0
    for name in names:
        array = arrays[name]
        code = "BOOL" if array.dtype == np.bool_ else f"{array.dtype.kind.upper()}{8 * array.dtype.itemsize}"
        header[name] = {"dtype": code, "shape": list(array.shape), "data_offsets": [start, start + array.nbytes]}
        start += array.nbytes
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    head = len(text).to_bytes(8, "little") + text
    return [head, *(arrays[name].reshape(-1).view(np.uint8).data for name in names)]


def _is_fortran(array: np.ndarray[Any, Any]) -> bool:
    return bool(array.flags.f_contiguous and not array.flags.c_contiguous)


def _digest(header: Header, arrays: Mapping[str, np.ndarray[Any, Any]]) -> str:
    """SHA-256 of the header and of every array with its name, dtype and shape."""
    covered = {name: value for name, value in header.items() if name != "sha256"}
    hasher = hashlib.sha256(json.dumps(covered, sort_keys=True).encode())
    for name in sorted(arrays):
        array = arrays[name]
        hasher.update(f"\n{name!r} {array.dtype.name} {array.shape}\n".encode())
        hasher.update(array.reshape(-1).view(np.uint8).data)
    return hasher.hexdigest()


def _check_target(target: Path) -> None:
    if not target.parent.is_dir():
        msg = f"path: {str(target)!r}: the directory {str(target.parent)!r} does not exist; create it first"
        raise MissingFileError(msg)
    if target.is_dir():
        raise _refusal(target, "it is a directory", "give the name of a file inside it")
    if target.exists() and not target.is_file():
        raise _refusal(target, "it is not a regular file", "give the name of a file to create or replace")


def _read(file: Path) -> tuple[str, Arrays]:
    """Header text and arrays, these in C order and owned by the caller."""
    if not file.exists():
        msg = f"path: {str(file)!r} does not exist; give the path of a file written by gaussfold.save"
        raise MissingFileError(msg)
    if not file.is_file():
        found = "it is a directory" if file.is_dir() else "it is not a regular file"
        raise _refusal(file, found, _OTHER_FILE)
    with file.open("rb"):
        pass  # a file that cannot be opened is an OSError with its own errno, not a bad model file
    try:
        with safe_open(file, framework="np") as content:
            metadata = content.metadata() or {}
            if _KEY not in metadata:
                raise _refusal(file, f"a safetensors file without {_KEY!r} in its metadata", _OTHER_FILE)
            names = list(content.keys())
            arrays = {name: np.require(content.get_tensor(name), requirements=["C", "W"]) for name in names}
    except SafetensorError as error:
        raise _refusal(file, f"truncated, damaged or no safetensors file ({error})", _RESTORE) from error
    return metadata[_KEY], arrays


def _parse(file: Path, text: str) -> Header:
    """Check the header's shape and version; only a known version is worth a checksum."""
    damaged = _refusal(file, "its header is damaged", _RESTORE)
    try:
        header = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise damaged from error
    if not isinstance(header, dict) or type(header.get("format")) is not int:
        raise damaged
    version, oldest = header["format"], min([FORMAT, *MIGRATIONS])
    if version > FORMAT:
        found = f"format {version}, written by gaussfold {header.get('version')}"
        limits = f"this is gaussfold {gaussfold.__version__}, which reads formats {oldest} to {FORMAT}"
        raise _refusal(file, f"{found}; {limits}", "upgrade gaussfold")
    if version < oldest or not {"kind", "fortran", "model", "sha256"} <= header.keys():
        raise damaged
    return header


def _resolve(file: Path, kind: str) -> Any:
    if kind not in KINDS:
        raise _refusal(
            file, f"it holds a {kind!r}; this gaussfold knows {', '.join(sorted(KINDS))}", "upgrade gaussfold"
        )
    return getattr(importlib.import_module(KINDS[kind]), kind)


def _refusal(path: Path, found: str, remedy: str) -> StoreError:
    return StoreError(f"path: {str(path)!r}: {found}; {remedy}")
