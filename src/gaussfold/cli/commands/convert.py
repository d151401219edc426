"""``gaussfold convert``: tables as any format, sparse text as Vowpal Wabbit text or SVMlight."""

from __future__ import annotations

import contextlib
import csv
import dataclasses
from typing import Protocol

from gaussfold.cli.errors import USAGE, Failure, fail
from gaussfold.cli.inputs import Inputs
from gaussfold.cli.output import ArrowFile, open_text
from gaussfold.cli.targets import check_apart, check_output
from gaussfold.data import formats
from gaussfold.data.formats.base import Format, RowWriter, SlotNames
from gaussfold.data.messages import BadRecord, DataError
from gaussfold.data.readers import format_of
from gaussfold.data.sources import Source, expand
from gaussfold.data.tabular import Badness, Table

_ALL_BITS = 30  # so many slots that names hardly ever share one


def convert(inputs: Inputs, out: str, target: str | None, bits_given: bool) -> int:
    """Write rows one by one: features by name in Vowpal Wabbit text, by slot in SVMlight, columns in tables."""
    kind = target or (formats.format_of_name(out) if out != "-" else None)
    if kind not in formats.names():
        msg = f"--to {kind}: allowed are {', '.join(formats.names())} (or an output file with such a name)"
        raise Failure(msg, USAGE)
    check_output(out)
    check_apart([out], inputs.paths)
    found = formats.find(kind)
    if found.open_table is not None:
        _convert_tables(inputs, out, found)
    elif found.writer is not None:
        _convert_rows(inputs, out, found.writer, bits_given)
    else:
        msg = f"--to {kind}: it can be read, not written"
        raise Failure(msg, USAGE)
    return 0


def _convert_rows(inputs: Inputs, out: str, writer: RowWriter, bits_given: bool) -> None:
    name_of = writer.name_of
    reading = dataclasses.replace(inputs.reading, constant=False)
    if name_of is not None and not bits_given:
        reading = dataclasses.replace(reading, bits=_ALL_BITS)
    names: SlotNames = {}
    with open_text(out) as file:
        for chunk in inputs.stream(reading, keep_names=name_of is not None, tags=name_of is not None):
            inputs.report_bad(chunk)
            if name_of is not None:
                names.update((named.slot, name_of(named)) for named in chunk.names)
            file.writelines(writer.lines(chunk, names))


def _convert_tables(inputs: Inputs, out: str, target: Format) -> None:
    """Write the columns of one or several tables as one; columns to be ignored are left out."""
    bad = Badness(inputs.skip_bad, _tell)
    first: list[str] | None = None
    with contextlib.ExitStack() as stack:
        sink: _Sink = (
            _TextSink(stack, out, target.separator) if target.separator else _TypedSink(stack, out, target.name)
        )
        for name in expand(inputs.paths):
            with Source(name) as source:
                found = format_of(name, inputs.reading, source)
                if found.open_table is None:
                    what = f"{found.name} has no columns, so it cannot become {target.name}"
                    others = " or ".join(name for name in formats.names() if formats.find(name).writer is not None)
                    msg = f"{name}: {what}; --to {others} can"
                    raise Failure(msg, USAGE)
                table = found.open_table(source, inputs.reading, inputs.roles)
                if first is None:
                    first = table.names
                    sink.begin(first)
                differ = set(first) ^ set(table.names)
                if differ:
                    what = ", ".join(sorted(differ))
                    msg = f"{source.name}: its columns differ from those of the first input ({what})"
                    raise DataError(msg)
                sink.take(table, first, bad)


def _tell(record: BadRecord) -> None:
    fail(f"skipped {record}", 0)


class _Sink(Protocol):
    """Where tables go; all of them have the columns of the first."""

    def begin(self, names: list[str]) -> None: ...

    def take(self, table: Table, names: list[str], bad: Badness) -> None: ...


class _TextSink:
    """Text with separators: fields as they are, numbers in their shortest form."""

    def __init__(self, stack: contextlib.ExitStack, out: str, separator: str) -> None:
        self._rows = csv.writer(stack.enter_context(open_text(out)), delimiter=separator, lineterminator="\n")

    def begin(self, names: list[str]) -> None:
        self._rows.writerow(names)

    def take(self, table: Table, names: list[str], bad: Badness) -> None:
        self._rows.writerows(table.records(names, bad))


class _TypedSink:
    """Parquet or Arrow: numbers as numbers."""

    def __init__(self, stack: contextlib.ExitStack, out: str, kind: str) -> None:
        self._file = stack.enter_context(contextlib.closing(ArrowFile(out, kind)))

    def begin(self, names: list[str]) -> None:
        """Nothing: the first batch brings the names."""

    def take(self, table: Table, names: list[str], bad: Badness) -> None:
        for batch in table.batches(names, bad):
            self._file.write_batch(batch)
