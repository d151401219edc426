"""One fold on many processes or machines: the same posterior, bit for bit, whoever does the work.

- ``plan``: rounds and shards, from the data alone
- ``work``: what a worker does with a shard: read its units, learn them, say what it has learned
- ``rounds``: the driver: hand out a round, add up, go on
- ``arrays``: the same for rows in memory, dense beliefs included
- ``fitting``: an estimator from files
- ``processes``, ``on_dask``, ``on_spark``, ``on_ray``: who runs the shards; each knows nothing of what it runs

The first rows are learned in order. After that every round is half as long as all before it, and its shards begin with
one belief, tempered (``beliefs.diagonal.exchange``), learn apart and are added up. What is added are whole numbers, so
order does not matter; who is planned to do what depends on the files, so the number of workers does not either. A
worker that is lost costs its shards, a driver that is lost the round it was in.

Nothing of an engine is imported unless it is used. Slow twins: ``tests/distributed``.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gaussfold.distributed.arrays import fold
    from gaussfold.distributed.fitting import fit
    from gaussfold.distributed.plan import Scheme, Shard, rounds_of
    from gaussfold.distributed.rounds import Engine, Outcome, ShardError, learn_rounds
    from gaussfold.distributed.work import StoppedError

_HOMES = {
    "Engine": "rounds",
    "Outcome": "rounds",
    "Scheme": "plan",
    "Shard": "plan",
    "ShardError": "rounds",
    "StoppedError": "work",
    "fit": "fitting",
    "fold": "arrays",
    "learn_rounds": "rounds",
    "rounds_of": "plan",
}
__all__ = [
    "Engine",
    "Outcome",
    "Scheme",
    "Shard",
    "ShardError",
    "StoppedError",
    "fit",
    "fold",
    "learn_rounds",
    "rounds_of",
]


def __getattr__(name: str) -> object:
    """Import what is asked for: a worker needs no estimators."""
    home = _HOMES.get(name)
    if home is None:
        msg = f"module 'gaussfold.distributed' has no attribute {name!r}"
        raise AttributeError(msg)
    value: object = vars(importlib.import_module(f"gaussfold.distributed.{home}"))[name]
    globals()[name] = value
    return value
