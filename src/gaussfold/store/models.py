"""Saving and loading: which class a file holds, and how it is taken apart and put together again.

What can be stored is in `gaussfold.registry` and has ``state() -> dict[str, ndarray]`` and either

* ``from_state(arrays)`` (a belief: the arrays are everything), or
* ``store_header() -> dict`` and ``from_store(header, arrays)`` (a model with parameters). The header must survive
  ``json``; `gaussfold.registry` encodes options, `gaussfold.store.codecs` labels and random states.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol, Self, cast, runtime_checkable

import numpy as np

from gaussfold import registry
from gaussfold.store import layout
from gaussfold.store.atomic import write_atomically
from gaussfold.store.layout import Arrays, Header, MissingFileError, StoreError, refusal

ELSEWHERE = {
    "Pipeline": (
        "model: a Pipeline holds transformers that gaussfold has no format for; use skops.io.dump(model, path) "
        "(pip install skops), or save its last step, gaussfold.save(model[-1], path), and the others apart"
    ),
}
"""What others can store, and we cannot."""


class Plain(Protocol):
    """Arrays are everything."""

    def state(self) -> Arrays:
        """Named arrays."""
        ...

    @classmethod
    def from_state(cls, arrays: Arrays) -> Self:
        """Undo ``state``."""
        ...


@runtime_checkable
class Described(Protocol):
    """Arrays, and a header that JSON can hold."""

    def state(self) -> Arrays:
        """Named arrays."""
        ...

    def store_header(self) -> Mapping[str, object]:
        """Everything else."""
        ...

    @classmethod
    def from_store(cls, header: Any, arrays: Arrays) -> Self:
        """Undo ``state`` and ``store_header``."""
        ...


def save(model: object, path: str | os.PathLike[str]) -> None:
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
    if isinstance(model, str | os.PathLike) and not _is_path(path):
        told = f"model={os.fspath(model)!r} and path of type {type(path).__name__}"
        msg = f"{told}: they stand in each other's place; call save(model, path)"
        raise StoreError(msg)
    target = Path(os.path.realpath(_checked_path(path)))
    _check_target(target)
    write_atomically(target, *serialise(model))


def load(path: str | os.PathLike[str]) -> Any:
    """Read back what `save` wrote; a loaded model continues its stream bit for bit.

    Raises
    ------
    StoreError
        ``path`` is missing, a directory, truncated, altered, not a gaussfold file, or written by a later
        version. The message says which.

    Examples
    --------
    >>> import gaussfold as gf, tempfile, os
    >>> path = os.path.join(tempfile.mkdtemp(), "belief.gf")
    >>> gf.save(gf.DiagonalGaussian.isotropic(3, std=0.5), path)
    >>> gf.load(path).var
    array([0.25, 0.25, 0.25])
    """
    file = Path(_checked_path(path))
    try:
        text, arrays = layout.read_file(file)
        header = layout.parse_header(file, text)
        if header["sha256"] != layout.digest(header, arrays):
            raise refusal(file, "its contents do not match its checksum: it was altered or damaged", layout.RESTORE)
        return _build(file, header, arrays)
    except MemoryError as error:
        raise refusal(file, f"it does not fit into memory ({error})", "free some, or use a larger machine") from error


def _is_path(path: object) -> bool:
    return isinstance(path, str | os.PathLike)


def _checked_path(path: object) -> str | os.PathLike[str]:
    if isinstance(path, str | os.PathLike):
        return path
    msg = f"path: a {type(path).__name__}; the name of a file is needed, such as 'model.safetensors'"
    raise StoreError(msg)


def _build(file: Path, header: Header, arrays: Arrays) -> object:
    """Make the object of an intact file: memory order restored, brought up to date, handed to its class."""
    kind, model = header["kind"], header["model"]
    try:
        for name in header["fortran"]:
            # BLAS may round differently for another memory order, and "bit for bit" is a promise.
            arrays[name] = np.asfortranarray(arrays[name])
        for version in range(header["format"], layout.FORMAT):
            model, arrays = layout.MIGRATIONS[version](kind, model, arrays)
        cls = _class(file, kind)
        with np.errstate(all="ignore"):  # what is not finite is refused, with its name
            return cls.from_store(model, arrays) if issubclass(cls, Described) else cls.from_state(arrays)
    except (StoreError, MemoryError):
        raise
    except Exception as error:  # whatever a class makes of numbers that somebody else wrote
        found = f"its contents do not make a {kind}: {_said(error)}"
        raise refusal(file, found, "save the model again") from error


def _said(error: Exception) -> str:
    return str(error) if type(error) is ValueError else repr(error)


def serialise(model: object) -> list[bytes | memoryview]:
    """What a file of this model would consist of."""
    kind = type(model).__name__
    if registry.model_class(kind) is not type(model):
        allowed = ", ".join(registry.model_names())
        if told := ELSEWHERE.get(kind):
            raise StoreError(told)
        msg = (
            f"model: {type(model).__module__}.{kind} cannot be stored; allowed are {allowed}, and your own after "
            "gaussfold.registry.register('model', ...)"
        )
        raise StoreError(msg)
    header = model.store_header() if isinstance(model, Described) else {}
    arrays = {name: np.asarray(value) for name, value in cast("Plain", model).state().items()}
    return layout.pieces(kind, header, arrays)


def _check_target(target: Path) -> None:
    if not target.parent.is_dir():
        msg = f"path: {str(target)!r}: the directory {str(target.parent)!r} does not exist; create it first"
        raise MissingFileError(msg)
    if target.is_dir():
        raise refusal(target, "it is a directory", "give the name of a file inside it")
    if target.exists() and not target.is_file():
        raise refusal(target, "it is not a regular file", "give the name of a file to create or replace")


def _class(file: Path, kind: str) -> type[Plain] | type[Described]:
    cls = registry.model_class(kind)
    if cls is None:
        known = f"it holds a {kind!r}; this gaussfold knows {', '.join(registry.model_names())}"
        raise refusal(file, known, "upgrade gaussfold, or gaussfold.registry.register('model', ...) your own")
    return cast("type[Plain] | type[Described]", cls)
