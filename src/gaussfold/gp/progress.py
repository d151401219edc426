"""A progress bar with the energy, on a terminal."""

from __future__ import annotations

import sys
from types import TracebackType
from typing import Any, Self


class Progress:
    """Shows iterations and energy while it is open; does nothing unless wanted (None: if stderr is a terminal)."""

    def __init__(self, total: int, wanted: bool | None) -> None:
        self._wanted = sys.stderr.isatty() if wanted is None else wanted
        self._total = total
        self._bar: Any = None

    def __enter__(self) -> Self:
        if self._wanted:
            from rich.console import Console
            from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn
            from rich.progress import Progress as Bar

            self._bar = Bar(
                TextColumn("energy {task.fields[energy]}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(),
                console=Console(stderr=True),
            )  # fmt: skip
            self._bar.start()
            self._task = self._bar.add_task("", total=self._total, energy="...")
        return self

    def show(self, energy: float) -> None:
        """One iteration is done."""
        if self._bar is not None:
            self._bar.update(self._task, advance=1, energy=f"{energy:.6g}")

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if self._bar is not None:
            self._bar.stop()
