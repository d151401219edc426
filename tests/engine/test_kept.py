"""Machine code on disk: whole or not believed, whoever else writes, wherever one may write at all."""

import os
import subprocess
import sys
import warnings

import pytest

from gaussfold.engine.compilation import kept
from tests.cli.helpers import ENVIRONMENT

DOT = """
import sys, numpy as np
from gaussfold.engine.compilation import waiting
from gaussfold.engine.scalar.vectors import dot
kind = sys.argv[1] if len(sys.argv) > 1 else "float64"
print(dot(np.full(3, 2, kind), np.full(3, 0.5, kind)), waiting.count())
"""


def _dot(cache, *args):
    environment = {**ENVIRONMENT, "NUMBA_CACHE_DIR": str(cache)}
    done = subprocess.run([sys.executable, "-c", DOT, *args], env=environment, capture_output=True, timeout=120)
    assert done.returncode == 0, done.stderr.decode()
    value, count = done.stdout.split()
    return float(value), int(count)


@pytest.fixture
def places(tmp_path, monkeypatch):
    chosen = (tmp_path / "first", tmp_path / "second")
    monkeypatch.setattr(kept, "folders", lambda source: chosen)
    return chosen


def test_what_was_saved_is_loaded_for_the_same_stamp_and_key_alone(places):
    kept.save("name", "stamp", ("key", 1), {"data": 2}, None)
    assert kept.load("name", "stamp", ("key", 1), None) == {"data": 2}
    assert kept.load("name", "other", ("key", 1), None) is None
    assert kept.load("name", "stamp", ("key", 2), None) is None
    assert kept.load("other", "stamp", ("key", 1), None) is None
    assert [path.name for path in places[0].iterdir()] == ["name"]  # nothing temporary is left


def test_damage_of_any_byte_and_any_length_is_seen(places):
    kept.save("name", "stamp", "key", "data", None)
    file = places[0] / "name"
    whole = file.read_bytes()
    for place in range(len(whole)):
        file.write_bytes(whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :])
        assert kept.load("name", "stamp", "key", None) is None
        file.write_bytes(whole[:place])
        assert kept.load("name", "stamp", "key", None) is None
    file.write_bytes(whole)
    assert kept.load("name", "stamp", "key", None) == "data"


def test_the_second_place_is_taken_where_the_first_cannot_be(places):
    places[0].write_text("a file, not a folder")
    kept.save("name", "stamp", "key", "data", None)
    assert kept.load("name", "stamp", "key", None) == "data"
    assert (places[1] / "name").is_file()


def test_no_place_is_one_warning_with_the_remedy(places, monkeypatch):
    monkeypatch.setattr(kept._Told, "already", False)
    for place in places:
        place.write_text("a file, not a folder")
    with pytest.warns(RuntimeWarning, match=r"first.*NUMBA_CACHE_DIR.*gaussfold compile"):
        kept.save("name", "stamp", "key", "data", None)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        kept.save("name", "stamp", "key", "data", None)


def test_a_full_disk_is_no_reason_to_stop(places, monkeypatch):
    monkeypatch.setattr(kept._Told, "already", False)

    def full(self, content):
        self.touch()
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(kept.Path, "write_bytes", full)
    with pytest.warns(RuntimeWarning, match="No space left on device"):
        kept.save("name", "stamp", "key", "data", None)
    assert [list(place.iterdir()) for place in places] == [[], []]


def test_processes_at_once_and_damage_in_between(tmp_path):
    """Two signatures of one function, saved by several processes at the same time: each finds its own."""
    environment = {**ENVIRONMENT, "NUMBA_CACHE_DIR": str(tmp_path)}
    kinds = ["float64", "float32", "float64", "float32"]
    children = [
        subprocess.Popen([sys.executable, "-c", DOT, kind], env=environment, stdout=subprocess.PIPE) for kind in kinds
    ]
    assert [float(child.communicate(timeout=120)[0].split()[0]) for child in children] == [3.0] * 4
    assert [child.returncode for child in children] == [0] * 4
    assert [_dot(tmp_path, kind) for kind in kinds[:2]] == [(3.0, 0), (3.0, 0)]
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert len(files) == 2
    for file in files:
        os.truncate(file, file.stat().st_size // 2)
    assert _dot(tmp_path) == (3.0, 1)  # compiled anew
    assert _dot(tmp_path) == (3.0, 0)
