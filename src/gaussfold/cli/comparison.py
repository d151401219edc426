"""``gaussfold compare``: several settings on one file, in one table."""

from __future__ import annotations

import dataclasses
import json
import math
import time
from collections.abc import Sequence
from typing import Any

from gaussfold.beliefs.trace import RowError
from gaussfold.cli.errors import USAGE, Failure
from gaussfold.cli.model import StreamModel, refuse_row
from gaussfold.cli.setting import AUTO, Setting
from gaussfold.cli.summary import finite
from gaussfold.data.readers import Stream
from gaussfold.data.reading import Reading, Roles

DEFAULT = (
    "prior-std=auto",
    "prior-std=0.1",
    "prior-std=1",
    "prior-std=1,coupling=joint",
    "prior-std=1,likelihood=probit",
)
_NAMES = ("prior-std", "likelihood", "link", "noise-std", "rule", "coupling", "forgetting", "dtype", "bits")
_NUMBERS = ("forgetting", "noise-std")


def parse_setting(text: str, base: Setting, reading: Reading) -> tuple[Setting, Reading]:
    """``name=value,name=value`` on top of a setting."""
    values: dict[str, Any] = {}
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
            is_number = name in _NUMBERS or (name == "prior-std" and value != AUTO)
            field = "likelihood" if name == "link" else name.replace("-", "_")
            values[field] = float(value) if is_number else value
        except ValueError as error:
            msg = f"--setting {text!r}: {error}"
            raise Failure(msg, USAGE) from error
    return dataclasses.replace(base, **values), reading


def compare(
    inputs: Sequence[str],
    settings: Sequence[str],
    reading: Reading,
    roles: Roles,
    skip_bad: int,
    as_json: bool,
) -> int:
    """Train every setting on the same chunks, read once, and show their losses side by side."""
    models = [StreamModel(*parse_setting(text, Setting(), reading)) for text in settings or DEFAULT]
    seconds = [0.0] * len(models)
    # rows are read once for all settings that see the same ones
    for bits, labels in sorted({(model.reading.bits, model.reading.labels) for model in models}):
        group = [k for k, model in enumerate(models) if (model.reading.bits, model.reading.labels) == (bits, labels)]
        for chunk in Stream(inputs, models[group[0]].reading, roles, max_bad=skip_bad):
            for k in group:
                began = time.perf_counter()
                try:
                    trace = models[k].learn(chunk)
                except RowError as error:
                    raise refuse_row(chunk, error) from error
                seconds[k] += time.perf_counter() - began
                models[k].add(chunk, trace, 0, len(chunk))
    rows: list[dict[str, Any]] = [
        {
            "setting": text,
            "average_loss": finite(model.average_loss),
            "examples": model.examples,
            "seconds": round(spent, 3),
        }
        for text, model, spent in zip(settings or DEFAULT, models, seconds, strict=True)
    ]
    constant = next((model.base_rate_loss for model in models if model.binary), math.nan)
    if as_json:
        print(json.dumps({"constant_loss": finite(constant), "settings": rows}, allow_nan=False))
        return 0
    from rich.console import Console
    from rich.table import Table

    title = f"progressive log loss, {rows[0]['examples']:,} examples"
    table = Table(title=title if math.isnan(constant) else f"{title} (best constant {constant:.6f})")
    for name in ("setting", "average loss", "seconds to learn"):
        table.add_column(name, justify="left" if name == "setting" else "right")
    best = min((row["average_loss"] for row in rows if row["average_loss"] is not None), default=None)
    for row in rows:
        loss = row["average_loss"]
        mark = "bold" if loss is not None and loss == best else None
        table.add_row(row["setting"], "none" if loss is None else f"{loss:.6f}", f"{row['seconds']:.2f}", style=mark)
    Console().print(table)
    return 0
