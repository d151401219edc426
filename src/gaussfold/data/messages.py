"""What is wrong with a record, in words: the file, the line, what was expected and what stands there."""

from __future__ import annotations

from typing import NamedTuple

from gaussfold.engine.text import csr_rows as records

_EXPECTED = {
    records.EXPECTED_BAR: "expected '[label [weight]] ['tag]|namespace features', and there is no '|'",
    records.EXPECTED_WEIGHT: "expected an importance weight >= 0",
    records.EXPECTED_NO_BASE: "expected no initial prediction but 0 (none is supported); make it a feature",
    records.EXPECTED_VALUE: "expected a finite number as a feature's value",
    records.EXPECTED_NAME: "expected a feature's name before ':'",
    records.EXPECTED_SMALLER: "expected a feature's value between -1e30 and 1e30; rescale the feature",
    records.EXPECTED_SCALE: "expected a finite number after ':' as the namespace's scale",
    records.EXPECTED_INDEX: "expected an integer >= 0 as a feature's index",
    records.EXPECTED_COLON: "expected 'index:value'",
    records.EXPECTED_COLUMNS: "expected as many fields as there are columns",
    records.EXPECTED_QUOTE: "expected a closing quote, then a separator or the end of the line",
}
_LABELS = {
    "binary": "expected a label of -1, 0 or 1",
    "real": "expected a finite number as label",
    "count": "expected a whole number >= 0 as label",
}
_SHOWN = 40


class BadRecord(NamedTuple):
    """One record that cannot be read; in a file of columns the column is named, and the line is a row."""

    source: str
    line: int
    expected: int
    found: bytes
    labels: str = "binary"
    column: str | None = None

    def __str__(self) -> str:
        text = _LABELS[self.labels] if self.expected == records.EXPECTED_LABEL else _EXPECTED[self.expected]
        shown = self.found[:_SHOWN].decode("utf-8", "replace") + ("..." if len(self.found) > _SHOWN else "")
        place = f":{self.line}" if self.column is None else f": column {self.column!r}, row {self.line}"
        tabs = self.found.count(b"\t") > 1  # nobody writes them inside a field
        remedy = "; fields look separated by tabs: --separator tab" if tabs else ""
        return f"{self.source}{place}: {text}" + (f", found {shown!r}" if shown else "") + remedy


class DataError(ValueError):
    """The data cannot be read (further); what came before is fine."""


class BadRecordError(DataError):
    """A bad record too many."""

    def __init__(self, record: BadRecord, allowed: int) -> None:
        self.record = record
        limit = f" (more than the {allowed} bad records that may be skipped)" if allowed else ""
        super().__init__(f"{record}{limit}")
