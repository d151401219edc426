"""The gate's share of the faults: all of a save, a load and learning; some of the command line's; leftovers."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pytest

import gaussfold as gf
from gaussfold.store import atomic
from tests.faults import disk, driver
from tests.faults.__main__ import power_cuts
from tests.faults.doubles import Fault, doubled
from tests.faults.scenarios import leftovers, scenarios

NAMES = {scenario.name: scenario for scenario in scenarios()}
SHORT = [name for name in NAMES if "train" not in name and name != "predict"]
LONG = [name for name in NAMES if name not in SHORT]
SECONDS = 12.0
"""For each of the longer ones; ``python -m tests.faults`` runs them to the end."""


@pytest.mark.parametrize("name", SHORT)
def test_every_fault(name, tmp_path):
    tried = driver.exhaust(NAMES[name], tmp_path)
    assert tried.faults >= 10
    assert tried.violations == []


@pytest.mark.parametrize("name", LONG)
def test_first_faults_of_a_command(name, tmp_path):
    kinds = ("write", "fsync", "replace", "close", "open", "read", "allocation")
    tried = driver.exhaust(NAMES[name], tmp_path, kinds, seconds=SECONDS)
    assert tried.faults >= 5
    assert tried.violations == []


def test_killed_at_every_boundary_of_a_save(tmp_path):
    tried = driver.kill_everywhere(NAMES["save"], tmp_path)
    assert tried.faults >= 10
    assert tried.violations == []


def test_power_cuts(tmp_path):
    tried = power_cuts(tmp_path)
    assert tried.faults > 50
    assert tried.violations == []


def test_the_disk_finds_a_rename_before_the_sync(tmp_path):
    """The check can fail: a save in another order loses the model."""
    target = tmp_path / "model"
    gf.save(gf.DenseGaussian.isotropic(2), target)
    old = target.read_bytes()
    calls = disk.recorded(gf.DenseGaussian.isotropic(3), target)
    new = target.read_bytes()
    names = [call.name for call in calls]
    assert [name for name in names if name != "write"] == ["create", "fsync", "replace", "fsync"]
    sync, rename = names.index("fsync"), names.index("replace")
    calls[sync], calls[rename] = calls[rename], calls[sync]
    states = [state.get(str(target)) for state in disk.states(calls, {str(target): old})]
    assert any(content not in (old, new) for content in states)


def test_a_fault_is_met_where_it_is_said(tmp_path):
    path = tmp_path / "model"
    with doubled(Fault(("write",), 1)), pytest.raises(OSError, match="No space left"):
        gf.save(gf.DenseGaussian.isotropic(2), path)
    assert list(tmp_path.iterdir()) == []


# Leftovers.

KILLED = """
import os, sys
from unittest import mock
import gaussfold as gf
with mock.patch.object(os, "fsync", lambda descriptor: os._exit(9)):
    gf.save(gf.DenseGaussian.isotropic(3), sys.argv[1])
"""


def kill_a_save(path):
    assert subprocess.run([sys.executable, "-c", KILLED, path], check=False).returncode == 9


def test_the_next_save_to_a_target_removes_what_a_killed_one_left(tmp_path):
    path, other = tmp_path / "model", tmp_path / "other"
    kill_a_save(path)
    assert len(leftovers(tmp_path)) == 1
    gf.save(gf.DenseGaussian.isotropic(2), other)  # not its business
    assert len(leftovers(tmp_path)) == 1
    gf.save(gf.DenseGaussian.isotropic(2), path)
    assert leftovers(tmp_path) == []
    np.testing.assert_array_equal(gf.load(path).variance(), [1.0, 1.0])


def test_a_live_writer_keeps_its_file(tmp_path, monkeypatch):
    """A second save to the target in the middle of a first: both go through."""
    path, real, inside = tmp_path / "model", os.fsync, []

    def meanwhile(descriptor):
        if not inside:
            inside.append(len(leftovers(tmp_path)))
            gf.save(gf.DenseGaussian.isotropic(2), path)
        real(descriptor)

    monkeypatch.setattr(os, "fsync", meanwhile)
    gf.save(gf.DenseGaussian.isotropic(4), path)
    assert inside == [1]
    assert gf.load(path).dim == 4
    assert leftovers(tmp_path) == []


def test_a_file_taken_before_it_was_locked_is_made_again(tmp_path, monkeypatch):
    path, real, taken = tmp_path / "model", atomic.fcntl.flock, []

    def too_late(descriptor, operation):
        if not taken:
            taken.extend(tmp_path.glob(".gaussfold-*"))
            taken[0].unlink()
        real(descriptor, operation)

    monkeypatch.setattr(atomic.fcntl, "flock", too_late)
    gf.save(gf.DenseGaussian.isotropic(4), path)
    assert gf.load(path).dim == 4
    assert len(taken) == 1


def test_what_is_not_ours_stays(tmp_path):
    strangers = [tmp_path / ".gaussfold-0123456789abcdef.tmp", tmp_path / "model.tmp", tmp_path / ".hidden"]
    for stranger in strangers:
        stranger.write_text("mine")
    gf.save(gf.DenseGaussian.isotropic(2), tmp_path / "model")
    assert all(stranger.read_text() == "mine" for stranger in strangers)
