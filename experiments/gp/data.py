"""Files of ``../shared/data``, which are not part of the repository."""

from __future__ import annotations

from pathlib import Path

from experiments.registry import ORACLES

DATA = ORACLES.parent / "data"


def path(name: str) -> Path:
    """Where the file is; exits with a message if it is not there."""
    found = DATA / name
    if not found.is_file():
        raise SystemExit(f"{found} is absent: this experiment is about those data; put the file there")
    return found


def read_text(name: str) -> str:
    """The file's text."""
    return path(name).read_text(encoding="utf-8")
