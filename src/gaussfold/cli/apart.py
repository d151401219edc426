"""A model of the command line, learned apart by the shards of a round."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from gaussfold.beliefs.diagonal.apart import Apart
from gaussfold.data.chunks import Chunk
from gaussfold.distributed.learning import Gained
from gaussfold.trace import Trace

if TYPE_CHECKING:
    from gaussfold.cli.model import StreamModel


class StreamApart:
    """A model apart: see `gaussfold.distributed.work.LearnerApart`."""

    def __init__(self, model: StreamModel, apart: Apart) -> None:
        self._model, self._apart = model, apart
        self._scales = model.scales.copy()
        self._shard = model

    def begin(self, index: int) -> None:
        """The next shard."""
        self._apart.begin(index)
        self._shard = self._model.shard(self._scales, self._apart)

    def learn(self, chunk: Chunk) -> Trace:
        """Learn a chunk."""
        return self._shard.learn(chunk)

    def add(self, chunk: Chunk, trace: Trace, start: int, stop: int) -> None:
        """Count rows."""
        self._shard.add(chunk, trace, start, stop)

    def sizes(self, chunk: Chunk) -> np.ndarray:
        """Of the features that are not of size 1 because they are scaled."""
        return np.abs(chunk.data) if self._model.setting.scale == "none" else chunk.data[:0]

    def gained(self, *, last: bool) -> Gained:
        """What the shard has learned, which ends it."""
        more = self._scales.take_gained(self._model.scales, self._apart.slots())
        shard = self._shard
        more |= {"squares": shard.squares, "range": shard.range.ends}
        return Gained(self._apart.delta(last=last), shard.totals, shard.names, more)
