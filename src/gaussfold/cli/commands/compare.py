"""``gaussfold compare``: several settings on one file, in one table."""

from __future__ import annotations

import dataclasses
import json
import math
import time
from collections.abc import Callable, Sequence

from gaussfold.cli.errors import USAGE, Failure
from gaussfold.cli.inputs import Inputs
from gaussfold.cli.model import StreamModel, refuse_row
from gaussfold.cli.setting import AUTO, Setting, parse_noise
from gaussfold.cli.summary import finite
from gaussfold.data.chunks import Chunk
from gaussfold.data.reading import Document, Reading
from gaussfold.trace import RowError

DEFAULT = (
    "prior-std=auto",
    "prior-std=0.1",
    "prior-std=1",
    "prior-std=1,coupling=joint",
    "prior-std=1,likelihood=probit",
)
_NAMES = ("prior-std", "likelihood", "link", "noise-std", "rule", "coupling", "forgetting", "dtype", "bits")
_NUMBERS: dict[str, Callable[[str], float | str]] = {
    "forgetting": float,
    "noise-std": parse_noise,
    "prior-std": lambda text: {AUTO: AUTO}.get(text) or float(text),
}


def parse_setting(text: str, base: Setting, reading: Reading) -> tuple[Setting, Reading]:
    """``name=value,name=value`` on top of a setting."""
    values: Document = {}
    for part in text.split(","):
        name, equals, value = part.partition("=")
        name = name.replace("_", "-")
        if not equals or name not in _NAMES:
            msg = f"--setting {text!r}: name=value with names {', '.join(_NAMES)} is needed"
            raise Failure(msg, USAGE)
        try:
            if name == "bits":
                reading = dataclasses.replace(reading, bits=int(value))
                continue
            field = "likelihood" if name == "link" else name.replace("-", "_")
            values[field] = _NUMBERS.get(name, str)(value)
        except ValueError as error:
            msg = f"--setting {text!r}: {error}"
            raise Failure(msg, USAGE) from error
    return dataclasses.replace(base, **values), reading


class _Run:
    """One setting on its way through the file."""

    def __init__(self, text: str, reading: Reading) -> None:
        self.text, self.seconds = text, 0.0
        self.model = StreamModel(*parse_setting(text, Setting(), reading))

    @property
    def rows(self) -> tuple[int, str]:
        """What decides which rows it sees."""
        return self.model.reading.bits, self.model.reading.labels

    def learn(self, chunk: Chunk) -> None:
        began = time.perf_counter()
        try:
            trace = self.model.learn(chunk)
        except RowError as error:
            raise refuse_row(chunk, error) from error
        self.seconds += time.perf_counter() - began
        self.model.add(chunk, trace, 0, len(chunk))

    @property
    def loss(self) -> float | None:
        return finite(self.model.average_loss)

    def summary(self) -> dict[str, str | float | None]:
        return {
            "setting": self.text,
            "average_loss": self.loss,
            "examples": self.model.examples,
            "seconds": round(self.seconds, 3),
        }


def compare(inputs: Inputs, settings: Sequence[str], as_json: bool) -> int:
    """Train every setting on the same chunks, read once, and show their losses side by side."""
    runs = [_Run(text, inputs.reading) for text in settings or DEFAULT]
    for rows in sorted({run.rows for run in runs}):  # rows are read once for all settings that see the same ones
        group = [run for run in runs if run.rows == rows]
        for chunk in inputs.stream(group[0].model.reading):
            for run in group:
                run.learn(chunk)
    constant = next((run.model.base_rate_loss for run in runs if run.model.binary), math.nan)
    (_print_json if as_json else _show)(runs, constant)
    return 0


def _print_json(runs: list[_Run], constant: float) -> None:
    document = {"constant_loss": finite(constant), "settings": [run.summary() for run in runs]}
    print(json.dumps(document, allow_nan=False))


def _show(runs: list[_Run], constant: float) -> None:
    from rich.console import Console
    from rich.table import Table

    title = f"progressive log loss, {runs[0].model.examples:,} examples"
    table = Table(title=title if math.isnan(constant) else f"{title} (best constant {constant:.6f})")
    for name in ("setting", "average loss", "seconds to learn"):
        table.add_column(name, justify="left" if name == "setting" else "right")
    best = min((run.loss for run in runs if run.loss is not None), default=None)
    for run in runs:
        loss = "none" if run.loss is None else f"{run.loss:.6f}"
        mark = "bold" if run.loss is not None and run.loss == best else None
        table.add_row(run.text, loss, f"{round(run.seconds, 3):.2f}", style=mark)
    Console().print(table)
