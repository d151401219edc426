"""Linear algebra on one thread where the matrices are small: two threads spend more time meeting than multiplying."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache

from threadpoolctl import ThreadpoolController

SMALL = 700
"""Rows of the largest matrix: measured with OpenBLAS on two cores, where a Cholesky factor gains from the second."""


@lru_cache(maxsize=1)
def _controller() -> ThreadpoolController:
    """The libraries of this process, looked for once."""
    return ThreadpoolController()


@contextmanager
def fitting_threads(rows: int) -> Iterator[None]:
    """One thread for small matrices, whatever is set for others."""
    if rows > SMALL:
        yield
        return
    with _controller().limit(limits=1, user_api="blas"):
        yield
