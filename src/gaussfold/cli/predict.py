"""``gaussfold predict``."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Sequence
from typing import Any

from gaussfold.cli.output import Writer
from gaussfold.cli.train import open_model
from gaussfold.data.readers import Stream
from gaussfold.data.reading import Reading, Roles


def predict(
    inputs: Sequence[str],
    model_path: str,
    out: str,
    out_format: str | None,
    reading: Reading,
    roles: Roles,
    *,
    thompson: bool,
    seed: int,
    skip_bad: int,
) -> int:
    """Write probability, latent mean and standard deviation of every row."""
    model = open_model(model_path)
    known = dataclasses.replace(
        model.reading, format=reading.format, separator=reading.separator or model.reading.separator
    )
    writer = Writer(out, out_format)
    tagged: bool | None = None
    with contextlib.closing(writer):
        for chunk in Stream(inputs, known, roles, max_bad=skip_bad, tags=True):
            if not len(chunk):
                continue
            columns: dict[str, Any] = model.predict(chunk)._asdict()
            if thompson:
                columns["sampled"] = model.thompson(chunk, seed)
            tagged = bool(chunk.tags and any(chunk.tags)) if tagged is None else tagged
            if tagged:
                columns["tag"] = chunk.tags
            writer.write(columns)
    return 0
