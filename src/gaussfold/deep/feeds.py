"""Where batches come from: arrays in memory, or an iterable that hands them over (Grain, tf.data, torch, Hugging Face).

A source answers :meth:`chunk`: the data of some steps and which of its rows each step looks at. The training loop is
the same for both; an iterable's chunk is its next batches put together, filled up to one shape that is compiled once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sized
from typing import NamedTuple, Protocol, TypeAlias, TypeGuard

import jax
import numpy as np

from gaussfold.checks import whole
from gaussfold.deep.training import Course
from gaussfold.deep.types import Batch, Shaped

Shapes: TypeAlias = tuple[object, tuple[tuple[int, ...], ...], tuple[str, ...]]
"""Of a batch: its structure, and shape and type of each leaf."""
_BYTES = 1 << 26
"""Of the batches that are held together."""


class Chunk(NamedTuple):
    """Data of some steps, which rows (steps, batches, rows) each looks at, and how many steps to take."""

    data: Batch
    rows: np.ndarray
    steps: int


class Source(Protocol):
    """What a training takes its rows from."""

    def chunk(self, at: int) -> Chunk:
        """Of the steps from ``at`` on; each is asked for once, in order."""
        ...


class InMemory:
    """All rows at hand, shuffled by a seed."""

    def __init__(self, data: Batch, course: Course, seed: int) -> None:
        self.data, self.course, self.seed = data, course, seed

    def chunk(self, at: int) -> Chunk:
        """The rows of an endless sequence of shuffled epochs."""
        return Chunk(self.data, *self.course.chunk(self.seed, at))


def is_feed(data: object) -> TypeGuard[Iterable[Batch]]:
    """Whether these are batches that come one after the other, rather than a tree of arrays."""
    return isinstance(data, Iterable) and not isinstance(data, tuple | list | dict | Shaped)


class Feed:
    """Batches from an iterable, in the order in which it gives them.

    Parameters
    ----------
    source
        Gone through again and again if it can be; an iterator only once.
    n_rows
        Rows of one way through; by default as many as ``len(source)`` batches have.
    check
        Refuses a batch, or some of them put together.
    """

    def __init__(self, source: Iterable[Batch], n_rows: int | None, check: Callable[[Batch], None]) -> None:
        self._again = None if isinstance(source, Iterator) else source
        self._stream = iter(source)
        self._check = check
        self._given = 0  # batches taken in all
        first = next(self._stream, None)
        if first is None:
            msg = "data: an iterable without any batch; at least one is needed"
            raise ValueError(msg)
        self.first = _arrays(first)
        self._waiting = [self.first]
        self._shapes = _shapes(self.first)
        self.size = int(jax.tree.leaves(self.first)[0].shape[0])
        self.rows = _counted(source, self.size) if n_rows is None else whole("n_rows", n_rows, least=self.size)

    @property
    def once(self) -> bool:
        """Whether it can be gone through once only."""
        return self._again is None

    def skip(self, batches: int) -> None:
        """Leave out what an earlier part of the training has seen; an iterator is where it is."""
        if not self.once:
            for _ in range(batches % (self.rows // self.size)):
                self._next()

    def start(self, course: Course, at: int) -> None:
        """Be ready for a training of this course that goes on at a step."""
        nbytes = sum(leaf.nbytes for leaf in jax.tree.leaves(self.first)) * course.per_step
        self._course = course
        self._length = max(1, min(course.length, _BYTES // max(nbytes, 1)))
        self.skip(at * course.per_step)

    def chunk(self, at: int) -> Chunk:
        """The next batches; the end of an iterator, and a batch of another shape, are refused."""
        course = self._course
        steps, most = max(0, min(self._length, course.total - at)), self._length * course.per_step
        rows = np.arange(most * self.size, dtype=np.int32).reshape(self._length, course.per_step, self.size)
        if not steps:
            return Chunk((), rows, 0)
        taken = [self._next() for _ in range(steps * course.per_step)]
        data = jax.tree.map(lambda *parts: np.concatenate(parts), *taken)
        self._check(data)
        return Chunk(jax.tree.map(lambda a: _filled(a, most * self.size), data), rows, steps)

    def _next(self) -> Batch:
        if self._waiting:
            self._given += 1
            return self._waiting.pop()
        batch = self._full()
        if batch is None and self._again is not None:
            self._stream = iter(self._again)
            batch = self._full()
        if batch is None:
            needed = self._course.total * self._course.per_step
            msg = (
                f"data: it ended after {self._given} full batches of {self.size} rows, and {needed} are needed; give "
                "what can be gone through again (a DataLoader, not its iterator), fewer steps, or the true n_rows"
            )
            raise ValueError(msg)
        self._given += 1
        return batch

    def _full(self) -> Batch | None:
        """The next batch that has all of its rows; a shorter last one sits out, as rows in memory do."""
        short: Shapes | None = None
        for found in self._stream:
            batch = _arrays(found)
            shapes = _shapes(batch)
            odd = shapes if short is None else short  # others came after the shorter one, which was not the last then
            if short is not None or _inner(shapes) != _inner(self._shapes) or shapes[1][0][0] > self.size:
                msg = (
                    f"data: batch {self._given} is {_told(odd)}, and the first was {_told(self._shapes)}; "
                    "all must have the same shapes and types, but for a last one with fewer rows"
                )
                raise ValueError(msg)
            if shapes == self._shapes:
                return batch
            short = shapes
        return None


def _counted(source: Iterable[Batch], size: int) -> int:
    """Rows of one way through, where the source knows how many batches it has."""
    if isinstance(source, Sized):
        return len(source) * size
    msg = "n_rows=None: an iterable without a length does not say how many rows there are; give n_rows"
    raise ValueError(msg)


def _arrays(batch: Batch) -> Batch:
    """As NumPy has it, whatever it came as; a list of arrays, as a torch DataLoader gives it, is a tuple."""
    found = jax.tree.map(np.asarray, batch)
    return tuple(found) if isinstance(found, list) else found


def _shapes(batch: Batch) -> Shapes:
    leaves = jax.tree.leaves(batch)
    sizes = {leaf.shape[:1] for leaf in leaves}
    if not leaves or len(sizes) != 1 or () in sizes:
        msg = f"data: a batch with arrays of {[leaf.shape for leaf in leaves]}; they must have the same first axis"
        raise ValueError(msg)
    return jax.tree.structure(batch), tuple(leaf.shape for leaf in leaves), tuple(str(leaf.dtype) for leaf in leaves)


def _inner(shapes: Shapes) -> object:
    """All but the number of rows."""
    return shapes[0], tuple(shape[1:] for shape in shapes[1]), shapes[2]


def _told(shapes: Shapes) -> str:
    return ", ".join(f"{kind}{list(shape)}" for shape, kind in zip(shapes[1], shapes[2], strict=True))


def _filled(array: np.ndarray, rows: int) -> np.ndarray:
    """As many rows, the last ones zero."""
    lack = rows - array.shape[0]
    return np.concatenate([array, np.zeros((lack, *array.shape[1:]), array.dtype)]) if lack else array
