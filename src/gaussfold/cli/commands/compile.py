"""``gaussfold compile``: fill the cache of compiled loops beforehand, for images and for machines without a cache.

What has to be compiled is not listed anywhere: small fits of every default path, each in a process of its own, compile
what such fits need (``warm_up``), and the processes share the cache as any others do.
"""

from __future__ import annotations

import itertools
import os
import queue
import subprocess
import sys
import threading
import time
from collections.abc import Sequence

from gaussfold.cli.commands.warm_up import JOBS
from gaussfold.cli.errors import CANNOT_WRITE, INTERNAL, OK, USAGE, Failure, fail
from gaussfold.engine.compilation.kept import PACKAGE, kept_in

_MARK = "compiled "


def compile_loops(kinds: Sequence[str], processes: int | None, quiet: bool) -> int:
    """Compile what models of these kinds need; returns the exit code."""
    names = _in_turn([[name for name in JOBS if name.partition(" ")[0] == kind] for kind in _known(kinds)])
    place = kept_in()
    if place is None:
        msg = "no folder can be written to keep compiled loops in; set NUMBA_CACHE_DIR to one that can"
        raise Failure(msg, CANNOT_WRITE)
    cores = len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count() or 1
    workers = min(processes or cores, len(names))
    run = _Run(names, quiet)
    began = time.monotonic()
    run.all(workers)
    if run.trouble:
        return fail(run.trouble, INTERNAL)
    if not quiet:
        print(
            f"{run.loops} loops compiled in {time.monotonic() - began:.0f} s by {workers} processes "
            f"({', '.join(_known(kinds))}); kept in {place}"
        )
    return OK


def _known(kinds: Sequence[str]) -> list[str]:
    """Check the kinds that were asked for; none means all."""
    known = list(dict.fromkeys(name.partition(" ")[0] for name in JOBS))
    asked = [kind.strip() for text in kinds for kind in text.split(",")]
    for kind in asked:
        if kind not in known:
            msg = f"--for {kind!r}: choose among {', '.join(known)}, with commas between them"
            raise Failure(msg, USAGE)
    return [kind for kind in known if kind in asked or not asked]


def _in_turn(kinds: list[list[str]]) -> list[str]:
    """One of each kind, then the next of each: neighbours share the least, and what they share is compiled twice."""
    return [name for turn in itertools.zip_longest(*kinds) for name in turn if name is not None]


class _Run:
    """The jobs that wait, the processes that do them, and how far they are."""

    def __init__(self, names: Sequence[str], quiet: bool) -> None:
        self._jobs: queue.SimpleQueue[str] = queue.SimpleQueue()
        for name in names:
            self._jobs.put(name)
        self._total, self._done = len(names), 0
        self._lock = threading.Lock()
        self._shown = None if quiet else sys.stderr
        self.loops, self.trouble = 0, ""

    def all(self, workers: int) -> None:
        """Work until no job is left or one has failed."""
        threads = [threading.Thread(target=self._work, daemon=True) for _ in range(workers)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        if self._shown is not None and self._shown.isatty():
            print(file=self._shown)

    def _work(self) -> None:
        while not self.trouble:
            try:
                name = self._jobs.get_nowait()
            except queue.Empty:
                return
            self._one(name)

    def _one(self, name: str) -> None:
        paths = [str(PACKAGE.parent), os.environ.get("PYTHONPATH", "")]
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, paths))}
        for quiet in ("GAUSSFOLD_QUIET", "PYTHONWARNINGS"):
            environment.pop(quiet, None)
        with subprocess.Popen(
            [sys.executable, "-m", "gaussfold.cli.commands.warm_up", name],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=environment,
        ) as child:  # fmt: skip
            said = []
            for line in child.stdout or ():
                if line.startswith(_MARK):
                    self._count()
                else:
                    said.append(line)
        with self._lock:
            self._done += 1
            if child.returncode:
                self.trouble = f"compiling {name!r} ended with {child.returncode}: {(said or ['no word'])[-1].strip()}"
        self._show(name)

    def _count(self) -> None:
        with self._lock:
            self.loops += 1
        if self._shown is not None and self._shown.isatty():
            self._show("")

    def _show(self, name: str) -> None:
        if self._shown is None:
            return
        text = f"gaussfold: {self.loops} loops compiled, {self._done} of {self._total} kinds of fit done"
        start, end = ("\r\x1b[2K", "") if self._shown.isatty() else ("", f" ({name})\n")
        print(f"{start}{text}", end=end, file=self._shown, flush=True)
