"""``gaussfold train --workers N``, ``--scheduler ADDRESS``: the same model from many processes or machines."""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from gaussfold.cli.errors import BAD_DATA, INTERNAL, INTERRUPTED, OK, TERMINATED, USAGE, Failure, fail
from gaussfold.cli.model import StreamModel
from gaussfold.cli.options import Run
from gaussfold.cli.saving import rounds_file, signals
from gaussfold.data.messages import DataError
from gaussfold.data.units import Units, units_of
from gaussfold.distributed import Engine, Outcome, Scheme, ShardError, StoppedError, learn_rounds, rounds_of
from gaussfold.store import save

if TYPE_CHECKING:
    from gaussfold.cli.commands.train import Job

SCHEME = Scheme()
SHOWN = 5
"""Bad records that are told one by one."""


def check(job: Job) -> None:
    """Refuse options that have no meaning where rows are not learned one after the other."""
    run = job.run
    for wrong, msg in (
        (run.workers is not None and run.scheduler is not None, "--workers, --scheduler: give one of the two"),
        ("-" in job.inputs.paths, "--workers: standard input cannot be shared; give files"),
        (run.passes > 1, "--workers: one pass is learned; leave out --passes"),
        (run.test_only, "--workers: -t learns nothing; leave one of them out"),
        (run.predictions is not None, "--workers: predictions before each row need one process; leave out -p"),
        (run.checkpoint or run.checkpoint_seconds, "--workers: every round is saved; leave out --checkpoint"),
    ):
        if wrong:
            raise Failure(msg, USAGE)


class ManyWorkers:
    """Rounds over units of the input, saved after each."""

    def __init__(self, job: Job, model: StreamModel) -> None:
        self._job, self._run, self._model = job, job.run, model
        self.n_bad, self.bytes_moved, self.worker_seconds = 0, 0, 0.0
        _check_model(model)
        self._planned: Units = units_of(job.inputs.paths, model.reading, job.inputs.roles, SCHEME.head // 2)
        self._place = self._begin()
        self._file = _file_of(job.run)
        self._began = time.monotonic()
        self._first = model.examples

    def _begin(self) -> dict[str, int]:
        """Where the run stands: at its beginning, or where the model's was."""
        old = self._model.run if self._run.resume else {}
        if old.get("finished"):
            return old
        if not old:
            return {"plan": self._planned.digest, "before": self._model.learned}
        if "plan" not in old:
            msg = "--resume: the model was made without --workers; resume it without"
            raise Failure(msg, USAGE)
        if old["plan"] != self._planned.digest:
            msg = (
                "--resume: the input or how it is read is not what it was; give the same files with the same options, "
                "or go on with other data without --resume"
            )
            raise Failure(msg, USAGE)
        return dict(old)

    def learn(self) -> int:
        """All rounds that are left. Returns the exit code; what was learned before trouble is saved."""
        if self._place.get("finished"):
            return OK
        model = self._model
        model.reading = self._planned.reading
        rounds = rounds_of(self._planned.units, SCHEME, self._place["before"])
        with signals(lambda: None) as caught, _engine(self._run) as engine:
            try:
                for outcome in learn_rounds(
                    model, rounds, engine, SCHEME, place=self._place, skip_bad=self._job.inputs.skip_bad,
                    stop=lambda: bool(caught),
                ):  # fmt: skip
                    self._after(outcome)
            except DataError as error:
                return fail(f"{error}{self._kept()}", BAD_DATA)
            except ShardError as error:
                msg = f"{error}{self._kept()}"
                raise Failure(msg, INTERNAL) from error
            except StoppedError:
                fail(f"stopped after {model.examples - self._first} examples{self._kept()}", 0)
                return {2: INTERRUPTED, 15: TERMINATED}.get(caught[0], INTERRUPTED)
        model.run = {"passes": 1, "rows": 0, "finished": 1}
        return OK

    def _after(self, outcome: Outcome) -> None:
        """Save, and tell."""
        model = self._model
        for text in outcome.bad[: max(0, SHOWN - self.n_bad)]:
            fail(f"skipped {text}", 0)
        self.n_bad += outcome.n_bad
        self.bytes_moved += outcome.bytes_moved
        self.worker_seconds += outcome.worker_seconds
        model.run = dict(self._place)
        if self._file is not None:
            save(model, self._file)
        if not self._run.quiet:
            rate = (model.examples - self._first) / max(time.monotonic() - self._began, 1e-3)
            text = (
                f"round {outcome.round + 1}/{outcome.rounds}  shards {outcome.shards:3d}  "
                f"examples {model.examples:12,d}"
                f"  {rate:10,.0f}/s  average loss {model.average_loss:.6f}  moved {outcome.bytes_moved / 2**20:.1f} MB"
            )
            with contextlib.suppress(OSError):
                print(text, file=sys.stderr, flush=True)

    def _kept(self) -> str:
        if self._file is None or not self._place.get("rounds"):
            return ""
        return f"; {self._file} holds the {self._place['rounds']} rounds before (--resume goes on)"

    @property
    def keeps(self) -> bool:
        """Whether there is a model to save: after an error the last round's is in place already."""
        return self._run.final is not None and bool(self._model.run.get("finished"))


def _file_of(run: Run) -> str | None:
    """Where rounds are saved: beside a model that is there already, which is good until the new one is whole."""
    if run.final is None:
        return None
    beside = rounds_file(run.final)
    other = Path(run.final).exists() and not run.resume
    return beside if other or Path(beside).exists() else str(run.final)


def _check_model(model: StreamModel) -> None:
    setting = model.setting
    for wrong, msg in (
        (
            setting.forgetting < 1.0,
            f"--forgetting {setting.forgetting}: what is forgotten depends on the order of rows, which workers do not "
            "keep; leave out --workers",
        ),
        (
            bool(setting.prior_stds),
            "--prior-std by namespace: a slot's prior is that of the first feature in it, so rows must come in order; "
            "leave out --workers",
        ),
        (
            bool(setting.second_look),
            f"--second-look {setting.second_look}: rows are looked at again in order, which workers do not keep; leave "
            "out --workers",
        ),
        (
            setting.learns_noise,
            "--noise-std learn: noise is learned in the order of rows, which workers do not keep; give a number",
        ),
    ):
        if wrong:
            raise Failure(msg, USAGE)


@contextlib.contextmanager
def _engine(run: Run) -> Iterator[Engine]:
    if run.scheduler is None:
        from gaussfold.distributed.processes import Processes

        with Processes(run.workers or 1, own=True) as engine:
            yield engine
        return
    from gaussfold.distributed.on_dask import OnDask, connect

    client = connect(run.scheduler)
    try:
        yield OnDask(client)
    finally:
        client.close()
