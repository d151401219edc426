"""``python -m gaussfold``."""

from gaussfold.cli import main

main()
