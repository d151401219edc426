"""Each scenario with the n-th call failing, or the last before the process ends, for n = 1, 2, 3, ... to the end."""

from __future__ import annotations

import os
import shutil
import time
from pathlib import Path
from typing import NamedTuple

from tests.faults.doubles import KINDS, Fault, doubled
from tests.faults.scenarios import OLD, Outcome, Scenario, fresh, leftovers

BOUNDARIES = ("open", "write", "fsync", "replace", "close")
"""Calls at which a process is killed: between two of them nothing on the disk changes."""


class Tried(NamedTuple):
    """How many faults were tried, and what went wrong after which."""

    faults: int
    violations: list[str]


def prepared_folders(scenario: Scenario, folder: Path) -> tuple[Path, Path]:
    """What every run starts from, and what an undisturbed one makes of it (with the old model beside the new one)."""
    prepared, undisturbed = folder / "prepared", folder / "undisturbed"
    prepared.mkdir(parents=True)
    scenario.prepare(prepared)
    fresh(prepared, undisturbed)
    if (prepared / OLD).exists():
        shutil.copy(prepared / OLD, undisturbed / f"{OLD}.before")
    outcome = scenario.run(undisturbed, scenario.ready())
    found = scenario.violations(undisturbed, undisturbed, outcome)
    assert not found, (scenario.name, found)
    return prepared, undisturbed


def exhaust(
    scenario: Scenario, folder: Path, kinds: tuple[str, ...] = KINDS, *, seconds: float = float("inf")
) -> Tried:
    """One failing call in each run; every n of every kind, until no call is left to fail or the time is over."""
    prepared, undisturbed = prepared_folders(scenario, folder)
    until = time.monotonic() + seconds  # from here on: what ran undisturbed may have compiled its loops first
    faults, violations = 0, []
    for kind in kinds:
        for n in range(1, 1 << 30):
            here = fresh(prepared, folder / "here")
            ready = scenario.ready()
            with doubled(Fault((kind,), n)) as fault:
                outcome = scenario.run(here, ready)
            if not fault.fired or time.monotonic() > until:
                break
            faults += 1
            found = scenario.violations(here, undisturbed, outcome)
            violations += [f"{scenario.name}, {kind} {n}: {what}" for what in found]
    return Tried(faults, violations)


def kill_everywhere(scenario: Scenario, folder: Path, *, seconds: float = float("inf")) -> Tried:
    """The process ends at the n-th call: in the middle of it if it writes. What it leaves goes with the next save."""
    prepared, undisturbed = prepared_folders(scenario, folder)
    until = time.monotonic() + seconds  # from here on: what ran undisturbed may have compiled its loops first
    faults, violations = 0, []
    for n in range(1, 1 << 30):
        here = fresh(prepared, folder / "here")
        code = in_child(scenario, here, n)
        if code != 137 or time.monotonic() > until:
            break
        faults += 1
        # what a process that was killed would have said does not matter: any exit code but 0, and no word
        found = [what for what in after_kill(scenario, here, undisturbed) if not what.startswith("left behind")]
        scenario.run(here, scenario.ready())
        found += leftovers(here)
        violations += [f"{scenario.name}, killed at {n}: {what}" for what in found]
    return Tried(faults, violations)


def after_kill(scenario: Scenario, here: Path, undisturbed: Path) -> list[str]:
    """What is wrong with the files that a killed process has left."""
    killed = Outcome(code=5, error=OSError("killed"), result=True)
    return scenario.violations(here, undisturbed, killed)


def in_child(scenario: Scenario, here: Path, n: int) -> int:
    """Run in a child that is killed at the n-th call; returns its exit code."""
    ready = scenario.ready()
    child = os.fork()
    if child == 0:
        try:
            with doubled(Fault(BOUNDARIES, n, kill=True)):
                scenario.run(here, ready)
        finally:
            os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
