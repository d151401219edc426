"""What the last tests with ``--cov`` reached: lines and branches, the package and the loops' twins apart.

Which lines count, and why compiled ones do not, is said in pyproject.toml under ``[tool.coverage.run]``.
"""

from __future__ import annotations

import json
import subprocess
import sys
from typing import NamedTuple

PARTS = {"the package": "src/gaussfold/", "twins of the compiled loops": "tests/reference/"}
SHOWN = 8


class Count(NamedTuple):
    """Of how many, how many were reached."""

    reached: int
    total: int

    def __str__(self) -> str:
        share = 100.0 * self.reached / self.total if self.total else 100.0
        return f"{share:.1f} % ({self.reached} of {self.total})"


class File(NamedTuple):
    """A file's name, its lines and its branches."""

    name: str
    lines: Count
    branches: Count

    @property
    def missed(self) -> int:
        """Lines and branches that no test reached."""
        return sum(count.total - count.reached for count in (self.lines, self.branches))


def read(report: str) -> list[File]:
    """The files of a report of ``coverage json``."""
    return [
        File(
            name.replace("\\", "/"),
            Count(found["summary"]["covered_lines"], found["summary"]["num_statements"]),
            Count(found["summary"]["covered_branches"], found["summary"]["num_branches"]),
        )
        for name, found in json.loads(report)["files"].items()
    ]


def total(counts: list[Count]) -> Count:
    """All of them together."""
    return Count(sum(count.reached for count in counts), sum(count.total for count in counts))


def summary(files: list[File]) -> str:
    """One line for each part, then the files of which most was missed."""
    said = []
    for title, folder in PARTS.items():
        inside = [file for file in files if file.name.startswith(folder)]
        lines, branches = total([file.lines for file in inside]), total([file.branches for file in inside])
        said.append(f"coverage of {title}: lines {lines}, branches {branches}")
    worst = sorted((file for file in files if file.missed), key=lambda file: -file.missed)[:SHOWN]
    return "\n".join([*said, *(f"  {file.name}: {file.missed} lines and branches missed" for file in worst)])


def main() -> None:
    """Print the summary of what ``.coverage`` (or ``COVERAGE_FILE``) holds."""
    command = [sys.executable, "-m", "coverage", "json", "-q", "-o", "-"]
    print(summary(read(subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout)))


if __name__ == "__main__":
    main()
