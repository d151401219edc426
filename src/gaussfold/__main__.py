"""``python -m gaussfold`` is the command ``gaussfold``."""

from __future__ import annotations

from gaussfold.cli import command

if __name__ == "__main__":
    command()
