"""Write a file whole or not at all, and leave nothing lying about.

The new content is written beside the target under a name of its own, synced, renamed over the target, and the rename
synced. A process that is killed on the way leaves that file behind; the next save to the same target removes it. The
writer holds a lock on its file as long as it lives, so nobody takes a file from under a writer that is only slow.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import secrets
import stat
import sys
from collections.abc import Iterator
from pathlib import Path

if sys.platform != "win32":
    import fcntl

# A directory on some network file systems cannot be synced; the rename itself is still atomic there.
_UNSYNCABLE = {errno.EINVAL, errno.ENOTSUP, errno.EACCES, errno.EPERM}


def write_atomically(target: Path, *pieces: bytes | memoryview) -> None:
    """Write the pieces beside ``target``, sync, rename over it, sync the directory; on failure leave no trace."""
    remove_leftovers(target)
    with _locked_file(target) as (descriptor, temporary):
        try:
            try:
                with contextlib.suppress(FileNotFoundError):
                    os.chmod(temporary, stat.S_IMODE(target.stat().st_mode))
                for piece in pieces:
                    _write_all(descriptor, piece)
                os.fsync(descriptor)
            finally:
                os.close(descriptor)
            os.replace(temporary, target)
        except BaseException:
            with contextlib.suppress(OSError):
                os.unlink(temporary)
            raise
    _sync_directory(target.parent)


def remove_leftovers(target: Path) -> None:
    """Remove what saves to ``target`` that were killed have left; never what a live one is writing."""
    if sys.platform == "win32":
        return  # nothing tells a live writer there
    beginning = _beginning(target)
    with contextlib.suppress(OSError), os.scandir(target.parent) as entries:
        for entry in entries:
            if entry.name.startswith(beginning):
                with contextlib.suppress(OSError):  # a live writer's, somebody else's, or gone by now
                    _remove_unlocked(entry.path)


def _beginning(target: Path) -> str:
    """How the names of files begin that are to become ``target``: short, whatever its own name is."""
    return f".gaussfold-{hashlib.sha256(os.fsencode(target.name)).hexdigest()[:16]}-"


def _remove_unlocked(path: str) -> None:
    descriptor = os.open(path, os.O_RDWR | getattr(os, "O_NOFOLLOW", 0))
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        os.unlink(path)
    finally:
        os.close(descriptor)


@contextlib.contextmanager
def _locked_file(target: Path) -> Iterator[tuple[int, Path]]:
    """A new file beside the target, open for writing (the caller closes it), locked until the end."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
    while True:
        temporary = target.with_name(f"{_beginning(target)}{secrets.token_hex(8)}.tmp")
        descriptor = os.open(temporary, flags, 0o666)  # the umask applies, as to any new file
        try:
            lock = _lock(descriptor)
            if os.fstat(descriptor).st_nlink:
                break
        except BaseException:
            os.close(descriptor)
            with contextlib.suppress(OSError):
                os.unlink(temporary)
            raise
        os.close(descriptor)  # another save took it for a leftover before it was locked
        os.close(lock)
    try:
        yield descriptor, temporary
    finally:
        with contextlib.suppress(OSError):
            os.close(lock)


def _lock(descriptor: int) -> int:
    """Lock an open file; the lock lasts until the descriptor that is returned and the given one are closed."""
    if sys.platform != "win32":
        with contextlib.suppress(OSError):  # a file system without locks has no leftovers removed either
            fcntl.flock(descriptor, fcntl.LOCK_EX)
    return os.dup(descriptor)


def _write_all(descriptor: int, piece: bytes | memoryview) -> None:
    rest = memoryview(piece)
    while rest.nbytes:
        rest = rest[os.write(descriptor, rest) :]


def _sync_directory(directory: Path) -> None:
    """Make the rename itself durable, where the platform can."""
    if os.name == "nt":
        return
    try:
        descriptor = os.open(directory, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
    except OSError as error:
        if error.errno not in _UNSYNCABLE:
            raise
