"""The parsers, the loops over dense, sparse and low-rank beliefs, the Kalman filter and the fuzzers, sanitised.

Tests that exist anyway run again in a process with ``GAUSSFOLD_SANITISE=1``: the same numbers must come out while every
index, pointer and lifetime is checked (``engine.sanitise``). Chosen for what they reach, so that all takes a few
minutes with compilation; ``GAUSSFOLD_SANITISE=1 python -m pytest`` runs everything that way.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SELECTIONS = {
    "parsers": ["tests/engine/test_parse.py", "tests/engine/test_murmur.py", "tests/engine/test_numbers.py"],
    "sparse": [
        "tests/engine/test_lanes.py",
        "tests/beliefs/test_pages.py",
        "tests/beliefs/test_diagonal_equations.py::test_algorithm_1_for_logit",
        "tests/beliefs/test_diagonal_equations.py::test_wide_priors_meeting_surprises_are_solved_too",
        "tests/beliefs/test_diagonal_equations.py::test_rows_longer_than_the_scratch",
    ],
    "dense and low rank": [
        "tests/engine/test_dense.py",
        "tests/engine/test_rows.py",
        "tests/engine/test_lowrank_row.py",
    ],
    "kalman": ["tests/engine/test_kalman.py"],
    "fuzzers": ["tests/fuzz/test_fuzz.py"],
}


@pytest.mark.slow
@pytest.mark.parametrize("name", SELECTIONS)
def test_sanitised(name):
    kept = {key: value for key, value in os.environ.items() if not key.startswith(("PYTEST_", "COV_", "COVERAGE_"))}
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", *SELECTIONS[name]],
        cwd=ROOT,
        env=kept | {"GAUSSFOLD_SANITISE": "1", "GAUSSFOLD_QUIET": "1"},
        capture_output=True,
        text=True,
        timeout=1200,
    )
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]
