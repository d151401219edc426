import gzip
import subprocess
import sys
import threading

import numpy as np
import pytest

from gaussfold.data.formats import format_of_bytes, format_of_name
from gaussfold.data.messages import BadRecordError, DataError
from gaussfold.data.readers import Stream
from gaussfold.data.reading import Reading, Roles
from gaussfold.data.sources import expand
from tests.cli.helpers import ENVIRONMENT, Input

LINES = "".join(f"{k % 2} |a x{k} |b y{k % 7}:{k / 4}\n" for k in range(5000)).encode()


def matrix(stream):
    """All rows of a stream, as dense arrays."""
    chunks = list(stream)
    label = np.concatenate([chunk.label for chunk in chunks])
    return np.concatenate([chunk.X.toarray() for chunk in chunks]), label


@pytest.fixture
def plain(tmp_path):
    path = tmp_path / "a.vw"
    path.write_bytes(LINES)
    return path


SMALL = Reading(bits=7)


@pytest.fixture
def wanted(plain):
    return matrix(Stream(plain, SMALL, copy=True))


def same(found, wanted):
    np.testing.assert_array_equal(found[0], wanted[0])
    np.testing.assert_array_equal(found[1], wanted[1])


@pytest.mark.parametrize("chunk_bytes", [100, 4096, 1 << 20])
@pytest.mark.parametrize("background", [True, False])
def test_chunks_and_threads_do_not_change_the_rows(plain, wanted, chunk_bytes, background):
    same(matrix(Stream(plain, SMALL, copy=True, chunk_bytes=chunk_bytes, background=background)), wanted)


def test_a_chunk_lives_until_the_next_one_is_asked_for(plain, wanted):
    start = 0
    for chunk in Stream(plain, SMALL, chunk_bytes=4096):
        stop = start + len(chunk)
        np.testing.assert_array_equal(chunk.X.toarray(), wanted[0][start:stop])
        np.testing.assert_array_equal(chunk.line, np.arange(start + 1, stop + 1))
        start = stop
    assert start == 5000


def test_gzip_of_several_members_and_zstd(tmp_path, wanted):
    cut = len(LINES) // 2  # in the middle of a line
    (tmp_path / "b.vw.gz").write_bytes(gzip.compress(LINES[:cut]) + gzip.compress(LINES[cut:]))
    same(matrix(Stream(tmp_path / "b.vw.gz", SMALL, copy=True)), wanted)
    zstandard = pytest.importorskip("zstandard")
    (tmp_path / "b.vw.zst").write_bytes(zstandard.compress(LINES[:cut]) + zstandard.compress(LINES[cut:]))
    same(matrix(Stream(tmp_path / "b.vw.zst", SMALL, copy=True)), wanted)
    (tmp_path / "noname").write_bytes(zstandard.compress(LINES))  # told by its bytes
    same(matrix(Stream(tmp_path / "noname", SMALL, copy=True)), wanted)


def test_damaged_compressed_files_are_refused_after_their_good_rows(tmp_path):
    path = tmp_path / "cut.vw.gz"
    path.write_bytes(gzip.compress(LINES)[:-200])
    rows = 0
    chunks = iter(Stream(path, SMALL, chunk_bytes=4096))
    with pytest.raises(DataError, match=r"cut\.vw\.gz: the compressed data are truncated"):  # noqa: PT012 - after some rows
        while True:
            rows += len(next(chunks))
    assert rows > 1000


def test_standard_input(monkeypatch, wanted):
    monkeypatch.setattr(sys, "stdin", Input(LINES))
    same(matrix(Stream("-", SMALL, copy=True)), wanted)
    monkeypatch.setattr(sys, "stdin", Input(gzip.compress(LINES)))
    same(matrix(Stream("-", SMALL, copy=True)), wanted)


def test_rows_of_a_pausing_pipe_arrive_at_once():
    code = "from gaussfold.data.readers import Stream\nfor c in Stream('-'): print(len(c), flush=True)"
    child = subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=ENVIRONMENT
    )
    timer = threading.Timer(60, child.kill)
    timer.start()
    child.stdin.write(b"1 |a x\n0 |a y\n1 |a unfinis")
    child.stdin.flush()
    assert child.stdout.readline() == b"2\n"  # while the pipe is still open
    child.stdin.write(b"hed\n")
    child.stdin.close()
    assert child.stdout.readline() == b"1\n"
    assert child.wait(60) == 0
    child.stdout.close()
    timer.cancel()


def test_several_paths_and_globs(tmp_path, plain, wanted):
    cut = LINES.index(b"\n", 30_000) + 1
    (tmp_path / "p1.vw").write_bytes(LINES[:cut])
    (tmp_path / "p2.vw").write_bytes(LINES[cut:])
    same(matrix(Stream([tmp_path / "p1.vw", tmp_path / "p2.vw"], SMALL, copy=True)), wanted)
    same(matrix(Stream(str(tmp_path / "p?.vw"), SMALL, copy=True)), wanted)
    for paths, words in (
        ([], "no input"),
        (["-", "-"], "only once"),
        ([tmp_path], "directory"),
        (["nix"], "no such file"),
    ):
        with pytest.raises(DataError, match=words):
            expand(paths)


def test_bad_records_count_over_all_files(tmp_path):
    for k in range(3):
        (tmp_path / f"{k}.vw").write_bytes(b"1 |a x\nbad\n")
    stream = Stream(str(tmp_path / "*.vw"), max_bad=3)
    assert sum(len(chunk) for chunk in stream) == 3
    assert stream.n_bad == 3
    with pytest.raises(BadRecordError, match=r"2\.vw:2: .*more than the 2 bad records"):
        list(Stream(str(tmp_path / "*.vw"), max_bad=2))


def test_stopping_from_outside(plain):
    stream = Stream(plain, SMALL, chunk_bytes=4096)
    seen = 0
    for chunk in stream:
        seen += len(chunk)
        stream.stop()
    assert 0 < seen < 500


def test_names_are_told_once(plain):
    names = [
        pair for chunk in Stream(plain, Reading(bits=20), keep_names=True, chunk_bytes=4096) for pair in chunk.names
    ]
    assert len({slot for slot, _, _ in names}) == len(names)
    found = {name for _, name, _ in names}
    assert {"a^x0", "a^x4999", "b^y3"} <= found
    assert len(found) >= 4990  # the rest shares slots


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("a.vw", "vw"),
        ("b.SVMLIGHT.gz", "svmlight"),
        ("c.csv.zst", "csv"),
        ("d.tsv", "tsv"),
        ("e.pq", "parquet"),
        ("f.txt", None),
    ],
)
def test_formats_by_name(name, kind):
    assert format_of_name(name) == kind


@pytest.mark.parametrize(
    ("head", "kind"),
    [
        (b"1 |a b", "vw"),
        (b"# c\n1 3:4", "svmlight"),
        (b"a,b\n", "csv"),
        (b"a\tb\n", "tsv"),
        (b"1\n", "svmlight"),
        (b"PAR1", "parquet"),
    ],
)
def test_formats_by_first_bytes(head, kind):
    assert format_of_bytes(head, "x") == kind


def test_known_columns_are_found_by_name_in_another_order(tmp_path):
    (tmp_path / "a.csv").write_text("y,n,c\n1,2.5,red\n0,1,blue\n")
    first = Stream(tmp_path / "a.csv", SMALL, copy=True)
    rows, _ = matrix(first)
    (tmp_path / "b.csv").write_text("c,extra,n\nred,9,2.5\nblue,9,1\n")
    second = Stream(tmp_path / "b.csv", first.reading, copy=True)
    other, label = matrix(second)
    np.testing.assert_array_equal(other, rows)
    assert np.isnan(label).all()
    (tmp_path / "c.csv").write_text("c,extra\nred,9\n")
    with pytest.raises(DataError, match="column 'n' is missing"):
        list(Stream(tmp_path / "c.csv", first.reading))
    with pytest.raises(DataError, match="trained on a table"):
        list(Stream(io_file(tmp_path, "d.vw", b"1 |a x\n"), first.reading))


def io_file(folder, name, raw):
    (folder / name).write_bytes(raw)
    return folder / name


def test_roles_of_columns(tmp_path):
    path = io_file(tmp_path, "a.csv", b"id,w,target,code,drop\nr1,2,yes,17,x\nr2,0.5,no,18,x\n")
    roles = Roles(weight="w", tag="id", ignore=("drop",), categorical=("code",))
    stream = Stream(path, Reading(bits=7, positive="yes"), roles, tags=True, copy=True)
    [chunk] = stream
    assert chunk.label.tolist() == [1.0, 0.0]
    assert chunk.weight.tolist() == [2.0, 0.5]
    assert chunk.tags == ["r1", "r2"]
    assert [column.kind for column in stream.reading.columns] == [
        "tag",
        "weight",
        "label",
        "category",
        "ignored",
    ]
    with pytest.raises(DataError, match="no column 'nope'; the columns are id, w"):
        list(Stream(path, SMALL, Roles(label="nope")))
    with pytest.raises(ValueError, match="more than one role"):
        Roles(label="w", weight="w")


def test_parquet_values_that_cannot_be_learned_are_named(tmp_path):
    pl = pytest.importorskip("polars")
    pl.DataFrame({"y": [1, 3], "x": [1.0, 2.0]}).write_parquet(tmp_path / "a.parquet")
    with pytest.raises(DataError, match=r"column 'y', row 2: expected a label of -1, 0 or 1, found '3.0'"):
        list(Stream(tmp_path / "a.parquet"))
    pl.DataFrame({"y": [1, 0], "x": [1.0, 1e308]}).write_parquet(tmp_path / "b.parquet")
    with pytest.raises(DataError, match=r"column 'x', row 2: .*found '1e\+308'"):
        list(Stream(tmp_path / "b.parquet"))
    (tmp_path / "c.parquet").write_bytes(b"PAR1 nonsense")
    with pytest.raises(DataError, match="cannot be read as parquet"):
        list(Stream(tmp_path / "c.parquet"))
