"""What is wrong with a record, in words: the file, the line, what was expected and what stands there."""

from __future__ import annotations

from typing import NamedTuple

from gaussfold.data.plain_numbers import is_float
from gaussfold.engine.text import expected

_EXPECTED = {
    expected.BAR: "expected '[label [weight]] ['tag]|namespace features', and there is no '|'",
    expected.WEIGHT: "expected an importance weight >= 0",
    expected.NO_BASE: "expected no initial prediction but 0 (none is supported); make it a feature",
    expected.VALUE: "expected a finite number as a feature's value",
    expected.NAME: "expected a feature's name before ':'",
    expected.SMALLER: "expected a feature's value between -1e30 and 1e30; rescale the feature",
    expected.SCALE: "expected a finite number after ':' as the namespace's scale",
    expected.INDEX: "expected an integer >= 0 as a feature's index",
    expected.COLON: "expected 'index:value'",
    expected.COLUMNS: "expected as many fields as there are columns",
    expected.CLASS: "expected a label among the classes that were announced (--classes, or --oaa K for 1 to K)",
    expected.QUOTE: "expected a closing quote, then a separator or the end of the line",
}
_LABELS = {
    "binary": "expected a label of -1, 0 or 1",
    "real": "expected a finite number as label",
    "count": "expected a whole number >= 0 as label",
}
_NUMBERS = "numbers are for --likelihood gaussian (labels='real'), several classes for --classes a,b,c"
_EXPLAINED_BY = {
    "binary": f"{_NUMBERS}, counts for poisson (labels='count')",
    "count": _NUMBERS,
}
"""What explains numbers that are no such labels."""
_SHOWN = 40


class BadRecord(NamedTuple):
    """One record that cannot be read; in a file of columns the column is named, and the line is a row."""

    source: str
    line: int
    wanted: int
    found: bytes
    labels: str = "binary"
    column: str | None = None

    def __str__(self) -> str:
        text = _LABELS[self.labels] if self.wanted == expected.LABEL else _EXPECTED[self.wanted]
        shown = self.found[:_SHOWN].decode("utf-8", "replace") + ("..." if len(self.found) > _SHOWN else "")
        place = f":{self.line}" if self.column is None else f": column {self.column!r}, row {self.line}"
        return f"{self.source}{place}: {text}" + (f", found {shown!r}" if shown else "") + self._remedy()

    def _remedy(self) -> str:
        """What to do about it, if that can be told."""
        few = self.wanted in (expected.LABEL, expected.CLASS, expected.QUOTE)  # where not even one is usual
        for separator, names, name in ((b"\t", "tabs", "tab"), (b";", "semicolons", "';'")):
            if self.found.count(separator) > (0 if few else 1):
                return f"; fields look separated by {names}: --separator {name}"
        return {expected.LABEL: f"; {explained_by(self.found, self.labels)}"}.get(self.wanted, "")


def explained_by(label: bytes, labels: str) -> str:
    """Which options would explain a label that these options do not."""
    if not is_float(label.strip()):
        return "texts are for --positive (in a table: the one that counts as 1), or several classes: --classes a,b,c"
    return _EXPLAINED_BY.get(labels, "it is too large to be one")


class DataError(ValueError):
    """The data cannot be read (further); what came before is fine."""


class BrokenInputError(DataError):
    """The input is not what was written: it ends early, is damaged, or was changed while it was read.

    What came before may be wrong as well, so nothing that was learned from it should be kept.
    """


class NulBytesError(BrokenInputError):
    """There is a nul byte in a text, which no text has."""

    def __init__(self, source: str, place: str) -> None:
        what = "there are nul bytes; is it UTF-16, damaged, or no text? make it UTF-8 without them"
        super().__init__(f"{source}:{place}: {what}")


class BadRecordError(DataError):
    """A bad record too many."""

    def __init__(self, record: BadRecord, allowed: int) -> None:
        self.record = record
        limit = f" (more than the {allowed} bad records that may be skipped)" if allowed else ""
        super().__init__(f"{record}{limit}; mend it, or leave bad records out (--skip-bad, max_bad)")
