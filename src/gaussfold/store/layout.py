"""How a model file is laid out: one JSON header and named arrays in the safetensors format, under a checksum.

::

    metadata["gaussfold"]  JSON: {"format", "kind", "version", "fortran", "model", "sha256"}
    tensors                state(), C order; "fortran" lists the arrays that were Fortran-ordered

``sha256`` covers the rest of that header and each array's name, dtype, shape and bytes. It refuses what was truncated
or altered by accident; it is not a signature, so it proves nothing about who wrote the file.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TypeAlias, TypedDict, cast

import numpy as np
from safetensors import SafetensorError, safe_open

import gaussfold
from gaussfold.registry import Json

Arrays: TypeAlias = dict[str, np.ndarray]
Described: TypeAlias = dict[str, Json]
Migration: TypeAlias = Callable[[str, Described, Arrays], tuple[Described, Arrays]]


class Header(TypedDict):
    """What the metadata say."""

    format: int
    kind: str
    version: str
    fortran: list[str]
    model: Described
    sha256: str


FORMAT = 2
"""Version of what is written. Raise it, and add a migration, when any kind changes its arrays or header."""

MIGRATIONS: dict[int, Migration] = {
    1: lambda kind, described, arrays: (described, arrays),  # noqa: ARG005 - options were written in another way, which
    # `gaussfold.registry.decode` still reads: it knows of what kind each of them is, and this file does not
}
"""Version -> ``(kind, model header, arrays)`` brought up to the next version, so old files keep loading."""

DTYPES = (
    *("float64", "float32", "float16", "bool"),
    *("int64", "int32", "int16", "int8", "uint64", "uint32", "uint16", "uint8"),
)
_STORED_AS = {"F64", "F32", "F16", "BOOL", "I64", "I32", "I16", "I8", "U64", "U32", "U16", "U8"}
"""The same in the format's words."""
RESTORE = "restore it from a copy, or save the model again"
_OTHER_FILE = "give the path of a file written by gaussfold.save"
_KEY = "gaussfold"


class StoreError(ValueError):
    """A model file, or a path for one, that cannot be used."""


class MissingFileError(StoreError, FileNotFoundError):
    """There is no such file or directory; ``except FileNotFoundError`` catches it too."""


def refusal(path: Path, found: str, remedy: str) -> StoreError:
    """The error for a path: what was found there, and what to do."""
    return StoreError(f"path: {str(path)!r}: {found}; {remedy}")


def pieces(kind: str, described: Mapping[str, object], arrays: Arrays) -> list[bytes | memoryview]:
    """The parts of a file; arrays are views of the model's, so that saving takes no memory of their size."""
    for name, value in arrays.items():
        if value.dtype.name not in DTYPES:
            msg = f"model: array {name!r} of {kind} has dtype {value.dtype}; allowed are {', '.join(DTYPES)}"
            raise StoreError(msg)
    document = {
        "format": FORMAT,
        "kind": kind,
        "version": gaussfold.__version__,
        "fortran": sorted(name for name, value in arrays.items() if is_fortran(value)),
        "model": described,
    }
    try:
        document = json.loads(json.dumps(document))
    except (TypeError, ValueError) as error:
        msg = f"model: a parameter of {kind} cannot be JSON ({error}); use plain numbers and strings"
        raise StoreError(msg) from error
    # the format is raw memory: C order and native bytes
    plain = {name: np.asarray(a, a.dtype.newbyteorder("="), order="C") for name, a in arrays.items()}
    document["sha256"] = digest(document, plain)
    return safetensors_pieces(plain, {_KEY: json.dumps(document)})


def safetensors_pieces(arrays: Arrays, metadata: dict[str, str]) -> list[bytes | memoryview]:
    """Length of the header, header, arrays one after the other: the safetensors format, largest alignment first."""
    names = sorted(arrays, key=lambda name: (-arrays[name].dtype.itemsize, name))
    header: dict[str, Json] = {"__metadata__": dict[str, Json](metadata)}
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


def is_fortran(array: np.ndarray) -> bool:
    """Whether columns lie together, and rows do not."""
    return bool(array.flags.f_contiguous and not array.flags.c_contiguous)


def digest(header: Mapping[str, object], arrays: Mapping[str, np.ndarray]) -> str:
    """SHA-256 of the header and of every array with its name, dtype and shape."""
    covered = {name: value for name, value in header.items() if name != "sha256"}
    hasher = hashlib.sha256(json.dumps(covered, sort_keys=True).encode())
    for name in sorted(arrays):
        array = arrays[name]
        hasher.update(f"\n{name!r} {array.dtype.name} {array.shape}\n".encode())
        hasher.update(array.reshape(-1).view(np.uint8).data)
    return hasher.hexdigest()


def read_file(file: Path) -> tuple[str, Arrays]:
    """Header text and arrays, these in C order and owned by the caller."""
    if not file.exists():
        msg = f"path: {str(file)!r} does not exist; give the path of a file written by gaussfold.save"
        raise MissingFileError(msg)
    if not file.is_file():
        found = "it is a directory" if file.is_dir() else "it is not a regular file"
        raise refusal(file, found, _OTHER_FILE)
    with file.open("rb"):
        pass  # a file that cannot be opened is an OSError with its own errno, not a bad model file
    try:
        with safe_open(file, framework="np") as content:
            metadata = content.metadata() or {}
            if _KEY not in metadata:
                raise refusal(file, f"a safetensors file without {_KEY!r} in its metadata", _OTHER_FILE)
            names = list(content.keys())
            for name in names:
                if (kind := content.get_slice(name).get_dtype()) not in _STORED_AS:  # NumPy has no word for some
                    raise refusal(file, f"part {name!r} holds {kind}, which gaussfold never writes", RESTORE)
            arrays = {name: np.require(content.get_tensor(name), requirements=["C", "W"]) for name in names}
    except SafetensorError as error:
        raise refusal(file, f"truncated, damaged or no safetensors file ({error})", RESTORE) from error
    return metadata[_KEY], arrays


def parse_header(file: Path, text: str) -> Header:
    """Check the header's shape and version; only a known version is worth a checksum."""
    damaged = refusal(file, "its header is damaged", RESTORE)
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
        raise refusal(file, f"{found}; {limits}", "upgrade gaussfold")
    if version < oldest or not {"kind", "fortran", "model", "sha256"} <= header.keys():
        raise damaged
    return cast("Header", header)
