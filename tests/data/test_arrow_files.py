"""Parquet and Arrow files that are damaged: one error, with the file and the place, whatever Arrow makes of them."""

import io

import numpy as np
import pytest

from gaussfold.data.messages import BrokenInputError
from gaussfold.data.readers import Stream
from gaussfold.data.reading import Reading

pa = pytest.importorskip("pyarrow")
import pyarrow.parquet as pq  # noqa: E402 - after the skip

N = 50
TABLE = pa.table({"label": np.arange(N) % 2, "c": [f"c{i % 5}" for i in range(N)]})
OFFSETS = np.arange(0, 2 * N + 1, 2, dtype=np.int32).tobytes()


def arrow(table, new=pa.ipc.new_file, rows=None, **options):
    sink = io.BytesIO()
    with new(sink, table.schema, options=pa.ipc.IpcWriteOptions(**options)) as writer:
        writer.write_table(table, max_chunksize=rows)
    return sink.getvalue()


def read(tmp_path, raw, name="a.arrow"):
    (tmp_path / name).write_bytes(raw)
    chunks = list(Stream(tmp_path / name, Reading(bits=8), background=False, copy=True))
    return np.concatenate([chunk.X.toarray() for chunk in chunks])


def changed(raw, old, new):
    assert raw.count(old) >= 1
    return raw.replace(old, new, 1)


def test_batches_of_any_size_read_as_the_text_does(tmp_path, monkeypatch):
    """Row groups of other texts, batches cut anew, memory used again: the rows are those of the table as CSV."""
    n = 700
    rng = np.random.default_rng(4)
    city = [None if k % 11 == 0 else f"c{k // 200}{rng.integers(5)}" for k in range(n)]
    table = pa.table({"label": rng.integers(0, 2, n), "x": rng.normal(0, 2, n).round(3), "city": city})
    pq.write_table(table, tmp_path / "t.parquet", row_group_size=190)
    lines = [f"{y},{x},{c or ''}" for y, x, c in zip(*(table[k].to_pylist() for k in range(3)), strict=True)]
    (tmp_path / "t.csv").write_text("label,x,city\n" + "\n".join(lines) + "\n")

    def rows(name, reading):
        chunks = list(Stream(tmp_path / name, reading, chunk_bytes=1 << 12, copy=True))
        return [
            (row, float(y))
            for chunk in chunks
            for row, y in zip(map(chunk.entries, range(len(chunk))), chunk.label, strict=True)
        ]

    for reading in (Reading(bits=6), Reading(bits=6, interact=("x,city", "city,city"), constant=False)):
        wanted = rows("t.csv", reading)
        for size, decoded in ((16384, 65536), (37, 100)):
            monkeypatch.setattr("gaussfold.data.arrow_files.ROWS", size)
            monkeypatch.setattr("gaussfold.data.arrow_files.DECODED", decoded)
            assert rows("t.parquet", reading) == wanted


@pytest.mark.parametrize("new", [pa.ipc.new_file, pa.ipc.new_stream])
def test_texts_that_point_elsewhere_are_refused_with_their_batch(tmp_path, new):
    raw = arrow(pa.concat_tables([TABLE, TABLE]), new, rows=N)
    first = raw.index(OFFSETS)
    second = raw.index(OFFSETS, first + 1)
    broken = bytearray(raw)
    broken[second + 100 : second + 104] = (2**31 - 1).to_bytes(4, "little")
    with pytest.raises(
        BrokenInputError, match=r"a\.arrow: record batch 1 cannot be read as arrow \(.*; the file is dam"
    ):
        read(tmp_path, bytes(broken))


def test_codes_without_a_text_are_refused(tmp_path):
    codes = np.arange(N, dtype=np.int32) % 5
    raw = arrow(TABLE.set_column(1, "c", pa.DictionaryArray.from_arrays(codes, list("abcde"))))
    broken = changed(raw, codes.tobytes(), np.where(codes == 4, 1 << 20, codes).astype(np.int32).tobytes())
    with pytest.raises(BrokenInputError, match="record batch 0 cannot be read"):
        read(tmp_path, broken)


def test_texts_that_are_no_text_are_refused_in_parquet_with_their_row_group(tmp_path):
    table = pa.table({"label": [0, 1], "c": ["first", "other"]})
    sink = io.BytesIO()
    pq.write_table(table, sink, compression="none", use_dictionary=False, row_group_size=1, write_statistics=False)
    with pytest.raises(BrokenInputError, match=r"a\.parquet: row group 1 cannot be read as parquet"):
        read(tmp_path, changed(sink.getvalue(), b"other", b"\xff\xfe\xfd\xfc\xfb"), "a.parquet")


def test_a_stream_has_one_end_and_it_is_seen(tmp_path):
    whole = arrow(TABLE, pa.ipc.new_stream)
    assert len(read(tmp_path, whole)) == N
    for raw, words in (
        (whole[:-8], "the mark at the end of the stream is missing"),
        (whole + b"more", "the mark at the end of the stream is missing"),
        (whole + whole, "there are bytes after byte"),
    ):
        with pytest.raises(BrokenInputError, match=words):
            read(tmp_path, raw)


@pytest.mark.parametrize("at", [0.1, 0.5, 0.9, 0.999])
@pytest.mark.parametrize("packing", [None, "zstd"])
def test_files_that_are_cut_are_refused(tmp_path, at, packing):
    raw = arrow(TABLE, compression=packing)
    with pytest.raises(BrokenInputError, match="cannot be read as arrow"):
        read(tmp_path, raw[: int(at * len(raw))])
    sink = io.BytesIO()
    pq.write_table(TABLE, sink, compression=packing or "none")
    with pytest.raises(BrokenInputError, match="cannot be read as parquet"):
        read(tmp_path, sink.getvalue()[: int(at * len(sink.getvalue()))], "a.parquet")


def test_a_length_without_anything_behind_it_is_refused(tmp_path):
    with pytest.raises(BrokenInputError, match=r"record batch 0 .*it has 4000000 rows, and holds next to nothing"):
        read(tmp_path, arrow(pa.table({"label": pa.nulls(4_000_000)})))


def test_large_batches_and_dictionaries_with_missing_texts_mean_what_plain_ones_do(tmp_path):
    rng = np.random.default_rng(3)
    texts = pa.array([None if k == 7 else f"t{k}" for k in rng.integers(0, 9, 20_000)])
    label = pa.array(np.arange(20_000) % 2)
    hidden = pa.DictionaryArray.from_arrays(pa.array([0, 1, 2, None], pa.int8()), pa.array(["a", None, "b"]))
    plain = read(tmp_path, arrow(pa.table({"label": label, "c": texts})))
    np.testing.assert_array_equal(
        read(tmp_path, arrow(pa.table({"label": label, "c": texts.dictionary_encode()}))), plain
    )
    wanted = read(tmp_path, arrow(pa.table({"label": label[:4], "c": ["a", None, "b", None]})))
    np.testing.assert_array_equal(read(tmp_path, arrow(pa.table({"label": label[:4], "c": hidden}))), wanted)
