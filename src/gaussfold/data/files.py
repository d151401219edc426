"""Rows of files for Python: what the command line reads, as chunks that ``partial_fit`` and ``fold`` take."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import scipy

from gaussfold.data.readers import Stream
from gaussfold.data.reading import Reading, Roles
from gaussfold.types import Array


class Batch(NamedTuple):
    """Some rows of a file, in memory of their own."""

    X: scipy.sparse.csr_matrix
    """One column for each of 2^bits slots, and the last for the constant if there is one."""
    y: Array
    """Labels; NaN where a row has none."""
    weight: Array


def read(
    paths: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
    *,
    file_format: str | None = None,
    bits: int = 18,
    interact: Sequence[str] = (),
    constant: bool = False,
    labels: str = "binary",
    positive: str | None = None,
    classes: Sequence[str] = (),
    separator: str | None = None,
    hashing: str = "strings",
    label: str | None = None,
    weight: str | None = None,
    ignore: Sequence[str] = (),
    keep: Sequence[str] = (),
    numeric: Sequence[str] = (),
    categorical: Sequence[str] = (),
    header: bool | None = None,
    max_bad: int = 0,
    chunk_bytes: int = 1 << 20,
) -> Iterator[Batch]:
    r"""Read rows from files as ``gaussfold train`` does, chunk by chunk, in bounded memory.

    The options are those of the command line; see ``gaussfold train --help``. Files may be Vowpal Wabbit or svmlight
    text, CSV, Parquet or Arrow, packed by gzip, zstd, bzip2 or xz.

    Parameters
    ----------
    paths
        A path, a glob, "-" for standard input, or several of these.
    file_format
        "vw", "csv", ...; None looks at the file's name, then at its first line.
    bits
        Features are hashed into 2^bits slots.
    interact
        Pairs of namespaces to multiply.
    constant
        Whether to add a constant column; the estimators have an intercept of their own.
    labels
        "binary" (-1 and 0 are the same), "real", "count" or "class".
    positive
        For tables: the text of the label that is 1; any other is 0.
    classes
        For labels="class": all that there are, texts or numbers as texts; y has the place of a label among them.
    separator
        Of a CSV file.
    hashing
        For Vowpal Wabbit text: "strings" or "all".
    label, weight, numeric, categorical, header
        For tables: what the columns mean.
    ignore, keep
        Columns, or namespaces by their first letter or name, to leave out, or the only ones to use.
    max_bad
        So many bad records are left out; one more raises `BadRecordError`.
    chunk_bytes
        How much text makes a chunk. It changes the speed, not the rows.

    Yields
    ------
    Batch
        ``X`` (CSR), ``y`` and ``weight``.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> import gaussfold as gf
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "houses.csv"
    >>> _ = path.write_text("price,size,town\n1.5,70,Bern\n2.5,110,Basel\n")
    >>> model = gf.StreamingRegressor(covariance="diagonal")
    >>> for X, y, weight in gf.data.read(path, label="price", labels="real", bits=10):
    ...     model = model.partial_fit(X, y, sample_weight=weight)
    >>> y
    array([1.5, 2.5])
    """
    reading = Reading(
        format=file_format,
        bits=bits,
        interact=tuple(interact),
        constant=constant,
        labels=labels,
        positive=positive,
        classes=tuple(classes),
        separator=separator,
        hash=hashing,
        keep=tuple(keep),
        ignore=tuple(ignore),
    )
    roles = Roles(label, weight, None, tuple(ignore), tuple(numeric), tuple(categorical), header, tuple(keep))
    stream = Stream(paths, reading, roles, max_bad=max_bad, copy=True, chunk_bytes=chunk_bytes)
    return (Batch(chunk.X, chunk.label, chunk.weight) for chunk in stream)
