"""The command line in a copy of this process, with all imports and compiled loops: a kill costs what training does.

What a copy runs is what ``gaussfold`` runs, from the handlers of the start on; only Python's own beginning is spared,
which has written nothing.
"""

from __future__ import annotations

import os
import select
import signal
import sys
import tempfile

from gaussfold.cli import command
from gaussfold.cli.app import run


class Training:
    """A command in a copy of this process; ends with the block."""

    def __init__(self, arguments: list[str]) -> None:
        self._said = tempfile.TemporaryFile()  # noqa: SIM115 - closed where the block ends
        self.code: int | None = None
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})  # until the copy has become the command
        try:
            self._pid = os.fork()
            if self._pid == 0:
                _become(arguments, self._said.fileno())
        finally:
            signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
        self._watch = os.pidfd_open(self._pid)

    def __enter__(self) -> Training:
        return self

    def __exit__(self, *_: object) -> None:
        if self.code is None:
            self.wait()
        os.close(self._watch)
        self._said.close()

    def wait(self, seconds: float | None = None) -> bool:
        """Wait for its end, or so long; whether it has ended."""
        if self.code is None and select.select([self._watch], [], [], seconds)[0]:
            self.code = os.waitstatus_to_exitcode(os.waitpid(self._pid, 0)[1])
        return self.code is not None

    def send(self, number: signal.Signals) -> None:
        """A signal to it, if it is still there."""
        if self.code is None:
            os.kill(self._pid, number)

    def said(self) -> str:
        """What it wrote to its standard error."""
        self._said.seek(0)
        return self._said.read().decode(errors="replace")


def _become(arguments: list[str], said: int) -> None:
    """In the copy: the command, which ends the process itself."""
    try:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        os.dup2(said, 2)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        sys.argv = ["gaussfold", *arguments]
        try:
            signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
        except KeyboardInterrupt:  # before a line of the command has run
            os._exit(130)
        command()
    finally:
        os._exit(99)


def warm_up(arguments: list[str]) -> None:
    """The command in this process: what it imports and compiles is there for the copies."""
    before, sys.argv = sys.argv, ["gaussfold", *arguments]
    try:
        run()
    except SystemExit as end:
        if end.code:
            msg = f"{arguments}: exit code {end.code}"
            raise RuntimeError(msg) from end
    finally:
        sys.argv = before
