"""The command ``gaussfold``.

``app`` parses what was typed (``options``), ``commands`` do it, one file each. What they share: ``setting`` and
``model`` (a likelihood, a diagonal belief and the way of reading, as a model file keeps them), ``inputs``, ``saving``
(checkpoints, signals), ``output``, ``progress``, ``progressive_loss``, ``summary``, ``errors`` (exit codes, wording).

What must not be broken: help and completion answer without loading NumPy; an old model file is only ever replaced
whole; a broken pipe, an interrupt and bad data each have their exit code. Tests: ``tests/cli``.
"""

from __future__ import annotations

import os
import sys

# What is imported above this line Python has loaded already: until `command` runs, an interrupt shows a traceback.


def main() -> None:
    """Run the command line; imports wait until they are needed, so that --help is quick."""
    import gc

    # Imports make some hundred thousand objects that stay: looking among them for garbage again and again costs 0.1 s.
    gc.set_threshold(300_000)
    from gaussfold.cli.app import run

    run()


def _open_closed_streams() -> None:
    """Give standard output and error somewhere to go if they were closed: the next file would take their place.

    Standard input gets what cannot be read, so that whoever wants it is told.
    """
    for number in (0, 1, 2):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_WRONLY)  # takes the lowest number that is free
    if sys.stdout is None:
        sys.stdout = os.fdopen(1, "w", closefd=False)
    if sys.stderr is None:
        sys.stderr = os.fdopen(2, "w", closefd=False)


def command() -> None:
    """Run the command line and end the process at once: taking the interpreter apart would cost another 0.3 s.

    All files are closed and synced by then; what is left is standard output.
    """
    _open_closed_streams()
    try:
        from gaussfold.cli import interrupts

        interrupts.starting()
    except KeyboardInterrupt:  # before the handler was there
        os._exit(130)
    try:
        main()
        code: int | str | None = 0
    except SystemExit as end:
        code = end.code
        if isinstance(code, str):  # Python prints it and exits with 1
            raise
    try:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(int(code or 0))
    except (OSError, ValueError):  # a pipe that broke, a closed stream: Python's own end deals with it
        sys.exit(code)


__all__ = ["command", "main"]
