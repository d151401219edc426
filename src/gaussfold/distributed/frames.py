"""Frames of a cluster as files: a Dask DataFrame, a Ray Dataset or a Spark DataFrame is written once, by its workers.

A partition of a lazy frame is computed anew whenever a worker is lost, perhaps with other rows or in another order.
Rows that have been written are the same for whoever reads them, and can be read by shards; so a frame is written first,
as Parquet, and the plan is made from its row groups. Nothing of it goes through the client.
"""

from __future__ import annotations

import contextlib
import importlib
import os
import re
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any


@contextlib.contextmanager
def written(source: Any, staging: str | os.PathLike[str] | None, client: Any) -> Iterator[tuple[list[str], Any]]:
    """Names of files with the frame's rows, while they are needed, in order; and who learns: the frame's own cluster.

    ``staging`` is a folder that all workers reach; None: a temporary one of this machine.
    """
    write = WRITERS.get(_home(source))
    if write is None:
        needed = "paths, a Dask or Spark DataFrame, a Dask Array or a Ray Dataset are needed"
        msg = f"source: a {type(source).__name__}; {needed}"
        raise ValueError(msg)
    if staging is not None and not Path(staging).is_dir():
        msg = f"staging={os.fspath(staging)!r}: there is no such folder; make one that all workers reach"
        raise ValueError(msg)
    with tempfile.TemporaryDirectory(prefix="gaussfold-", dir=staging) as folder:
        own = write(source, str(Path(folder) / "rows"))
        yield files_in(Path(folder) / "rows", ".parquet"), own if client is None else client


def files_in(folder: Path, ending: str) -> list[str]:
    """Files of the rows in a folder, in the order of the numbers in their names."""
    return [str(path) for path in sorted(folder.glob(f"[!._]*{ending}"), key=_by_numbers)]


def _by_numbers(path: Path) -> list[tuple[int, str]]:
    return [(int(part), "") if part.isdigit() else (-1, part) for part in re.split(r"(\d+)", path.name)]


def _home(source: Any) -> str:
    return type(source).__module__.split(".")[0]


def _dask(frame: Any, folder: str) -> Any:
    if type(frame).__module__.startswith("dask.array"):
        frame = _columns_of(frame)
    frame.to_parquet(folder, write_index=False)
    try:
        return importlib.import_module("distributed").get_client()
    except ValueError:  # there is none: processes of this machine learn
        return None


def _columns_of(array: Any) -> Any:
    """A Dask Array as a frame with columns x0, x1, ..."""
    if array.ndim != 2:
        msg = f"source: a Dask Array of shape {array.shape}; rows and columns are needed, the label among the columns"
        raise ValueError(msg)
    return array.rechunk({1: -1}).to_dask_dataframe([f"x{k}" for k in range(array.shape[1])])


def _ray(dataset: Any, folder: str) -> Any:
    dataset.write_parquet(folder)
    return importlib.import_module("ray")


def _spark(frame: Any, folder: str) -> Any:
    frame.write.parquet(Path(folder).absolute().as_uri())
    return frame.sparkSession


WRITERS: dict[str, Callable[[Any, str], Any]] = {"dask": _dask, "dask_expr": _dask, "ray": _ray, "pyspark": _spark}
