"""Inputs that end early, are damaged, or change while they are read: exit 3, a sentence, no file touched."""

import gzip
import os
import subprocess
import sys
import threading
import time

import pytest

from gaussfold.data.messages import BrokenInputError, DataError
from gaussfold.data.readers import Stream
from gaussfold.data.reading import Reading
from gaussfold.data.sources import Source
from tests.cli.helpers import COMMAND, ENVIRONMENT, clicks, process, same_model

OPTIONS = ("-b", 8, "--quiet", "--prior-std", 0.7)
zstandard = pytest.importorskip("zstandard")
PACKINGS = {"gz": gzip.compress, "zst": zstandard.ZstdCompressor(write_checksum=True).compress}


@pytest.mark.parametrize("ending", PACKINGS)
@pytest.mark.parametrize("rows", [50, 40_000])  # within a block, and many of them
def test_what_is_packed_and_cut_or_damaged_or_has_a_tail_touches_no_file(cli, tmp_path, ending, rows):
    whole = PACKINGS[ending](clicks(rows))
    middle = len(whole) // 2
    broken = {
        "cut": whole[:middle],
        "without its end": whole[:-3],
        "damaged": whole[:middle] + bytes([whole[middle] ^ 0xFF]) + whole[middle + 1 :],
        "with a tail": whole + b"more",
        "twice, the second cut": whole + whole[:middle],
    }
    (tmp_path / "m").write_bytes(b"as it was")
    for what, raw in broken.items():
        data = tmp_path / f"{what}.vw.{ending}"
        data.write_bytes(raw)
        before = sorted(tmp_path.iterdir())
        code, _, err = cli("train", data, *OPTIONS, "-f", tmp_path / "m")
        assert code == 3, what
        assert f"{data}: the compressed data are truncated or damaged near byte" in err
        assert err.count("\n") == 1, what
        assert (tmp_path / "m").read_bytes() == b"as it was"
        assert sorted(tmp_path.iterdir()) == before


@pytest.mark.parametrize("ending", PACKINGS)
def test_packed_files_cut_to_a_few_bytes_or_none(cli, tmp_path, ending):
    whole = PACKINGS[ending](clicks(50))
    (tmp_path / "m").write_bytes(b"as it was")
    for kind in ("vw", "csv", "svm"):
        data = tmp_path / f"a.{kind}.{ending}"
        for size in range(12):
            data.write_bytes(whole[:size])
            code, _, err = cli("train", data, *OPTIONS, "-f", tmp_path / "m")
            assert (code, err.count("\n")) == (3, 1), (kind, size, err)
            assert (tmp_path / "m").read_bytes() == b"as it was"


def test_a_damaged_input_after_checkpoints(cli, tmp_path):
    (tmp_path / "a.vw").write_bytes(clicks(100))
    (tmp_path / "b.vw.gz").write_bytes(gzip.compress(clicks(100))[:-5])
    inputs = (tmp_path / "a.vw", tmp_path / "b.vw.gz", *OPTIONS, "-f", tmp_path / "m")
    code, _, err = cli("train", *inputs)
    assert code == 3
    assert err.endswith("m is left as it was\n")
    assert not (tmp_path / "m").exists()
    code, _, err = cli("train", *inputs, "--checkpoint", 40)
    assert code == 3
    assert err.endswith("m holds the last checkpoint\n")
    assert (tmp_path / "m").exists()


@pytest.mark.parametrize("ending", PACKINGS)
def test_packed_pieces_one_after_the_other_are_one_input(cli, tmp_path, ending):
    raw, pack = clicks(200), PACKINGS[ending]
    (tmp_path / "plain.vw").write_bytes(raw)
    (tmp_path / f"a.vw.{ending}").write_bytes(pack(raw[:999]) + pack(b"") + pack(raw[999:]))
    for name in ("plain.vw", f"a.vw.{ending}"):
        assert cli("train", tmp_path / name, *OPTIONS, "-f", tmp_path / f"{name}.m")[0] == 0
    same_model(tmp_path / "plain.vw.m", tmp_path / f"a.vw.{ending}.m")


def test_zeros_after_gzip_are_padding_and_frames_to_skip_are_skipped(tmp_path):
    (tmp_path / "a.gz").write_bytes(gzip.compress(b"text") + bytes(1000))
    (tmp_path / "b.zst").write_bytes(b"\x50\x2a\x4d\x18\x03\0\0\0abc" + PACKINGS["zst"](b"text"))
    for name in ("a.gz", "b.zst"):
        with Source(str(tmp_path / name)) as source:
            assert source.peek(100) == b"text"


@pytest.mark.parametrize("ending", PACKINGS)
def test_a_bomb_is_unpacked_in_bounded_memory(tmp_path, ending):
    data = tmp_path / f"bomb.vw.{ending}"
    data.write_bytes(PACKINGS[ending](b"x" * (300 << 20)))  # one line that never ends
    code = (
        "from gaussfold.cli import main\ntry:\n main()\nfinally:\n"
        " print(*(line for line in open('/proc/self/status') if line.startswith('VmHWM')))"
    )
    command = [sys.executable, "-c", code, "train", str(data), *map(str, OPTIONS)]
    done = subprocess.run(command, capture_output=True, env=ENVIRONMENT, timeout=120, text=True)
    assert done.returncode == 3
    assert f"{data}:1: a line is longer than 64 MB" in done.stderr
    assert int(done.stdout.split()[-2]) < 900_000  # kilobytes; getrusage would tell the parent's peak


@pytest.mark.parametrize("change", ["cut", "changed"])
def test_a_file_that_is_cut_or_written_over_while_it_is_read_is_refused(tmp_path, change):
    data = tmp_path / "a.vw"
    data.write_bytes(clicks(5000))
    rows = iter(Stream(data, Reading(bits=8), background=False, chunk_bytes=4096))
    next(rows)
    if change == "cut":
        os.truncate(data, 40_000 + 3)
    else:
        with data.open("r+b") as file:
            file.seek(100_000)
            file.write(b"0 |a x")
        os.utime(data, ns=(1, 1))
    with pytest.raises(BrokenInputError, match=f"a.vw: the file was {change} while it was read"):
        list(rows)


def test_a_file_that_is_replaced_or_grows_while_it_is_read_is_read_as_it_was(tmp_path):
    data = tmp_path / "a.vw"
    data.write_bytes(clicks(5000))
    rows = iter(Stream(data, Reading(bits=8), background=False, chunk_bytes=4096))
    count = len(next(rows))
    (tmp_path / "b").write_bytes(b"nonsense")
    (tmp_path / "b").replace(data)
    assert count + sum(len(chunk) for chunk in rows) == 5000


def test_a_pipe_that_never_ends_a_line_is_refused(tmp_path):
    with subprocess.Popen(
        [sys.executable, "-c", "while not print('x' * 65536, end=''): 0"], stdout=subprocess.PIPE
    ) as xs:
        done = subprocess.run(
            [*COMMAND, "train", "-", "--format", "vw", *map(str, OPTIONS), "-f", str(tmp_path / "m")],
            stdin=xs.stdout, capture_output=True, env=ENVIRONMENT, timeout=120, text=True,
        )  # fmt: skip
        xs.kill()
    assert done.returncode == 3
    assert "<stdin>:1: a line is longer than 64 MB" in done.stderr
    assert not (tmp_path / "m").exists()


@pytest.mark.parametrize("chunk_bytes", [50, 1 << 20])
def test_nul_bytes_are_no_text(cli, tmp_path, chunk_bytes):
    utf16 = tmp_path / "a.csv"
    utf16.write_bytes("label,x\n1,2\n0,3\n".encode("utf-16"))
    with pytest.raises(BrokenInputError, match=r"a.csv:header: there are nul bytes; is it UTF-16"):
        list(Stream(utf16, Reading(bits=8), chunk_bytes=chunk_bytes))
    tail = tmp_path / "a.vw"  # as after a loss of power
    tail.write_bytes(clicks(3) + bytes(5000))
    rows = iter(Stream(tail, Reading(bits=8), chunk_bytes=chunk_bytes))
    with pytest.raises(BrokenInputError, match=r"a.vw:4: there are nul bytes"):  # noqa: PT012 - after its rows
        found = 0
        while True:
            found += len(next(rows))
    assert found == 3
    (tmp_path / "m").write_bytes(b"as it was")
    code, _, err = cli("train", tail, *OPTIONS, "-f", tmp_path / "m")
    assert code == 3
    assert f"make it UTF-8 without them; {tmp_path / 'm'} is left as it was" in err
    assert (tmp_path / "m").read_bytes() == b"as it was"


def slowly(pieces, pause):
    """A pipe that sends the pieces with pauses between them."""
    reading, writing = os.pipe()

    def send():
        with os.fdopen(writing, "wb", buffering=0) as pipe:
            for piece in pieces:
                pipe.write(piece)
                time.sleep(pause)

    threading.Thread(target=send, daemon=True).start()
    return reading


@pytest.mark.parametrize("kind", [None, "csv"])
def test_what_columns_mean_does_not_depend_on_pauses(tmp_path, monkeypatch, kind):
    raw = b"lab,x\n1,2\n0,red\n1,blue\n"
    path = tmp_path / "whole.csv"
    path.write_bytes(raw)
    whole = Stream(path, Reading(bits=8), background=False)
    wanted = [chunk.X.toarray().tolist() for chunk in whole]
    for cuts in ((3, 10), (6, 7, 8), (1, 11, 12, 13)):
        pieces = [raw[a:b] for a, b in zip((0, *cuts), (*cuts, len(raw)), strict=True)]
        descriptor = slowly(pieces, 0.12)
        with os.fdopen(descriptor, "rb") as pipe:
            monkeypatch.setattr(sys, "stdin", pipe)
            stream = Stream("-", Reading(bits=8, format=kind), background=False, copy=True)
            found = [row for chunk in stream for row in chunk.X.toarray().tolist()]
        assert found == [row for rows in wanted for row in rows]
        assert stream.reading.columns == whole.reading.columns


def test_a_table_of_bad_records_tells_the_one_that_was_too_many_whatever_the_chunks(tmp_path):
    path = tmp_path / "a.vw"
    path.write_bytes(b"1 |a x\n" + b"no bar\n" * 300)
    for chunk_bytes in (16, 256, 1 << 20):
        with pytest.raises(DataError, match=r"a\.vw:202: .*more than the 200 bad records"):
            list(Stream(path, Reading(bits=8), max_bad=200, background=False, chunk_bytes=chunk_bytes))


def test_a_quote_that_never_closes_is_given_up_in_the_same_place_whatever_the_chunks(tmp_path, monkeypatch):
    import gaussfold.data.text as text

    monkeypatch.setattr(text, "LONGEST_RECORD", 1 << 12)
    path = tmp_path / "a.csv"
    rows = b'1,"x\n' + b"0,y\n" * 3000 + b'1,"z"\n'
    path.write_bytes(rows)
    for chunk_bytes in (64, 100, 1 << 12, 1 << 20):
        stream = Stream(path, Reading(bits=8), max_bad=9, background=False, chunk_bytes=chunk_bytes)
        assert sum(len(chunk) for chunk in stream) == 3001, chunk_bytes
        assert stream.n_bad == 1


def test_pipes_that_cannot_be_gone_back_in_are_refused_for_files_of_columns(tmp_path):
    os.mkfifo(tmp_path / "a.parquet")
    writer = threading.Thread(target=(tmp_path / "a.parquet").write_bytes, args=(b"PAR1" * 10,), daemon=True)
    writer.start()
    with pytest.raises(DataError, match="parquet cannot be read from a pipe"):
        list(Stream(tmp_path / "a.parquet"))


def test_standard_input_that_is_closed_is_told(tmp_path):
    code, _, err = process("train", "-", *OPTIONS, "-f", tmp_path / "m", preexec_fn=lambda: os.close(0))
    assert code == 3
    assert "<stdin>: " in err
    assert not (tmp_path / "m").exists()
