import contextlib
import math
import tempfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gaussfold.data import formats
from gaussfold.data.intake import Intake
from gaussfold.data.messages import BadRecordError, DataError
from gaussfold.data.reading import Reading, Roles
from gaussfold.data.sources import Source
from gaussfold.engine.text.numbers import short_number
from tests.reference import parsers

BITS = 9
FOLDER = Path(tempfile.mkdtemp())


def read(raw, kind, *, chunk_bytes=1 << 16, max_bad=0, roles=None, **reading):
    path = FOLDER / "input"
    path.write_bytes(raw)
    intake = Intake(
        Reading(bits=BITS, **reading), roles or Roles(), max_bad=max_bad, chunk_bytes=chunk_bytes, tags=True, ring=3
    )
    rows = []
    with Source(str(path)) as source:
        for chunk in formats.find(kind).read(source, intake):
            rows += list_rows(chunk)
    return rows, intake


def list_rows(chunk):
    rows = []
    for i in range(len(chunk)):
        a, b = chunk.indptr[i], chunk.indptr[i + 1]
        slots = chunk.indices[a:b].tolist()
        assert len(set(slots)) == len(slots)
        rows.append(
            (
                chunk.label[i],
                chunk.weight[i],
                dict(zip(slots, chunk.data[a:b].tolist(), strict=True)),
                chunk.tags[i],
            )
        )
    return rows


def same(found, wanted):
    assert len(found) == len(wanted)
    for ours, theirs in zip(found, wanted, strict=True):
        assert ours[0] == theirs[0] or (math.isnan(ours[0]) and math.isnan(theirs[0]))
        assert ours[1] == theirs[1]
        assert ours[2].keys() == theirs[2].keys()
        for slot, value in ours[2].items():
            assert value == pytest.approx(theirs[2][slot], rel=1e-14, abs=1e-300)


VW = b"""1 |a x y:0.5 z
-1 2.5 'tag|user:2 ann:3 |ad shoes shoes:1.5 red
0 1 0 | plain features here
| no label
1 'quoted |a x
some_tag|b y
1 |
1 |a x |a y |b:0.5 z:4
-1 |longnamespacename averyveryverylongfeaturename:1e-3 exactly8:2 seven77 ninechars
"""


def test_vowpal_wabbit_text_means_what_the_textbook_says():
    rows, _ = read(VW, "vw")
    wanted = [parsers.vw_line(line, BITS) for line in VW.decode().splitlines()]
    same(rows, wanted)
    assert [row[3] for row in rows] == ["", "tag", "", "", "quoted", "some_tag", "", "", ""]


NUMBERED = b"""1 |f 0 7 007 12345678 123456789 99999999999999999999 4294967296 12a 1234567a 123456789a
-1 |12 3:0.5 |f \xd9\xa3 3. +3
"""


@pytest.mark.parametrize("hashing", ["strings", "all"])
def test_a_name_of_digits_is_a_number_unless_all_names_are_hashed(hashing):
    rows, _ = read(NUMBERED, "vw", hash=hashing)
    same(rows, [parsers.vw_line(line, BITS, hashing=hashing) for line in NUMBERED.decode().splitlines()])
    count = len(set(rows[0][2]))
    assert count == (9 if hashing == "strings" else 11)  # 7 is 007, 0 is 2^32; the constant counts


@pytest.mark.parametrize(
    ("interact", "wanted"),
    [
        ("ab", lambda p, q: p[:1] == "a" and q[:1] == "b"),
        ("::", lambda p, q: True),
        ("aa", lambda p, q: p[:1] == "a" and q[:1] == "a"),
        ("user,ad", lambda p, q: (p, q) == ("user", "ad")),
        ("b:", lambda p, q: p[:1] == "b"),
    ],
)
def test_interactions(interact, wanted):
    lines = ["1 |a x y:0.5 z:1 |b u:3 v |c w", "0 |user ann |ad shoes:2 red", "1 |b v u |a y x:2"]
    rows, _ = read("\n".join(lines).encode(), "vw", interact=(interact,))
    same(rows, [parsers.vw_line(line, BITS, wanted) for line in lines])


NAMELESS = [
    "1 |a :2 :3 x:0 y |b :4 z:-0.0",
    "-1 |a:0.5 :2 0:0 1 |a :7",
    "0 | :1.5 x | :2.5",
    "1 |user:0 1 2 3 4 5 6 7 8 |ad 1:0 2:0.0 3",
]


@pytest.mark.parametrize("interact", [(), ("::",)])
def test_features_without_a_name_and_of_value_0(interact):
    """Those without a name are numbered within their namespace, those of value 0 are not there: as in Vowpal Wabbit."""
    rows, _ = read("\n".join(NAMELESS).encode(), "vw", interact=interact)
    wanted = (lambda _p, _q: True) if interact else None
    same(rows, [parsers.vw_line(line, BITS, wanted) for line in NAMELESS])


@pytest.mark.parametrize(
    ("chosen", "used"),
    [
        ({"ignore": ("a",)}, lambda name: name[:1] != "a"),
        ({"ignore": ("ad", " ")}, lambda name: name not in ("ad", "")),
        ({"keep": ("user", "b")}, lambda name: name == "user" or name[:1] == "b"),
        ({"keep": (" ",)}, lambda name: name == ""),
    ],
)
@pytest.mark.parametrize("interact", [(), ("::",), ("ab",)])
def test_namespaces_are_kept_or_ignored(chosen, used, interact):
    lines = ["1 |a x y:0.5 |b u:3 v |c w", "0 |user ann 12 13 14 |ad shoes:2 red | k", "1 |b v |a 1 2 3 |user", "0 |"]
    wanted = {("::",): lambda _p, _q: True, ("ab",): lambda p, q: (p[:1], q[:1]) == ("a", "b")}.get(interact)
    rows, _ = read("\n".join(lines).encode(), "vw", interact=interact, **chosen)
    same(rows, [parsers.vw_line(line, BITS, wanted, used=used) for line in lines])


def test_models_from_before_have_no_squares_of_1():
    line = "1 |a x y:0.5 |b u"
    rows, _ = read(line.encode(), "vw", interact=("::",), squares=False)
    old = parsers.vw_line(line, BITS, lambda _p, _q: True)
    assert len(rows[0][2]) == len(old[2]) - 2  # x*x and u*u
    assert Reading.from_json({**Reading().to_json(), "columns": None}).squares
    document = Reading().to_json()
    del document["squares"], document["keep"], document["ignore"]
    assert not Reading.from_json(document).squares


@pytest.mark.parametrize("seed", range(3))
def test_short_numbers_are_what_python_reads(seed):
    rng = np.random.default_rng(seed)
    texts = ["".join(rng.choice(list("0123456789.-e+ "), rng.integers(1, 11))) for _ in range(3000)]
    texts += [f"{x:.{k}f}" for k, x in zip(rng.integers(0, 7, 3000), rng.normal(0, 50, 3000), strict=True)]
    taken = 0
    for text in texts:
        raw = np.frombuffer(text.encode() + b" 5" + bytes(80), np.uint8)
        value, ok = short_number(raw, 0, len(text))
        body = text.removeprefix("-")
        plain = 0 < len(body) <= 8 and body.replace(".", "", 1).isdigit()
        assert ok == plain, text
        if ok:
            taken += 1
            assert value == float(text), text
    assert taken > 2500


def test_many_interactions_need_no_room_beforehand():
    line = "1 |a " + " ".join(f"f{i}" for i in range(300))
    rows, _ = read(f"{line}\n{line}\n".encode(), "vw", interact=("::",), chunk_bytes=4096)
    wanted = parsers.vw_line(line, BITS, lambda p, q: True)
    same(rows, [wanted, wanted])


SVM = b"+1 1:0.5 7:2 511:1 # a comment\n# only a comment\n\n-1 qid:3 3:1 3:2\n0 99999999:1 512:4 0:1\n1\n"


def test_svmlight_means_what_the_textbook_says():
    rows, _ = read(SVM, "svmlight")
    lines = [line for line in SVM.decode().splitlines() if line.split("#")[0].strip()]
    same(rows, [parsers.svm_line(line, BITS) for line in lines])


TABLE = '1,3.5,"a ""b"", c",2.5\r\n0,,paris,1\r\n\r\n,NA,"x\ny",0.5\r\n-1, -2e3 ,"",1\r\n'


def test_tables_mean_what_the_textbook_says():
    columns = [("y", "label"), ("age", "number"), ("city", "category"), ("w", "weight")]
    rows, reader = read(f"y,age,city,w\r\n{TABLE}".encode(), "csv", roles=Roles(weight="w"))
    assert [(column.name, column.kind) for column in reader.reading.columns] == columns
    same(rows, list(parsers.csv_rows(TABLE, columns, BITS)))


def test_tables_without_header_and_with_tabs():
    columns = [("c0", "label"), ("c1", "category"), ("c2", "number")]
    text = "1\tblue\t2\n0\tred\t\n"
    rows, reader = read(text.encode(), "tsv")
    assert [(column.name, column.kind) for column in reader.reading.columns] == columns
    same(rows, list(parsers.csv_rows(text, columns, BITS, "\t")))


@pytest.mark.parametrize("raw_kind", [(VW, "vw"), (SVM, "svmlight"), (f"y,age,city,w\n{TABLE}".encode(), "csv")])
def test_a_chunk_may_end_anywhere(raw_kind):
    raw, kind = raw_kind
    whole, _ = read(raw, kind)
    for size in [*range(90, 140), 200, 333]:
        same(read(raw, kind, chunk_bytes=size)[0], whole)


@pytest.mark.parametrize("raw_kind", [(VW, "vw"), (SVM, "svmlight"), (b"y,a,b\n1,2,x\n0,3,y\n", "csv")])
def test_line_ends_empty_lines_and_the_byte_order_mark_do_not_matter(raw_kind):
    raw, kind = raw_kind
    whole, _ = read(raw, kind)
    bare = raw.replace(b"\r\n", b"\n")
    same(read(bare.replace(b"\n", b"\r\n"), kind)[0], whole)
    same(read(bare.rstrip(b"\n"), kind)[0], whole)
    same(read(b"\xef\xbb\xbf" + raw, kind)[0], whole)
    same(read(bare.replace(b"\n", b"\n\n"), kind)[0], whole)


BAD = [
    ("vw", "1 a b c", "there is no '|'"),
    ("vw", "7 |a x", "a label of -1, 0 or 1, found '7'"),
    ("vw", "1 -2 |a x", "importance weight >= 0, found '-2'"),
    ("vw", "1 1 0.5 |a x", "initial prediction"),
    ("vw", "1 |a x:", "a finite number as a feature's value"),
    ("vw", "1 |a x:nan", "a finite number as a feature's value, found 'nan'"),
    ("vw", "1 |a x:inf", "found 'inf'"),
    ("vw", "1 |a x:1e308", "between -1e30 and 1e30; rescale the feature, found '1e308'"),
    ("vw", "1 |a x:1:3", "a feature's name before ':'"),
    ("vw", "1 |a :", "a finite number as a feature's value"),
    ("vw", "1 |a:z x", "the namespace's scale, found 'z'"),
    ("svmlight", "2 1:1", "a label of -1, 0 or 1, found '2'"),
    ("svmlight", "1 -3:1", "an integer >= 0 as a feature's index, found '-3'"),
    ("svmlight", "1 x:1", "an integer >= 0 as a feature's index, found 'x'"),
    ("svmlight", "1 5", "expected 'index:value', found '5'"),
    ("svmlight", "1 5:a", "a finite number as a feature's value, found 'a'"),
    ("svmlight", "1 5:1:2", "a finite number"),
    ("csv", "1,2", "as many fields as there are columns"),
    ("csv", "1,2,x,4", "as many fields as there are columns"),
    ("csv", "1,abc,x", "a finite number as a feature's value, found 'abc'"),
    ("csv", '1,2,"x" y', "a closing quote"),
    ("csv", '1,2,"x', "a closing quote"),
    ("csv", "3,2,x", "a label of -1, 0 or 1"),
]
GOOD = {"vw": "1 |a x\n", "svmlight": "1 1:1\n", "csv": "1,2,x\n"}
HEAD = {"vw": "", "svmlight": "", "csv": "y,n,c\n0,1.5,w\n"}


@pytest.mark.parametrize(("kind", "line", "words"), BAD)
def test_a_bad_record_is_named_and_can_be_skipped(kind, line, words):
    before = HEAD[kind] + GOOD[kind] * 2
    text = f"{before}{line}\n{GOOD[kind]}".encode()
    number = before.count("\n") + 1
    roles = Roles(numeric=("n",)) if kind == "csv" else None
    with pytest.raises(BadRecordError) as caught:
        read(text, kind, roles=roles)
    assert f":{number}: expected" in str(caught.value)
    assert words in str(caught.value)
    rows, reader = read(text, kind, max_bad=3, roles=roles)
    assert reader.n_bad == 1
    assert len(rows) == len(read(before.encode(), kind)[0]) + 1


def test_rows_before_a_bad_record_arrive_first():
    path = FOLDER / "bad"
    path.write_bytes(b"1 |a x\n0 |a y\nnonsense\n1 |a z\n")
    intake = Intake(Reading(bits=BITS))
    with Source(str(path)) as source:
        chunks = formats.find("vw").read(source, intake)
        assert next(chunks).label.tolist() == [1.0, 0.0]
        with pytest.raises(BadRecordError, match=r"bad:3: expected"):
            next(chunks)


def test_one_bad_record_too_many_stops():
    text = b"1 |a x\nbad\n" * 5
    rows, reader = read(text, "vw", max_bad=5)
    assert (len(rows), reader.n_bad) == (5, 5)
    with pytest.raises(BadRecordError, match="more than the 4 bad records"):
        read(text, "vw", max_bad=4, chunk_bytes=12)


def test_a_record_without_end_is_refused_not_swallowed(monkeypatch):
    monkeypatch.setattr("gaussfold.data.text.LONGEST_RECORD", 1 << 12)
    with pytest.raises(DataError, match="longer than"):
        read(b"1 |a " + b"x" * (1 << 14), "vw", chunk_bytes=1 << 10)


# Fuzzing: anything at all is either read as the textbook reads it or refused, and never crashes.

TOKENS = [
    "1",
    "-1",
    "0",
    " ",
    "|",
    ":",
    "a",
    "b",
    "x1",
    "0.5",
    "1e5",
    "\n",
    "\r\n",
    "\t",
    "'t",
    "nan",
    "é",
    "\0",
    "|a ",
    "1 |",
    "#",
    "7",
    ",",
    '"',
]


def textbook_vw(raw):
    for line in raw.split(b"\n"):
        blank = "".join(" " if ord(c) <= 32 else c for c in line.decode())
        if blank.strip():
            with contextlib.suppress(parsers.Bad):
                yield parsers.vw_line(blank, BITS)


def textbook_svmlight(raw):
    for line in raw.split(b"\n"):
        blank = "".join(" " if ord(c) <= 32 else c for c in line.decode()).split("#")[0]
        if blank.strip():
            with contextlib.suppress(parsers.Bad):
                yield parsers.svm_line(blank, BITS)


FIRST = b"1,2.5,x,1\n"  # tells the number of columns
COLUMNS = [("c0", "label"), ("c1", "number"), ("c2", "category"), ("c3", "weight")]
ROLES = Roles(label="c0", numeric=("c1",), categorical=("c2",), weight="c3", header=False)


def textbook_csv(raw):
    return parsers.csv_rows(raw.decode(), COLUMNS, BITS)


RUN = "1 |f 1 22 333 4444 55555 666666 7777777 88888888 999999999 12a 5 0 |g:0.5 10 11:2 12 13 14 15 16 17 18 19 20"
VW_LINES = [RUN, "1 |a x", "-1 2.5 'tag|user:2 ann:3 |ad shoes", "1 |", "| y:0.5", "0 1 0 |a b"]
SVM_LINES = ["1 3:0.5 12:1", "-1 qid:4 1:1", "0 5:2 # c"]
CSV_LINES = ["1,2.5,x,1", "0, -3 ,y,0.5", '1,,"a ""b"" c",2', '-1,NA,"x,y",1', "1,?,,1", '"1","2","3","4"']
CSV_LINES.append('0,1e-3,"two\r\nlines",1')
FORMATS = {
    "vw": (textbook_vw, TOKENS, VW_LINES, b"", None),
    "svmlight": (textbook_svmlight, [*TOKENS, "3:", "qid:1", "12:0.5 "], SVM_LINES, b"", None),
    "csv": (textbook_csv, [*TOKENS, ",", ",", '"', '""', ' "', "NA", '",'], CSV_LINES, FIRST, ROLES),
}


@settings(max_examples=300, deadline=None)
@given(st.data(), st.sampled_from(sorted(FORMATS)), st.sampled_from([90, 1 << 16]))
def test_fuzz_against_the_textbook_with_small_counterexamples(data, kind, chunk_bytes):
    textbook, tokens, lines, first, roles = FORMATS[kind]
    raw = first + data.draw(st.lists(st.sampled_from([*tokens, *lines]), max_size=30).map("".join)).encode()
    rows, _ = read(raw, kind, max_bad=10**6, chunk_bytes=chunk_bytes, roles=roles)
    same(rows, list(textbook(raw)))


def damaged(rng, tokens, lines, n):
    """Lines of tokens, and good lines with something put in, taken out or repeated; n of them."""
    found = []
    for kind, size, pick in rng.integers([0, 1, 0], [3, 12, len(lines)], (n, 3)).tolist():
        if kind == 0:
            found.append("".join(tokens[k] for k in rng.integers(0, len(tokens), size)))
            continue
        line = lines[pick]
        for _ in range(1 + size // 5):
            at, token = int(rng.integers(0, len(line) + 1)), tokens[rng.integers(0, len(tokens))]
            line = line[:at] + token + line[at + int(rng.integers(0, 2)) :]
        found.append(line)
    return "\n".join(found).encode()


@pytest.mark.parametrize("kind", sorted(FORMATS))
def test_fuzz_1e5_records_of_each_format_against_the_textbook(kind):
    textbook, tokens, lines, first, roles = FORMATS[kind]
    rng = np.random.default_rng(5)
    good = 0
    for _ in range(50):
        raw = first + damaged(rng, tokens, lines, 2000)
        rows, reader = read(raw, kind, max_bad=10**6, chunk_bytes=1 << 14, roles=roles)
        same(rows, list(textbook(raw)))
        assert reader.n_bad > 0
        good += len(rows)
    assert good > 10_000  # it is not all nonsense


@pytest.mark.parametrize("kind", ["vw", "svmlight", "csv"])
def test_fuzz_random_bytes_never_crash(kind):
    rng = np.random.default_rng(5)
    alphabet = np.frombuffer(b'1-0 |:ax.,"\n\r\te#' + bytes(rng.integers(0, 256, 4, dtype=np.uint8)), np.uint8)
    roles = Roles(header=False)
    for _ in range(30):
        raw = b"\n".join(rng.choice(alphabet, int(n)).tobytes() for n in rng.integers(1, 25, 1000))
        rows, reader = read(raw, kind, max_bad=10**6, roles=roles)
        assert len(rows) + reader.n_bad <= raw.count(b"\n") + 1
        for label, weight, row, _ in rows:
            assert label in (0.0, 1.0) or math.isnan(label)
            assert 0.0 <= weight <= 1e30
            assert all(0 <= slot <= 1 << BITS for slot in row)
            assert all(math.isfinite(value) for value in row.values())


def test_a_quote_that_never_closes_is_a_bad_record_however_long(tmp_path):
    raw = FIRST + b'0,1,"open,1\n' + b"1,2,x,1\n" * 40_000  # longer than Python's csv module takes a field for
    rows, reader = read(raw, "csv", max_bad=1, roles=ROLES)
    assert (len(rows), reader.n_bad) == (40_001, 1)
