"""``gaussfold train``."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from gaussfold.cli.errors import (
    BAD_DATA,
    BROKEN_PIPE,
    CANNOT_WRITE,
    INTERRUPTED,
    OK,
    TERMINATED,
    USAGE,
    Failure,
    close_output,
    fail,
)
from gaussfold.cli.inputs import Inputs
from gaussfold.cli.model import StreamModel, refuse_row
from gaussfold.cli.options import Run
from gaussfold.cli.output import SideOutput, naming_output
from gaussfold.cli.progress import Progress
from gaussfold.cli.resuming import Resume
from gaussfold.cli.saving import Checkpoints, open_model, rounds_file, save_last, signals
from gaussfold.cli.setting import Setting
from gaussfold.cli.summary import average, summarise, tell
from gaussfold.cli.targets import check_apart, check_target
from gaussfold.data.chunks import Chunk
from gaussfold.data.messages import BrokenInputError, DataError
from gaussfold.data.reading import Document
from gaussfold.engine.compilation import waiting
from gaussfold.trace import RowError, Trace

_SHOWN_BAD = 5


@dataclass(frozen=True)
class Job:
    """What to train on, what to do on the way, and the options of the model that the user gave."""

    inputs: Inputs
    run: Run
    chosen: Document


def train(job: Job, setting: Setting) -> int:
    """Run the job; ``setting`` is that of a new model. Returns the exit code."""
    _check(job)
    began, compiling = time.perf_counter(), waiting.seconds()
    model = _start_model(job, setting)
    return (_train_many if job.run.shared else _train_one)(job, model, began, compiling)


def _train_one(job: Job, model: StreamModel, began: float, compiling: float) -> int:
    """One process, row after row."""
    training = _Training(job, model)
    code = training.all_passes()
    if job.run.final is not None and training.keeps:
        save_last(model, job.run.final)
    if training.predictions is not None and training.predictions.failed:
        code = code or CANNOT_WRITE
    skipped = min(training.n_bad, job.inputs.skip_bad)  # the one that stopped the run was not skipped
    seconds = time.perf_counter() - began
    summary = summarise(model, training.before, job.run, skipped, seconds, training.squares_before)
    summary["compile_seconds"] = round(waiting.seconds() - compiling, 6)
    if job.run.passes > 1:
        summary["first_pass_loss"] = average(training.first_pass)
    if not training.keeps:
        summary["model"] = None
    for name in summary.get("priors_unused", ()):
        fail(f"--prior-std {name}=...: no namespace or column {name!r} came, so it changed nothing", 0)
    _tell(summary, job.run)
    return code


def _tell(summary: Document, run: Run) -> None:
    if not run.quiet:
        tell(summary, run)
    if run.json:
        with naming_output("-"):
            print(json.dumps(summary, allow_nan=False), flush=True)


def _train_many(job: Job, model: StreamModel, began: float, compiling: float) -> int:
    """The same on several processes or machines."""
    from gaussfold.cli.commands import train_many

    train_many.check(job)
    before = model.totals.copy()
    work = train_many.ManyWorkers(job, model)
    code = work.learn()
    if work.keeps and job.run.final is not None:
        save_last(model, job.run.final)
        Path(rounds_file(job.run.final)).unlink(missing_ok=True)
    summary = summarise(model, before, job.run, work.n_bad, time.perf_counter() - began)
    summary |= {
        "compile_seconds": round(waiting.seconds() - compiling, 6),
        "bytes_moved": work.bytes_moved,
        "worker_seconds": round(work.worker_seconds, 6),
    }
    _tell(summary, job.run)
    return code


def _check(job: Job) -> None:
    """Refuse what cannot be done before anything is read."""
    run = job.run
    check_target(None if run.test_only else run.final)
    check_apart([None if run.test_only else run.final, run.predictions], job.inputs.paths)
    check_apart([run.predictions], job.inputs.paths, run.initial)
    for wrong, msg in (
        (run.passes < 1, f"--passes {run.passes}: 1 or more is needed"),
        (run.passes > 1 and "-" in job.inputs.paths, "--passes: standard input can be read only once; give a file"),
        (run.test_only and run.initial is None, "-t needs a model to test; give one with -i"),
        (
            (run.checkpoint or run.checkpoint_seconds) and run.final is None,
            "--checkpoint needs a file to write to; give one with -f",
        ),
    ):
        if wrong:
            raise Failure(msg, USAGE)


def _unfinished(final: str | None) -> str | None:
    """What there is to resume."""
    places = () if final is None else (rounds_file(final), final)
    return next((path for path in places if Path(path).exists()), None)


def _start_model(job: Job, setting: Setting) -> StreamModel:
    """Return the model to go on with, or a new one."""
    run = job.run
    initial = _unfinished(run.final) if run.resume and run.initial is None else run.initial
    if initial is None:
        return _new_model(job, setting)
    model = open_model(initial)
    _refuse_changes(model, job.chosen, initial)
    new, old = job.inputs.reading, model.reading
    model.reading = dataclasses.replace(
        old, format=new.format, separator=new.separator or old.separator,
        positive=new.positive if new.positive is not None else old.positive,
    )  # fmt: skip
    if run.keep_names and model.names is None:
        model.names = {}
    if run.resume and model.run.get("finished"):
        fail(f"--resume: the run that made {initial} is finished, so nothing is read; leave it out to go on", 0)
    return model


def _new_model(job: Job, setting: Setting) -> StreamModel:
    if job.run.shared and setting.classes:
        msg = "--workers, --scheduler: several classes are learned in one process; leave it out"
        raise Failure(msg, USAGE)
    names: dict[int, str] | None = {} if job.run.keep_names else None
    if setting.classes:
        from gaussfold.cli.class_model import ClassModel  # its loops take a while to load

        return ClassModel(setting, job.inputs.reading, names=names)
    return StreamModel(setting, job.inputs.reading, names=names)


def _refuse_changes(model: StreamModel, chosen: Document, path: str) -> None:
    """What a model was begun with cannot be chosen again, unless it is the same."""
    reading = model.reading
    known = {**vars(model.setting), "bits": reading.bits, "interact": reading.interact, "hash": reading.hash}
    known |= {"noconstant": not reading.constant, "keep": reading.keep, "ignore": reading.ignore}
    for name, value in chosen.items():
        if name in known and value != known[name]:
            msg = f"--{name.replace('_', '-')} {value} differs from the model's {known[name]} ({path}); leave it out"
            raise Failure(msg, USAGE)


class _Training:
    """The passes over the input, and what is counted on the way."""

    def __init__(self, job: Job, model: StreamModel) -> None:
        self._job, self._run, self._model = job, job.run, model
        if job.run.resume and "plan" in model.run:
            msg = "--resume: the model was made with --workers; resume it with --workers, of any number"
            raise Failure(msg, USAGE)
        self._resume = Resume(model.run if job.run.resume else {}, job.run.passes)
        self.n_bad, self._stuck, self._broken = 0, False, False
        self.before, self.squares_before = model.totals.copy(), float(model.squares[0])
        self._first, self.first_pass = model.examples, np.zeros_like(model.totals)
        self.predictions = SideOutput(job.run.predictions) if job.run.predictions is not None else None
        self._progress = Progress(model, quiet=job.run.quiet, every=job.run.every)
        self._checkpoints = Checkpoints(None if job.run.test_only else job.run.final, job.run, model)

    def all_passes(self) -> int:
        """Return 0, or the code of the signal or error that ended the run early (what was learned is kept)."""
        exit_code = OK
        try:
            for k in range(self._resume.first_pass, self._run.passes):
                exit_code = self._pass(k)
                if exit_code != OK:
                    break
                if k == 0:
                    self.first_pass = self._model.totals - self.before
            else:
                self._model.run = self._resume.finished()
        except BrokenPipeError:
            close_output()
            exit_code = BROKEN_PIPE
        except Failure:
            if self.predictions is not None:
                self.predictions.give_up()
            raise
        finally:
            self._progress.close()
        if self.predictions is not None and exit_code != BROKEN_PIPE:
            self.predictions.close()
        return exit_code

    def _pass(self, k: int) -> int:
        model = self._model
        stream = self._job.inputs.stream(
            model.reading, keep_names=model.names is not None, tags=self.predictions is not None, fingerprint=True
        )
        self._resume.begin_pass(k)
        with signals(stream.stop) as caught, contextlib.closing(iter(stream)) as chunks:
            try:
                for chunk in chunks:
                    model.reading = stream.reading
                    self._report_bad(chunk)
                    self._parts(self._resume.new_rows(chunk), caught)
                    if caught:
                        break
            except DataError as error:
                self._stuck = True
                self._broken = isinstance(error, BrokenInputError)
                return fail(f"{error}{self._kept()}", BAD_DATA)
        if caught:
            fail(f"stopped after {model.examples - self._first} examples{self._kept()}", 0)
            return {2: INTERRUPTED, 15: TERMINATED}.get(caught[0], INTERRUPTED)
        self._resume.end_pass()
        return OK

    def _parts(self, chunk: Chunk, caught: list[int]) -> None:
        """Take a chunk from one checkpoint to the next, as long as no signal was caught."""
        for part in self._checkpoints.parts(chunk, self._model):
            self._rows(part)
            self._checkpoints.maybe(self._model)
            if caught:
                return

    @property
    def keeps(self) -> bool:
        """Whether there is a model to save.

        A file is not replaced by one that met bad data before anything else, nor by one that learned from an input that
        is not what was written: what came before the damage was seen may be wrong as well.
        """
        met_nothing = self._stuck and self._model.examples == self._first
        return self._run.final is not None and not self._run.test_only and not met_nothing and not self._broken

    def _kept(self) -> str:
        if self._broken and self._run.final is not None:
            state = "holds the last checkpoint" if self._checkpoints.written else "is left as it was"
            return f"; {self._run.final} {state}"
        return f"; what was learned so far is in {self._run.final}" if self.keeps else ""

    def _rows(self, chunk: Chunk) -> None:
        """Take the next rows of the pass; those that cannot be learned are bad records."""
        at = 0
        while at < len(chunk):
            try:
                stop = len(chunk)
                self._learn(chunk.rows(at, stop) if at else chunk)
            except RowError as error:
                stop, trouble = at + error.row, refuse_row(chunk, RowError(at + error.row))
                if error.row and error.trace is not None:
                    self._count(chunk.rows(at, stop), error.trace)
                self.n_bad += 1
                if self.n_bad > self._job.inputs.skip_bad:
                    self._model.run = self._resume.taken(chunk.rows(0, stop))
                    raise trouble from error
                fail(f"skipped {trouble}", 0)
                stop += 1
            at = stop
        self._model.run = self._resume.taken(chunk)

    def _learn(self, chunk: Chunk) -> None:
        """Learn rows (or only look at them), count them and write their predictions."""
        model = self._model
        if self._run.test_only:
            model.meet(chunk)
        self._count(chunk, model.score(chunk) if self._run.test_only else model.learn(chunk))

    def _count(self, chunk: Chunk, trace: Trace) -> None:
        model = self._model
        self._progress.update(chunk, trace)
        if self.predictions is not None:
            prediction = model.predict(chunk) if self._run.test_only else model.before(trace, chunk.label)
            self.predictions.write_rows(prediction.columns(model.binary), chunk.tags)

    def _report_bad(self, chunk: Chunk) -> None:
        if not chunk.n_bad:
            return
        self._job.inputs.report_bad(chunk, max(0, _SHOWN_BAD - self.n_bad))
        self.n_bad += chunk.n_bad
