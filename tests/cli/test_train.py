import json
import subprocess
import sys

import numpy as np
import pytest

import gaussfold as gf
from tests.cli.helpers import COMMAND, ENVIRONMENT, clicks, last_json, process, same_model


@pytest.fixture
def data(tmp_path):
    path = tmp_path / "clicks.vw"
    path.write_bytes(clicks(3000))
    return path


def test_the_loss_is_that_of_folding_the_rows_one_by_one(cli, data, tmp_path):
    code, out, _ = cli(
        "train", data, "-b", 9, "-f", tmp_path / "m", "--quiet", "--json", "--prior-std", 0.7, "--scale", "none"
    )
    assert code == 0
    found = last_json(out)
    assert found["examples"] == 3000
    assert found["seconds"] > 0
    [chunk] = gf.data.readers.Stream(data, gf.data.reading.Reading(bits=9), copy=True)
    belief = gf.DiagonalGaussian.isotropic(513, std=0.7)
    result = gf.fold(belief, gf.likelihoods.Bernoulli("logit"), chunk.X, chunk.label, rule="newton")
    assert found["average_loss"] == pytest.approx(-result.log_predictive.mean(), rel=1e-12)
    model = gf.load(tmp_path / "m")
    np.testing.assert_array_equal(model.belief.mean, belief.mean)
    np.testing.assert_array_equal(model.belief.var, belief.var)


def test_priors_are_stacked_unless_one_is_named_or_time_passes(cli, data, tmp_path):
    for options, kind in (
        ((), gf.DiagonalStack),
        (("--forgetting", "0.999"), gf.DiagonalMixture),
        (("--prior-std", "a=0.5"), gf.DiagonalGaussian),
    ):
        assert cli("train", data, "-b", 9, "-f", tmp_path / "m", "--quiet", *options)[0] == 0
        assert isinstance(gf.load(tmp_path / "m").belief, kind)


def test_a_best_prior_at_the_end_of_the_grid_is_told(cli, tmp_path):
    """Labels that one huge weight explains: the widest prior wins."""
    raw = b"".join(b"%d |u x:%g\n" % (k % 2, 0.1 * (2 * (k % 2) - 1)) for k in range(2000))
    code, _, err = cli("train", "-b", 10, "--forgetting", 0.99999, "--scale", "none", stdin=raw)
    assert code == 0
    assert "; the largest that is tried, --prior-std takes others)" in err
    code, _, err = cli("train", "-b", 10, "--forgetting", 0.99999, stdin=clicks(3000))
    assert "prior std" in err
    assert "that is tried" not in err


def test_what_is_believed_of_the_lanes_is_told(cli, data):
    code, out, err = cli("train", data, "--json")
    assert code == 0
    lanes = last_json(out)["lanes"]
    assert list(lanes) == ["0.06", "0.4", "2.7", "18", "forgetting", "stacked"]
    assert sum(lanes.values()) == pytest.approx(1.0, abs=1e-5)
    assert f"stacked {lanes['stacked']:.3f}" in err


def test_the_table_shows_loss_label_prediction_and_std(cli, data):
    code, out, err = cli("train", data, "-b", 9, "--prior-std", 1.0, "--scale", "none")
    lines = err.splitlines()
    assert (code, out) == (0, "")
    assert "average" in lines[0]
    counters = [int(line.split()[2]) for line in lines[2:14]]
    assert counters == [2**k for k in range(12)]
    first = lines[2].split()
    assert float(first[0]) == pytest.approx(np.log(2), abs=1e-6)
    assert float(first[5]) == 0.5
    assert float(first[6]) == pytest.approx(np.sqrt(1 + 0.25 + 1 + 1), abs=1e-4)
    assert first[7] == "4"


@pytest.mark.parametrize("prior", ["auto", "0.7"])
@pytest.mark.parametrize("extra", [(), ("--forgetting", "0.97"), ("--float32",)])
def test_training_in_two_parts_is_training_at_once(cli, tmp_path, prior, extra):
    raw = clicks(2000)
    cut = raw.index(b"\n", len(raw) // 3) + 1
    for name, part in (("ab", raw), ("a", raw[:cut]), ("b", raw[cut:])):
        (tmp_path / f"{name}.vw").write_bytes(part)
    common = ("--quiet", "--keep-names")
    assert (
        cli(
            "train",
            tmp_path / "ab.vw",
            "-b",
            8,
            "--prior-std",
            prior,
            "-f",
            tmp_path / "whole",
            *common,
            *extra,
        )[0]
        == 0
    )
    assert (
        cli(
            "train",
            tmp_path / "a.vw",
            "-b",
            8,
            "--prior-std",
            prior,
            "-f",
            tmp_path / "half",
            *common,
            *extra,
        )[0]
        == 0
    )
    assert cli("train", tmp_path / "b.vw", "-i", tmp_path / "half", "-f", tmp_path / "two", *common)[0] == 0
    same_model(tmp_path / "whole", tmp_path / "two")


def test_two_files_a_glob_and_standard_input_are_one_stream(cli, tmp_path):
    raw = clicks(1000)
    cut = raw.index(b"\n", len(raw) // 2) + 1
    (tmp_path / "part1.vw").write_bytes(raw[:cut].rstrip(b"\n"))
    (tmp_path / "part2.vw").write_bytes(raw[cut:])
    options = ("-b", 8, "--quiet", "--format", "vw")
    cli("train", tmp_path / "part1.vw", "-d", tmp_path / "part2.vw", "-f", tmp_path / "two", *options)
    cli("train", tmp_path / "part*.vw", "-f", tmp_path / "glob", *options)
    cli("train", "-", "-f", tmp_path / "stdin", *options, stdin=raw)
    cli("train", "-f", tmp_path / "default", *options, stdin=raw)
    for name in ("glob", "stdin", "default"):
        same_model(tmp_path / "two", tmp_path / name)


def test_saving_and_predicting_change_nothing(cli, data, tmp_path):
    cli("train", data, "-b", 8, "-f", tmp_path / "m", "--quiet")
    before = (tmp_path / "m").read_bytes()
    cli("predict", "-i", tmp_path / "m", data, "-p", tmp_path / "p.csv")
    cli("train", data, "-t", "-i", tmp_path / "m", "-f", tmp_path / "m", "--quiet")
    assert (tmp_path / "m").read_bytes() == before
    gf.save(gf.load(tmp_path / "m"), tmp_path / "again")
    assert (tmp_path / "again").read_bytes() == before


def test_checkpoints_come_after_exactly_n_examples_and_do_not_change_the_model(cli, data, tmp_path, monkeypatch):
    import gaussfold.cli.saving as saving

    cli("train", data, "-b", 8, "-f", tmp_path / "plain", "--quiet", "--keep-names")
    kept, seen = saving.save, []

    def note(model, path):
        seen.append((model.examples, model.run["rows"]))
        kept(model, path)

    monkeypatch.setattr(saving, "save", note)
    cli("train", data, "-b", 8, "-f", tmp_path / "often", "--quiet", "--keep-names", "--checkpoint", 700)
    assert seen == [(700, 700), (1400, 1400), (2100, 2100), (2800, 2800), (3000, 0)]
    same_model(tmp_path / "plain", tmp_path / "often")
    cli("train", data, "-b", 8, "-f", tmp_path / "timed", "--quiet", "--keep-names", "--checkpoint-seconds", 1e-6)
    same_model(tmp_path / "plain", tmp_path / "timed")


def test_the_short_flags_of_vowpal_wabbit(cli, data, tmp_path):
    model, predictions = tmp_path / "m", tmp_path / "p.csv"
    options = ("-b", 12, "-q", "us", "--passes", 2, "--quiet")
    assert cli("train", "-d", data, "-f", model, *options)[0] == 0
    assert cli("train", data, "--final", tmp_path / "long", "--bits", 12, "--interact", "us", *options[4:])[0] == 0
    same_model(model, tmp_path / "long")
    loaded = gf.load(model)
    assert (loaded.reading.bits, loaded.reading.interact, loaded.examples) == (12, ("us",), 6000)
    before = model.read_bytes()
    code, out, _ = cli("train", "-d", data, "-i", model, "-t", "-p", predictions, "--quiet", "--json")
    assert code == 0
    assert model.read_bytes() == before
    assert (last_json(out)["examples"], last_json(out)["learned"]) == (3000, 0)
    code, out, _ = cli("predict", "-d", data, "-i", model)
    assert code == 0
    assert out == predictions.read_text()


def test_passes_are_the_file_twice(cli, data, tmp_path):
    cli("train", data, "-b", 8, "-f", tmp_path / "passes", "--passes", 2, "--quiet")
    cli("train", data, data, "-b", 8, "-f", tmp_path / "twice", "--quiet")
    np.testing.assert_array_equal(gf.load(tmp_path / "passes").belief.mean, gf.load(tmp_path / "twice").belief.mean)


def test_progressive_predictions_have_the_progressive_loss(cli, data, tmp_path):
    _, out, _ = cli("train", data, "-b", 8, "-p", tmp_path / "p.csv", "--quiet", "--json")
    table = np.loadtxt(tmp_path / "p.csv", delimiter=",", skiprows=1)
    [chunk] = gf.data.readers.Stream(data, copy=True)
    p = np.where(chunk.label == 1.0, table[:, 0], 1.0 - table[:, 0])
    assert -np.log(p).mean() == pytest.approx(last_json(out)["average_loss"], abs=1e-7)


def test_weight_zero_and_missing_labels_teach_nothing(cli, tmp_path):
    cli("train", "-b", 8, "-f", tmp_path / "a", "--quiet", stdin=b"1 |u x\n1 0 |u y z\n |u y x\n-1 |u z\n")
    cli("train", "-b", 8, "-f", tmp_path / "b", "--quiet", stdin=b"1 |u x\n-1 |u z\n")
    np.testing.assert_array_equal(gf.load(tmp_path / "a").belief.mean, gf.load(tmp_path / "b").belief.mean)


def test_options_that_contradict_the_model_are_refused(cli, data, tmp_path):
    cli("train", data, "-b", 8, "-f", tmp_path / "m", "--quiet", "--prior-std", 0.7)
    code, _, err = cli("train", data, "-b", 9, "-i", tmp_path / "m")
    assert code == 2
    assert "--bits 9 differs from the model's 8" in err
    assert cli("train", data, "-i", tmp_path / "m", "--prior-std", 1.0, "--quiet")[0] == 2
    assert cli("train", data, "-i", tmp_path / "m", "-b", 8, "--prior-std", 0.7, "--quiet")[0] == 0


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (("--prior-std", "x"), "'auto' or a number > 0"),
        (("--prior-std", "-1"), "'auto' or a number > 0"),
        (("-b", "31"), "from 1 to 30"),
        (("-q", "abc"), "two letters"),
        (("--forgetting", "1.5"), "forgetting=1.5"),
        (("--format", "xml"), "allowed are 'vw'"),
        (("--passes", "0"), "1 or more"),
        (("-t",), "give one with -i"),
        (("--likelihood", "cauchit"), "allowed are 'logit', 'probit', 'gaussian', 'poisson'"),
        (("--checkpoint", "5"), "give one with -f"),
        (("--noise-std", "2"), "it goes with gaussian"),
        (("--prior-std", "auto,u=1"), "alternatives"),
        (("--prior-std", "1", "--prior-std", "2"), "given before"),
        (("--prior-std", "u=x"), "namespace=number"),
        (("--likelihood", "poisson", "--positive", "yes"), "no positive one"),
    ],
)
def test_wrong_usage_has_exit_code_2(cli, data, args, words):
    code, _, err = cli("train", data, *args)
    assert code == 2
    assert words in err


@pytest.mark.parametrize("args", [("--help",), ("train", "--help"), ("--show-completion",), ("--version",)])
def test_help_imports_nothing_heavy(args):
    """What makes it answer in half a second; the time itself is measured in benchmarks, not here."""
    heavy = ["numpy", "numba", "scipy", "sklearn", "narwhals", "safetensors", "pandas", "polars", "pyarrow", "jax"]
    code = (
        f"import sys\nsys.argv[0] = 'gaussfold'\nfrom gaussfold.cli import main\ntry:\n main()\nfinally:\n"
        f" print([m for m in {heavy} if m in sys.modules], file=sys.stderr)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, *args], capture_output=True, env={**ENVIRONMENT, "SHELL": "/bin/bash"}, timeout=60
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr.decode().splitlines()[-1] == "[]"
    assert b"Exit codes" in done.stdout or args[-1] != "--help"


def test_training_imports_only_what_it_needs(tmp_path):
    """Start-up is imports."""
    (tmp_path / "d.vw").write_bytes(clicks(50))
    heavy = [
        "sklearn",
        "scipy.linalg",
        "yaml",
        "scipy.special",
        "scipy.sparse",
        "scipy.stats",
        "pandas",
        "pyarrow",
        "rich",
        "jax",
        "matplotlib",
    ]
    code = (
        "import sys\nfrom gaussfold.cli import main\ntry:\n    main()\n"
        f"finally:\n    print([m for m in {heavy} if m in sys.modules])"
    )
    args = ["train", tmp_path / "d.vw", "-b", 12, "-f", tmp_path / "m", "--quiet"]
    done = subprocess.run(
        [sys.executable, "-c", code, *map(str, args)], env=ENVIRONMENT, capture_output=True, text=True, timeout=120,
        check=False,
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (0, "[]\n"), done.stderr


def test_tables_are_read_alike_from_csv_and_parquet(cli, tmp_path):
    pl = pytest.importorskip("polars")
    rng = np.random.default_rng(3)
    n = 500
    frame = pl.DataFrame(
        {
            "clicked": rng.integers(0, 2, n),
            "age": np.where(rng.random(n) < 0.1, None, rng.normal(size=n).round(3)).astype(float),
            "city": rng.choice(["Oslo", "Rome, Italy", 'the "city"'], n),
        }
    ).with_columns(pl.col("age").fill_nan(None))
    frame.write_csv(tmp_path / "t.csv")
    frame.write_parquet(tmp_path / "t.parquet")
    for name in ("csv", "parquet"):
        code, _, err = cli(
            "train", tmp_path / f"t.{name}", "-b", 8, "-f", tmp_path / name, "--interact", "::", "--quiet"
        )
        assert code == 0, err
    same_model(tmp_path / "csv", tmp_path / "parquet")
    code, out, _ = cli("predict", "-i", tmp_path / "csv", tmp_path / "t.parquet", "--output-format", "jsonl")
    assert code == 0
    assert len(out.splitlines()) == n
    assert json.loads(out.splitlines()[0]).keys() == {"probability", "mean", "std"}


def test_everything_is_written_before_the_process_ends_at_once(data, tmp_path):
    """The command does not take the interpreter apart; output through a pipe must be whole all the same."""
    code, _, err = process("train", data, "-b", 12, "-f", tmp_path / "m", "--quiet")
    assert (code, err) == (0, "")
    code, out, _ = process("predict", data, "-i", tmp_path / "m")
    assert code == 0
    assert out.count(b"\n") == 3001
    assert out.endswith(b"\n")
    with open("/dev/full", "wb") as full:
        done = subprocess.run(
            [*COMMAND, "predict", data, "-i", tmp_path / "m"], stdout=full, env=ENVIRONMENT, timeout=60
        )
    assert done.returncode == 5
