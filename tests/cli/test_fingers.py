"""What a user of Vowpal Wabbit has in the fingers, and options that mean nothing where they are given."""

from __future__ import annotations

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
    ],
)
def test_options_from_elsewhere_say_what_to_do_instead(cli, text, options, words):
    code, _, err = cli("train", text, *options)
    assert code == 2
    assert words in err
    assert err.count("\n") == 1


@pytest.mark.parametrize(
    "options",
    [("--positive", "1"), ("--ignore", "a"), ("--label", "y"), ("--weight", "w"), ("--categorical", "a"),
     ("--tag", "t"), ("--numeric", "a"), ("--header",)],
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
