"""Rows in blocks whose temporaries fit into the cache."""

from __future__ import annotations

from collections.abc import Iterator


def row_blocks(count: int, size: int) -> Iterator[slice]:
    """``slice(0, size)``, ``slice(size, 2 size)``, ... up to count."""
    for low in range(0, count, size):
        yield slice(low, min(low + size, count))
