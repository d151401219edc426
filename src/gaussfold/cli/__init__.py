"""The command ``gaussfold``."""

from __future__ import annotations

import gc


def main() -> None:
    """Run the command line; imports wait until they are needed, so that --help is quick."""
    # Imports make some hundred thousand objects that stay: looking among them for garbage again and again costs 0.1 s.
    gc.set_threshold(300_000)
    from gaussfold.cli.app import run

    run()


__all__ = ["main"]
