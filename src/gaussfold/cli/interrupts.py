"""Ctrl-C while the command line is still importing: leave at once, with a line and no traceback.

An exception raised in the middle of an import goes through other people's modules, which print it, swallow it or leave
half of themselves behind. Nothing has been read or written by then, so there is nothing to tidy up. Only built-in
modules are imported here: this is the first thing that runs.
"""

from __future__ import annotations

import os
import signal

_INTERRUPTED = 130  # as in `errors`, which imports more


def starting() -> None:
    """Until :func:`started`, SIGINT ends the process; one that the parent told to ignore it goes on doing so."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _leave)


def started() -> None:
    """From here on SIGINT raises KeyboardInterrupt again; a command may have handlers of its own."""
    if signal.getsignal(signal.SIGINT) is _leave:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def _leave(_number: int, _frame: object) -> None:
    leave()


def leave() -> None:
    """Say so and end the process."""
    try:
        os.write(2, b"gaussfold: interrupted\n")
    finally:
        os._exit(_INTERRUPTED)
