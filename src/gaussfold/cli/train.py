"""``gaussfold train``."""

from __future__ import annotations

import dataclasses
import json
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gaussfold.beliefs.trace import RowError, Trace
from gaussfold.cli.errors import BAD_DATA, BROKEN_PIPE, INTERRUPTED, OK, TERMINATED, USAGE, Failure, close_output, fail
from gaussfold.cli.model import StreamModel, refuse_row
from gaussfold.cli.options import Run
from gaussfold.cli.output import Writer
from gaussfold.cli.progress import Progress
from gaussfold.cli.saving import Checkpoints, check_target, save_last, signals
from gaussfold.cli.setting import Setting
from gaussfold.cli.summary import summarise, tell
from gaussfold.data.chunks import Chunk
from gaussfold.data.messages import DataError
from gaussfold.data.readers import Stream
from gaussfold.data.reading import Reading, Roles
from gaussfold.store import StoreError, load

_SHOWN_BAD = 5


@dataclass(frozen=True)
class Job:
    """What to train on, and what to do on the way."""

    inputs: Sequence[str]
    roles: Roles
    skip_bad: int
    run: Run


def open_model(path: str) -> StreamModel:
    """Load a model of the command line; anything else is refused by name."""
    model = load(path)
    if not isinstance(model, StreamModel):
        msg = f"{path}: it holds a {type(model).__name__}; the command line needs a model of 'gaussfold train'"
        raise StoreError(msg)
    return model


def start_model(run: Run, setting: Setting, reading: Reading, chosen: dict[str, Any]) -> StreamModel:
    """Return the model to go on with, or a new one; ``chosen`` are the options the user gave."""
    initial = run.initial
    if run.resume and initial is None and run.final is not None and Path(run.final).exists():
        initial = run.final
    if initial is None:
        return StreamModel(setting, reading, names={} if run.keep_names else None)
    model = open_model(initial)
    known = {
        **vars(model.setting),
        "bits": model.reading.bits,
        "interact": model.reading.interact,
        "hash": model.reading.hash,
    }
    for name, value in chosen.items():
        if name in known and value != known[name]:
            msg = f"--{name.replace('_', '-')} {value} differs from the model's {known[name]} ({initial}); leave it out"
            raise Failure(msg, USAGE)
    model.reading = dataclasses.replace(
        model.reading, format=reading.format, separator=reading.separator or model.reading.separator,
        positive=reading.positive if reading.positive is not None else model.reading.positive,
    )  # fmt: skip
    if run.keep_names and model.names is None:
        model.names = {}
    return model


def train(job: Job, setting: Setting, reading: Reading, chosen: dict[str, Any]) -> int:
    """Run the job; returns the exit code."""
    check_target(job.run.final)
    if job.run.passes < 1:
        msg = f"--passes {job.run.passes}: 1 or more is needed"
        raise Failure(msg, USAGE)
    if job.run.passes > 1 and "-" in job.inputs:
        msg = "--passes: standard input can be read only once; give a file"
        raise Failure(msg, USAGE)
    if job.run.test_only and job.run.initial is None:
        msg = "-t needs a model to test; give one with -i"
        raise Failure(msg, USAGE)
    if (job.run.checkpoint or job.run.checkpoint_seconds) and job.run.final is None:
        msg = "--checkpoint needs a file to write to; give one with -f"
        raise Failure(msg, USAGE)
    began = time.perf_counter()
    model = start_model(job.run, setting, reading, chosen)
    training = _Training(job, model)
    code = training.all_passes()
    if job.run.final is not None and training.keeps:
        save_last(model, job.run.final)
    skipped = min(training.n_bad, job.skip_bad)  # the one that stopped the run was not skipped
    summary = summarise(model, training.before, job.run, skipped, time.perf_counter() - began)
    if not training.keeps:
        summary["model"] = None
    if not job.run.quiet:
        tell(summary, job.run)
    if job.run.json:
        print(json.dumps(summary, allow_nan=False), flush=True)
    return code


class _Training:
    """The passes over the input, and what is counted on the way."""

    def __init__(self, job: Job, model: StreamModel) -> None:
        self._job, self._run, self._model = job, job.run, model
        self._skip = model.run if job.run.resume else {}
        self.n_bad, self._stuck = 0, False
        self.before = model.totals.copy()
        self._first = model.examples
        self._writer = Writer(job.run.predictions) if job.run.predictions is not None else None
        self._progress = Progress(model, quiet=job.run.quiet, every=job.run.every)
        self._checkpoints = Checkpoints(None if job.run.test_only else job.run.final, job.run, model)

    def all_passes(self) -> int:
        """Return 0, or the code of the signal or error that ended the run early (what was learned is kept)."""
        code = OK
        done = self._run.passes if self._skip.get("finished") else self._skip.get("passes", 0)
        try:
            for k in range(done, self._run.passes):
                code = self._pass(k, self._skip.get("rows", 0) if k == done else 0)
                if code != OK:
                    break
            else:
                self._model.run = {"passes": self._run.passes, "rows": 0, "finished": 1}
        except BrokenPipeError:
            close_output()
            code = BROKEN_PIPE
        finally:
            self._progress.close()
            if self._writer is not None and code != BROKEN_PIPE:
                self._writer.close()
        return code

    def _pass(self, k: int, skip: int) -> int:
        model = self._model
        stream = Stream(
            self._job.inputs, model.reading, self._job.roles, max_bad=self._job.skip_bad,
            keep_names=model.names is not None, tags=self._writer is not None,
        )  # fmt: skip
        rows = 0
        chunks = iter(stream)
        with signals(stream.stop) as caught:
            try:
                for chunk in chunks:
                    model.reading = stream.reading
                    self._report_bad(chunk)
                    rows += len(chunk)
                    if rows <= skip:
                        continue
                    rest = chunk if rows - len(chunk) >= skip else chunk.rows(len(chunk) - (rows - skip))
                    at = rows - len(rest)
                    for part in self._checkpoints.parts(rest, model):
                        self._rows(part, k, at)
                        at += len(part)
                        self._checkpoints.maybe(model)
                        if caught:
                            break
                    if caught:
                        break
            except DataError as error:
                self._stuck = True
                return fail(f"{error}{self._kept()}", BAD_DATA)
            finally:
                chunks.close()  # type: ignore[attr-defined]
        if caught:
            fail(f"stopped after {model.examples - self._first} examples{self._kept()}", 0)
            return {2: INTERRUPTED, 15: TERMINATED}.get(caught[0], INTERRUPTED)
        return OK

    @property
    def keeps(self) -> bool:
        """Whether there is a model to save. A file is not replaced by one that met bad data before anything else."""
        met_nothing = self._stuck and self._model.examples == self._first
        return self._run.final is not None and not self._run.test_only and not met_nothing

    def _kept(self) -> str:
        return f"; what was learned so far is in {self._run.final}" if self.keeps else ""

    def _rows(self, chunk: Chunk, k: int, start: int) -> None:
        """Take rows of pass k, the first of which is row ``start``; those that cannot be learned are bad records."""
        at = 0
        while at < len(chunk):
            try:
                stop = len(chunk)
                self._learn(chunk.rows(at, stop) if at else chunk)
            except RowError as error:
                stop, trouble = at + error.row, refuse_row(chunk, RowError(at + error.row))
                if error.row and error.trace is not None:
                    self._count(chunk.rows(at, stop), error.trace)
                self._model.run = {"passes": k, "rows": start + stop, "finished": 0}
                self.n_bad += 1
                if self.n_bad > self._job.skip_bad:
                    raise trouble from error
                fail(f"skipped {trouble}", 0)
                stop += 1
            at = stop
        self._model.run = {"passes": k, "rows": start + len(chunk), "finished": 0}

    def _learn(self, chunk: Chunk) -> None:
        """Learn rows (or only look at them), count them and write their predictions."""
        model = self._model
        if self._run.test_only:
            model.meet(chunk)
        self._count(chunk, model.score(chunk) if self._run.test_only else model.learn(chunk))

    def _count(self, chunk: Chunk, trace: Trace) -> None:
        model = self._model
        self._progress.update(chunk, trace)
        if self._writer is not None:
            prediction = model.predict(chunk) if self._run.test_only else model.before(trace, chunk.label)
            self._writer.write_rows(prediction.columns(model.binary), chunk.tags)

    def _report_bad(self, chunk: Chunk) -> None:
        if not chunk.n_bad:
            return
        for record in chunk.bad[: max(0, _SHOWN_BAD - self.n_bad)]:
            if self._job.skip_bad:
                fail(f"skipped {record}", 0)
        self.n_bad += chunk.n_bad
