"""Shards on processes of this machine, with nothing installed. A process that dies costs the shards it had."""

from __future__ import annotations

import os
import signal
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import connection, parent_process
from multiprocessing.context import SpawnContext, SpawnProcess
from pathlib import Path
from types import TracebackType
from typing import Self, final

from gaussfold.checks import whole
from gaussfold.distributed.rounds import ShardError, StoppedError
from gaussfold.distributed.work import Base, Learned, Task, learn_shard, open_base

ATTEMPTS = 5
"""So often a shard may fail before the run ends."""
ALONE = 2
"""After so many failures shards are learned one at a time, so that the one that kills its process is known."""
PATIENCE = 0.2
"""Seconds between looks at whether somebody asked to stop, or a process has ended."""
GRACE = 5.0
"""Seconds in which processes end by themselves when the work is done."""
LOST = BrokenProcessPool("its process has ended")


@final
class Processes:
    """So many processes. Use as a context manager: they are ended with it, and end on their own if we do."""

    def __init__(self, workers: int) -> None:
        self._workers = whole("workers", workers)
        self._pool: ProcessPoolExecutor | None = None
        self._started: list[_Process] = []
        self._folder = tempfile.TemporaryDirectory(prefix="gaussfold-")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._end_pool(GRACE if kind is None else 0.0)
        self._folder.cleanup()

    @property
    def pids(self) -> list[int]:
        """Numbers of the processes that were started and have not ended."""
        return [process.pid for process in self._started if process.pid is not None and not _has_ended([process])]

    def run(self, base: Base, tasks: Sequence[Task], stop: Callable[[], bool]) -> Iterator[Learned]:
        """What came of every task, as it comes."""
        path = Path(self._folder.name) / base.key  # written once, read by each process: not sent with every task
        path.write_bytes(base.raw)
        left = {task.shard.index: task for task in tasks}
        failed: Counter[int] = Counter()
        while left:
            alone = max(failed[index] for index in left) >= ALONE
            now = [max(left.values(), key=lambda task: failed[task.shard.index])] if alone else list(left.values())
            for task, result in self._some(path, base.key, now, stop):
                if isinstance(result, Learned):
                    del left[task.shard.index]
                    yield result
                    continue
                failed[task.shard.index] += 1
                if failed[task.shard.index] >= ATTEMPTS:
                    why = f"{type(result).__name__}: {result}" if str(result) else type(result).__name__
                    msg = f"{task.shard}: its worker failed {ATTEMPTS} times ({why}); is there enough memory?"
                    raise ShardError(msg) from result
        path.unlink()

    def _some(
        self, path: Path, key: str, tasks: Sequence[Task], stop: Callable[[], bool]
    ) -> Iterator[tuple[Task, Learned | Exception]]:
        """Run tasks once; what came of each, or what went wrong. A dead process takes all that are left with it."""
        if self._pool is None:
            self._pool, self._started = ProcessPoolExecutor(self._workers, _Context(), _prepare), []
        futures: dict[Future[Learned], Task] = {}
        known = len(_all_started)
        try:
            for task in tasks:
                futures[self._pool.submit(_learn, str(path), key, task)] = task
        except BrokenProcessPool as error:
            self._end_pool()
            yield from ((task, error) for task in tasks)
            return
        self._started += _all_started[known:]
        while futures:
            done, _ = wait(futures, PATIENCE, FIRST_COMPLETED)
            if not done and _has_ended(self._started):  # a process that ends while it begins is not always noticed
                self._end_pool()
                yield from ((task, LOST) for task in futures.values())
                return
            if stop():
                self._end_pool()
                raise StoppedError
            for future in done:
                task, wrong = futures.pop(future), LOST if future.cancelled() else future.exception()
                if isinstance(wrong, BrokenProcessPool):
                    self._end_pool()
                yield (task, future.result()) if wrong is None else (task, _plain(wrong))

    def _end_pool(self, grace: float = 0.0) -> None:
        """End the processes, whatever they are doing, after so many seconds in which they may end by themselves.

        They are not waited for longer: where one was killed while it held the lock of the pool's queue, the others
        wait for that lock forever.
        """
        if self._pool is None:
            return
        self._pool.shutdown(wait=False, cancel_futures=True)
        self._pool = None
        until = time.monotonic() + grace
        left = list(self._started)
        while left and connection.wait([each.sentinel for each in left], max(0.0, until - time.monotonic())):
            left = [each for each in left if not _has_ended([each])]
        for process in left:
            process.terminate()


def _plain(error: BaseException) -> Exception:
    if isinstance(error, Exception):
        return error
    raise error


class _Process(SpawnProcess):
    """One of ours: written down when it starts."""

    def start(self) -> None:
        super().start()
        _all_started.append(self)


class _Context(SpawnContext):
    Process = _Process


_all_started: list[_Process] = []


def _has_ended(processes: Sequence[_Process]) -> bool:
    return bool(processes) and bool(connection.wait([process.sentinel for process in processes], 0))


def _prepare() -> None:
    """In a new process: one thread for matrices, no interrupt by a key, an end with the driver."""
    from threadpoolctl import threadpool_limits

    threadpool_limits(1)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_driver, daemon=True, name="gaussfold-driver").start()


def _end_with_driver() -> None:
    driver = parent_process()
    if driver is not None:
        connection.wait([driver.sentinel])
        os._exit(1)


def _learn(path: str, key: str, task: Task) -> Learned:
    return learn_shard(open_base(Path(path).read_bytes, key), task)
