"""Several classes on the command line: labels of every format, predictions, going on, and what is refused."""

import csv
import io
import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import gaussfold as gf
from gaussfold.store import load
from tests.cli.helpers import run

NAMES = ("red", "green", "blue")


def draws(n=240, seed=3):
    rng = np.random.default_rng(seed)
    weights = 1.5 * rng.normal(size=(3, 24))
    a, b = rng.integers(0, 12, n), rng.integers(12, 24, n)
    f = weights[:, a] + weights[:, b]
    return (f + rng.gumbel(size=f.shape)).argmax(axis=0), a, b


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """The same rows as texts and as numbers, in every format."""
    folder = tmp_path_factory.mktemp("classes")
    y, a, b = draws()
    cells = {"u": [f"u{i}" for i in a], "s": [f"s{i}" for i in b]}
    rows = list(zip(y, cells["u"], cells["s"], strict=True))
    (folder / "t.csv").write_text("label,u,s\n" + "".join(f"{NAMES[k]},{u},{s}\n" for k, u, s in rows))
    (folder / "n.csv").write_text("label,u,s\n" + "".join(f"{k + 1}.0,{u},{s}\n" for k, u, s in rows))
    pq.write_table(pa.table({"label": [NAMES[k] for k in y], **cells}), folder / "t.parquet")
    pq.write_table(pa.table({"label": y + 1, **cells}), folder / "n.parquet")
    (folder / "n.vw").write_text("".join(f"{k + 1} |u {u} |s {s}:0.5\n" for k, u, s in rows))
    (folder / "t.vw").write_text("".join(f"{NAMES[k]} |u {u} |s {s}:0.5\n" for k, u, s in rows))
    (folder / "n.svm").write_text("".join(f"{k + 1} {i}:1 {j}:0.5\n" for k, i, j in zip(y, a, b, strict=True)))
    return folder


def table(text):
    rows = list(csv.DictReader(io.StringIO(text)))
    return {name: [row[name] for row in rows] for name in rows[0]}


def arrays(path):
    return {name: array.tobytes() for name, array in load(path).state().items()}


@pytest.mark.parametrize(
    ("one", "other"), [("t.csv", "n.csv"), ("t.csv", "t.parquet"), ("n.csv", "n.parquet"), ("t.vw", "n.vw")]
)
def test_labels_are_what_they_are_called(files, tmp_path, capsys, monkeypatch, one, other):
    """Texts or numbers, 1 or 1.0, in a table or not: the same model bit for bit."""
    for name in (one, other):
        classes = ["--classes", ",".join(NAMES)] if name[0] == "t" else ["--oaa", "3"]
        code, _, err = run(capsys, monkeypatch, "train", files / name, *classes, "-b", "9", "-f", tmp_path / name)
        assert code == 0, err
    assert arrays(tmp_path / one) == arrays(tmp_path / other)


@pytest.mark.parametrize("prior", ["auto", "0.7"])
@pytest.mark.parametrize("name", ["n.vw", "n.svm", "n.csv"])
def test_the_model_is_what_fold_makes(files, tmp_path, capsys, monkeypatch, name, prior):
    path = tmp_path / "m"
    options = ["--oaa", "3", "--prior-std", prior, "-b", "9", "--scale", "none", "-p", tmp_path / "p.csv"]
    code, out, err = run(capsys, monkeypatch, "train", files / name, *options, "-f", path, "--json")
    assert code == 0, err
    if prior == "auto":
        belief = gf.DiagonalClassStack.isotropic(3, 2**9 + 1, dtype="float32")
    else:
        belief = gf.DiagonalBlocks.isotropic(3, 2**9 + 1, 0.7)
    classes = ("1", "2", "3")
    batches = gf.data.read(files / name, labels="class", classes=classes, bits=9, constant=True, chunk_bytes=900)
    scores = [gf.fold(belief, gf.likelihoods.Softmax(3), X, y).log_predictive for X, y, _ in batches]
    scores = np.concatenate(scores)
    assert json.loads(out.splitlines()[-1])["average_loss"] == pytest.approx(-scores.mean(), rel=1e-12)
    state = {name: array.tobytes() for name, array in belief.state().items()}
    assert {key[7:]: value for key, value in arrays(path).items() if key.startswith("belief.")} == state
    told = table((tmp_path / "p.csv").read_text())
    own = [float(told[f"probability_{k + 1}"][i]) for i, k in enumerate(draws()[0])]
    np.testing.assert_allclose(np.log(own), scores, atol=2e-6)


def test_predictions_have_a_column_for_each_class(files, tmp_path, capsys, monkeypatch):
    path = tmp_path / "m"
    assert run(capsys, monkeypatch, "train", files / "t.csv", "--classes", "red,green,blue", "-f", path)[0] == 0
    code, out, _ = run(capsys, monkeypatch, "predict", "-i", path, files / "t.csv")
    assert code == 0
    told = table(out)
    p = np.array([[float(x) for x in told[f"probability_{name}"]] for name in NAMES])
    np.testing.assert_allclose(p.sum(axis=0), 1.0, atol=1e-6)
    assert told["prediction"] == [NAMES[k] for k in p.argmax(axis=0)]
    tested = run(capsys, monkeypatch, "train", "-i", path, "-t", files / "t.csv", "--json")[1]
    loss = -np.log(p[draws()[0], np.arange(240)]).mean()
    assert json.loads(tested.splitlines()[-1])["average_loss"] == pytest.approx(loss, abs=1e-6)
    shown = json.loads(run(capsys, monkeypatch, "inspect", path, "--json")[1])
    assert shown["heaviest"][0]["feature"].endswith(NAMES)


@pytest.mark.parametrize("options", [[], ["--prior-std", "0.7", "--forgetting", "0.97"], ["--forgetting", "0.97"]])
def test_a_run_in_two_is_one_run(files, tmp_path, capsys, monkeypatch, options):
    lines = (files / "n.vw").read_text().splitlines(keepends=True)
    parts = [tmp_path / "a.vw", tmp_path / "b.vw"]
    for part, rows in zip(parts, (lines[:101], lines[101:]), strict=True):
        part.write_text("".join(rows))
    whole, half = tmp_path / "whole", tmp_path / "half"
    assert run(capsys, monkeypatch, "train", files / "n.vw", "--oaa", "3", *options, "-f", whole)[0] == 0
    assert run(capsys, monkeypatch, "train", parts[0], "--oaa", "3", *options, "-f", half)[0] == 0
    assert run(capsys, monkeypatch, "train", parts[1], "-i", half, "-f", half)[0] == 0
    assert arrays(half) == arrays(whole)


def test_rows_without_a_label_or_weight_change_nothing(files, tmp_path, capsys, monkeypatch):
    lines = (files / "t.csv").read_text().splitlines(keepends=True)
    with_more = ["weight," + lines[0], *(f"1,{line}" for line in lines[1:])]
    with_more[40:40] = ["1,,u3,s4\n", "0,blue,u3,s14\n", "1,NA,u5,s20\n"]
    (tmp_path / "more.csv").write_text("".join(with_more))
    plain = ["train", files / "t.csv", "--classes", "red,green,blue"]
    assert run(capsys, monkeypatch, *plain, "-f", tmp_path / "one")[0] == 0
    weighted = ["train", tmp_path / "more.csv", "--classes", "red,green,blue", "--weight", "weight"]
    assert run(capsys, monkeypatch, *weighted, "-f", tmp_path / "more")[0] == 0
    one, more = load(tmp_path / "one"), load(tmp_path / "more")
    np.testing.assert_array_equal(one.belief.mean, more.belief.mean)
    assert (one.examples, more.examples, one.learned, more.learned) == (240, 243, 240, 240)


@pytest.mark.parametrize(
    ("text", "options", "words"),
    [
        (b"7 |f a\n", ["--oaa", "3"], "expected a label among the classes that were announced"),
        (b"x |f a\n", ["--oaa", "3"], "found 'x'"),
        (b"1 |f a\n", ["--oaa", "1"], "greater than or equal to 2"),
        (b"1 |f a\n", ["--classes", "1"], "2 to 1000 are needed"),
        (b"1 |f a\n", ["--classes", "1,2,1.0"], "is there twice"),
        (b"1 |f a\n", ["--classes", "1,,2"], "texts without blanks"),
        (b"1 |f a\n", ["--classes", "1,2", "--oaa", "2"], "give one of them"),
        (b"1 |f a\n", ["--classes", "1,2", "--likelihood", "gaussian"], "leave out --likelihood"),
        (b"1 |f a\n", ["--likelihood", "softmax"], "must be announced"),
        (b"1 |f a\n", ["--oaa", "3", "--rule", "ep"], "leave it out"),
        (b"1 |f a\n", ["--oaa", "3", "--prior-std", "1,f=0.5"], "leave it out"),
        (b"1 |f a\n", ["--oaa", "3", "--workers", "2"], "one process"),
        (b"3 |f a\n", [], "--classes"),
        (b"label,a\nred,1\nblue,2\n", [], "--classes"),
    ],
)
def test_what_makes_no_sense_is_refused_in_a_sentence(tmp_path, capsys, monkeypatch, text, options, words):
    (tmp_path / "in").write_bytes(text)
    code, _, err = run(capsys, monkeypatch, "train", tmp_path / "in", *options, "-f", tmp_path / "m", "--quiet")
    assert code != 0
    assert words in " ".join(err.replace("│", " ").split())
    assert not (tmp_path / "m").exists()


def test_bad_labels_can_be_skipped_and_other_classes_cannot_be_chosen_later(files, tmp_path, capsys, monkeypatch):
    lines = (files / "n.vw").read_text().splitlines(keepends=True)
    (tmp_path / "in.vw").write_text("".join([*lines[:50], "9 |u u1\n", *lines[50:]]))
    options = ["--oaa", "3", "--skip-bad", "1", "-f", tmp_path / "m"]
    assert run(capsys, monkeypatch, "train", tmp_path / "in.vw", *options)[0] == 0
    assert run(capsys, monkeypatch, "train", files / "n.vw", "--oaa", "3", "-f", tmp_path / "whole")[0] == 0
    assert arrays(tmp_path / "m") == arrays(tmp_path / "whole")
    code, _, err = run(capsys, monkeypatch, "train", files / "n.vw", "-i", tmp_path / "m", "--oaa", "4")
    assert code == 2
    assert "differs from the model's" in err
    code, _, err = run(capsys, monkeypatch, "predict", "-i", tmp_path / "m", files / "n.vw", "--thompson")
    assert code != 0
    assert "no one number to draw" in err
