"""Shards on Spark: a job a round, a task a shard; what fails is tried again as Spark is told to."""

from __future__ import annotations

import importlib
import pickle
from collections.abc import Callable, Iterator, Sequence
from typing import Any, final

from gaussfold.distributed.rounds import ShardError
from gaussfold.distributed.work import Base, Learned, StoppedError, Task, learn_bytes, together


@final
class OnSpark:
    """The executors of a ``SparkSession``. Speculative copies do no harm: a shard counts once.

    The files must be where executors find them. ``spark.task.maxFailures`` says how often a shard may fail (on a master
    ``local[N]`` once, unless it is ``local[N, F]``).
    """

    def __init__(self, session: Any) -> None:
        self._context = session.sparkContext

    def run(self, base: Base, tasks: Sequence[Task], stop: Callable[[], bool]) -> Iterator[Learned]:
        """What came of all tasks together: Spark has no results one by one without a job for each."""
        if stop():
            raise StoppedError
        context, key = self._context, base.key
        held = context.broadcast(base.raw)
        first = tasks[0].shard
        context.setJobGroup("gaussfold", f"round {first.round}, {len(tasks)} shards", interruptOnCancel=True)

        def learn(task: bytes) -> bytes:
            return pickle.dumps(learn_bytes(held.value, key, task))

        def add(one: bytes, other: bytes) -> bytes:
            return pickle.dumps(together([pickle.loads(one), pickle.loads(other)]))

        try:
            rows = context.parallelize([pickle.dumps(task) for task in tasks], len(tasks))
            found: bytes = rows.map(learn).treeReduce(add)  # executors add up what they have, then the driver does
        except _spark_errors() as error:
            why = " ".join(f"{error}".split())[:400]
            names = f"{first}" if len(tasks) == 1 else f"one of {len(tasks)} shards from {first} on"
            msg = f"{names}: Spark gave up on it ({why}); look at its executor's log, and at spark.task.maxFailures"
            raise ShardError(msg) from error
        finally:
            held.unpersist()
        learned: Learned = pickle.loads(found)
        yield learned


def _spark_errors() -> tuple[type[Exception], ...]:
    """What a job that failed raises: of the Java side, or of PySpark's own."""
    java: Any = importlib.import_module("py4j.protocol")
    own: Any = importlib.import_module("pyspark.errors")
    return java.Py4JError, own.PySparkException
