"""Units cover an input once, whatever it is; inputs that do not go together are refused before any row is learned."""

import gzip
from dataclasses import replace

import numpy as np
import pytest

from gaussfold.data.intake import Intake
from gaussfold.data.messages import DataError
from gaussfold.data.readers import Stream
from gaussfold.data.reading import Reading, Roles
from gaussfold.data.units import read_unit, units_of
from tests.cli.helpers import clicks

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")


def table(n, seed=0, **more):
    rng = np.random.default_rng(seed)
    columns = {"click": rng.integers(0, 2, n), "user": rng.integers(0, 30, n).astype(str), "age": rng.normal(size=n)}
    return pa.table({**columns, **more})


def rows_of(chunks):
    return [
        (float(chunk.label[k]), sorted(chunk.entries(k))) for chunk in chunks for k in range(len(chunk))
    ]  # fmt: skip


def write(kind, tmp_path):
    path = tmp_path / f"rows.{kind}"
    if kind == "vw":
        path.write_bytes(clicks(700))
    elif kind == "vw without a last newline":
        path.write_bytes(clicks(700)[:-1])
    elif kind == "vw.gz":
        path.write_bytes(gzip.compress(clicks(700)))
    elif kind in ("csv", "tsv"):
        mark = "," if kind == "csv" else "\t"
        body = [(str(row["click"]), row["user"], f"{row['age']:.6f}") for row in table(700).to_pylist()]
        lines = [mark.join(row) for row in [("click", "user", "age"), *body]]
        path.write_text("\n".join(lines) + "\n")
    elif kind == "arrow":
        with pa.ipc.new_file(path, table(700).schema) as file:
            file.write_table(table(700))
    else:
        pq.write_table(table(700), path, row_group_size=150)
    return path


@pytest.mark.parametrize("kind", ["vw", "vw without a last newline", "vw.gz", "csv", "tsv", "arrow", "parquet"])
@pytest.mark.parametrize("unit_rows", [20, 150, 5000])
def test_every_row_is_in_one_unit(kind, unit_rows, tmp_path):
    path = write(kind, tmp_path)
    reading = Reading(bits=10, format=kind.split()[0] if "without" in kind else None)
    found = units_of(path, reading, Roles(), unit_rows)
    whole = rows_of(Stream(path, reading, background=False, copy=True))
    read = (read_unit(unit, Intake(found.reading, ring=2)) for unit in found.units)
    parts = [row for chunks in read for row in rows_of(chunk.copied() for chunk in chunks)]
    assert parts == whole
    assert len(whole) == 700
    if kind in ("vw", "csv", "tsv") and unit_rows == 20:
        assert len(found.units) > 5
    if kind == "parquet":
        assert [unit.rows for unit in found.units] == [150, 150, 150, 150, 100]
    assert units_of(path, reading, Roles(), unit_rows) == found


def test_the_digest_is_of_the_data_not_of_the_place(tmp_path):
    path = write("vw", tmp_path)
    one = units_of(path, Reading(bits=10), Roles(), 100)
    (tmp_path / "other").mkdir()
    copy = tmp_path / "other" / path.name
    copy.write_bytes(path.read_bytes())
    assert units_of(copy, Reading(bits=10), Roles(), 100).digest == one.digest
    assert units_of(path, Reading(bits=11), Roles(), 100).digest != one.digest
    raw = bytearray(path.read_bytes())
    raw[2:3] = b"9"
    path.write_bytes(bytes(raw))
    assert units_of(path, Reading(bits=10), Roles(), 100).digest != one.digest


@pytest.mark.parametrize("kind", ["csv", "parquet", "arrow"])
def test_a_model_that_knows_the_columns_knows_its_input_again(kind, tmp_path):
    path = write(kind, tmp_path)
    one = units_of(path, Reading(bits=10), Roles(label="click"), 100)
    assert one.reading.columns is not None
    again = units_of(path, replace(one.reading, format=None), Roles(), 100)
    assert again.digest == one.digest
    assert units_of(path, Reading(bits=10), Roles(label="click", ignore=("age",)), 100).digest != one.digest


def test_several_files_and_an_empty_one(tmp_path):
    for k in range(3):
        (tmp_path / f"{k}.vw").write_bytes(clicks(100, seed=k) if k != 1 else b"")
    found = units_of(str(tmp_path / "*.vw"), Reading(bits=10), Roles(), 1000)
    assert [unit.path[-4:] for unit in found.units] == ["0.vw", "2.vw"]


def files(tmp_path, *tables):
    for k, one in enumerate(tables):
        pq.write_table(one, tmp_path / f"{k}.parquet")
    return str(tmp_path / "*.parquet")


def test_inputs_that_do_not_go_together_are_refused(tmp_path):
    def refused(paths, match, reading=None, roles=None):
        with pytest.raises(DataError, match=match):
            units_of(paths, reading or Reading(bits=10), roles or Roles(label="click"), 100)

    refused(str(tmp_path / "*.nothing"), "no file matches")
    refused("-", "standard input")
    paths = files(tmp_path, table(50), table(50).drop_columns(["age"]))
    refused(paths, r"1\.parquet.*'age' is missing")
    paths = files(tmp_path, table(50), table(50).drop_columns(["click"]))
    refused(paths, r"1\.parquet.*'click' is missing")
    paths = files(tmp_path, table(50), table(50).set_column(2, "age", pa.array(["x"] * 50)))
    refused(paths, r"1\.parquet.*'age' holds string, in .*0\.parquet double")
    refused(paths, "no column 'clack'", roles=Roles(label="clack"))
    (tmp_path / "empty.vw").write_bytes(b"")
    refused(tmp_path / "empty.vw", "no rows")
    (tmp_path / "a.csv").write_text("click,age\n1,2\n0,3\n")
    (tmp_path / "b.csv").write_text("age,size\n1,2\n0,3\n")
    refused([tmp_path / "a.csv", tmp_path / "b.csv"], r"b\.csv.*'click'")
    (tmp_path / "x.vw").write_bytes(clicks(10))
    refused([tmp_path / "a.csv", tmp_path / "x.vw"], r"x\.vw.*one kind")


def test_a_field_over_several_lines_is_seen(tmp_path):
    path = tmp_path / "quoted.csv"
    path.write_text("click,user\n" + "".join(f'{k % 2},"{"a" * 30}\n{k}"\n' for k in range(400)))
    found = units_of(path, Reading(bits=10), Roles(label="click"), 29)
    read = (list(read_unit(unit, Intake(found.reading, max_bad=1 << 30))) for unit in found.units)
    with pytest.raises(DataError, match="quoted field runs over"):
        list(read)
