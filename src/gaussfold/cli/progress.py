"""What training tells while it runs: a table in Vowpal Wabbit's manner, and a live line on a terminal."""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack
from typing import TYPE_CHECKING, TextIO

import numpy as np

from gaussfold.cli.model import StreamModel
from gaussfold.cli.predictions import Told
from gaussfold.cli.progressive_loss import LOSS, WEIGHT
from gaussfold.data.chunks import Chunk
from gaussfold.engine.compilation import waiting
from gaussfold.trace import Trace

if TYPE_CHECKING:
    from rich.live import Live

_HEADER = (
    "  average      since       example    example   current   current   current  features\n"
    "     loss       last       counter     weight     label   predict       std   in line"
)


class Progress:
    """Adds chunks to a model's totals and prints a line at rows 1, 2, 4, 8, ... (or every n)."""

    def __init__(self, model: StreamModel, *, quiet: bool = False, every: int = 0, out: TextIO | None = None) -> None:
        self._model, self._quiet, self._every = model, quiet, every
        self._out = out or sys.stderr
        self._start = model.examples
        self._next = every or 1
        self._before = model.totals.copy()
        self._live_line = None if quiet or not self._out.isatty() else _LiveLine()
        self._told = False

    def update(self, chunk: Chunk, trace: Trace) -> None:
        """Count the rows of a chunk, with a line wherever one is due."""
        at = 0
        while True:
            due = self._start + self._next - self._model.examples + at
            if self._quiet or due > len(chunk):
                break
            self._model.add(chunk, trace, at, due)
            at = due
            self._line(chunk, self._model.before(trace.rows(due - 1, due), chunk.label[due - 1 : due]), due - 1)
            self._next += self._every or self._next
        self._model.add(chunk, trace, at, len(chunk))
        if self._live_line is not None:
            with self._harmless():
                self._live_line.show(self._model)

    def _line(self, chunk: Chunk, prediction: Told, row: int) -> None:
        totals, before = self._model.totals, self._before
        weight = totals[WEIGHT] - before[WEIGHT]
        since = (totals[LOSS] - before[LOSS]) / weight if weight else np.nan
        shown = self._model.line(float(chunk.label[row]), prediction)
        text = (
            f"{self._model.average_loss:9.6f}  {since:9.6f}  {self._model.examples:12d} {totals[WEIGHT]:10.1f}  {shown}"
            f"  {chunk.indptr[row + 1] - chunk.indptr[row]:8d}"
        )
        self._before = totals.copy()
        self.say(text if self._told else f"{_HEADER}\n{text}")
        self._told = True

    def say(self, text: str) -> None:
        """Print a line, above the live one if there is one."""
        if self._quiet:
            return
        with self._harmless():
            if self._live_line is not None:
                self._live_line.print(text)
            else:
                print(text, file=self._out, flush=True)

    def close(self) -> None:
        """Take the live line away."""
        if self._live_line is not None:
            with self._harmless():
                self._live_line.close()

    @contextlib.contextmanager
    def _harmless(self) -> Iterator[None]:
        """Where nobody can be told anything, nothing is told any more: progress never costs the model."""
        try:
            yield
        except OSError:
            self._quiet, self._live_line = True, None


class _LiveLine:
    """One line on a terminal that is written again and again: no bar, because nobody knows how long a stream is."""

    def __init__(self) -> None:
        from rich.console import Console
        from rich.live import Live

        self._began, self._first = time.monotonic() - waiting.seconds(), -1
        self._live: Live = Live("reading ...", console=Console(stderr=True), refresh_per_second=8, transient=True)
        self._live.start()
        self._compiling = ExitStack()
        self._compiling.enter_context(waiting.speak_through(self._live.update))

    def show(self, model: StreamModel) -> None:
        if self._first < 0:
            self._first = model.examples
        seconds = max(time.monotonic() - waiting.seconds() - self._began, 1e-3)  # a rate without compilation
        constant = f" (constant: {model.base_rate_loss:.6f})" if model.binary else ""
        self._live.update(
            f"{model.examples:,} examples   {(model.examples - self._first) / seconds:,.0f}/s   "
            f"average log loss {model.average_loss:.6f}{constant}   {seconds:.0f} s"
        )

    def print(self, text: str) -> None:
        self._live.console.print(text, highlight=False, markup=False)

    def close(self) -> None:
        self._compiling.close()
        self._live.stop()
