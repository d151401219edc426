"""What is learned is kept: targets are looked at beforehand, outputs beside the model may fail, a resumed run has the
input that it had.
"""

import os
import subprocess

import pytest

import gaussfold as gf
from tests.cli.helpers import COMMAND, ENVIRONMENT, clicks, process, same_model

OPTIONS = ("-b", 8, "--quiet", "--prior-std", 0.7)


@pytest.fixture
def data(tmp_path):
    path = tmp_path / "d.vw"
    path.write_bytes(clicks(3000))
    return path


@pytest.mark.parametrize("out", ["/dev/full", "-"])
def test_predictions_on_a_full_disk_do_not_cost_the_model(tmp_path, data, out):
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [*COMMAND, "train", data, *map(str, OPTIONS), "-p", out, "-f", tmp_path / "m"],
            stdout=full, stderr=subprocess.PIPE, env=ENVIRONMENT, timeout=120, text=True,
        )  # fmt: skip
    assert done.returncode == 5
    named = "<stdout>" if out == "-" else out
    assert done.stderr == f"gaussfold: {named}: cannot be written (No space left on device); going on without it\n"
    assert gf.load(tmp_path / "m").learned == 3000


@pytest.mark.parametrize("number", [1, 2])
@pytest.mark.parametrize("full", [True, False])
def test_streams_that_are_full_or_closed_do_not_cost_the_model(tmp_path, data, number, full):
    def spoil():
        if not full:
            os.close(number)
        else:
            os.dup2(os.open("/dev/full", os.O_WRONLY), number)

    options = ("-b", 8, "--prior-std", 0.7, "--json", "-f", tmp_path / "m")
    code, _, _ = process("train", data, *options, preexec_fn=spoil)
    assert code == (5 if full and number == 1 else 0)
    assert gf.load(tmp_path / "m").learned == 3000


def test_targets_that_can_never_be_written_are_refused_before_training(cli, tmp_path, data):
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "folder").mkdir()
    for option, path, code, words in (
        ("-f", tmp_path / "pipe", 4, "it is a pipe, and a model is saved to a file"),
        ("-f", "/dev/null", 4, "it is a device"),
        ("-f", tmp_path / "folder", 4, "it is a directory"),
        ("-f", tmp_path / "no" / "m", 4, "does not exist; create it first"),
        ("-p", tmp_path / "folder", 5, "it is a directory"),
        ("-p", tmp_path / "no" / "p.csv", 5, "does not exist; create it first"),
        ("-p", data, 5, "also read or written"),
        ("-f", data, 5, "also read or written"),
    ):
        options = {"-f": tmp_path / "m", "-p": tmp_path / "p.csv"} | {option: path}
        before = sorted(tmp_path.iterdir()), data.read_bytes()
        found, _, err = cli("train", data, *OPTIONS, *(word for pair in options.items() for word in pair))
        assert (found, words in err) == (code, True), (option, path, err)
        assert (sorted(tmp_path.iterdir()), data.read_bytes()) == before


def test_predictions_are_not_written_over_what_is_read(cli, tmp_path, data):
    assert cli("train", data, *OPTIONS, "-f", tmp_path / "m")[0] == 0
    before = data.read_bytes(), (tmp_path / "m").read_bytes()
    for out in (data, tmp_path / "m"):
        code, _, err = cli("predict", data, "-i", tmp_path / "m", "-p", out)
        assert code == 5
        assert "also read or written" in err
    assert cli("convert", data, "--to", "vw", "-o", data)[0] == 5
    assert (data.read_bytes(), (tmp_path / "m").read_bytes()) == before


def test_predictions_stay_as_they_were_if_the_run_is_refused(cli, tmp_path, data):
    (tmp_path / "p.csv").write_text("old")
    (tmp_path / "other.vw").write_bytes(clicks(3000, seed=1))
    more = ("-f", begun(cli, tmp_path, data, 100), "--resume", "-p", tmp_path / "p.csv")
    assert cli("train", tmp_path / "other.vw", *OPTIONS, *more)[0] == 2
    assert (tmp_path / "p.csv").read_text() == "old"


def begun(cli, tmp_path, data, rows, *more):
    """A run over this file that met a bad line after so many rows; the model knows where it stands."""
    lines = data.read_bytes().splitlines(keepends=True)
    (tmp_path / "cut.vw").write_bytes(b"".join(lines[:rows]) + b"bad\n")
    assert cli("train", tmp_path / "cut.vw", *OPTIONS, "-f", tmp_path / "m", *more)[0] == 3
    return tmp_path / "m"


@pytest.mark.parametrize("rows", [1, 1234, 3000])
def test_a_run_goes_on_with_its_input_wherever_that_is_now(cli, tmp_path, data, rows):
    import gzip

    assert cli("train", data, *OPTIONS, "-f", tmp_path / "whole")[0] == 0
    model = begun(cli, tmp_path, data, rows)
    (tmp_path / "moved.vw.gz").write_bytes(gzip.compress(data.read_bytes()))
    code, _, err = cli("train", tmp_path / "moved.vw.gz", *OPTIONS, "-f", model, "--resume")
    assert (code, err) == (0, "")
    same_model(model, tmp_path / "whole")
    assert cli("train", *OPTIONS, "--format", "vw", "-f", model, "--resume", stdin=data.read_bytes())[0] == 0
    assert model.read_bytes() == (tmp_path / "whole").read_bytes()  # and one that is done stays as it is


def test_a_run_does_not_go_on_with_another_input(cli, tmp_path, data):
    raw = data.read_bytes()
    lines = raw.splitlines(keepends=True)
    others = {
        "another namespace": raw.replace(b"|u", b"|z"),
        "another label": b"".join([b"-" * (lines[7][:1] == b"1") + lines[7].lstrip(b"-"), *lines[:7], *lines[8:]]),
        "another value in the last row": raw[: raw.rindex(b"0.5")] + raw[raw.rindex(b"0.5") :].replace(b"0.5", b"0.25"),
        "too short": b"".join(lines[:100]),
        "nothing": b"",
    }
    model = begun(cli, tmp_path, data, 3000)
    before = model.read_bytes()
    for name, other in others.items():
        (tmp_path / "other.vw").write_bytes(other)
        code, _, err = cli("train", tmp_path / "other.vw", *OPTIONS, "-f", model, "--resume")
        assert code == 2, name
        assert "gaussfold: --resume: the " in err
        assert "give the same input with the same options" in err
        assert model.read_bytes() == before


def test_a_run_that_is_finished_says_so_and_reads_nothing(cli, tmp_path, data):
    assert cli("train", data, *OPTIONS, "-f", tmp_path / "m")[0] == 0
    before = (tmp_path / "m").read_bytes()
    code, _, err = cli("train", tmp_path / "d.vw", *OPTIONS, "-f", tmp_path / "m", "--resume")
    assert code == 0
    assert f"--resume: the run that made {tmp_path / 'm'} is finished, so nothing is read; leave it out to go on" in err
    assert (tmp_path / "m").read_bytes() == before


@pytest.mark.parametrize("prior", ["auto", "u=0.3,t=2", "0.7"])
def test_checkpoints_do_not_change_the_file(cli, tmp_path, prior):
    (tmp_path / "d.vw").write_bytes(clicks(3000))
    files = set()
    for checkpoint in (0, 1000, 37):
        command = ("train", tmp_path / "d.vw", "-b", 12, "--quiet", "--prior-std", prior, "-f", tmp_path / "m")
        assert cli(*command, "--checkpoint", checkpoint)[0] == 0
        files.add((tmp_path / "m").read_bytes())
    assert len(files) == 1


def test_names_of_a_row_that_had_to_be_parsed_again_are_not_lost(tmp_path):
    from gaussfold.data.readers import Stream
    from gaussfold.data.reading import Reading

    line = "1 |a " + " ".join(f"f{i}" for i in range(300)) + "\n"
    path = tmp_path / "a.vw"
    path.write_text(line)
    found = [
        {named.name for chunk in Stream(path, Reading(bits=20, interact=("::",)), keep_names=True, chunk_bytes=size)
         for named in chunk.names}
        for size in (64, 1 << 20)
    ]  # fmt: skip
    assert found[0] == found[1]
    assert "a^f0" in found[0]
