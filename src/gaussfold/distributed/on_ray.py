"""Shards on Ray: remote tasks with names, started again where a worker is lost."""

from __future__ import annotations

import importlib
import pickle
from collections.abc import Callable, Iterator, Sequence
from typing import Any, final

from gaussfold.distributed.rounds import ShardError
from gaussfold.distributed.work import Base, Learned, StoppedError, Task, learn_bytes

ATTEMPTS = 5
"""So often a shard may fail before the run ends."""
PATIENCE = 0.2
"""Seconds between looks at whether somebody asked to stop."""


@final
class OnRay:
    """The workers of the cluster that this process is connected to (``ray.init()``)."""

    def __init__(self) -> None:
        try:
            self._ray: Any = importlib.import_module("ray")  # it has no types
        except ImportError as error:
            msg = "client: Ray is not installed; pip install 'gaussfold[ray]'"
            raise ValueError(msg) from error
        if not self._ray.is_initialized():
            msg = "client: Ray is not connected to a cluster; call ray.init() first"
            raise ValueError(msg)

    def run(self, base: Base, tasks: Sequence[Task], stop: Callable[[], bool]) -> Iterator[Learned]:
        """What came of every task, as it comes. The base lies in the object store, once a node."""
        ray = self._ray
        held = ray.put(base.raw)
        work = ray.remote(learn_bytes)
        waiting = {}
        for task in tasks:
            name = f"gaussfold-round-{task.shard.round}-shard-{task.shard.index}"
            tried = work.options(name=name, max_retries=ATTEMPTS - 1, retry_exceptions=True)
            waiting[tried.remote(held, base.key, pickle.dumps(task))] = task
        try:
            while waiting:
                done, _ = ray.wait(list(waiting), timeout=PATIENCE)
                if stop():
                    raise StoppedError
                for reference in done:
                    yield self._result(reference, waiting.pop(reference))
        finally:
            for reference in waiting:
                ray.cancel(reference, force=True)

    def _result(self, reference: Any, task: Task) -> Learned:
        try:
            learned: Learned = self._ray.get(reference)
        except self._ray.exceptions.RayError as error:
            why = " ".join(f"{type(error).__name__}: {error}".split())[:300]
            msg = f"{task.shard}: its worker failed {ATTEMPTS} times ({why}); is there enough memory, and the library?"
            raise ShardError(msg) from error
        return learned
