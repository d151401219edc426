"""Runs of the command line: in this process, or in one of its own."""

import io
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np

import gaussfold
from gaussfold.cli.app import app

SRC = str(Path(gaussfold.__file__).parents[1])
ENVIRONMENT = {**os.environ, "PYTHONPATH": SRC, "GAUSSFOLD_QUIET": "1", "OMP_NUM_THREADS": "1"}
COMMAND = [sys.executable, "-m", "gaussfold.cli"]


class Input:
    def __init__(self, raw):
        self.buffer = io.BufferedReader(io.BytesIO(raw))


def run(capsys, monkeypatch, *args, stdin=b""):
    """Exit code, standard output and standard error of a command run here."""
    monkeypatch.setattr(sys, "stdin", Input(stdin))
    capsys.readouterr()
    try:
        app([str(arg) for arg in args])
        code = 0
    except SystemExit as end:
        code = end.code or 0
    out, err = capsys.readouterr()
    assert "Traceback" not in err
    return code, out, err


def process(*args, stdin=None, **options):
    """The same in a process of its own."""
    done = subprocess.run(
        [*COMMAND, *map(str, args)], input=stdin, capture_output=True, env=ENVIRONMENT, timeout=120, **options
    )
    assert b"Traceback" not in done.stderr
    return done.returncode, done.stdout, done.stderr.decode()


def clicks(n, seed=0, start=0):
    """Vowpal Wabbit lines of which the label depends on the features."""
    rng = np.random.default_rng(seed)
    weights = rng.normal(size=(3, 30))
    lines = []
    for _ in range(start + n):
        a, b, c = rng.integers(0, 30, 3)
        p = 1.0 / (1.0 + np.exp(-weights[0, a] - weights[1, b] - weights[2, c]))
        lines.append(f"{1 if rng.random() < p else -1} |u u{a} |s s{b}:0.5 |t t{c}\n")
    return "".join(lines[start:]).encode()


def last_json(out):
    return json.loads((out if isinstance(out, str) else out.decode()).strip().splitlines()[-1])


def same_model(a, b):
    """Whether two model files hold the same model, bit for bit."""
    one, two = gaussfold.load(a), gaussfold.load(b)
    assert one.store_header() == two.store_header()
    left, right = one.state(), two.state()
    assert left.keys() == right.keys()
    for name in left:
        assert left[name].dtype == right[name].dtype
        assert left[name].tobytes() == right[name].tobytes(), name
