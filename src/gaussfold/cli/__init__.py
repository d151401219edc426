"""The command ``gaussfold``.

``app`` parses what was typed (``options``), ``commands`` do it, one file each. What they share: ``setting`` and
``model`` (a likelihood, a diagonal belief and the way of reading, as a model file keeps them), ``inputs``, ``saving``
(checkpoints, signals), ``output``, ``progress``, ``progressive_loss``, ``summary``, ``errors`` (exit codes, wording).

What must not be broken: help and completion answer without loading NumPy; an old model file is only ever replaced
whole; a broken pipe, an interrupt and bad data each have their exit code. Tests: ``tests/cli``.
"""

from __future__ import annotations

import contextlib
import gc
import os
import sys


def main() -> None:
    """Run the command line; imports wait until they are needed, so that --help is quick."""
    # Imports make some hundred thousand objects that stay: looking among them for garbage again and again costs 0.1 s.
    gc.set_threshold(300_000)
    from gaussfold.cli.app import run

    run()


def command() -> None:
    """Run the command line and end the process at once: taking the interpreter apart would cost another 0.3 s.

    All files are closed and synced by then; what is left is standard output.
    """
    try:
        main()
        code: int | str | None = 0
    except SystemExit as end:
        code = end.code
        if isinstance(code, str):  # Python prints it and exits with 1
            raise
    with contextlib.suppress(OSError, ValueError):  # a pipe that broke, a closed stream: Python's own end deals with it
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(int(code or 0))
    sys.exit(code)


__all__ = ["command", "main"]
