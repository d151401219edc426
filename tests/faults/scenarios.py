"""What is done while the machine fails, and what must hold afterwards."""

from __future__ import annotations

import contextlib
import functools
import gc
import io
import shutil
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import gaussfold as gf
from gaussfold.store import StoreError

OLD, NEW = "old.model", "again.model"
DATA = "".join(f"{k % 3 == 0:d} |u u{k % 7} x:{k % 5 / 4} |s s{k * k % 11}\n" for k in range(400))
MORE = "".join(f"{k % 4 == 1:d} |u u{k % 6} x:{k % 3 / 2} |s s{k * k % 13}\n" for k in range(150))


class Outcome(NamedTuple):
    """How a run ended: an exit code and what was said, or an exception, or a result."""

    code: int = 0
    said: str = ""
    error: BaseException | None = None
    result: Any = None


class Scenario(NamedTuple):
    """``run`` in a fresh copy of the folder that ``prepare`` made; ``violations`` compares with an undisturbed run.

    ``run`` is given the folder and what ``ready`` returned, which happens before anything fails.
    """

    name: str
    prepare: Callable[[Path], None]
    run: Callable[[Path, Any], Outcome]
    violations: Callable[[Path, Path, Outcome], list[str]]
    """Of this folder, that of the undisturbed run, and how this run ended."""
    ready: Callable[[], Any] = lambda: None


def command(*arguments: object) -> Outcome:
    """``gaussfold`` in this process."""
    from gaussfold.cli import main

    before, threshold, out, err = sys.argv, gc.get_threshold(), io.StringIO(), io.StringIO()
    code: Any = 0
    sys.argv = ["gaussfold", *map(str, arguments)]
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            main()
    except SystemExit as end:
        code = end.code or 0
    except Exception as error:  # a traceback for the user: reported as a violation
        return Outcome(-1, err.getvalue(), error)
    finally:
        sys.argv = before
        gc.set_threshold(*threshold)
    return Outcome(int(code), err.getvalue() + out.getvalue())


def attempted(work: Callable[[], Any]) -> Outcome:
    """A call, with its exception if it has one."""
    try:
        return Outcome(result=work())
    except Exception as error:  # looked at by the scenario
        return Outcome(error=error)


@contextlib.contextmanager
def rescue_folder(folder: Path) -> Any:
    """Where a model goes that cannot be written to its place."""
    before, tempfile.tempdir = tempfile.tempdir, str(folder)
    try:
        yield
    finally:
        tempfile.tempdir = before


def leftovers(folder: Path) -> list[str]:
    """Temporary files of saves."""
    return [f"left behind: {path.name}" for path in folder.rglob(".gaussfold-*")]


# The command line.

OPTIONS = ("-b", 6, "--quiet")


def first_files(folder: Path) -> None:
    """Two files of data and a model of the first."""
    (folder / "data.vw").write_text(DATA)
    (folder / "more.vw").write_text(MORE)
    command("train", folder / "more.vw", "-f", folder / OLD, *OPTIONS)


def train(folder: Path, _ready: object, *more: object) -> Outcome:
    with rescue_folder(folder):
        return command("train", folder / "data.vw", "-i", folder / OLD, "-f", folder / OLD, "--quiet", *more)


def wrong_code(outcome: Outcome) -> list[str]:
    """What is not as documented about how a command ended."""
    out_of_memory = outcome.code == 1 and "not enough memory" in outcome.said
    if outcome.code in (0, 3, 4, 5) or out_of_memory:
        return []
    return [f"exit code {outcome.code}: {outcome.said[-200:]} {outcome.error!r}"]


def train_violations(folder: Path, undisturbed: Path, outcome: Outcome) -> list[str]:
    """The old model, the new one, or one on the way that ``--resume`` brings to the new one."""
    found = wrong_code(outcome) + leftovers(folder)
    content, final = (folder / OLD).read_bytes(), (undisturbed / OLD).read_bytes()
    if outcome.code == 0 and content != final:
        found.append("exit code 0, and the model is not the one of an undisturbed run")
    for path in [folder / OLD, *folder.glob("gaussfold-rescued-*")]:
        if path.read_bytes() not in (original(undisturbed), final):
            found += not_resumed(folder, path, final)
    if "it is in" in outcome.said and not list(folder.glob("gaussfold-rescued-*")):
        found.append("no rescued model where the message says there is one")
    return found


def original(undisturbed: Path) -> bytes:
    """The old model: the folder of an undisturbed run keeps a copy."""
    return (undisturbed / f"{OLD}.before").read_bytes()


def not_resumed(folder: Path, path: Path, final: bytes) -> list[str]:
    again = folder / NEW
    outcome = command("train", folder / "data.vw", "-i", path, "-f", again, "--resume", "--quiet")
    if outcome.code == 0 and again.read_bytes() == final:
        return []
    return [f"{path.name} does not resume to the undisturbed model: {outcome.said[-200:]}"]


def predict(folder: Path, _ready: object) -> Outcome:
    return command("predict", "-i", folder / OLD, folder / "data.vw", "-p", folder / "told.csv")


def predict_violations(folder: Path, undisturbed: Path, outcome: Outcome) -> list[str]:
    found = wrong_code(outcome)
    if (folder / OLD).read_bytes() != original(undisturbed):
        found.append("the model file has changed")
    if outcome.code == 0 and (folder / "told.csv").read_bytes() != (undisturbed / "told.csv").read_bytes():
        found.append("exit code 0, and other predictions than undisturbed")
    return found


# In Python.

X = np.random.default_rng(3).normal(size=(60, 5))
LABELS = (X[:, 0] > 0.2).astype(float)


def learned(**options: Any) -> gf.StreamingClassifier:
    return gf.StreamingClassifier(prior_std=0.7, random_state=1, **options).partial_fit(X[:40], LABELS[:40])


def numbers(model: Any) -> dict[str, bytes]:
    """Everything in memory, bit for bit."""
    return {name: np.asarray(array).tobytes() for name, array in model.state().items()}


def save_one(folder: Path) -> None:
    gf.save(learned(), folder / OLD)


def next_model() -> gf.StreamingClassifier:
    return learned().partial_fit(X[40:], LABELS[40:])


def save_next(folder: Path, model: Any) -> Outcome:
    return attempted(lambda: gf.save(model, folder / OLD))._replace(result=model)


def save_violations(folder: Path, undisturbed: Path, outcome: Outcome) -> list[str]:
    found = leftovers(folder)
    new = (undisturbed / OLD).read_bytes()
    if (folder / OLD).read_bytes() not in ((new,) if outcome.error is None else (original(undisturbed), new)):
        found.append("the file is neither the old one nor the new one")
    if not isinstance(outcome.error, OSError | MemoryError | None):
        found.append(f"{outcome.error!r} is no OSError")
    if outcome.result is not True and numbers(outcome.result) != numbers(next_model()):  # a killed process has none
        found.append("saving has changed the model")
    return found


def load_one(folder: Path, _ready: object) -> Outcome:
    return attempted(lambda: gf.load(folder / OLD))


def load_violations(folder: Path, undisturbed: Path, outcome: Outcome) -> list[str]:
    found = [] if (folder / OLD).read_bytes() == original(undisturbed) else ["the file has changed"]
    if not isinstance(outcome.error, OSError | StoreError | None):
        found.append(f"{outcome.error!r} is neither OSError nor StoreError")
    if outcome.error is None and numbers(outcome.result) != numbers(gf.load(undisturbed / OLD)):
        found.append("loaded otherwise than undisturbed")
    return found


def learning(**options: Any) -> Scenario:
    """``partial_fit`` of a model that has learned before: all of it or nothing."""
    before, after = learned(**options), learned(**options).partial_fit(X[40:], LABELS[40:])

    def run(_folder: Path, model: Any) -> Outcome:
        return attempted(lambda: model.partial_fit(X[40:], LABELS[40:]))._replace(result=model)

    def violations(_folder: Path, _undisturbed: Path, outcome: Outcome) -> list[str]:
        allowed = [numbers(after)] if outcome.error is None else [numbers(before), numbers(after)]
        found = [] if numbers(outcome.result) in allowed else ["the model is neither the old one nor the new one"]
        return found if isinstance(outcome.error, MemoryError | None) else [*found, f"{outcome.error!r}"]

    return Scenario(f"partial_fit {options}", lambda folder: None, run, violations, lambda: learned(**options))


@functools.cache
def scenarios() -> list[Scenario]:
    """All of them."""
    return [
        Scenario("train", first_files, train, train_violations),
        Scenario("train -p", first_files, lambda f, _: train(f, _, "-p", f / "told.csv"), train_violations),
        Scenario("train --checkpoint", first_files, lambda f, _: train(f, _, "--checkpoint", 90), train_violations),
        Scenario("predict", first_files, predict, predict_violations),
        Scenario("save", save_one, save_next, save_violations, next_model),
        Scenario("load", save_one, load_one, load_violations),
        learning(),
        learning(covariance="diagonal"),
        learning(covariance="lowrank", rank=2, block_size=7),
        learning(second_look=20),
    ]


def fresh(prepared: Path, folder: Path) -> Path:
    """A copy of the prepared folder."""
    if folder.exists():
        shutil.rmtree(folder)
    shutil.copytree(prepared, folder)
    return folder
