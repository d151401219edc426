"""``python -m tests.faults [scenario ...]``: all faults, one at a time, until nothing fails any more."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import gaussfold as gf
from tests.faults import disk, driver
from tests.faults.scenarios import learned, scenarios

KILLED = ("train", "train --checkpoint", "save")
"""Scenarios that write: only there does it matter when a process is killed."""


def power_cuts(folder: Path) -> driver.Tried:
    """A save over an old file, cut at every point: old or new, in every state of the disk."""
    target = folder / "model"
    gf.save(gf.DenseGaussian.isotropic(4), target)
    old = target.read_bytes()
    calls = disk.recorded(learned(), target)
    new, count, violations = target.read_bytes(), 0, []
    for count, state in enumerate(disk.states(calls, {str(target): old}), 1):
        if state.get(str(target)) not in (old, new):
            violations.append(f"power cut, state {count}: the file is neither the old one nor the new one")
    return driver.Tried(count, violations)


def main(names: list[str]) -> int:
    """Print what was tried; 1 if anything was violated."""
    total, violations = 0, []
    with tempfile.TemporaryDirectory(prefix="faults-") as name:
        folder = Path(name)
        rounds = [(f"{s.name}: failing", driver.exhaust, s) for s in scenarios()]
        rounds += [(f"{s.name}: killed", driver.kill_everywhere, s) for s in scenarios() if s.name in KILLED]
        for k, (title, work, scenario) in enumerate(rounds):
            if names and scenario.name not in names:
                continue
            tried = work(scenario, folder / str(k))
            print(f"{title}: {tried.faults} faults, {len(tried.violations)} violations", flush=True)
            total, violations = total + tried.faults, violations + tried.violations
        tried = power_cuts(folder)
        print(f"power cuts: {tried.faults} states, {len(tried.violations)} violations")
        total, violations = total + tried.faults, violations + tried.violations
    print(*violations, sep="\n")
    print(f"{total} faults tried, {len(violations)} violations")
    return bool(violations)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
