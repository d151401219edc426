"""``python -m tests.fuzz [target ...] --minutes 60`` or ``--cases 100000``: fuzz until time or cases are over."""

from __future__ import annotations

import argparse
import os
import select
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.fuzz import cases

BATCH, PEAK_KIB = 20_000, 2 << 20
HANG_SECONDS, SILENT_SECONDS = 60.0, 900.0
"""Of the processor for one case, and of the clock: on a busy machine a process is silent for long and does not hang."""


class Batch:
    """Cases of one target in a process of their own: to the end, to the deadline or to what kills the process."""

    def __init__(self, name: str, first: int, count: int, sanitise: bool) -> None:
        settings = os.environ | {"GAUSSFOLD_QUIET": "1"} | ({"GAUSSFOLD_SANITISE": "1"} if sanitise else {})
        command = [sys.executable, "-m", "tests.fuzz.worker", name, str(first), str(count)]
        self.first, self.at, self.peak = first, first - 1, 0
        self.failures: list[tuple[int, str]] = []
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, env=settings, bufsize=0)

    @property
    def done(self) -> int:
        """Cases begun."""
        return self.at + 1 - self.first

    def run(self, deadline: float) -> None:
        """Listen to the process until it ends, or end it."""
        with self.process:
            for line in self._lines():
                self._hear(*line.split(" ", 2))
                if time.monotonic() > deadline:
                    self.process.kill()
                    return
        if self.process.returncode and not (self.failures and self.failures[-1][1].startswith("hangs")):
            self.failures.append((self.at, f"the process ended with {self.process.returncode}"))

    def _lines(self) -> Iterator[str]:
        """What the process says, line by line; it is killed where it is silent for too long."""
        assert self.process.stdout is not None
        pipe, rest, said, spent = self.process.stdout.fileno(), b"", time.monotonic(), self._seconds()
        while True:
            if not select.select([pipe], [], [], 1.0)[0]:
                patience = HANG_SECONDS * (10 if self.done <= 1 else 1)  # the first case compiles
                if self._seconds() - spent > patience or time.monotonic() - said > SILENT_SECONDS:
                    self.failures.append((self.at, f"hangs: no answer in {patience:.0f} s"))
                    self.process.kill()
                    return
                continue
            said, spent = time.monotonic(), self._seconds()
            heard = os.read(pipe, 1 << 16)
            if not heard:
                return
            *lines, rest = (rest + heard).split(b"\n")
            yield from (line.decode() for line in lines)

    def _seconds(self) -> float:
        """How long the process has been at work, by the processor's time where the system tells it."""
        try:
            fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        except OSError:
            return time.monotonic()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def _hear(self, word: str, number: str, reason: str = "") -> None:
        """Take in one line of the worker's."""
        if word == "at":
            self.at = int(number)
        elif word == "failed":
            self.failures.append((int(number), reason.replace("\\n", "\n")))
        else:
            self.peak = int(number)
            if self.peak > PEAK_KIB:
                self.failures.append((self.at, f"the process took {self.peak >> 10} MiB at its peak"))


@dataclass
class Done:
    """What was tried of a target."""

    cases: int = 0
    failed: int = 0
    peak: int = 0

    def add(self, batch: Batch) -> None:
        """Another batch."""
        self.cases += max(batch.done, 1)
        self.failed += len(batch.failures)
        self.peak = max(self.peak, batch.peak)


def main() -> int:
    """Round about the targets, a batch each, until time or cases are over; 1 if anything failed."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("targets", nargs="*", metavar="target", help=f"which: {', '.join(cases.names())} (all)")
    parser.add_argument("--minutes", type=float, default=float("inf"), help="stop after this time")
    parser.add_argument("--cases", type=int, help="stop after so many cases of each target")
    parser.add_argument("--first", type=int, default=1000, help="the first case (1000; the gate runs earlier ones)")
    parser.add_argument("--sanitise", action="store_true", help="with the engine's bounds and lengths checked")
    args = parser.parse_args()
    unknown = set(args.targets) - set(cases.names())
    if unknown:
        parser.error(f"unknown target {sorted(unknown)[0]!r}: choose from {', '.join(cases.names())}")
    if args.cases is None and args.minutes == float("inf"):
        parser.error("say when to stop: --minutes or --cases")
    deadline = time.monotonic() + 60.0 * args.minutes
    done = {name: Done() for name in args.targets or cases.names()}
    while True:
        open_ones = [name for name in done if args.cases is None or done[name].cases < args.cases]
        if not open_ones or time.monotonic() > deadline:
            break
        for name in open_ones:
            so_far = done[name]
            count = BATCH if args.cases is None else min(BATCH, args.cases - so_far.cases)
            batch = Batch(name, args.first + so_far.cases, count, args.sanitise)
            batch.run(deadline)
            so_far.add(batch)
            for number, reason in batch.failures:
                print(f"\nFAILED {name} {number}: {reason}", flush=True)
            print("\r" + ", ".join(f"{name} {n.cases:,}" for name, n in done.items()), end="", flush=True)
    print()
    for name, n in done.items():
        last = args.first + n.cases - 1
        print(f"{name}: {n.cases:,} cases ({args.first} to {last}), {n.failed} failed, at most {n.peak >> 10} MiB")
    return any(n.failed for n in done.values())


if __name__ == "__main__":
    sys.exit(main())
