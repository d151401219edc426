"""``python -m tests.faults.kills --kills 1000``: trainings ended by INT, TERM and KILL at random moments.

Each setting is trained once undisturbed, by a process of its own. Then trainings are killed, each after a random time
of its run; the model file they leave (if there is one) must load, and ``--resume`` must make it into the undisturbed
one, byte for byte. A training that was over when its signal came does not count. Trainings are copies of this process
(``forking``): what Python does before the command is not what is tried here. Prints the number of kills, what was
violated, and how many files held a model that was not finished.
"""

from __future__ import annotations

import argparse
import gzip
import importlib.util
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import gaussfold as gf
from tests.faults.forking import Training, warm_up
from tests.faults.scenarios import leftovers

ROWS = 100_000
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGKILL)


class Setting(NamedTuple):
    """A file of data and the options it is trained with."""

    data: str
    options: tuple[object, ...]


SETTINGS = (
    Setting("plain.vw", ("--checkpoint", 9000)),
    Setting("plain.vw", ("--prior-std", 0.7, "--checkpoint", 5000, "--keep-names")),
    Setting("plain.vw", ("--checkpoint-seconds", 0.05, "-q", "us")),
    Setting("plain.vw", ("--passes", 3, "--checkpoint", 20_011, "--prior-std", 1.3)),
    Setting("plain.vw", ("--forgetting", 0.9999, "--prior-std", 0.5, "--checkpoint", 7000)),
    Setting("plain.vw", ("--prior-std", "0.7,u=0.3", "--checkpoint", 4001)),
    Setting("plain.vw", ("--likelihood", "probit", "--float32", "--checkpoint", 11_000)),
    Setting("packed.vw.gz", ("--checkpoint", 6000)),
    Setting("packed.vw.zst", ("--prior-std", 0.7, "--checkpoint", 6000, "-q", "us")),
    Setting("counts.vw", ("--likelihood", "poisson", "--prior-std", 0.4, "--checkpoint", 5003)),
    Setting("counts.vw", ("--likelihood", "gaussian", "--noise-std", 0.8, "--coupling", "joint", "--checkpoint", 8000)),
    Setting("table.csv", ("--checkpoint", 3000, "--keep-names")),
    Setting("rows.svm", ("--checkpoint", 7777)),
    Setting("packed.csv.gz", ("--prior-std", 0.7, "--passes", 2)),
)


def write_data(folder: Path) -> None:
    """Every file that the settings name."""
    clicks = "".join(f"{k * 7 % 5 < 2:d} |u u{k % 701} x:{k % 11 / 8} |s s{k * k % 1013}\n" for k in range(ROWS))
    counts = "".join(f"{k * 7 % 5} |u u{k % 701} x:{k % 11 / 8}\n" for k in range(ROWS))
    table = "label,user,age\n" + "".join(f"{k * 7 % 5 < 2:d},u{k % 701},{k % 11 / 8}\n" for k in range(ROWS))
    svm = "".join(f"{k * 7 % 5 < 2:d} {k % 71 + 1}:1 {k % 97 + 80}:{k % 11 / 8}\n" for k in range(ROWS))
    for name, text in (("plain.vw", clicks), ("counts.vw", counts), ("table.csv", table), ("rows.svm", svm)):
        (folder / name).write_text(text)
    (folder / "packed.vw.gz").write_bytes(gzip.compress(clicks.encode()))
    (folder / "packed.csv.gz").write_bytes(gzip.compress(table.encode()))
    if importlib.util.find_spec("zstandard"):
        import zstandard

        (folder / "packed.vw.zst").write_bytes(zstandard.compress(clicks.encode()))


class Trainings:
    """One setting: the undisturbed run, and runs that are killed."""

    def __init__(self, setting: Setting, folder: Path) -> None:
        self._setting, self._folder = setting, folder
        self.on_the_way = 0
        """Kills after which the file held a model that was not finished."""
        final = folder / "undisturbed.model"
        subprocess.run([sys.executable, "-m", "gaussfold", *self._arguments(final)], check=True)
        self._final = final.read_bytes()
        final.unlink()
        warm_up(self._arguments(final))
        self._seconds = self._run(final)

    def _arguments(self, model: Path, *more: object) -> list[str]:
        given = (self._folder / self._setting.data, "-f", model, "-b", 12, "--quiet", *self._setting.options, *more)
        return ["train", *map(str, given)]

    def _run(self, model: Path, *more: object) -> float:
        """Train to the end; how long it took."""
        began = time.monotonic()
        with Training(self._arguments(model, *more)) as training:
            training.wait()
            if training.code:
                msg = f"exit code {training.code}: {training.said()[-300:]!r}"
                raise RuntimeError(msg)
        return time.monotonic() - began

    def kill(self, rng: random.Random) -> list[str]:
        """One kill of a training that is running; returns what was violated."""
        number = SIGNALS[rng.randrange(3)]
        while True:
            with tempfile.TemporaryDirectory(dir=self._folder) as name:
                model = Path(name) / "model"
                if not self._killed(model, number, rng):
                    continue  # it had ended before: no kill
                self.on_the_way += model.exists() and model.read_bytes() != self._final
                found = self._wrong(model)
                found += leftovers(Path(name)) if not found else []
            return [f"{self._setting}, {number.name}: {what}" for what in found]

    def _killed(self, model: Path, number: signal.Signals, rng: random.Random) -> bool:
        """Start a training and send a signal after a random time; False if it was over by then."""
        began = time.monotonic()
        with Training(self._arguments(model)) as training:
            if training.wait(rng.uniform(0.0, self._seconds)):
                self._seconds = time.monotonic() - began  # how fast the machine is now
            training.send(number)
            training.wait()
            if training.code not in (0, -number, {signal.SIGINT: 130, signal.SIGTERM: 143}.get(number)):
                msg = f"{self._setting}, {number.name}: exit code {training.code}"
                raise RuntimeError(msg)
            if "Traceback" in training.said():
                msg = f"{self._setting}, {number.name}: {training.said()}"
                raise RuntimeError(msg)
        return training.code != 0

    def _wrong(self, model: Path) -> list[str]:
        try:
            if model.exists():
                gf.load(model)
            self._run(model, "--resume")
        except (ValueError, OSError, RuntimeError) as error:
            return [repr(error)]
        return [] if model.read_bytes() == self._final else ["resumed, it is not the undisturbed model"]


def main(say: Callable[..., None] = print) -> int:
    """Kill trainings, the settings in turn; 1 if anything was violated."""
    parser = argparse.ArgumentParser(prog="python -m tests.faults.kills", description=__doc__)
    parser.add_argument("--kills", type=int, default=60)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    os.environ["GAUSSFOLD_QUIET"] = "1"
    rng = random.Random(args.seed)
    violations: list[str] = []
    with tempfile.TemporaryDirectory(prefix="kills-") as name:
        folder = Path(name)
        write_data(folder)
        made = [Trainings(setting, folder) for setting in SETTINGS if (folder / setting.data).exists()]
        for k in range(args.kills):
            found = made[k % len(made)].kill(rng)
            violations += found
            for what in found:
                say(f"\n{what}", flush=True)
            say(f"\r{k + 1} kills, {len(violations)} violations", end="", flush=True)
    on_the_way = sum(trainings.on_the_way for trainings in made)
    say(f" over {len(made)} settings; {on_the_way} of the files were on the way")
    return bool(violations)


if __name__ == "__main__":
    sys.exit(main())
