"""``gaussfold predict --workers``: what is written is what one process writes."""

import os
import signal

import pytest

from gaussfold.cli.commands import predict as command
from gaussfold.data.units import Unit
from gaussfold.distributed import ShardError, predicting
from tests.cli.helpers import clicks, run


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("predicted")


@pytest.fixture
def cli(capsys, monkeypatch):
    monkeypatch.setattr(command, "UNIT_ROWS", 500)
    return lambda *args: run(capsys, monkeypatch, *args)


def test_the_same_is_written(cli, folder):
    (folder / "learn.vw").write_bytes(clicks(1500))
    (folder / "fresh.vw").write_bytes(clicks(3000, seed=5))
    assert cli("train", folder / "learn.vw", "-b", 10, "-f", folder / "m", "--quiet")[0] == 0
    for name, options in {"plain.csv": (), "drawn.jsonl": ("--thompson", "--seed", 3)}.items():
        one, two = folder / f"one.{name}", folder / f"two.{name}"
        assert cli("predict", "-i", folder / "m", folder / "fresh.vw", "-p", one, *options)[0] == 0
        code, _, err = cli("predict", "-i", folder / "m", folder / "fresh.vw", "-p", two, "--workers", 2, *options)
        assert code == 0, err
        assert one.read_bytes() == two.read_bytes()
    code, _, err = cli("predict", "-i", folder / "m", "-", "--workers", 2)
    assert code == 2
    assert "standard input" in err


def test_tables_need_no_label(cli, folder):
    rows = "".join(f"{k % 3 == 0:d},{'ab'[k % 2]},{k % 7}\n" for k in range(1200))
    (folder / "learn.csv").write_text("y,u,v\n" + rows)
    (folder / "fresh.csv").write_text("u,v\n" + "".join(line[2:] + "\n" for line in rows.split("\n") if line))
    train = ("train", folder / "learn.csv", "--label", "y", "-b", 10, "-f", folder / "t", "--quiet")
    assert cli(*train)[0] == 0
    written = []
    for more in ((), ("--workers", 1)):
        out = folder / f"t{len(more)}.csv"
        code, _, err = cli("predict", "-i", folder / "t", folder / "fresh.csv", "-p", out, *more)
        assert code == 0, err
        written.append(out.read_bytes())
    assert written[0] == written[1]


def test_bad_records_end_it_or_are_left_out(cli, folder):
    lines = clicks(1200).splitlines()
    lines[1100] = b"17 |u x"
    (folder / "bad.vw").write_bytes(b"\n".join(lines) + b"\n")
    assert cli("train", folder / "bad.vw", "--skip-bad", 1, "-b", 10, "-f", folder / "b", "--quiet")[0] == 0
    predict = ("predict", "-i", folder / "b", folder / "bad.vw", "-p", folder / "b.csv", "--workers", 1)
    code, _, err = cli(*predict)
    assert code == 3
    assert "bad.vw" in err
    code, _, err = cli(*predict, "--skip-bad", 1)
    assert code == 0, err
    assert len((folder / "b.csv").read_bytes().splitlines()) == 1200


def _dies(path):
    """Opens a model the second time only."""
    if not os.path.exists(path):
        open(path, "w").close()
        os.kill(os.getpid(), signal.SIGKILL)
    return len


class _Counts:
    def __call__(self, chunk):
        import numpy as np

        return {"rows": np.arange(len(chunk))}


def _counts(path):
    _dies(path)
    return _Counts()


def _never(path):
    os.kill(os.getpid(), signal.SIGKILL)


def test_a_process_that_dies_costs_what_it_had_begun(folder):
    import functools

    from gaussfold.data.reading import Reading

    (folder / "k.vw").write_bytes(clicks(50))
    units = [Unit(str(folder / "k.vw"), "vw", 50)] * 3
    work = predicting.Work(functools.partial(_counts, str(folder / "mark")), Reading(bits=10), 0, tags=False)
    assert [one.columns["rows"].size for one in predicting.predict_units(work, units, 1)] == [50, 50, 50]
    fatal = predicting.Work(functools.partial(_never, ""), Reading(bits=10), 0, tags=False)
    with pytest.raises(ShardError, match=r"k\.vw.*ended 5 times"):
        list(predicting.predict_units(fatal, units, 1))
