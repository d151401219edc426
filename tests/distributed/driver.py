"""``gaussfold train --workers`` in a process of its own, with rounds for small inputs: ``driver.py ARGUMENTS``."""

import sys

from gaussfold.cli.app import run
from gaussfold.cli.commands import train_many
from tests.distributed.helpers import SMALL

if __name__ == "__main__":
    train_many.SCHEME = SMALL
    sys.argv = ["gaussfold", *sys.argv[1:]]
    run()
