"""What is taken without Typer is what Typer would have taken."""

from __future__ import annotations

import inspect
import subprocess
import sys

import pytest
import typer
from typer.testing import CliRunner

from gaussfold.cli import app
from gaussfold.cli.quick import taken
from tests.cli.helpers import ENVIRONMENT, clicks

PLAIN = [
    "train clicks.vw",
    "train a.vw b.vw -b 20 -f model --quiet --json",
    "train - --format vw --prior-std 0.5,user=0.1 --prior-std ad=2 --forgetting 0.999",
    "train a.csv --no-header --label=y --ignore id --ignore=c,d --likelihood gaussian --noise-std learn",
    "train a.csv --header --skip-bad 3 --checkpoint-seconds 2.5 --passes 2 -t -i model --float32 -P 100 -q ab -q ::",
    "train -d a.vw -d b.vw --workers 2 --noconstant --link probit --keep a --scale none --hash all --separator ;",
    "predict -i model a.vw -p out.csv --thompson --seed 5 --tag id",
]
OTHER = [
    "train --help", "train a.vw --nothing", "train a.vw -b", "train a.vw -b twelve", "train a.vw -b 3 -b 4",
    "train a.vw --skip-bad -1", "train a.vw --workers 0", "train a.vw -b20", "train a.vw -tf m",
    "train a.vw --json=yes",    "predict a.vw", "inspect m", "", "--version", "train a.vw -f --quiet",
    "train -- a.vw", "train a.vw --forgetting .5",
]  # fmt: skip


def _by_typer(words):
    """What Typer calls a command with."""
    found = {}
    name, *rest = words

    def command(**given):
        found.update(given)

    command.__signature__ = inspect.signature(app.QUICK[name])
    command.__annotations__ = app.QUICK[name].__annotations__
    only = typer.Typer()
    only.command()(command)
    result = CliRunner().invoke(only, rest)
    assert result.exit_code == 0, result.output
    return found


@pytest.mark.parametrize("line", PLAIN)
def test_plain_words_mean_what_they_mean_to_typer(line):
    plain = taken(line.split(), app.QUICK)
    assert plain is not None
    command, arguments = plain
    assert command is app.QUICK[line.split()[0]]
    wanted = _by_typer(line.split())
    assert {name: value or None for name, value in arguments.items()} == {
        name: value or None for name, value in wanted.items()
    }
    assert {type(value) for value in arguments.values()} <= {str, int, float, bool, list, type(None)}


@pytest.mark.parametrize("line", OTHER)
def test_anything_else_is_left_to_typer(line):
    assert taken(line.split(), app.QUICK) is None


def test_completion_is_left_to_typer(monkeypatch):
    monkeypatch.setenv("_GAUSSFOLD_COMPLETE", "complete_bash")
    assert taken(["train", "a.vw"], app.QUICK) is None


def test_training_loads_nothing_that_it_does_without(tmp_path):
    """These cost more time than reading ten thousand rows."""
    path = tmp_path / "clicks.vw"
    path.write_bytes(clicks(50))
    code = (
        "import sys; from gaussfold.cli.app import run\n"
        f"sys.argv = ['gaussfold', 'train', {str(path)!r}, '--quiet', '-f', {str(tmp_path / 'm')!r}]\n"
        "try:\n    run()\nexcept SystemExit as end:\n    assert not end.code\n"
        "print(*[name for name in ('scipy.special', 'scipy.sparse', 'sklearn', 'rich', 'pydantic')"
        " if name in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env=ENVIRONMENT, timeout=300, check=True
    )
    assert done.stdout.split() == []
