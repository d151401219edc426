"""What the commands do, one file each; `gaussfold.cli.app` says how they are called.

A command reads its options, goes through the same doors as Python does (`Stream`, `fold`, `save`), and prints; it knows
no program, prior or cell of its own. Tests run them as a user does: ``tests/cli``.
"""

from gaussfold.cli.numba_alone import load

load()
