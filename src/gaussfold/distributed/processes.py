"""Shards on processes of this machine, with nothing installed. A process that dies costs the shards it had.

A round of one shard is learned by the driver itself, and so are all if there is one worker: a process more would only
have to be started, and told what the driver knows. So the driver has met all that is needed when it first wants
processes, and where that can be done safely they are copies of it (``fork``), which are there at once; otherwise they
begin anew (``spawn``), as do those that take the place of processes that have died.
"""

from __future__ import annotations

import os
import signal
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import connection, get_all_start_methods, parent_process
from multiprocessing.context import ForkContext, ForkProcess, SpawnContext, SpawnProcess
from pathlib import Path
from types import TracebackType
from typing import Self, TypeAlias, final

from threadpoolctl import threadpool_limits

from gaussfold.checks import whole
from gaussfold.distributed.rounds import ShardError
from gaussfold.distributed.work import Base, Learned, Opened, StoppedError, Task, learn_shards, open_base

ATTEMPTS = 5
"""So often a shard may fail before the run ends."""
ALONE = 2
"""After so many failures shards are learned one at a time, so that the one that kills its process is known."""
PATIENCE = 0.2
"""Seconds between looks at whether somebody asked to stop, or a process has ended."""
GRACE = 5.0
"""Seconds in which processes end by themselves when the work is done."""
Batch: TypeAlias = tuple[Task, ...]
"""Shards that a process learns before it says what it has learned."""
Result: TypeAlias = tuple[Batch, Learned | Exception]
LOST = BrokenProcessPool("its process has ended")
THREADED = frozenset({"jax", "ray", "torch", "distributed", "pyspark"})
"""Modules with threads of their own, which a copy of the process would be without: no copy is made beside them.

Arrow starts its threads anew in a copy (at-fork handlers, from its version 11 on), so it is not among them.
"""


@final
class Processes:
    """So many processes. Use as a context manager: they are ended with it, and end on their own if we do.

    ``own``: whether the driver is ours alone, a program and no library in somebody else's; then it may be copied.
    """

    def __init__(self, workers: int, *, own: bool = False) -> None:
        self._workers, self._own = whole("workers", workers), own
        self._pool: ProcessPoolExecutor | None = None
        self._started: list[_Spawned | _Forked] = []
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
        here = self._workers == 1 or len(tasks) == 1
        left = {task.shard.index: task for task in tasks}
        failed: Counter[int] = Counter()
        while left:
            now = _next(list(left.values()), failed, 1 if here else self._workers)
            for some, result in _here(base, now, stop) if here else self._some(base, now, stop):
                if isinstance(result, Learned):
                    _take_out(left, some)
                    yield result
                    continue
                failed.update(task.shard.index for task in some)
                _check(some[0], failed[some[0].shard.index], result)
        if not here:
            self._written(base).unlink(missing_ok=True)

    def _written(self, base: Base) -> Path:
        """The base in a file: written once, read by each process, not sent with every task."""
        path = Path(self._folder.name) / base.key
        if not path.exists():
            path.write_bytes(base.raw)
        return path

    def _some(self, base: Base, batches: Sequence[Batch], stop: Callable[[], bool]) -> Iterator[Result]:
        """Run batches once; what came of each, or what went wrong. A dead process takes all that are left with it."""
        if self._pool is None:
            context = _Forking() if self._own and _can_fork() else _Spawning()
            self._pool, self._started = ProcessPoolExecutor(self._workers, context, _prepare), []
        path = str(self._written(base))
        futures: dict[Future[Learned], Batch] = {}
        known = len(_all_started)
        try:
            for batch in batches:
                futures[self._pool.submit(_learn, path, base.key, batch)] = batch
        except BrokenProcessPool as error:
            self._end_pool()
            yield from ((batch, error) for batch in batches)
            return
        self._started += _all_started[known:]
        while futures:
            done, _ = wait(futures, PATIENCE, FIRST_COMPLETED)
            if not done and _has_ended(self._started):  # a process that ends while it begins is not always noticed
                self._end_pool()
                yield from ((batch, LOST) for batch in futures.values())
                return
            if stop():
                self._end_pool()
                raise StoppedError
            for future in done:
                batch, wrong = futures.pop(future), LOST if future.cancelled() else future.exception()
                if isinstance(wrong, BrokenProcessPool):
                    self._end_pool()
                yield (batch, future.result()) if wrong is None else (batch, _plain(wrong))

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


def _take_out(left: dict[int, Task], done: Batch) -> None:
    for task in done:
        del left[task.shard.index]


def _next(left: Sequence[Task], failed: Counter[int], workers: int) -> Sequence[Batch]:
    """All that are left, or the one that has failed most.

    A process takes several at a time, which it adds up itself; fewer and fewer, so that all are done at the same time.
    Where one has failed it takes them one by one.
    """
    if max(failed[task.shard.index] for task in left) >= ALONE:
        return [(max(left, key=lambda task: failed[task.shard.index]),)]
    batches: list[Batch] = []
    at = 0
    while at < len(left):
        size = 1 if failed or workers == 1 else max(1, (len(left) - at) // (2 * workers))
        batches.append(tuple(left[at : at + size]))
        at += size
    return batches


def _check(task: Task, times: int, error: Exception) -> None:
    """Give a shard up that has failed so many times."""
    if times >= ATTEMPTS:
        why = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
        msg = f"{task.shard}: its worker failed {times} times ({why}); is there enough memory?"
        raise ShardError(msg) from error


def _here(base: Base, batches: Sequence[Batch], stop: Callable[[], bool]) -> Iterator[Result]:
    """Run batches in this process; what came of each, or what went wrong."""
    opened = Opened(base.model)
    with threadpool_limits(1):  # as everywhere: with more threads matrices are multiplied in another order
        for batch in batches:
            try:
                learned = learn_shards(opened, batch, stop)
            except StoppedError:
                raise
            except Exception as error:
                yield batch, error
            else:
                yield batch, learned


class _Spawned(SpawnProcess):
    """One of ours: written down when it starts."""

    def start(self) -> None:
        super().start()
        _all_started.append(self)


class _Forked(ForkProcess):
    """As well."""

    def start(self) -> None:
        super().start()
        _all_started.append(self)


class _Spawning(SpawnContext):
    Process = _Spawned


class _Forking(ForkContext):
    Process = _Forked


_all_started: list[_Spawned | _Forked] = []


def _can_fork() -> bool:
    """Whether a copy of this process can live: of all threads it has but the one that made it."""
    known = sys.platform == "linux" and "fork" in get_all_start_methods()
    return known and threading.active_count() == 1 and THREADED.isdisjoint(sys.modules)


def _has_ended(processes: Sequence[_Spawned | _Forked]) -> bool:
    return bool(processes) and bool(connection.wait([process.sentinel for process in processes], 0))


def _prepare() -> None:
    """In a new process: one thread for matrices, no interrupt by a key, an end with the driver."""
    threadpool_limits(1)
    signal.set_wakeup_fd(-1)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    threading.Thread(target=_end_with_driver, daemon=True, name="gaussfold-driver").start()


def _end_with_driver() -> None:
    driver = parent_process()
    if driver is not None:
        connection.wait([driver.sentinel])
        os._exit(1)


def _learn(path: str, key: str, batch: Batch) -> Learned:
    return learn_shards(open_base(Path(path).read_bytes, key), batch)
