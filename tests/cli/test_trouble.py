"""Whatever goes wrong: a message that helps, an exit code, and nothing learned is lost."""

import errno
import os
import random
import resource
import signal
import subprocess
import time

import numpy as np
import pytest

import gaussfold as gf
from tests.cli.helpers import COMMAND, ENVIRONMENT, clicks, last_json, process, same_model

OPTIONS = ("-b", 8, "--quiet", "--prior-std", 0.7)


def learned(path):
    return gf.load(path).learned


@pytest.mark.parametrize(
    ("line", "words"),
    [
        (b"2 |u x", "expected a label of -1, 0 or 1, found '2'"),
        (b"1 |u x:1e308", "between -1e30 and 1e30; rescale the feature, found '1e308'"),
        (b"1 |u x:nan", "expected a finite number as a feature's value, found 'nan'"),
        (b"1 |u x:-inf", "expected a finite number as a feature's value, found '-inf'"),
        (b"no bar here", "there is no '|'"),
    ],
)
def test_a_malformed_line_stops_with_file_and_line_and_keeps_what_was_learned(cli, tmp_path, line, words):
    data = tmp_path / "bad.vw"
    data.write_bytes(clicks(50) + line + b"\n" + clicks(20, seed=2))
    code, out, err = cli("train", data, *OPTIONS, "-f", tmp_path / "m", "--json")
    assert code == 3
    assert last_json(out)["bad"] == 0
    assert f"{data}:51: " in err
    assert words in err
    assert learned(tmp_path / "m") == 50
    code, out, err = cli("train", data, *OPTIONS, "-f", tmp_path / "m", "--skip-bad", 1, "--json")
    assert code == 0
    assert f"skipped {data}:51: " in err
    assert last_json(out)["bad"] == 1
    assert learned(tmp_path / "m") == 70


def test_how_lines_end_and_what_stands_around_them_does_not_matter(cli, tmp_path):
    plain = clicks(40)
    variants = {
        "crlf": plain.replace(b"\n", b"\r\n"),
        "empty lines": b"\n\n" + plain.replace(b"\n", b"\n\n"),
        "no final newline": plain.removesuffix(b"\n"),
        "byte order mark": b"\xef\xbb\xbf" + plain,
    }
    (tmp_path / "plain.vw").write_bytes(plain)
    assert cli("train", tmp_path / "plain.vw", *OPTIONS, "-f", tmp_path / "plain")[0] == 0
    for name, raw in variants.items():
        (tmp_path / f"{name}.vw").write_bytes(raw)
        assert cli("train", tmp_path / f"{name}.vw", *OPTIONS, "-f", tmp_path / name)[0] == 0, name
        same_model(tmp_path / name, tmp_path / "plain")


def test_a_feature_that_stands_twice_in_a_line_adds(cli, tmp_path):
    for name, line in (("twice", b"1 |u x:0.5 y x:0.7 x\n"), ("once", b"1 |u x:2.2 y\n")):
        assert cli("train", *OPTIONS, "-f", tmp_path / name, stdin=5 * line)[0] == 0
    twice, once = (gf.load(tmp_path / name).belief for name in ("twice", "once"))
    np.testing.assert_allclose(twice.mean, once.mean, rtol=1e-14)
    np.testing.assert_allclose(twice.var, once.var, rtol=1e-14)
    np.testing.assert_array_equal(twice.touched(), once.touched())


@pytest.mark.parametrize("raw", [None, b"", b"bad\n1 |u x\n"])
def test_a_run_that_learns_nothing_does_not_replace_a_model(cli, tmp_path, raw):
    data, target = tmp_path / "d.vw", tmp_path / "m"
    assert cli("train", *OPTIONS, "-f", target, stdin=clicks(30))[0] == 0
    before = target.read_bytes()
    if raw is not None:
        data.write_bytes(raw)
    code, out, err = cli("train", data, *OPTIONS, "-f", target, "--json")
    if raw == b"":  # an empty file is no error: the model of nothing is what was asked for
        assert (code, learned(target)) == (0, 0)
        return
    assert code == 3
    assert "what was learned" not in err
    assert target.read_bytes() == before
    if raw is not None:
        assert last_json(out)["model"] is None


def test_a_table_of_tabs_that_is_read_as_csv_is_told_apart(cli, tmp_path):
    data = tmp_path / "d.csv"
    data.write_text("1\t2\tx\t4\n0\t3\ty\t5\n")
    code, _, err = cli("train", data)
    assert code == 3
    assert "; fields look separated by tabs: --separator tab" in err
    assert cli("train", data, "--separator", "tab")[0] == 0


def test_one_bad_line_too_many_stops(cli, tmp_path):
    code, _, err = cli("train", *OPTIONS, "-f", tmp_path / "m", "--skip-bad", 2, stdin=b"1 |u x\nbad\n" * 3)
    assert code == 3
    assert "<stdin>:6:" in err
    assert "more than the 2 bad records" in err
    assert learned(tmp_path / "m") == 3


def test_large_values_within_bounds_leave_a_finite_model(cli, tmp_path):
    raw = b"".join(b"%d |u x:1e30 y:-1e29 z:1\n" % (k % 2) for k in range(20))
    code, _, err = cli("train", *OPTIONS, "-f", tmp_path / "m", stdin=raw)
    assert code in (0, 3), err  # learned, or refused by name
    assert np.isfinite(gf.load(tmp_path / "m").belief.mean).all()
    assert (gf.load(tmp_path / "m").belief.variance() > 0).all()


def test_files_that_are_not_there_or_not_readable(cli, tmp_path):
    for name, words in (("missing.vw", "no such file"), ("*.nothing", "no file matches")):
        code, _, err = cli("train", tmp_path / name)
        assert code == 3
        assert words in err
    code, _, err = cli("train", tmp_path)
    assert code == 3
    assert "directory" in err
    (tmp_path / "broken.vw.gz").write_bytes(b"\x1f\x8b\x08\x00" + bytes(20))
    code, _, err = cli("train", tmp_path / "broken.vw.gz")
    assert code == 3
    assert "truncated or damaged" in err
    code, _, err = cli("train", stdin=b"hello world what is this\n")
    assert code == 3
    assert "--format" in err


def test_an_empty_input_is_no_error(cli, tmp_path):
    code, out, _ = cli("train", *OPTIONS, "-f", tmp_path / "m", "--json", stdin=b"")
    assert code == 0
    assert last_json(out)["examples"] == 0
    assert last_json(out)["average_loss"] is None
    cli("train", "-i", tmp_path / "m", "-f", tmp_path / "m", "--quiet", "--format", "vw", stdin=clicks(10))
    assert learned(tmp_path / "m") == 10


# Each of these prepares its own files and asks for code and words: the same steps, kept with their own trouble.


def test_model_files_that_cannot_be_used(cli, tmp_path):
    data = tmp_path / "d.vw"
    data.write_bytes(clicks(20))
    for content, words in ((b"not a model", "path"), (b"", "path")):
        (tmp_path / "m").write_bytes(content)
        code, _, err = cli("train", data, "-i", tmp_path / "m")
        assert code == 4
        assert words in err
    code, _, err = cli("predict", data, "-i", tmp_path / "absent")
    assert code == 4
    gf.save(gf.DenseGaussian.isotropic(3), tmp_path / "dense")
    code, _, err = cli("predict", data, "-i", tmp_path / "dense")
    assert code == 4
    assert "DenseGaussian" in err


def test_a_model_of_another_format_version_is_refused_by_name(cli, tmp_path, monkeypatch):
    data = tmp_path / "d.vw"
    data.write_bytes(clicks(20))
    monkeypatch.setattr("gaussfold.store.layout.FORMAT", 99)
    cli("train", data, *OPTIONS, "-f", tmp_path / "m")
    monkeypatch.undo()
    code, _, err = process("predict", data, "-i", tmp_path / "m")
    assert code == 4
    assert "format 99" in err


def test_a_full_disk_while_checkpointing_does_not_stop_the_training(cli, tmp_path, monkeypatch):
    import gaussfold.cli.saving as saving

    data = tmp_path / "d.vw"
    data.write_bytes(clicks(200))
    kept = saving.save
    calls = []

    def full(model, path):
        calls.append(path)
        if len(calls) == 1:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        kept(model, path)

    monkeypatch.setattr(saving, "save", full)
    code, _, err = cli("train", data, *OPTIONS, "-f", tmp_path / "m", "--checkpoint", 1)
    assert code == 0
    assert "checkpoint not written (No space left on device)" in err
    assert learned(tmp_path / "m") == 200


@pytest.mark.parametrize("checkpoint", [0, 50])
def test_a_disk_that_stays_full_leaves_the_old_file_and_rescues_the_model(tmp_path, checkpoint):
    data = tmp_path / "d.vw"
    data.write_bytes(clicks(200))
    assert process("train", data, *OPTIONS, "-f", tmp_path / "m")[0] == 0
    before = (tmp_path / "m").read_bytes()
    # no file may grow beyond 2 kB: every write of the model fails half-way, as on a full disk
    limit = lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (2048, 2048))  # noqa: E731
    more = ("--quiet", "--checkpoint", checkpoint)
    code, _, err = process("train", data, "-i", tmp_path / "m", "-f", tmp_path / "m", *more, preexec_fn=limit)
    assert code == 5
    assert err.count("checkpoint not written (File too large); going on, the last one stays") == (
        4 if checkpoint else 0
    )
    assert "cannot be written (File too large)" in err
    assert (tmp_path / "m").read_bytes() == before
    assert len(list(tmp_path.iterdir())) == 2  # no temporary file stays behind


def test_a_model_that_cannot_be_written_where_it_should_is_rescued(cli, tmp_path, monkeypatch):
    import gaussfold.cli.saving as saving

    kept = saving.save

    def full(model, path):
        if "rescued" not in str(path):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        kept(model, path)

    monkeypatch.setattr(saving, "save", full)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    code, _, err = cli("train", *OPTIONS, "-f", tmp_path / "m", stdin=clicks(30))
    assert code == 5
    [rescued] = tmp_path.glob("gaussfold-rescued-*")
    assert str(rescued) in err
    assert learned(rescued) == 30


def test_a_target_that_cannot_be_written_is_refused_before_training(cli, tmp_path):
    code, _, err = cli("train", *OPTIONS, "-f", tmp_path / "no" / "m", stdin=clicks(30))
    assert code == 4
    assert "does not exist" in err


def test_a_broken_pipe_ends_quietly(tmp_path):
    data = tmp_path / "d.vw"
    data.write_bytes(clicks(30_000))
    assert process("train", data, *OPTIONS, "-f", tmp_path / "m")[0] == 0
    for args in (
        ("predict", "-i", tmp_path / "m", data),
        ("train", data, *OPTIONS, "-f", tmp_path / "n", "-p", "-"),
    ):
        child = subprocess.Popen(
            [*COMMAND, *map(str, args)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=ENVIRONMENT
        )
        child.stdout.readline()
        child.stdout.close()
        err = child.stderr.read()
        child.stderr.close()
        assert child.wait(60) == 141
        assert err == b""
    assert learned(tmp_path / "n") > 0


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_signals_finish_the_chunk_and_save(tmp_path, number, code):
    child = subprocess.Popen(
        [*COMMAND, "train", *map(str, OPTIONS), "-f", str(tmp_path / "m"), "--format", "vw", "--checkpoint", "500"],
        stdin=subprocess.PIPE, stderr=subprocess.PIPE, env=ENVIRONMENT,
    )  # fmt: skip
    child.stdin.write(clicks(500))
    child.stdin.flush()  # and then silence: the pipe stays open
    wait_for(tmp_path / "m")
    child.send_signal(number)
    assert child.wait(60) == code
    err = child.stderr.read().decode()
    child.stdin.close()
    child.stderr.close()
    assert "stopped after 500 examples" in err
    assert "Traceback" not in err
    assert learned(tmp_path / "m") == 500


def wait_for(path, seconds=60):
    end = time.monotonic() + seconds
    while not path.exists() and time.monotonic() < end:
        time.sleep(0.02)
    assert path.exists()


@pytest.mark.slow
def test_kill_9_at_any_moment_leaves_a_model_that_loads_and_resumes_exactly(cli, tmp_path):
    data = tmp_path / "d.vw"
    data.write_bytes(clicks(20_000))
    args = ["train", data, *OPTIONS, "--checkpoint", 250, "--resume"]  # 80 of them
    assert cli(*args, "-f", tmp_path / "compiled")[0] == 0  # so that compiling is no part of what is timed
    began = time.monotonic()
    assert process(*args, "-f", tmp_path / "undisturbed")[0] == 0
    longest = time.monotonic() - began
    draw = random.Random(5)
    target = tmp_path / "killed"
    killed = 0
    for k in range(20):
        child = subprocess.Popen(
            [*COMMAND, *map(str, args), "-f", str(target)], env=ENVIRONMENT, stderr=subprocess.DEVNULL
        )
        if k % 2:  # half of the time right after a checkpoint, half of the time anywhere
            stamp = target.stat().st_mtime_ns if target.exists() else 0
            while child.poll() is None and (not target.exists() or target.stat().st_mtime_ns == stamp):
                time.sleep(0.001)
            time.sleep(draw.uniform(0, 0.02))
        else:
            time.sleep(draw.uniform(0.3, 1.0) * longest)
        if child.poll() is None:
            child.kill()
            killed += 1
        child.wait()
        if target.exists():  # whole, whenever the end came
            assert gf.load(target).examples <= 20_000
        if target.exists() and gf.load(target).run.get("finished"):
            same_model(target, tmp_path / "undisturbed")
            target.unlink()
    assert process(*args, "-f", target)[0] == 0
    same_model(target, tmp_path / "undisturbed")
    assert killed >= 10


@pytest.mark.slow
def test_a_long_stream_takes_no_more_memory_than_a_short_one():
    """Rows from a generator through standard input; the peak must not grow with their number."""

    def peak(n_chunks):
        code = (
            "import resource\nfrom gaussfold.cli import main\n"
            "try:\n main()\nfinally:\n print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)"
        )
        child = subprocess.Popen(
            [COMMAND[0], "-c", code, "train", "-", "-b", "10", "--prior-std", "1", "--quiet", "--format", "vw"],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=ENVIRONMENT,
        )  # fmt: skip
        piece = clicks(20_000)
        for _ in range(n_chunks):
            child.stdin.write(piece)
        child.stdin.close()
        found = int(child.stdout.read().split()[-1])
        child.stdout.close()
        assert child.wait(60) == 0
        return found

    # 26 MB and 130 MB of text. How full the chunks are depends on the pipe, so one peak differs from the next by up
    # to 15 MB at any length; keeping what was read would add 100 MB.
    short, long = peak(50), peak(250)
    assert long < short + 30_000  # kilobytes


def test_a_model_that_cannot_be_read_is_exit_4(cli, tmp_path, monkeypatch):
    import gaussfold.cli.saving as saving

    data = tmp_path / "d.vw"
    data.write_bytes(clicks(20))
    cli("train", data, *OPTIONS, "-f", tmp_path / "m")

    def broken(path):
        raise OSError(5, "Input/output error", str(path))

    monkeypatch.setattr(saving, "load", broken)
    code, _, err = cli("predict", data, "-i", tmp_path / "m")
    assert code == 4
    assert "Input/output error" in err
