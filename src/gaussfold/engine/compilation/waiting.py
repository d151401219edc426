"""The wait while loops are compiled: announced with a counter, and timed, so that rates can leave it out.

Standard error has one line for each time that Python waits: on a terminal it is written again as the counter moves,
elsewhere the counts follow one another in it. ``GAUSSFOLD_QUIET=1`` silences it, and :func:`speak_through` gives it to
a display that owns the terminal.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TextIO

from numba.core import event

from gaussfold.engine.compilation.kept import kept_in

ABOUT = 60  # compilations of a first model: 62 for a full one, 58 for a diagonal one
_STEP = 10  # how often the count is told where it cannot be overwritten
_PATIENCE = 1.0  # seconds before a wait that is not the first is worth a line


class Wait(event.Listener):  # type: ignore[misc]  # Numba has no types
    """Counts and times compilations of the engine. Numba fires its event on cache misses only, under a lock."""

    def __init__(self) -> None:
        self.count = 0
        self._depth, self._done, self._began = 0, 0.0, 0.0
        self._told = False  # whether this process was told at all
        self._line: _Line | None = None
        self.speaker: Callable[[str], None] | None = None

    @property
    def seconds(self) -> float:
        """How long this process has waited so far."""
        return self._done + (time.perf_counter() - self._began if self._depth else 0.0)

    def on_start(self, occurrence: event.Event) -> None:
        """Count a compilation; the outermost one begins a wait."""
        if self._depth == 0:
            self._began = time.perf_counter()
        self._depth += 1
        if _is_ours(occurrence):
            self.count += 1
            self._tell()

    def on_end(self, occurrence: event.Event) -> None:  # noqa: ARG002 - Numba's signature
        """Take the time when the outermost compilation ends, and end its line."""
        self._depth -= 1
        if self._depth == 0:
            self._done += time.perf_counter() - self._began
            if self._line is not None:
                self._line.end(self.count, self.seconds)
                self._line = None

    def _tell(self) -> None:
        if os.environ.get("GAUSSFOLD_QUIET"):
            return
        if self.speaker is not None:
            self.speaker(f"compiling the inner loops, once: {_so_far(self.count)}, {self.seconds:.0f} s ...")
            return
        if self._line is None:
            if self._told and time.perf_counter() - self._began < _PATIENCE:
                return
            self._line = _Line(sys.stderr, "compiling more loops" if self._told else _first_words())
            self._told = True
        self._line.show(self.count, self.seconds)


class _Line:
    """One line of standard error. A stream that is closed, full or gone is no reason to stop."""

    def __init__(self, out: TextIO, words: str) -> None:
        self._out, self._words = out, words
        self._terminal = out is not None and out.isatty()
        self._last = 0
        if not self._terminal:
            self._write(f"gaussfold: {words}:")

    def show(self, count: int, seconds: float) -> None:
        if self._terminal:
            self._write(f"\r\x1b[2Kgaussfold: {self._words}: {_so_far(count)}, {seconds:.0f} s")
        elif count >= self._last + _STEP:
            self._last = count - count % _STEP
            self._write(f" {self._last}")

    def end(self, count: int, seconds: float) -> None:
        if self._terminal:
            self._write(f"\r\x1b[2Kgaussfold: {self._words}: {count}, {seconds:.0f} s\n")
        else:
            self._write(f" {count} in {seconds:.0f} s\n")

    def _write(self, text: str) -> None:
        try:
            self._out.write(text)
            self._out.flush()
        except (OSError, ValueError, AttributeError):  # AttributeError: pythonw has no standard error, it is None
            return


def _first_words() -> str:
    place = kept_in()
    kept = "in memory, no folder can be written" if place is None else f"once, kept in {place}"
    return f"compiling its inner loops ({kept}; GAUSSFOLD_QUIET=1 silences this)"


def _so_far(count: int) -> str:
    return f"{count} of about {ABOUT}" if count <= ABOUT else f"{count}"


def _is_ours(occurrence: event.Event) -> bool:
    dispatcher = (occurrence.data or {}).get("dispatcher")
    return dispatcher is not None and str(dispatcher.py_func.__module__).startswith("gaussfold.")  # some have none


_WAIT = Wait()
event.register("numba:compile", _WAIT)


def seconds() -> float:
    """Return how many seconds this process has spent compiling, the present compilation included."""
    return _WAIT.seconds


def count() -> int:
    """Return how many functions this process has compiled, rather than found on disk."""
    return _WAIT.count


@contextmanager
def speak_through(speaker: Callable[[str], None]) -> Iterator[None]:
    """While inside, hand the counter to a display instead of writing a line."""
    before, _WAIT.speaker = _WAIT.speaker, speaker
    try:
        yield
    finally:
        _WAIT.speaker = before
