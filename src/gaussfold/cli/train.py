"""``gaussfold train``."""

from __future__ import annotations

import dataclasses
import json
import math
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gaussfold.beliefs.mixture import PRIOR_GRID
from gaussfold.cli.errors import (
    BAD_DATA,
    BROKEN_PIPE,
    INTERRUPTED,
    OK,
    TERMINATED,
    USAGE,
    Failure,
    close_output,
    fail,
)
from gaussfold.cli.model import AUTO, Setting, StreamModel
from gaussfold.cli.output import Writer
from gaussfold.cli.progress import Progress
from gaussfold.cli.saving import Checkpoints, check_target, save_last, signals
from gaussfold.data.chunks import Chunk
from gaussfold.data.messages import DataError
from gaussfold.data.readers import Stream
from gaussfold.data.reading import Reading, Roles
from gaussfold.data.strings import collision_rate
from gaussfold.store import StoreError, load

_SHOWN_BAD = 5


@dataclass(frozen=True)
class Job:
    """What to train on, and what to do on the way."""

    inputs: Sequence[str]
    final: str | None = None
    initial: str | None = None
    resume: bool = False
    test_only: bool = False
    predictions: str | None = None
    passes: int = 1
    skip_bad: int = 0
    keep_names: bool = False
    checkpoint: int = 0
    checkpoint_seconds: float = 0.0
    quiet: bool = False
    json: bool = False
    every: int = 0


def open_model(path: str) -> StreamModel:
    """Load a model of the command line; anything else is refused by name."""
    model = load(path)
    if not isinstance(model, StreamModel):
        msg = f"{path}: it holds a {type(model).__name__}; the command line needs a model of 'gaussfold train'"
        raise StoreError(msg)
    return model


def start_model(job: Job, setting: Setting, reading: Reading, chosen: dict[str, Any]) -> StreamModel:
    """Return the model to go on with, or a new one; ``chosen`` are the options the user gave."""
    initial = job.initial
    if job.resume and initial is None and job.final is not None and Path(job.final).exists():
        initial = job.final
    if initial is None:
        return StreamModel(setting, reading, names={} if job.keep_names else None)
    model = open_model(initial)
    known = {**vars(model.setting), "bits": model.reading.bits, "interact": model.reading.interact}
    for name, value in chosen.items():
        if name in known and value != known[name]:
            msg = f"--{name.replace('_', '-')} {value} differs from the model's {known[name]} ({initial}); leave it out"
            raise Failure(
                msg,
                USAGE,
            )
    model.reading = dataclasses.replace(
        model.reading, format=reading.format, separator=reading.separator or model.reading.separator,
        positive=reading.positive if reading.positive is not None else model.reading.positive,
    )  # fmt: skip
    if job.keep_names and model.names is None:
        model.names = {}
    return model


def train(job: Job, setting: Setting, reading: Reading, roles: Roles, chosen: dict[str, Any]) -> int:
    """Run the job; returns the exit code."""
    check_target(job.final)
    if job.passes < 1:
        msg = f"--passes {job.passes}: 1 or more is needed"
        raise Failure(msg, USAGE)
    if job.passes > 1 and "-" in job.inputs:
        msg = "--passes: standard input can be read only once; give a file"
        raise Failure(msg, USAGE)
    if job.test_only and job.initial is None:
        msg = "-t needs a model to test; give one with -i"
        raise Failure(msg, USAGE)
    began = time.perf_counter()
    model = start_model(job, setting, reading, chosen)
    run = _Run(job, model, roles)
    code = run.all_passes()
    if job.final is not None and not job.test_only:
        save_last(model, job.final)
    seconds = time.perf_counter() - began
    summary = run.summary(seconds)
    if not job.quiet:
        _tell(summary, job)
    if job.json:
        print(json.dumps(summary, allow_nan=False), flush=True)
    return code


class _Run:
    """The passes over the input, and what is counted on the way."""

    def __init__(self, job: Job, model: StreamModel, roles: Roles) -> None:
        self._job, self._model, self._roles = job, model, roles
        self._skip = model.run if job.resume else {}
        self._first, self._n_bad = model.examples, 0
        self._before = model.totals.copy()
        self._writer = Writer(job.predictions) if job.predictions is not None else None
        self._progress = Progress(model, quiet=job.quiet, every=job.every)
        self._checkpoints = Checkpoints(
            None if job.test_only else job.final, job.checkpoint, job.checkpoint_seconds, model
        )

    def all_passes(self) -> int:
        """Return 0, or the code of the signal or error that ended the run early (what was learned is kept)."""
        code = OK
        done = self._skip.get("passes", 0)
        if self._skip.get("finished"):
            done = self._job.passes
        try:
            for k in range(done, self._job.passes):
                skip = self._skip.get("rows", 0) if k == done else 0
                code = self._pass(k, skip)
                if code != OK:
                    break
            else:
                self._model.run = {"passes": self._job.passes, "rows": 0, "finished": 1}
        except BrokenPipeError:
            close_output()
            code = BROKEN_PIPE
        finally:
            self._progress.close()
            if self._writer is not None and code != BROKEN_PIPE:
                self._writer.close()
        return code

    def _pass(self, k: int, skip: int) -> int:
        model, job = self._model, self._job
        stream = Stream(
            job.inputs, model.reading, self._roles, max_bad=job.skip_bad, keep_names=model.names is not None,
            tags=self._writer is not None,
        )  # fmt: skip
        rows = 0
        chunks = iter(stream)
        with signals(stream.stop) as caught:
            try:
                for chunk in chunks:
                    model.reading = stream.reading
                    self._report_bad(chunk)
                    rows += len(chunk)
                    if rows > skip:
                        self._chunk(chunk if rows - len(chunk) >= skip else chunk.rows(len(chunk) - (rows - skip)))
                        model.run = {"passes": k, "rows": rows, "finished": 0}
                        self._checkpoints.maybe(model)
                    if caught:
                        break
            except DataError as error:
                return fail(f"{error}{self._kept()}", BAD_DATA)
            finally:
                chunks.close()  # type: ignore[attr-defined]
        if caught:
            fail(f"stopped after {model.examples - self._first} examples{self._kept()}", 0)
            return {2: INTERRUPTED, 15: TERMINATED}.get(caught[0], INTERRUPTED)
        return OK

    def _kept(self) -> str:
        return (
            f"; what was learned so far is in {self._job.final}" if self._job.final and not self._job.test_only else ""
        )

    def _chunk(self, chunk: Chunk) -> None:
        model = self._model
        if not len(chunk):
            return
        trace = model.score(chunk) if self._job.test_only else model.learn(chunk)
        self._progress.update(chunk, trace)
        if self._writer is not None:
            prediction = model.predict(chunk) if self._job.test_only else model.before(trace, chunk.label)
            columns: dict[str, Any] = prediction._asdict()
            if chunk.tags is not None and any(chunk.tags):
                columns["tag"] = chunk.tags
            self._writer.write(columns)

    def _report_bad(self, chunk: Chunk) -> None:
        if not chunk.n_bad:
            return
        for record in chunk.bad[: max(0, _SHOWN_BAD - self._n_bad)]:
            if self._job.skip_bad:
                fail(f"skipped {record}", 0)
        self._n_bad += chunk.n_bad

    def summary(self, seconds: float) -> dict[str, Any]:
        """Return the run in numbers."""
        model, job = self._model, self._job
        totals = model.totals - self._before
        loss = totals[0] / totals[2] if totals[2] else math.nan
        examples = model.examples - self._first
        positive = totals[4] / totals[2] if totals[2] else math.nan
        entropy = -sum(p * math.log(p) for p in (positive, 1.0 - positive) if p > 0) if totals[2] else math.nan
        used = int(model.used().sum()) if not job.test_only else 0
        summary: dict[str, Any] = {
            "examples": examples,
            "learned": 0 if job.test_only else int(totals[3]),
            "average_loss": _finite(loss),
            "constant_loss": _finite(entropy),
            "seconds": round(seconds, 6),
            "bad": min(self._n_bad, job.skip_bad),
            "passes": job.passes,
            "bits": model.reading.bits,
            "model": job.final,
        }
        if not job.test_only:
            summary |= {
                "slots_used": used,
                "collision_rate": round(collision_rate(used, model.reading.bits), 6),
            }
        summary["prior_std"] = model.setting.prior_std
        if model.setting.prior_std == AUTO:
            best = int(model.belief.weights.argmax())
            summary |= {
                "prior_std": PRIOR_GRID[best],
                "prior_probability": round(float(model.belief.weights[best]), 6),
            }
        return summary


def _finite(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None


def _tell(summary: dict[str, Any], job: Job) -> None:
    def number(value: float | None) -> str:
        return "none" if value is None else f"{value:.6f}"

    rate = summary["examples"] / max(summary["seconds"], 1e-9)
    lines = [
        f"examples        {summary['examples']:,} ({summary['learned']:,} learned"
        + (f", {summary['bad']} bad ones skipped)" if summary["bad"] else ")"),
        f"average loss    {number(summary['average_loss'])}   (best constant: {number(summary['constant_loss'])})",
        f"seconds         {summary['seconds']:.2f}   ({rate:,.0f} examples/s)",
    ]
    if "slots_used" in summary:
        lines.append(
            f"slots           {summary['slots_used']:,} of 2^{summary['bits']} in use; "
            f"about {summary['collision_rate']:.2%} of the features share theirs"
        )
    if "prior_probability" in summary:
        lines.append(f"prior std       {summary['prior_std']:g} (probability {summary['prior_probability']:.3f})")
    if job.final and not job.test_only:
        lines.append(f"model           {job.final}")
    if summary["examples"] and not summary["learned"] and not job.test_only:
        lines.append("no example had a label, so nothing was learned ('1 |f ...' has one, '1|f ...' a tag)")
    print("\n".join(["", *lines]), file=sys.stderr, flush=True)
