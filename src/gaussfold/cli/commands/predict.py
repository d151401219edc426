"""``gaussfold predict``."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

from gaussfold.cli.inputs import Inputs
from gaussfold.cli.output import Writer
from gaussfold.cli.saving import open_model
from gaussfold.cli.targets import check_apart


@dataclass(frozen=True)
class Wanted:
    """Which model predicts, where to, in which format (None: by the file's name), and the seed of a draw, if any."""

    model: str
    out: str
    out_format: str | None
    seed: int | None


def predict(inputs: Inputs, wanted: Wanted) -> int:
    """Write label, latent mean and standard deviation of every row; with a seed, a Thompson sample as well."""
    check_apart([wanted.out], inputs.paths, wanted.model)
    model = open_model(wanted.model)
    reading = inputs.reading
    known = dataclasses.replace(
        model.reading, format=reading.format, separator=reading.separator or model.reading.separator
    )
    stream = inputs.stream(known, tags=True, keep_names=bool(model.setting.prior_stds))
    writer = Writer(wanted.out, wanted.out_format)
    try:
        for chunk in stream:
            if not len(chunk):
                continue
            model.meet(chunk)
            columns = model.predict(chunk).columns(model.binary)
            if wanted.seed is not None:
                columns["sampled"] = model.thompson(chunk, wanted.seed)
            writer.write_rows(columns, chunk.tags)
    except BaseException:
        writer.give_up()
        raise
    writer.close()
    return 0
