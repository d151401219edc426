"""A table for the eye, the same numbers as JSON, and the machine they were measured on."""

from __future__ import annotations

import json
import os
import platform
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np


@dataclass
class Report:
    """Rows of measurements under named columns, with notes."""

    title: str
    columns: Sequence[str]
    rows: list[list[Any]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    numbers: dict[str, Any] = field(default_factory=dict)

    def table(self) -> str:
        """The rows as a Markdown table."""
        cells = [list(map(str, self.columns)), *([_show(cell) for cell in row] for row in self.rows)]
        widths = [max(len(row[i]) for row in cells) for i in range(len(self.columns))]
        lines = [
            "| " + " | ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) + " |"
            for row in cells
        ]
        lines.insert(1, "|" + "|".join("-" * (width + 2) for width in widths) + "|")
        return "\n".join([*lines, "", *(f"- {note}" for note in self.notes)])

    def write(self, path: Path) -> None:
        """Write everything as JSON."""
        payload = {
            "title": self.title,
            "machine": machine(),
            "columns": list(self.columns),
            "rows": self.rows,
            "notes": self.notes,
            **self.numbers,
        }
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(payload, indent=2, default=float) + "\n")


def _show(cell: Any) -> str:
    if isinstance(cell, float):
        return f"{cell:.3g}" if abs(cell) < 1e4 else f"{cell:.0f}"
    return str(cell)


def machine() -> dict[str, Any]:
    """What the numbers depend on."""
    names = ("numpy", "scipy", "numba", "scikit-learn", "bayesianbandits")
    return {
        "date": time.strftime("%Y-%m-%d"),
        "processor": _processor(),
        "cores": os.cpu_count(),
        "python": platform.python_version(),
        "load": os.getloadavg()[0],
        "blas_threads": os.environ.get("OPENBLAS_NUM_THREADS", "default"),
        "versions": {name: _version(name) for name in names},
    }


def _processor() -> str:
    info = Path("/proc/cpuinfo")
    if info.exists():
        for line in info.read_text().splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    return platform.processor()


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "absent"


def best_seconds(work: Callable[[], Any], repeats: int = 3) -> float:
    """Shortest of several runs: the one least disturbed by neighbours."""
    best = float("inf")
    for _ in range(repeats):
        started = time.perf_counter()
        work()
        best = min(best, time.perf_counter() - started)
    return best


def dgemm_rate(size: int = 2000, repeats: int = 5) -> float:
    """Floating point operations a second of a square matrix product, with the BLAS threads in force."""
    a = np.random.default_rng(0).standard_normal((size, size))
    return 2.0 * size**3 / best_seconds(lambda: a @ a, repeats)
