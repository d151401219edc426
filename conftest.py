"""Snippets of the README and of the site are tests: each runs from a clean namespace, in an empty folder."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from sybil import Example, Sybil
from sybil.evaluators.python import PythonEvaluator
from sybil.parsers.markdown import CodeBlockParser, SkipParser

collect_ignore_glob = ["docs/*.py", "docs/ext/*", "docs/figures/*", "docs/guides/*", "docs/skeletons/*"]
run = PythonEvaluator()


def from_scratch(example: Example) -> None:
    """Python as a reader would paste it into a new session."""
    example.namespace.clear()
    example.namespace["__name__"] = "__main__"
    run(example)


def as_typed(example: Example) -> None:
    """Commands, with the ones of this environment first on the path; the first that fails ends it."""
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    quiet = os.environ | {"PATH": path, "GAUSSFOLD_QUIET": "1"}
    done = subprocess.run(["sh", "-ec", example.parsed], check=False, capture_output=True, text=True, env=quiet)
    assert done.returncode == 0, done.stderr


@pytest.fixture
def empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Snippets leave files behind; not here."""
    monkeypatch.chdir(tmp_path)
    return


pytest_collect_file = Sybil(
    parsers=[CodeBlockParser("python", from_scratch), CodeBlockParser("sh", as_typed), SkipParser()],
    patterns=["README.md", "docs/*.md", "docs/*/*.md"],
    excludes=["docs/guides/*"],
    fixtures=["empty_folder"],
).pytest()
