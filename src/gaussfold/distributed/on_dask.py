"""Shards on a Dask cluster: tasks with names, retried where a worker is lost."""

from __future__ import annotations

import importlib
import pickle
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Any, final

from gaussfold.distributed.rounds import ShardError
from gaussfold.distributed.work import Base, Learned, StoppedError, Task, learn_bytes

ATTEMPTS = 5
"""So often a shard may fail before the run ends."""
PATIENCE = 0.02
"""Seconds between looks at whether somebody asked to stop."""
WAIT = "30s"
"""How long a scheduler is waited for."""


def connect(address: str) -> Any:
    """A client of the scheduler at this address."""
    try:
        cluster: Any = importlib.import_module("distributed")  # it has no types
    except ImportError as error:
        msg = "--scheduler: Dask is not installed; pip install 'gaussfold[dask]'"
        raise ValueError(msg) from error
    try:
        return cluster.Client(address, timeout=WAIT, set_as_default=False)
    except (OSError, TimeoutError, ValueError) as error:
        msg = f"--scheduler {address}: no Dask scheduler answers there ({error}); give the address it prints"
        raise ValueError(msg) from error


@final
class OnDask:
    """The workers of a client's cluster."""

    def __init__(self, client: Any) -> None:
        self._client = client
        if not client.scheduler_info()["workers"]:
            msg = f"client: the cluster at {client.scheduler.address} has no worker; start one (dask worker ADDRESS)"
            raise ValueError(msg)

    def run(self, base: Base, tasks: Sequence[Task], stop: Callable[[], bool]) -> Iterator[Learned]:
        """What came of every task, as it comes.

        The base is the result of a task: where a worker that held it is lost, it is made again. (Scattered data are
        lost with their worker.) Arguments go as bytes, which Dask hands on without a look inside.
        """
        cluster: Any = importlib.import_module("distributed")
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "Sending large graph")
            held = self._client.submit(bytes, base.raw, key=f"gaussfold-base-{base.key}", pure=False)
        futures = {}
        for task in tasks:
            name = f"gaussfold-round-{task.shard.round}-shard-{task.shard.index}-{base.key}"
            future = self._client.submit(
                learn_bytes, held, base.key, pickle.dumps(task), key=name, retries=ATTEMPTS - 1, pure=False
            )
            futures[future] = task
        coming = cluster.as_completed(list(futures), loop=self._client.loop)
        try:
            while not coming.is_empty():
                if stop():
                    raise StoppedError
                if not coming.has_ready():
                    time.sleep(PATIENCE)
                    continue
                future = next(coming)
                yield self._result(future, futures[future])
        finally:
            self._client.cancel([*futures, held])

    @staticmethod
    def _result(future: Any, task: Task) -> Learned:
        try:
            learned: Learned = future.result()
        except Exception as error:  # whatever the cluster raises: KilledWorker, CancelledError, its own
            why = " ".join(f"{type(error).__name__}: {error}".split())[:300]
            msg = f"{task.shard}: its worker failed {ATTEMPTS} times ({why}); is there enough memory, and the library?"
            raise ShardError(msg) from error
        return learned
