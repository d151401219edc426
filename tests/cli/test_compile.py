"""``gaussfold compile``: afterwards a first fit of that kind compiles nothing."""

import os
import subprocess
import sys

import pytest

from tests.cli.helpers import ENVIRONMENT

COUNTED = """
import sys, numpy as np, gaussfold as gf
from gaussfold.engine.compilation import waiting
rng = np.random.default_rng(5)
X = rng.standard_normal((40, 11)); y = (rng.random(40) < 0.4).astype(float)
%s
print(waiting.count())
"""
GP = "gf.GPClassifier().fit(X[:, :2], y).predict_proba(X[:, :2]); gf.GPRegressor().fit(X[:, :2], X[:, 0])"
FITS = (
    "gf.StreamingClassifier(prior_std=0.7).fit(X, y).predict_proba(X); gf.StreamingRegressor().fit(X, X[:, 0])",
    "gf.StreamingClassifier(covariance='diagonal').partial_fit(X, y, classes=[0, 1]).predict_proba(X)",
    "gf.StreamingPoissonRegressor(covariance='lowrank', rank=3).fit(X, y).predict(X)",
)


def _python(*args, **more):
    done = subprocess.run(
        [sys.executable, *args], env={**ENVIRONMENT, **more}, capture_output=True, text=True, timeout=550
    )
    assert "Traceback" not in done.stderr, done.stderr
    return done


def test_an_empty_cache_is_filled_by_several_processes(tmp_path):
    cache = {"NUMBA_CACHE_DIR": str(tmp_path)}
    done = _python("-m", "gaussfold", "compile", "--for", "gp", "--processes", "2", **cache)
    assert done.returncode == 0, done.stderr
    loops, words = done.stdout.split(" ", 1)
    assert int(loops) >= 20
    assert words.startswith("loops compiled in ")
    assert words.endswith(f"by 2 processes (gp); kept in {tmp_path}\n")
    counts = [int(line.split()[1]) for line in done.stderr.splitlines()]
    assert counts == sorted(counts)
    assert len(counts) == 2
    assert _python("-c", COUNTED % GP, **cache).stdout == "0\n"
    assert _python("-c", COUNTED % FITS[0].split(";")[0], **cache).stdout != "0\n"  # not asked for
    again = _python("-m", "gaussfold", "compile", "--for", "gp", "--quiet", **cache)
    assert (again.returncode, again.stdout, again.stderr) == (0, "", "")


def test_every_kind_has_its_fits(tmp_path):
    """Into the cache that the tests use, where much of it is already; then nothing is compiled any more."""
    done = _python("-m", "gaussfold", "compile", "--for=full,diagonal", "--for=lowrank")
    assert done.returncode == 0, done.stderr
    assert "(full, diagonal, lowrank); kept in" in done.stdout
    assert _python("-c", COUNTED % "\n".join(FITS)).stdout == "0\n"
    (tmp_path / "rows.vw").write_bytes(b"1 |u a:0.5 b\n-1 |u c |v d\n" * 30)
    (tmp_path / "rows.csv").write_bytes(b"label,u,v\n" + b"1,red,2\n0,green,1.5\n" * 30)
    for name, more in (("rows.vw", []), ("rows.csv", ["--prior-std", "0.3", "-p", str(tmp_path / "p.csv")])):
        done = _python("-m", "gaussfold", "train", str(tmp_path / name), "--json", "--quiet", *more)
        assert done.returncode == 0, done.stderr
        assert '"compile_seconds": 0.0' in done.stdout


def test_an_unknown_kind_is_refused_with_the_known_ones(cli):
    code, out, err = cli("compile", "--for", "full,dense")
    assert (code, out) == (2, "")
    assert err == "gaussfold: --for 'dense': choose among full, diagonal, lowrank, gp, with commas between them\n"


def test_no_place_to_write_is_said_before_the_work(cli, monkeypatch):
    monkeypatch.setattr("gaussfold.cli.commands.compile.kept_in", lambda: None)
    code, out, err = cli("compile")
    assert (code, out) == (5, "")
    assert "NUMBA_CACHE_DIR" in err


def test_a_fit_that_fails_ends_with_what_it_said(cli, monkeypatch):
    monkeypatch.setattr("gaussfold.cli.commands.compile.JOBS", {"gp nothing": None})
    code, _, err = cli("compile")
    assert code == 1
    assert "compiling 'gp nothing' ended with 1" in err
    assert "KeyError" in err


def test_the_wait_on_a_terminal_is_written_over(tmp_path):
    """A pseudo-terminal as standard error: one line, rewritten with a count that goes up."""
    pty = pytest.importorskip("pty")
    ours, theirs = pty.openpty()
    environment = {k: v for k, v in ENVIRONMENT.items() if k != "GAUSSFOLD_QUIET"} | {"NUMBA_CACHE_DIR": str(tmp_path)}
    code = COUNTED % GP
    with subprocess.Popen(
        [sys.executable, "-c", code], env=environment, stderr=theirs, stdout=subprocess.PIPE
    ) as child:
        os.close(theirs)
        text = b""
        while True:
            try:
                more = os.read(ours, 4096)
            except OSError:  # Linux' way to say that the other end is closed
                break
            if not more:
                break
            text += more
        child.communicate(timeout=550)
    os.close(ours)
    text = text.decode()
    assert text.startswith(f"\r\x1b[2Kgaussfold: compiling its inner loops (once, kept in {tmp_path};")
    counts = [int(part.split(" of about ")[0].split()[-1]) for part in text.split("\r") if " of about " in part]
    assert counts == sorted(set(counts))
    assert len(counts) >= 2  # short waits after the first have no line
