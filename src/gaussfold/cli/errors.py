"""Exit codes, and the way from an exception to a line that a user can act on."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator

OK, INTERNAL, USAGE, BAD_DATA, BAD_MODEL, CANNOT_WRITE = range(6)
BROKEN_PIPE, INTERRUPTED, TERMINATED = 141, 130, 143

HELP = (
    "Exit codes: 0 done; 1 a bug (GAUSSFOLD_DEBUG=1 shows where) or too little memory; 2 wrong usage; 3 the data "
    "cannot be read; "
    "4 the model file cannot be used; 5 a file cannot be written; 130, 143 stopped by SIGINT, SIGTERM after saving; "
    "141 the reader of the output went away."
)


class Failure(Exception):  # noqa: N818 - what it says is for users
    """Ends the command with a message and an exit code."""

    def __init__(self, message: str, code: int) -> None:
        super().__init__(message)
        self.code = code


def fail(message: str, code: int) -> int:
    """Print a message for the user and return the exit code."""
    with contextlib.suppress(OSError):
        print(f"gaussfold: {message}", file=sys.stderr, flush=True)
    return code


@contextlib.contextmanager
def no_traceback() -> Iterator[None]:
    """Turn what goes wrong into a message and an exit code."""
    try:
        yield
        _flush()
    except KeyboardInterrupt:
        sys.exit(fail("interrupted", INTERRUPTED))
    except Exception as error:
        if type(error).__module__.startswith(("click", "typer")):
            raise  # wrong usage and plain exits are theirs to show
        sys.exit(_translate(error))


def _flush() -> None:
    """Write what waits for standard output, and say so if that cannot be done."""
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        raise
    except OSError as error:
        msg = f"<stdout>: cannot be written ({error.strerror or error})"
        raise Failure(msg, CANNOT_WRITE) from error


def _translate(error: Exception) -> int:
    if isinstance(error, BrokenPipeError):
        close_output()
        return BROKEN_PIPE
    if isinstance(error, Failure):
        return fail(str(error), error.code)
    if isinstance(error, MemoryError):
        return fail("not enough memory; use fewer bits (-b) or --float32", INTERNAL)
    if isinstance(error, OSError) and not isinstance(error, FileNotFoundError):
        name = f"{error.filename}: " if error.filename else ""
        return fail(f"{name}{error.strerror or error}", CANNOT_WRITE)
    return _translate_ours(error)


def _translate_ours(error: Exception) -> int:
    from gaussfold.data.messages import DataError
    from gaussfold.store import StoreError

    for kind, exit_code in ((DataError, BAD_DATA), (StoreError, BAD_MODEL)):
        if isinstance(error, kind):
            return fail(str(error), exit_code)
    if os.environ.get("GAUSSFOLD_DEBUG"):
        raise error
    if isinstance(error, ValueError):
        return fail(str(error), USAGE)
    what = f"{type(error).__name__}: {error}"
    return fail(f"a bug: {what}; GAUSSFOLD_DEBUG=1 shows where, please report it", INTERNAL)


def close_output() -> None:
    """Point standard output to nowhere, so that Python does not complain about the pipe when it exits."""
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
