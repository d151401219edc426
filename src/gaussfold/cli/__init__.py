"""The command ``gaussfold``."""

from __future__ import annotations


def main() -> None:
    """Run the command line; imports wait until they are needed, so that --help is quick."""
    from gaussfold.cli.app import run

    run()


__all__ = ["main"]
