"""Compiled code is cached under the contents of all that is compiled: an edit in one file leaves none stale."""

from gaussfold.engine import compiled
from gaussfold.engine.arrays import over_arrays
from gaussfold.engine.dense import absorb


def test_every_function_carries_the_stamp_of_all_compiled_code():
    stamps = {
        function._cache._cache_file._source_stamp
        for function in (absorb.absorb_rows, over_arrays.sites, over_arrays.predictive)
    }
    assert stamps == {compiled.source_stamp()}


def test_stamp_depends_on_every_file(tmp_path, monkeypatch):
    """Of the engine, its sub-folders, and the families and rules that are compiled with it."""
    files = ["engine/compiled.py", "engine/scalar/sites.py", "likelihoods/poisson.py", "rules/vi.py"]
    for name in files:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("a = 1\n")
    monkeypatch.setattr(compiled, "PACKAGE", tmp_path)
    seen = {compiled.source_stamp.__wrapped__()}
    for name in files:
        (tmp_path / name).write_text("a = 2\n")
        seen.add(compiled.source_stamp.__wrapped__())
    assert len(seen) == len(files) + 1
