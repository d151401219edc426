"""Tables to tables: text to text without a change, numbers as numbers wherever the format has types."""

from __future__ import annotations

import contextlib
import csv
from collections.abc import Sequence
from typing import Any

from gaussfold.cli.errors import USAGE, Failure, fail
from gaussfold.cli.output import ArrowFile, open_text
from gaussfold.data.arrow import open_batches
from gaussfold.data.messages import BadRecord, DataError
from gaussfold.data.readers import format_of
from gaussfold.data.reading import COLUMNAR, Reading, Roles
from gaussfold.data.sources import Source, expand
from gaussfold.data.tables import assign
from gaussfold.data.tabular import SEPARATORS, Badness, TextTable, good_records, typed_batches
from gaussfold.data.tabular import open_text as open_table


def convert_table(inputs: Sequence[str], out: str, target: str, reading: Reading, roles: Roles, skip_bad: int) -> int:
    """Write the columns of one or several tables as one; columns to be ignored are left out."""
    bad = Badness(skip_bad, _tell)
    with contextlib.ExitStack() as stack:
        sink = _Sink(stack, out, target)
        for name in expand(inputs):
            with Source(name) as source:
                kind = format_of(name, reading, source)
                if kind in SEPARATORS:
                    table = open_table(source, reading.separator or SEPARATORS[kind], roles)
                    sink.take_text(table, source.name, bad)
                elif kind in COLUMNAR:
                    sink.take_columns(name, kind, roles)
                else:
                    msg = f"{name}: {kind} has no columns, so it cannot become {target}; --to vw or svmlight can"
                    raise Failure(msg, USAGE)
    return 0


def _tell(record: BadRecord) -> None:
    fail(f"skipped {record}", 0)


class _Sink:
    """One output, typed or text, for inputs of either kind; all inputs have the columns of the first."""

    def __init__(self, stack: contextlib.ExitStack, out: str, target: str) -> None:
        self._typed = target in COLUMNAR
        self._names: list[str] | None = None
        if self._typed:
            self._file = stack.enter_context(contextlib.closing(ArrowFile(out, target)))
        else:
            self._rows = csv.writer(
                stack.enter_context(open_text(out)), delimiter=SEPARATORS[target], lineterminator="\n"
            )

    def _begin(self, names: list[str], source: str) -> None:
        if self._names is None:
            self._names = names
            if not self._typed:
                self._rows.writerow(names)
        missing = set(self._names) ^ set(names)
        if missing:
            msg = f"{source}: its columns differ from those of the first input ({', '.join(sorted(missing))})"
            raise DataError(msg)

    def take_text(self, table: TextTable, source: str, bad: Badness) -> None:
        kept = [column.name for column in table.columns if column.kind != "ignored"]
        self._begin(kept, source)
        assert self._names is not None
        if self._typed:
            for batch in typed_batches(table, source, bad):
                numeric = dict(zip((column.name for column in table.columns), table.numeric, strict=True))
                self._file.write({name: batch[name] for name in self._names}, numeric)
            return
        places = [[column.name for column in table.columns].index(name) for name in self._names]
        self._rows.writerows([record[k] for k in places] for record in good_records(table, source, bad))

    def take_columns(self, source: str, kind: str, roles: Roles) -> None:
        schema, batches = open_batches(source, kind)
        columns = assign([str(field.name) for field in schema], [False] * len(schema), roles, source)
        self._begin([column.name for column in columns if column.kind != "ignored"], source)
        assert self._names is not None
        for batch in batches:
            chosen = batch.select(self._names)
            if self._typed:
                self._file.write_batch(chosen)
            else:
                self._rows.writerows(zip(*(map(_text, column.to_pylist()) for column in chosen.columns), strict=True))


def _text(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return str(int(value))
    if isinstance(value, float):
        return "" if value != value else repr(int(value)) if value == int(value) and abs(value) < 1e15 else repr(value)
    return str(value)
