"""A format is one record: how its files are told and read. This file adds one from outside and trains through it."""

import numpy as np
import pytest

from gaussfold.data import formats
from gaussfold.data.chunks import Chunk
from gaussfold.data.formats.base import Format
from gaussfold.data.messages import DataError
from gaussfold.data.readers import Stream
from gaussfold.data.reading import Reading
from tests.cli.helpers import last_json, same_model


def read_words(source, intake):
    """Lines ``yes word word`` or ``no word word``: a word is the number of its letters, as a feature."""
    raw = bytearray(1 << 16)
    filled, _ = source.fill(memoryview(raw))
    lines = raw[:filled].decode().splitlines()
    words = [line.split()[1:] for line in lines]
    width = intake.reading.width
    indptr = np.cumsum([0, *(len(set(map(len, row))) + 1 for row in words)]).astype(np.int32)
    indices = np.array([slot for row in words for slot in (*sorted(set(map(len, row))), width - 1)], np.int32)
    yield Chunk(
        indptr,
        indices,
        np.ones(len(indices)),
        np.array([float(line.startswith("yes")) for line in lines]),
        np.ones(len(lines)),
        width,
        source.name,
        np.arange(1, len(lines) + 1, dtype=np.int32),
    )


MINE = Format(
    name="mine", read=read_words, endings=(".words",), looks_like=lambda line: line.startswith((b"yes ", b"no "))
)
WORDS = "".join(f"{'yes' if k % 3 else 'no'} {'a' * (1 + k % 5)} {'b' * (6 + k % 3)}\n" for k in range(60))


@pytest.fixture
def mine(monkeypatch, tmp_path):
    monkeypatch.setattr(formats, "_registered", dict(formats._registered))
    formats.register(MINE)
    path = tmp_path / "d.words"
    path.write_text(WORDS)
    return path


def test_a_format_from_outside_is_told_by_its_name_and_its_first_line(mine):
    assert formats.names()[-1] == "mine"
    assert formats.format_of_name("x/d.WORDS.gz") == "mine"
    assert formats.format_of_bytes(WORDS.encode(), "x") == "mine"
    [chunk] = Stream(mine, Reading(bits=5))
    assert chunk.X.shape == (60, 33)
    assert chunk.label.sum() == 40


def test_a_format_from_outside_trains_and_predicts(cli, mine, tmp_path):
    code, out, err = cli(
        "train", mine, "--format", "mine", "-b", 5, "-f", tmp_path / "m", "--prior-std", 0.7, "--json", "--quiet"
    )
    assert (code, err) == (0, "")
    assert last_json(out)["examples"] == 60
    (tmp_path / "d.svm").write_text(
        "".join(
            f"{1 if k % 3 else -1} {1 + k % 5}:1 {6 + k % 3}:1\n" for k in range(60)
        )  # the same rows in a format that is known
    )
    assert cli("train", tmp_path / "d.svm", "-b", 5, "-f", tmp_path / "n", "--prior-std", 0.7, "--quiet")[0] == 0
    same_model(tmp_path / "m", tmp_path / "n")
    code, out, _ = cli("predict", mine, "-i", tmp_path / "m")  # told by its ending
    assert code == 0
    assert len(out.splitlines()) == 61


def test_what_a_format_cannot_do_is_refused(cli, mine):
    code, _, err = cli("convert", mine, "--to", "mine")
    assert (code, "mine: it can be read, not written" in err) == (2, True)
    code, _, err = cli("convert", mine, "--to", "csv")
    assert (code, "mine has no columns" in err) == (2, True)


def test_unknown_formats_fail_and_the_allowed_ones_are_listed(cli, mine):
    words = "format='mien': allowed are 'vw', 'svmlight', 'csv', 'tsv', 'parquet', 'arrow', 'mine'"
    with pytest.raises(ValueError, match=words):
        formats.find("mien")
    with pytest.raises(ValueError, match=words):
        Reading(format="mien")
    code, _, err = cli("train", mine, "--format", "mien")
    assert code == 2
    assert words in err
    with pytest.raises(DataError, match="cannot be told"):
        formats.format_of_bytes(b"what is this\n", "x")


def test_every_format_that_is_listed_is_known_under_its_name():
    for name in formats.names():
        found = formats.find(name)
        assert found.name == name
        assert found.endings
        assert (found.open_table is None) != (found.writer is None)
