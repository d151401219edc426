"""``python -m gaussfold.cli``."""

from gaussfold.cli import command

command()
