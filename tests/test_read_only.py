"""A package that cannot be written, no home, no cache: it works, compiled in memory, with one warning."""

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

import gaussfold

FOLD = """
import numpy as np, gaussfold as gf
belief = gf.DenseGaussian.isotropic(2, 0.7)
gf.fold(belief, gf.likelihoods.Gaussian(0.5), np.array([[1.0, 0.0], [0.5, -2.0]]), np.array([1.5, -0.5]))
print(gf.__file__, *belief.mean)
"""
NOBODY = 65534


@pytest.fixture
def read_only():
    """A copy of the package without what was compiled, which a user who is nobody may read and nobody may write."""
    folder = Path(tempfile.mkdtemp())  # not tmp_path, whose parents are closed to others
    shutil.copytree(Path(gaussfold.__file__).parent, folder / "gaussfold", ignore=shutil.ignore_patterns("__pycache__"))
    everything = (folder, *folder.rglob("*"))
    for path in everything:
        path.chmod(0o555 if path.is_dir() else 0o444)
    yield folder
    for path in everything:
        path.chmod(0o755)
    shutil.rmtree(folder)


def _as_nobody(*args, **variables):
    kept = {k: v for k, v in os.environ.items() if k not in ("NUMBA_CACHE_DIR", "XDG_CACHE_HOME", "PYTHONWARNINGS")}
    other_user = ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups"] if os.geteuid() == 0 else []
    return subprocess.run(
        [*other_user, sys.executable, *args],
        env={**kept, "HOME": "/nonexistent", "TMPDIR": "/nonexistent", "GAUSSFOLD_QUIET": "1", **variables},
        cwd="/",
        capture_output=True,
        text=True,
        timeout=280,
    )


def test_nothing_can_be_written(read_only):
    try:
        possible = _as_nobody("-c", "import numba").returncode == 0
    except OSError:  # no setpriv here
        possible = False
    if not possible:
        pytest.skip(f"{sys.executable} cannot be run by another user, and root may write anywhere")
    done = _as_nobody("-c", FOLD, PYTHONPATH=str(read_only))
    assert done.returncode == 0, done.stderr
    file, *mean = done.stdout.split()
    assert Path(file).is_relative_to(read_only)
    precision = [1 / 0.49 + (1 + 0.25) / 0.25, -1.0 / 0.25, 1 / 0.49 + 4.0 / 0.25]
    right = [(1.5 - 0.25) / 0.25, 1.0 / 0.25]
    determinant = precision[0] * precision[2] - precision[1] ** 2
    expected = [
        (precision[2] * right[0] - precision[1] * right[1]) / determinant,
        (precision[0] * right[1] - precision[1] * right[0]) / determinant,
    ]
    assert [float(value) for value in mean] == pytest.approx(expected, rel=1e-10)
    assert done.stderr.count("Warning") == 1
    assert "NUMBA_CACHE_DIR" in done.stderr
    assert "gaussfold compile" in done.stderr
    assert not list(read_only.rglob("*.nbc"))
