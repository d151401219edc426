"""Every format that makes sense, from every other."""

import itertools

import numpy as np
import pytest

from gaussfold.data.readers import Stream
from gaussfold.data.reading import Reading

TABLE = 'y,age,city,note\n1,0.5,Oslo,a\n0,,Rome,"b, ""c"""\n1,-3,"New York",\n0,1e-05,Oslo,NA\n'


def rows(path, bits=12):
    chunks = list(Stream(path, Reading(bits=bits), copy=True))
    return np.concatenate([chunk.X.toarray() for chunk in chunks]), np.concatenate([chunk.label for chunk in chunks])


def test_tables_become_sparse_text(cli, tmp_path):
    table = tmp_path / "t.csv"
    table.write_text(TABLE)
    code, out, _ = cli("convert", table, "--to", "vw", "--ignore", "note")
    assert code == 0
    assert out.splitlines() == [
        "1 | age:0.5 |city Oslo",
        "-1 |age _ |city Rome",
        "1 | age:-3 |city New_York",
        "-1 | age:1e-05 |city Oslo",
    ]
    assert cli("convert", table, "-o", tmp_path / "t.svmlight", "-b", 12)[0] == 0
    before, after = rows(table), rows(tmp_path / "t.svmlight")
    np.testing.assert_array_equal(before[0], after[0])
    np.testing.assert_array_equal(before[1], after[1])


@pytest.mark.parametrize(("one", "two"), [*itertools.permutations(["csv", "tsv", "parquet", "arrow"], 2)])
def test_tables_become_tables_with_the_same_rows(cli, tmp_path, one, two):
    pytest.importorskip("pyarrow")
    (tmp_path / "t.csv").write_text(TABLE)
    for source, target in (("csv", one), (one, two)):
        if source != target:
            code, _, err = cli("convert", tmp_path / f"t.{source}", "-o", tmp_path / f"t.{target}")
            assert code == 0, err
    (tmp_path / "original.csv").write_text(TABLE)
    wanted, found = rows(tmp_path / "original.csv"), rows(tmp_path / f"t.{two}")
    np.testing.assert_array_equal(found[0], wanted[0])
    np.testing.assert_array_equal(found[1], wanted[1])


def test_text_to_text_keeps_every_field(cli, tmp_path):
    (tmp_path / "t.csv").write_bytes(b"\xef\xbb\xbf" + TABLE.encode())
    _, out, _ = cli("convert", tmp_path / "t.csv", "--to", "tsv", "--ignore", "age")
    assert out.splitlines()[:3] == ["y\tcity\tnote", "1\tOslo\ta", '0\tRome\t"b, ""c"""']


def test_several_tables_become_one_and_bad_records_are_skipped(cli, tmp_path):
    (tmp_path / "a.csv").write_text("y,n\n1,2\n0,3,4\n")
    (tmp_path / "b.csv").write_text("n,y\n5,0\nx,1\n7,1\n")
    code, _, err = cli("convert", tmp_path / "?.csv", "--to", "csv")
    assert code == 3
    assert "a.csv:3: expected as many fields" in err
    pq = pytest.importorskip("pyarrow.parquet")
    code, _, err = cli("convert", tmp_path / "?.csv", "-o", tmp_path / "c.parquet", "--skip-bad", 2, "--numeric", "n")
    assert code == 0, err
    assert "b.csv: column 'n', row 3: expected a finite number" in err
    assert pq.read_table(tmp_path / "c.parquet").to_pydict() == {"y": [1.0, 0.0, 1.0], "n": [2.0, 5.0, 7.0]}
    (tmp_path / "d.csv").write_text("n,z\n5,0\n")
    assert cli("convert", tmp_path / "a.csv", tmp_path / "d.csv", "--to", "csv", "--skip-bad", 9)[0] == 3


def test_vowpal_wabbit_text_keeps_names_tags_weights_and_labels(cli):
    lines = b"1 2.5 'tag|u a:0.5 b |s c\n| d^e\n-1 |u a=1\n"
    code, out, _ = cli("convert", "--to", "vw", stdin=lines)
    assert (code, out.encode()) == (0, lines)
    for text, words in (
        (b"1 |u a\n| d\n", "<stdin>:2: SVMlight needs a label"),
        (b"1 2 |u a\n", "no place for a weight"),
    ):
        code, out, err = cli("convert", "--to", "svmlight", "--format", "vw", stdin=text)
        assert code == 3
        assert words in err
    code, out, _ = cli("convert", "--to", "vw", "--format", "svmlight", stdin=b"1 7:0.5 900000000:2\n")
    assert out == "1 | 7:0.5 900000000:2\n"
    code, out, _ = cli("convert", "--to", "vw", "-q", "us", stdin=b"1 |u a |s c:2\n")
    assert out == "1 |u a |s c:2 |s*u u^a*s^c:2\n" or out == "1 |u a |s c:2 |s*u s^c*u^a:2\n"
    assert cli("convert", "--to", "vw", stdin=b"3.5 |u a\n")[0] == 3
    code, out, _ = cli("convert", "--to", "svmlight", "--real-labels", "-b", 8, "--format", "vw", stdin=b"3.5 | a\n")
    assert (code, out.split()[0]) == (0, "3.5")


def test_what_makes_no_sense_is_refused(cli, tmp_path):
    code, _, err = cli("convert", "--to", "csv", "--format", "vw", stdin=b"1 |u a\n")
    assert code == 2
    assert "vw has no columns" in err
    assert cli("convert", "--to", "xml", stdin=b"1 |u a\n")[0] == 2
    assert cli("convert", "--to", "parquet", stdin=b"a,b\n1,2\n")[0] == 2
    code, _, err = cli("convert", "-o", tmp_path / "no" / "x.vw", stdin=b"1 |u a\n")
    assert code == 5
