"""What importing costs, and what the first call says while it compiles."""

import os
import subprocess
import sys

import pytest

import gaussfold

FOLD = """
import numpy as np, gaussfold as gf
gf.fold(gf.DenseGaussian.isotropic(1, 0.7), gf.likelihoods.Gaussian(0.7), np.ones((1, 1)), np.ones(1))
"""


def _python(code, **environment):
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code],
        env={**{k: v for k, v in os.environ.items() if k != "GAUSSFOLD_QUIET"}, **environment},
        capture_output=True,
        text=True,
        timeout=280,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout, done.stderr


def test_import_is_lazy():
    heavy = "numpy, numba, scipy, sklearn, narwhals, safetensors, pandas, polars, matplotlib, jax"
    code = f"import sys, gaussfold; print([m for m in {heavy.split(', ')} if m in sys.modules], dir(gaussfold))"
    out, err = _python(code)
    assert out.strip() == f"[] {sorted(gaussfold.__all__)}"
    assert err == ""


def test_likelihoods_do_not_need_the_engine():
    code = (
        "import sys, gaussfold as gf; print(gf.likelihoods.Gaussian(0.5).derivatives(1.0, 0.5)[0], "
        "[m for m in ('numba', 'sklearn') if m in sys.modules])"
    )
    assert _python(code)[0] == "2.0 []\n"


@pytest.mark.parametrize("name", gaussfold.__all__)
def test_every_public_name_is_there(name):
    assert getattr(gaussfold, name) is not None
    assert name in dir(gaussfold)
    assert name in vars(gaussfold)  # the second look costs nothing


def test_unknown_names_are_refused_as_python_does():
    with pytest.raises(AttributeError, match=r"^module 'gaussfold' has no attribute 'flod'$"):
        _ = gaussfold.flod
    with pytest.raises(ImportError, match="flod"):
        exec("from gaussfold import flod")
    assert not hasattr(gaussfold, "__wrapped__")


def test_compilation_is_announced_once(tmp_path):
    """A fresh cache: one line on stderr; the same cache again, or another function of it: silence."""
    out, err = _python(FOLD, NUMBA_CACHE_DIR=str(tmp_path))
    assert out == ""
    assert err.count("gaussfold: compiling its inner loops") == 1
    assert len(err.splitlines()) == 1
    assert _python(FOLD, NUMBA_CACHE_DIR=str(tmp_path)) == ("", "")


def test_silence_can_be_asked_for(tmp_path):
    """On the engine's smallest loop, so that it compiles in a second."""
    code = "import numpy as np; from gaussfold.engine.scalar.vectors import dot; print(dot(np.ones(2), np.ones(2)))"
    assert _python(code, NUMBA_CACHE_DIR=str(tmp_path), GAUSSFOLD_QUIET="1") == ("2.0\n", "")
    out, err = _python(code, NUMBA_CACHE_DIR=str(tmp_path / "other"))
    assert out == "2.0\n"
    assert "GAUSSFOLD_QUIET=1" in err
