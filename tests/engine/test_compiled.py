"""Compiled code is cached under the contents of the whole engine, so an edit in one file cannot leave another stale."""

from gaussfold.engine import compiled
from gaussfold.engine.arrays import over_arrays as maps
from gaussfold.engine.dense import absorb as dense
from gaussfold.engine.scalar import special


def test_every_function_carries_the_stamp_of_the_whole_engine():
    stamps = {
        function._cache._cache_file._source_stamp
        for function in (dense.absorb_rows, maps.sites, special.sigmoid, maps.predictive)
    }
    assert stamps == {compiled._engine_stamp()}


def test_stamp_depends_on_every_file(tmp_path, monkeypatch):
    (tmp_path / "compiled.py").write_text("a = 1\n")
    (tmp_path / "sites.py").write_text("b = 1\n")
    monkeypatch.setattr(compiled, "__file__", str(tmp_path / "compiled.py"))
    first = compiled._engine_stamp.__wrapped__()
    (tmp_path / "sites.py").write_text("b = 2\n")
    assert compiled._engine_stamp.__wrapped__() != first
