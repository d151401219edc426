"""Model files: opened, saved on the way by checkpoints that may fail, and last by a save that tries hard; signals."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import signal
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType

from gaussfold.cli.errors import CANNOT_WRITE, Failure, fail
from gaussfold.cli.model import StreamModel
from gaussfold.cli.options import Run
from gaussfold.data.chunks import Chunk
from gaussfold.store import StoreError, load, save


def open_model(path: str) -> StreamModel:
    """Load a model of the command line; anything else is refused by name."""
    try:
        model = load(path)
    except FileNotFoundError:
        raise
    except OSError as error:
        msg = f"{path}: cannot be read ({error.strerror or error}); check the disk and who may read it"
        raise StoreError(msg) from error
    if not isinstance(model, StreamModel):
        msg = f"{path}: it holds a {type(model).__name__}; the command line needs a model of 'gaussfold train'"
        raise StoreError(msg)
    return model


def rounds_file(final: str) -> str:
    """Where the rounds of several workers are kept while another model lies at ``final``."""
    return f"{final}.rounds"


class Checkpoints:
    """Saves a model after every so many examples, exactly, or about every so many seconds."""

    def __init__(self, path: str | None, run: Run, model: StreamModel) -> None:
        self._path, self._examples, self._seconds = path, run.checkpoint, run.checkpoint_seconds
        self._due, self._time = model.examples + self._examples, time.monotonic() + self._seconds
        self.written = False
        """Whether the file holds one of this run."""

    def parts(self, chunk: Chunk, model: StreamModel) -> Iterator[Chunk]:
        """Cut a chunk where a checkpoint is due."""
        start = 0
        while start < len(chunk):
            stop = len(chunk)
            if self._path is not None and self._examples:
                stop = min(stop, start + max(self._due - model.examples, 1))
            part = chunk if stop - start == len(chunk) else chunk.rows(start, stop)
            yield part if start == 0 else dataclasses.replace(part, names=[], bad=[], n_bad=0)
            start = stop

    def maybe(self, model: StreamModel) -> None:
        """Save if it is time; a failure is reported, the last good file stays, training goes on."""
        by_examples = self._examples > 0 and model.examples >= self._due
        by_time = self._seconds > 0 and time.monotonic() >= self._time
        if self._path is None or not (by_examples or by_time):
            return
        self._due, self._time = model.examples + self._examples, time.monotonic() + self._seconds
        try:
            save(model, self._path)
            self.written = True
        except OSError as error:
            fail(
                f"{self._path}: checkpoint not written ({error.strerror or error}); going on, the last one stays",
                0,
            )


def save_last(model: StreamModel, path: str) -> None:
    """Save; where that fails leave the model in the temporary directory rather than lose it."""
    try:
        save(model, path)
    except OSError as error:
        reason = f"{path}: the model cannot be written ({error.strerror or error})"
        rescue = Path(tempfile.gettempdir()) / f"gaussfold-rescued-{os.getpid()}.model"
        try:
            save(model, rescue)
        except OSError as second:
            rescued = f"nor can {rescue} ({second.strerror or second})"
            msg = f"{reason}, {rescued}; the file holds the last checkpoint, if any"
            raise Failure(msg, CANNOT_WRITE) from error
        msg = f"{reason}; it is in {rescue}"
        raise Failure(msg, CANNOT_WRITE) from error


@contextlib.contextmanager
def signals(stop: Callable[[], None]) -> Iterator[list[int]]:
    """While inside, SIGINT and SIGTERM call ``stop`` and are noted; a second one takes the usual course."""
    caught: list[int] = []
    old: dict[int, Callable[[int, FrameType | None], object] | int | None] = {}

    def handle(number: int, _frame: FrameType | None) -> None:
        caught.append(number)
        stop()
        for known, handler in old.items():
            signal.signal(known, handler)

    with contextlib.suppress(ValueError):  # not in the main thread: no signals to wait for
        for number in (signal.SIGINT, signal.SIGTERM):
            old[number] = signal.signal(number, handle)
    try:
        yield caught
    finally:
        for known, handler in old.items():
            signal.signal(known, handler)
