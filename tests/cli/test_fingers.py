"""What a user of Vowpal Wabbit has in the fingers, and options that mean nothing where they are given."""

from __future__ import annotations

import bz2
import json
import lzma

import numpy as np
import pytest

import gaussfold as gf
from tests.cli.helpers import clicks


@pytest.fixture
def text(tmp_path):
    path = tmp_path / "clicks.vw"
    path.write_bytes(clicks(200))
    return path


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("-l", "0.5"), "--prior-std"),
        (("--power_t", "0"), "--forgetting"),
        (("--loss_function", "logistic"), "--likelihood"),
        (("-c",), "cached"),
        (("-k",), "stale"),
        (("--cache_file", "x"), "cached"),
        (("--ftrl",), "--ftrl is Vowpal Wabbit's: nothing is stepped"),
        (("--l2", "0.1"), "--prior-std"),
        (("--holdout_off",), "held out"),
        (("--save_resume",), "--resume"),
        (("--interactions", "ab"), "-q multiplies"),
        (("--bfgs",), "--second-look"),
        (("--min_prediction", "0"), "--label-range none"),
    ],
)
def test_options_from_elsewhere_say_what_to_do_instead(cli, text, options, words):
    code, _, err = cli("train", text, *options)
    assert code == 2
    assert words in err
    assert err.count("\n") == 1


@pytest.mark.parametrize(
    "options",
    [("--positive", "1"), ("--label", "y"), ("--weight", "w"), ("--categorical", "a"),
     ("--tag", "t"), ("--numeric", "a"), ("--header",), ("--separator", ";")],
)  # fmt: skip
def test_options_of_columns_are_refused_where_there_are_none(cli, text, tmp_path, options):
    code, _, err = cli("train", text, "-f", tmp_path / "model", *options)
    assert code == 2
    assert "vw has no columns" in err
    assert not (tmp_path / "model").exists()


def test_no_constant(cli, text, tmp_path):
    code, _, _ = cli("train", text, "--noconstant", "-f", tmp_path / "model", "--quiet")
    assert code == 0
    model = gf.load(tmp_path / "model")
    assert model.belief.dim == 2**18
    code, _, err = cli("train", text, "-i", tmp_path / "model", "--quiet")
    assert code == 0
    cli("train", text, "-f", tmp_path / "other", "--quiet")
    code, _, err = cli("train", text, "-i", tmp_path / "other", "--noconstant")
    assert code == 2
    assert "noconstant" in err


ANSWERS = "y,x,town\n" + "".join(f"{'NO' if k % 3 else 'YES'},{k % 7},{'ab'[k % 2]}\n" for k in range(30))


def _answers(folder, kind, text=ANSWERS):
    path = folder / f"answers.{kind}"
    if kind == "csv":
        path.write_text(text)
    else:
        csv, parquet = pytest.importorskip("pyarrow.csv"), pytest.importorskip("pyarrow.parquet")
        (folder / "answers.csv").write_text(text)
        parquet.write_table(csv.read_csv(folder / "answers.csv"), path)
    return path


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_a_positive_label_that_never_comes_is_an_error(cli, tmp_path, kind):
    path = _answers(tmp_path, kind)
    code, _, err = cli("train", path, "--positive", "YEP", "-f", tmp_path / "model")
    assert code == 3
    assert "'YEP'" in err
    assert "'YES', 'NO'" in err
    assert not (tmp_path / "model").exists()
    assert cli("train", path, "--positive", "YES", "--quiet")[0] == 0
    alike = _answers(tmp_path, kind, ANSWERS.replace("YES", "NO"))  # one label only: the other may be rare
    code, _, err = cli("train", alike, "--positive", "YES", "--quiet")
    assert (code, "no label is 'YES'" in err) == (3, True)


def test_a_later_day_without_a_positive_label_is_none(cli, tmp_path):
    assert cli("train", _answers(tmp_path, "csv"), "--positive", "YES", "-f", tmp_path / "m", "--quiet")[0] == 0
    later = _answers(tmp_path, "csv", ANSWERS.replace("YES", "NO"))
    assert cli("train", later, "-i", tmp_path / "m", "--quiet")[0] == 0


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_labels_that_are_texts_name_the_option(cli, tmp_path, kind):
    code, _, err = cli("train", _answers(tmp_path, kind), "--quiet")
    assert (code, "--positive" in err) == (3, True)


@pytest.mark.parametrize(("label", "likelihood"), [("2.5", "logit"), ("7", "probit"), ("-3.5", "poisson")])
def test_labels_that_are_numbers_name_the_likelihood(cli, tmp_path, label, likelihood):
    path = tmp_path / "numbers.vw"
    path.write_text(f"{label} |a x\n")
    code, _, err = cli("train", path, "--likelihood", likelihood, "--quiet")
    assert (code, "--likelihood gaussian" in err) == (3, True)


@pytest.mark.parametrize("option", [("--separator", ";"), ("--header",), ("--no-header",)])
def test_a_typed_table_has_no_fields_of_text(cli, tmp_path, option):
    code, _, err = cli("train", _answers(tmp_path, "parquet"), "--positive", "YES", *option)
    assert (code, "parquet is no text" in err) == (2, True)


@pytest.mark.parametrize("kind", ["csv", "parquet"])
@pytest.mark.parametrize("option", [("--label", "town"), ("--ignore", "x"), ("--weight", "x"), ("--numeric", "2")])
def test_columns_mean_what_they_meant_when_the_model_was_begun(cli, tmp_path, kind, option):
    path = _answers(tmp_path, kind)
    assert cli("train", path, "--positive", "YES", "-f", tmp_path / "m", "--quiet")[0] == 0
    code, _, err = cli("train", path, "-i", tmp_path / "m", *option)
    assert (code, "leave it out" in err) == (2, True)
    assert cli("train", path, "-i", tmp_path / "m", "--label", "y", "--categorical", "2", "--quiet")[0] == 0


def test_predictions_are_tagged_by_a_column_that_is_no_feature(cli, tmp_path):
    path = _answers(tmp_path, "csv")
    assert cli("train", path, "--positive", "YES", "--ignore", "town", "-f", tmp_path / "m", "--quiet")[0] == 0
    code, out, _ = cli("predict", "-i", tmp_path / "m", path, "--tag", "town")
    assert code == 0
    assert [line.rpartition(",")[2] for line in out.splitlines()[:4]] == ["tag", "a", "b", "a"]
    code, _, err = cli("predict", "-i", tmp_path / "m", path, "--tag", "x")
    assert (code, "cannot be the tag" in err) == (3, True)


def test_a_prior_for_a_namespace_that_never_comes_is_told(cli, text):
    code, _, err = cli("train", text, "--prior-std", "1,nobody=0.3", "--quiet")
    assert (code, err.count("'nobody'")) == (0, 1)


@pytest.mark.parametrize("head", ["a;y", '"a";"y"', "long name;y"])
def test_semicolons_are_noticed(cli, tmp_path, head):
    path = tmp_path / "table"
    path.write_text(f"{head}\n3.5;1\n2.5;0\n")
    code, _, err = cli("train", path, "--quiet")
    assert (code, "separated by semicolons: --separator ';'" in err) == (3, True)
    assert cli("train", path, "--separator", ";", "--quiet")[0] == 0


@pytest.mark.parametrize(("ending", "pack"), [(".bz2", bz2.compress), (".xz", lzma.compress)])
def test_bzip2_and_xz_are_undone_to_their_end(cli, tmp_path, ending, pack):
    raw = clicks(3000)
    plain, packed = tmp_path / "clicks.vw", tmp_path / f"clicks.vw{ending}"
    plain.write_bytes(raw)
    half = raw.find(b"\n", len(raw) // 2) - 7  # in the middle of a line: streams follow each other as members do
    packed.write_bytes(pack(raw[:half]) + pack(raw[half:]))
    for path in (plain, packed):
        assert cli("train", path, "-f", tmp_path / path.suffix[1:], "--quiet")[0] == 0
    one, two = (gf.load(tmp_path / name).state() for name in ("vw", ending[1:]))
    for name, array in one.items():
        np.testing.assert_array_equal(array, two[name], err_msg=name)
    for broken in (packed.read_bytes()[:-3], packed.read_bytes()[: len(pack(raw[:half])) + 9]):
        packed.write_bytes(broken)
        code, _, err = cli("train", packed, "-f", tmp_path / "cut", "--quiet")
        assert (code, "truncated or damaged" in err) == (3, True)
        assert not (tmp_path / "cut").exists()


def test_a_text_may_begin_as_bzip2_does(cli, tmp_path):
    path = tmp_path / "table.csv"
    path.write_text("BZh9,y\n3.5,1\n2.5,0\n")
    assert cli("train", path, "--quiet")[0] == 0


def test_several_passes_tell_the_loss_of_the_first(cli, text):
    found = [json.loads(cli("train", text, "--passes", k, "--json", "--quiet")[1].splitlines()[-1]) for k in (1, 3)]
    assert found[1]["first_pass_loss"] == found[0]["average_loss"]
    assert found[1]["average_loss"] < found[1]["first_pass_loss"]
    assert "first_pass_loss" not in found[0]
    assert "rows seen before" in cli("train", text, "--passes", 3)[2]


def _names(path):
    return sorted(gf.load(path).names.values())


@pytest.mark.parametrize(
    ("options", "left"),
    [
        (("--ignore", "u"), "st"),
        (("--ignore", "u,t"), "s"),
        (("--keep", "t"), "t"),
        (("--keep", "t", "--keep", "s"), "st"),
    ],
)
def test_namespaces_are_kept_or_ignored(cli, text, tmp_path, options, left):
    """A line of the file is ``1 |u u7 |s s2:0.5 |t t9``."""
    whole, rest = tmp_path / "m", tmp_path / "rest"
    assert cli("train", text, *options, "--keep-names", "-f", whole, "--quiet")[0] == 0
    assert {name[0] for name in _names(whole)} == set(left)
    code, _, err = cli("train", text, "-i", whole, "--ignore", "s,u")
    assert (code, "differs from the model's" in err) == (2, True)
    lines = text.read_bytes().splitlines(keepends=True)
    parts = [tmp_path / "a.vw", tmp_path / "b.vw"]
    for part, some in zip(parts, (lines[:77], lines[77:]), strict=True):
        part.write_bytes(b"".join(some))
    assert cli("train", parts[0], *options, "--keep-names", "-f", rest, "--quiet")[0] == 0
    assert cli("train", parts[1], "-i", rest, "-f", rest, "--quiet")[0] == 0
    for name, array in gf.load(whole).state().items():
        np.testing.assert_array_equal(array, gf.load(rest).state()[name], err_msg=name)


@pytest.mark.parametrize("kind", ["csv", "parquet"])
@pytest.mark.parametrize("options", [("--keep", "town"), ("--ignore", "x"), ("--keep", "2")])
def test_columns_are_kept_or_ignored(cli, tmp_path, kind, options):
    path = _answers(tmp_path, kind)
    code, _, err = cli("train", path, "--positive", "YES", *options, "--keep-names", "-f", tmp_path / "m", "--quiet")
    assert (code, err) == (0, "")
    assert _names(tmp_path / "m") == ["town=a", "town=b"]


def test_what_is_kept_is_not_ignored(cli, text, tmp_path):
    code, _, err = cli("train", text, "--keep", "a", "--ignore", "b")
    assert (code, "give one of them" in err) == (2, True)
    numbered = tmp_path / "rows.svm"
    numbered.write_text("1 3:1\n")
    for option in ("--keep", "--ignore"):
        code, _, err = cli("train", numbered, option, "a")
        assert (code, "svmlight has no columns" in err) == (2, True)
