"""``gaussfold predict``."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Sequence

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
    seed: int | None,
    skip_bad: int,
) -> int:
    """Write label, latent mean and standard deviation of every row; with a seed, a Thompson sample as well."""
    model = open_model(model_path)
    known = dataclasses.replace(
        model.reading, format=reading.format, separator=reading.separator or model.reading.separator
    )
    stream = Stream(inputs, known, roles, max_bad=skip_bad, tags=True, keep_names=bool(model.setting.prior_stds))
    with contextlib.closing(Writer(out, out_format)) as writer:
        for chunk in stream:
            if not len(chunk):
                continue
            model.meet(chunk)
            columns = model.predict(chunk).columns(model.binary)
            if seed is not None:
                columns["sampled"] = model.thompson(chunk, seed)
            writer.write_rows(columns, chunk.tags)
    return 0
