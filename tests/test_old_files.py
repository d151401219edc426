"""Model files written by earlier versions: they load, tell what they told, and go on.

The folders ``tests/fixtures/v*`` hold files and what came of them when they were written (`tests.fixtures.cases` says
how). What each test proves:

- What is loaded is what was saved, bit for bit, on every machine: the arrays of the loaded model are the arrays of the
  file as the safetensors library reads them, and saving it again changes none of them.
- Written again by this version, an old file goes on as the old file itself does, bit for bit.
- Predictions and going on give the recorded numbers to 1e-12 of the largest of each array, 1e-4 where something is
  kept in single precision. Bits cannot be asked for here: BLAS kernels add up in the order that suits the processor,
  XLA and LLVM fuse and vectorise by its instructions, and what LLVM fuses depends on what it inlines, hence even on
  which functions the cache held when another one was first compiled (one unit in the last place, seen between two
  orders of running tests).
- Where going on draws random numbers (networks) and NumPy or JAX are not those of the record, other draws are
  legitimate: then only that it goes on, with finite numbers.
"""

import json
from pathlib import Path

import numpy as np
import pytest
from safetensors import safe_open

import gaussfold as gf
from tests.fixtures.cases import CASES
from tests.fixtures.libraries import libraries

HERE = Path(__file__).parent / "fixtures"
FILES = sorted(HERE.glob("v*/*.model"))
DOUBLE, SINGLE = 1e-12, 1e-4
"""Tolerances, of an array's largest entry."""


def name(path: Path) -> str:
    return f"{path.parent.name}-{path.stem}"


def tensors(path: Path) -> dict[str, np.ndarray]:
    with safe_open(path, framework="np") as content:
        return {key: content.get_tensor(key) for key in content.keys()}  # noqa: SIM118 - not a mapping


def same(found: dict[str, np.ndarray], kept: dict[str, np.ndarray]) -> None:
    assert found.keys() == kept.keys()
    for key, array in kept.items():
        assert found[key].dtype == array.dtype, key
        np.testing.assert_array_equal(found[key], array, err_msg=key)


def needed(path: Path) -> None:
    for module in CASES[path.stem].needs:
        pytest.importorskip(module)


def test_every_case_has_a_file():
    assert {path.stem for path in FILES} == CASES.keys()


ADDED = {"after.anchor.mean", "after.anchor.cov"}
"""What a stream of a Gaussian process is saved with since 0.2."""


@pytest.mark.parametrize("path", FILES, ids=name)
def test_what_is_loaded_is_what_was_saved(path, tmp_path):
    needed(path)
    kept = tensors(path)
    model = gf.load(path)
    state = {key: np.asarray(array) for key, array in model.state().items()}
    same({key: state[key] for key in kept}, kept)  # what a later layout has in addition follows from the header
    gf.save(model, tmp_path / "again")
    same(tensors(tmp_path / "again"), state)


@pytest.mark.parametrize("path", FILES, ids=name)
def test_it_tells_what_it_told_and_goes_on(path, tmp_path):
    needed(path)
    case = CASES[path.stem]
    found = case.found(path)
    gf.save(gf.load(path), tmp_path / "again")
    same(case.found(tmp_path / "again"), found)
    with np.load(path.with_suffix(".npz")) as archive:
        kept = {key: archive[key] for key in archive.files}
    assert found.keys() - ADDED == kept.keys()
    drawn_alike = not case.draws or libraries() == json.loads((path.parent / "libraries.json").read_text())
    for key, array in kept.items():
        if drawn_alike or key.startswith("read"):
            close(found[key], array, SINGLE if case.single else DOUBLE, key)
        else:
            assert found[key].shape == array.shape, key
            assert np.isfinite(found[key]).all(), key


def close(found: np.ndarray, kept: np.ndarray, tolerance: float, key: str) -> None:
    if kept.dtype.kind != "f":
        np.testing.assert_array_equal(found, kept, err_msg=key)
        return
    atol = tolerance * float(np.nanmax(np.abs(kept), initial=0.0))
    np.testing.assert_allclose(found, kept, rtol=0.0, atol=atol, err_msg=key)
