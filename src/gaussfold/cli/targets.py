"""Paths to write to, looked at before hours of work rather than after."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable
from pathlib import Path

from gaussfold.cli.errors import CANNOT_WRITE, Failure
from gaussfold.data.sources import expand
from gaussfold.store import StoreError


def check_target(path: str | None) -> None:
    """Refuse a path to which no model can be saved: a model file is put in place by renaming, so it must be a file."""
    if path is None:
        return
    trouble = _place_trouble(path)
    if trouble is not None:
        raise StoreError(trouble)
    if Path(path).exists() and not Path(path).is_file():
        msg = f"{path}: it is {_kind(path)}, and a model is saved to a file; give the name of one"
        raise StoreError(msg)
    _check_directory(path)


def check_output(path: str) -> None:
    """Refuse a path to which no rows can be written; a pipe or a device is as good as a file, "-" is always there."""
    if path == "-":
        return
    trouble = _place_trouble(path)
    if trouble is not None:
        raise Failure(trouble, CANNOT_WRITE)
    if not Path(path).exists():
        _check_directory(path)
    elif not os.access(path, os.W_OK):
        msg = f"{path}: it cannot be written (Permission denied)"
        raise Failure(msg, CANNOT_WRITE)


def check_apart(outputs: Iterable[str | None], inputs: list[str], model: str | None = None) -> None:
    """Refuse to write over what is read (the inputs; a model), or to write two things to one file."""
    taken = [name for name in (*expand(inputs), model) if name not in ("-", None)]
    for output in outputs:
        if output is None or output == "-" or not _is_file_to_be(output):
            continue
        for other in taken:
            if _is_same(output, other):
                msg = f"{output}: it is also read or written as {other}; give it another name"
                raise Failure(msg, CANNOT_WRITE)
        taken.append(output)


def _is_file_to_be(path: str) -> bool:
    return not Path(path).exists() or Path(path).is_file()


def _is_same(one: str, other: str) -> bool:
    if Path(one).exists() and Path(other).exists():
        return os.path.samefile(one, other)
    return os.path.realpath(one) == os.path.realpath(other)


def _place_trouble(path: str) -> str | None:
    """What is wrong with the place, if anything: exit 4 for a model file, 5 for any other output."""
    target = Path(path)
    if target.is_dir():
        return f"{path}: it cannot be written, it is a directory; give the name of a file inside it"
    parent = target.absolute().parent
    if not parent.is_dir():
        return f"{path}: it cannot be written, the directory {str(parent)!r} does not exist; create it first"
    return None


def _check_directory(path: str) -> None:
    parent = Path(path).absolute().parent
    if not os.access(parent, os.W_OK | os.X_OK):
        msg = f"{path}: the directory {str(parent)!r} cannot be written"
        raise Failure(msg, CANNOT_WRITE)


def _kind(path: str) -> str:
    mode = os.stat(path).st_mode
    for test, name in ((stat.S_ISFIFO, "a pipe"), (stat.S_ISSOCK, "a socket"), (stat.S_ISCHR, "a device")):
        if test(mode):
            return name
    return "no regular file"
