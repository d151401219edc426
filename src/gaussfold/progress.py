"""A progress bar on a terminal: the one that Gaussian processes and networks show while they learn."""

from __future__ import annotations

import sys
from types import TracebackType
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from rich.progress import Progress as Bar


class Progress:
    """Shows how far a run is, and a note, until it is closed.

    Parameters
    ----------
    title
        What is running.
    total, done
        How many steps there are, and how many were done before.
    wanted
        Whether to show anything; None: if stderr is a terminal.
    """

    def __init__(self, title: str, total: int, done: int, wanted: bool | None) -> None:
        self._bar: Bar | None = None
        if wanted or (wanted is None and sys.stderr.isatty()):
            from rich.console import Console
            from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

            columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
            self._bar = Progress(*columns, TextColumn("{task.fields[note]}"), console=Console(stderr=True))
            self._bar.start()
            self._task = self._bar.add_task(title, total=total, completed=done, note="")

    def show(self, done: int, note: str = "") -> None:
        """Move the bar."""
        if self._bar is not None:
            self._bar.update(self._task, completed=done, note=note)

    def close(self) -> None:
        """Leave the bar as it is."""
        if self._bar is not None:
            self._bar.stop()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()
