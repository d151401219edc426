"""Shards on Ray: remote tasks with names, started again where a worker is lost."""

from __future__ import annotations

import importlib
import pickle
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any, final

from gaussfold.distributed.rounds import ShardError
from gaussfold.distributed.work import Base, Learned, StoppedError, Task, groups, learn_bytes, together_of

ATTEMPTS = 5
"""So often a shard may fail before the run ends."""
PATIENCE = 0.2
"""Seconds between looks at whether somebody asked to stop."""
ALONE = 60.0
"""Seconds for which a cluster may be without any node: others may be on their way."""


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
        self._peopled, self._looked = time.monotonic(), 0.0

    def run(self, base: Base, tasks: Sequence[Task], stop: Callable[[], bool]) -> Iterator[Learned]:
        """What came of every task, as it comes. The base lies in the object store, once a node."""
        ray = self._ray
        held = ray.put(base.raw)
        waiting = dict(self._submitted(held, base, group) for group in groups(tasks))
        try:
            while waiting:
                done, _ = ray.wait(list(waiting), timeout=PATIENCE)
                if stop():
                    raise StoppedError
                self._check_nodes(tasks[0])
                for reference in done:
                    yield self._result(reference, waiting.pop(reference))
        finally:
            for total, shards in waiting.items():
                for reference in (total, *(one for one, _ in shards)):
                    ray.cancel(reference, force=True)

    def _check_nodes(self, task: Task) -> None:
        """Give up where all nodes are gone and none has come for a while: Ray would wait forever."""
        now = time.monotonic()
        if now < self._looked + 1.0:
            return
        self._looked = now
        if any(node["Alive"] for node in self._ray.nodes()):
            self._peopled = now
        elif now > self._peopled + ALONE:
            msg = f"{task.shard}: the Ray cluster has lost its last node; start one (ray start --address ...)"
            raise ShardError(msg)

    def _submitted(self, held: Any, base: Base, group: Sequence[Task]) -> tuple[Any, list[tuple[Any, Task]]]:
        """What adds up the shards of a group, and what learns each of them."""
        work, add = self._ray.remote(learn_bytes), self._ray.remote(together_of)
        shards = []
        for task in group:
            name = f"gaussfold-round-{task.shard.round}-shard-{task.shard.index}"
            tried = work.options(name=name, max_retries=ATTEMPTS - 1, retry_exceptions=True)
            shards.append((tried.remote(held, base.key, pickle.dumps(task)), task))
        if len(group) == 1:
            return shards[0][0], shards
        of = group[0].shard
        adding = add.options(name=f"gaussfold-round-{of.round}-shards-from-{of.index}", max_retries=ATTEMPTS - 1)
        return adding.remote(*(reference for reference, _ in shards)), shards

    def _result(self, reference: Any, shards: list[tuple[Any, Task]]) -> Learned:
        try:
            learned: Learned = self._ray.get(reference)
        except self._ray.exceptions.RayError as error:
            task = next((task for one, task in shards if self._has_failed(one)), shards[0][1])
            why = " ".join(f"{type(error).__name__}: {error}".split())[:300]
            msg = f"{task.shard}: its worker failed {ATTEMPTS} times ({why}); is there enough memory, and the library?"
            raise ShardError(msg) from error
        return learned

    def _has_failed(self, reference: Any) -> bool:
        try:
            self._ray.get(reference, timeout=0)
        except self._ray.exceptions.GetTimeoutError:
            return False
        except self._ray.exceptions.RayError:
            return True
        return False
