"""Shards on a Dask cluster: tasks with names, retried where a worker is lost."""

from __future__ import annotations

import importlib
import pickle
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Any, final

from gaussfold.distributed.rounds import ShardError
from gaussfold.distributed.work import Base, Learned, StoppedError, Task, groups, learn_bytes, together_of

ATTEMPTS = 5
"""So often a shard may fail before the run ends."""
PATIENCE = 0.02
"""Seconds between looks at whether somebody asked to stop."""
WAIT = "30s"
"""How long a scheduler is waited for."""
LIBRARY = "__import__('gaussfold').__version__"
"""Asked of every worker first: what needs no library to be asked."""
ALONE = 60.0
"""Seconds for which a cluster may be without any worker: others may be on their way."""


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
        self._client, self._peopled, self._looked = client, time.monotonic(), 0.0
        if not client.scheduler_info()["workers"]:
            msg = f"client: the cluster at {client.scheduler.address} has no worker; start one (dask worker ADDRESS)"
            raise ValueError(msg)
        asked = client.run(eval, LIBRARY, on_error="return").items()
        for worker, why in ((worker, found) for worker, found in asked if isinstance(found, BaseException)):
            msg = f"worker {worker}: it cannot import gaussfold ({why}); install there what is installed here"
            raise ValueError(msg)  # a task would end the worker, again and again

    def run(self, base: Base, tasks: Sequence[Task], stop: Callable[[], bool]) -> Iterator[Learned]:
        """What came of every task, as it comes.

        The base is the result of a task: where a worker that held it is lost, it is made again. (Scattered data are
        lost with their worker.) Arguments go as bytes, which Dask hands on without a look inside.
        """
        cluster: Any = importlib.import_module("distributed")
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "Sending large graph")
            held = self._client.submit(bytes, base.raw, key=f"gaussfold-base-{base.key}", pure=False)
        futures: dict[Any, Task] = {}
        sums: dict[Any, list[Any]] = {}
        for group in groups(tasks):
            shards = [self._shard(held, base, task) for task in group]
            futures.update(zip(shards, group, strict=True))
            if len(group) == 1:
                sums[shards[0]] = shards
                continue
            of = group[0].shard
            name = f"gaussfold-round-{of.round}-shards-{of.index}-to-{group[-1].shard.index}-{base.key}"
            sums[self._client.submit(together_of, *shards, key=name, retries=ATTEMPTS - 1, pure=False)] = shards
        coming = cluster.as_completed(list(sums), loop=self._client.loop)
        try:
            while not coming.is_empty():
                if stop():
                    raise StoppedError
                if not coming.has_ready():
                    self._check_workers(tasks[0])
                    time.sleep(PATIENCE)
                    continue
                future = next(coming)
                failed = [shard for shard in sums[future] if shard.status == "error"]
                yield self._result(future, futures[failed[0] if failed else sums[future][0]])
        finally:
            self._client.cancel([*sums, *futures, held])

    def _check_workers(self, task: Task) -> None:
        """Give up where all workers are gone and none has come for a while: Dask would wait forever."""
        now = time.monotonic()
        if now < self._looked + 1.0:
            return
        self._looked = now
        if self._client.status != "running" or self._client.scheduler_info()["workers"]:
            self._peopled = now
        elif now > self._peopled + ALONE:
            address = self._client.scheduler.address
            msg = f"{task.shard}: the cluster at {address} has lost its last worker; start one (dask worker ADDRESS)"
            raise ShardError(msg)

    def _shard(self, held: Any, base: Base, task: Task) -> Any:
        name = f"gaussfold-round-{task.shard.round}-shard-{task.shard.index}-{base.key}"
        return self._client.submit(
            learn_bytes, held, base.key, pickle.dumps(task), key=name, retries=ATTEMPTS - 1, pure=False
        )

    def _result(self, future: Any, task: Task) -> Learned:
        try:
            learned: Learned = future.result()
        except Exception as error:  # whatever the cluster raises: KilledWorker, CancelledError, its own
            why = " ".join(f"{type(error).__name__}: {error}".split())[:300]
            if self._client.status != "running":
                msg = f"{task.shard}: the Dask scheduler has gone ({why}); start it again"
                raise ShardError(msg) from error
            msg = f"{task.shard}: its worker failed {ATTEMPTS} times ({why}); is there enough memory, and the library?"
            raise ShardError(msg) from error
        return learned
