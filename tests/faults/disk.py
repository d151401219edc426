"""A disk that loses what was not synced: every state in which a power cut may leave it.

The calls of a save are recorded, then replayed up to each point. Of what had not been synced by then anything may
have reached the disk: of a file's writes none, some or all, whole or in part; of the directory's changes (new names,
renames) the first few, in order. Syncing a file settles its writes, syncing the directory settles the names.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple
from unittest import mock

from gaussfold.store import save

CALLS = ("open", "write", "fsync", "replace", "unlink", "close", "dup")


class Call(NamedTuple):
    """A call, the file or directory it is about, and what goes with it."""

    name: str
    path: str
    more: Any = None


def recorded(model: object, target: Path) -> list[Call]:
    """The calls that saving a model makes."""
    calls: list[Call] = []
    paths: dict[int, str] = {}
    real = {name: getattr(os, name) for name in CALLS}

    def opened(path: Any, flags: int, *mode: Any) -> int:
        descriptor = real["open"](path, flags, *mode)
        paths[descriptor] = os.fspath(path)
        if flags & os.O_CREAT:
            calls.append(Call("create", os.fspath(path)))
        return int(descriptor)

    def doubled(descriptor: int) -> int:
        twin = real["dup"](descriptor)
        paths[twin] = paths[descriptor]
        return int(twin)

    def written(descriptor: int, data: Any) -> int:
        size = real["write"](descriptor, data)
        calls.append(Call("write", paths[descriptor], bytes(data[:size])))
        return int(size)

    def synced(descriptor: int) -> None:
        real["fsync"](descriptor)
        calls.append(Call("fsync", paths[descriptor]))

    def replaced(source: Any, destination: Any) -> None:
        real["replace"](source, destination)
        calls.append(Call("replace", os.fspath(source), os.fspath(destination)))

    def unlinked(path: Any) -> None:
        real["unlink"](path)
        calls.append(Call("unlink", os.fspath(path)))

    doubles = {
        "open": opened,
        "write": written,
        "fsync": synced,
        "replace": replaced,
        "unlink": unlinked,
        "dup": doubled,
    }
    with mock.patch.multiple(os, **doubles):
        save(model, target)
    return calls


def states(calls: list[Call], old: dict[str, bytes]) -> Iterator[dict[str, bytes]]:
    """Every state (names and contents) in which the disk may be after a power cut during these calls."""
    for done in range(len(calls) + 1):
        yield from _after(calls[:done], old)


def _after(calls: list[Call], old: dict[str, bytes]) -> Iterator[dict[str, bytes]]:
    """States after a cut at the end of these calls."""
    settled: dict[str, list[bytes]] = {}  # by the name a file was created with
    waiting: dict[str, list[bytes]] = {}
    names: list[Call] = []
    sure = 0
    for call in calls:
        if call.name == "write":
            waiting.setdefault(call.path, []).append(call.more)
        elif call.name == "fsync" and call.path in waiting:
            settled[call.path] = settled.get(call.path, []) + waiting.pop(call.path)
        elif call.name == "fsync":
            sure = len(names)  # the directory
        else:
            names.append(call)
    for kept in range(sure, len(names) + 1):
        for contents in _contents(settled, waiting):
            yield _named(names[:kept], contents, old)


def _contents(settled: dict[str, list[bytes]], waiting: dict[str, list[bytes]]) -> Iterator[dict[str, bytes]]:
    """What files may hold: all that was synced, and any part of the rest."""
    sure = {path: b"".join(pieces) for path, pieces in settled.items()}
    yield sure
    for path, pieces in waiting.items():
        start = sure.get(path, b"")
        for count in range(1, len(pieces) + 1):
            whole = b"".join(pieces[:count])
            yield sure | {path: start + whole}
            yield sure | {path: start + whole[: len(whole) // 2]}  # the last write in part
            yield sure | {path: start + bytes(len(whole))}  # its length, but not its bytes
            yield sure | {path: start + bytes(len(pieces[0])) + whole[len(pieces[0]) :]}  # a later write first


def _named(names: list[Call], contents: dict[str, bytes], old: dict[str, bytes]) -> dict[str, bytes]:
    found = dict(old)
    for call in names:
        if call.name == "create":
            found[call.path] = contents.get(call.path, b"")
        elif call.name == "replace":
            found[call.more] = found.pop(call.path, b"")
        else:
            found.pop(call.path, None)
    return found
