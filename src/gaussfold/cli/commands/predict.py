"""``gaussfold predict``."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from gaussfold.cli.errors import INTERNAL, USAGE, Failure, fail
from gaussfold.cli.inputs import Inputs
from gaussfold.cli.model import StreamModel
from gaussfold.cli.output import Columns, Writer
from gaussfold.cli.saving import open_model
from gaussfold.cli.targets import check_apart
from gaussfold.data.chunks import Chunk
from gaussfold.data.messages import DataError
from gaussfold.data.reading import Reading

UNIT_ROWS = 1 << 16
"""Rows of text that a process reads and predicts at a time."""


@dataclass(frozen=True)
class Wanted:
    """Which model predicts, where to, in which format (None: by the file's name), the seed of a draw, if any; who."""

    model: str
    out: str
    out_format: str | None
    seed: int | None
    workers: int | None = None


def predict(inputs: Inputs, wanted: Wanted) -> int:
    """Write label, latent mean and standard deviation of every row; with a seed, a Thompson sample as well."""
    check_apart([wanted.out], inputs.paths, wanted.model)
    model = open_model(wanted.model)
    reading = inputs.reading
    known = dataclasses.replace(
        model.reading, format=reading.format, separator=reading.separator or model.reading.separator
    )
    if wanted.workers is None:
        found = _here(inputs, known, Predictions(model, wanted.seed))
    else:
        _check(inputs, model)
        found = _by_workers(inputs, known, wanted, wanted.workers)
    writer = Writer(wanted.out, wanted.out_format)
    try:
        for columns, tags in found:
            writer.write_rows(columns, tags)
    except BaseException:
        writer.give_up()
        raise
    writer.close()
    return 0


@dataclass(frozen=True)
class Predictions:
    """What a model says of rows."""

    model: StreamModel
    seed: int | None

    def __call__(self, chunk: Chunk) -> dict[str, np.ndarray]:
        """Columns of numbers."""
        self.model.meet(chunk)
        columns = self.model.predict(chunk).columns(self.model.binary)
        return columns if self.seed is None else {**columns, "sampled": self.model.thompson(chunk, self.seed)}


def _here(inputs: Inputs, known: Reading, say: Predictions) -> Iterator[tuple[Columns, list[str] | None]]:
    for chunk in inputs.stream(known, tags=True, keep_names=bool(say.model.setting.prior_stds)):
        if len(chunk):
            yield {**say(chunk)}, chunk.tags


def _check(inputs: Inputs, model: StreamModel) -> None:
    for wrong, msg in (
        ("-" in inputs.paths, "--workers: standard input cannot be shared; give files"),
        (
            bool(model.setting.prior_stds),
            "--workers: in a model with priors by namespace a new slot has that of the first feature in it, and rows "
            "must come in order; leave out --workers",
        ),
    ):
        if wrong:
            raise Failure(msg, USAGE)


def _by_workers(
    inputs: Inputs, known: Reading, wanted: Wanted, workers: int
) -> Iterator[tuple[Columns, list[str] | None]]:
    from gaussfold.data.units import units_of
    from gaussfold.distributed.predicting import Work, predict_units
    from gaussfold.distributed.rounds import ShardError

    planned = units_of(inputs.paths, known, inputs.roles, UNIT_ROWS, labelled=False)
    work = Work(functools.partial(_opened, wanted.model, wanted.seed), planned.reading, inputs.skip_bad, tags=True)
    n_bad = 0
    try:
        for predicted in predict_units(work, planned.units, workers):
            n_bad += len(predicted.bad)
            if n_bad > inputs.skip_bad:
                many = f"more than {inputs.skip_bad} bad records; mend them, or allow more (--skip-bad)"
                msg = f"{predicted.bad[-1]}; {many}"
                raise DataError(msg)
            for text in predicted.bad:
                fail(f"skipped {text}", 0)
            if predicted.columns:
                yield {**predicted.columns}, predicted.tags
    except ShardError as error:
        raise Failure(str(error), INTERNAL) from error


def _opened(path: str, seed: int | None) -> Predictions:
    return Predictions(open_model(path), seed)
