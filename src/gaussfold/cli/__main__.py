"""``python -m gaussfold.cli``."""

from gaussfold.cli import main

main()
