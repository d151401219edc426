"""``--second-look N``: resumed runs, what it does to a loss, where it is refused."""

from __future__ import annotations

import json

import numpy as np
import pytest

import gaussfold as gf

QUIET = ("--quiet", "--json")


def _rows(n=600, seed=5, numbers=False):
    rng = np.random.default_rng(seed)
    theta = rng.normal(0.0, 1.5, 40)
    lines = []
    for k in range(n):
        there = rng.choice(40, 12, replace=False)
        x = rng.gamma(2.0, 0.5, 12).round(3)
        f = theta[there] @ x
        y = 50.0 + 7.0 * (f + rng.normal()) if numbers else np.where(rng.random() < 1 / (1 + np.exp(-f)), 1, -1)
        head = "" if k % 19 == 3 else f"{y:.6g} {2.5 if k % 7 == 0 else 1} "
        lines.append(f"{head}|f " + " ".join(f"w{j}:{v}" for j, v in zip(there.tolist(), x, strict=True)) + "\n")
    return lines


def _told(cli, *arguments):
    code, out, err = cli("train", *arguments, *QUIET)
    assert code == 0, err
    return json.loads(out.splitlines()[-1])


def _same(left, right):
    left, right = gf.load(left).state(), gf.load(right).state()
    assert left.keys() == right.keys()
    for name in left:
        np.testing.assert_array_equal(left[name], right[name], err_msg=name)


@pytest.mark.parametrize("options", [(), ("--prior-std", 0.7), ("--prior-std", "f=0.3"), ("--likelihood", "gaussian")])
def test_two_files_one_after_the_other(cli, tmp_path, options):
    rows = _rows(numbers="gaussian" in options)
    for name, part in (("whole", rows), ("a", rows[:237]), ("b", rows[237:])):
        (tmp_path / f"{name}.vw").write_text("".join(part))
    options = (*options, "--second-look", 31)
    _told(cli, tmp_path / "whole.vw", "-f", tmp_path / "one", *options)
    _told(cli, tmp_path / "a.vw", "-f", tmp_path / "half", *options)
    _told(cli, tmp_path / "b.vw", "-i", tmp_path / "half", "-f", tmp_path / "two")
    _same(tmp_path / "one", tmp_path / "two")


def test_what_it_does(cli, tmp_path):
    path = tmp_path / "rows.vw"
    path.write_text("".join(_rows(3000)))
    once = _told(cli, path, "-f", tmp_path / "once")
    twice = _told(cli, path, "-f", tmp_path / "twice", "--second-look", 300)
    assert twice["average_loss"] < once["average_loss"]
    never = _told(cli, path, "-f", tmp_path / "never", "--second-look", 0)
    assert never["average_loss"] == once["average_loss"]
    _same(tmp_path / "never", tmp_path / "once")


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--second-look", -1), "second-look"),
        (("--second-look", "many"), "second-look"),
        (("--second-look", 5, "--forgetting", 0.9), "faded"),
        (("--second-look", 5, "--classes", "a,b"), "--classes"),
        (("--second-look", 5, "--workers", 2), "--workers"),
    ],
)
def test_refused(cli, tmp_path, options, said):
    path = tmp_path / "rows.vw"
    path.write_text("".join(_rows(50)))
    code, _, err = cli("train", path, "-f", tmp_path / "m", *options)
    assert code == 2
    assert said in err
    assert not (tmp_path / "m").exists()


def test_a_model_goes_on_as_it_began(cli, tmp_path):
    path = tmp_path / "rows.vw"
    path.write_text("".join(_rows(50)))
    _told(cli, path, "-f", tmp_path / "m", "--second-look", 5)
    code, _, err = cli("train", path, "-i", tmp_path / "m", "--second-look", 6)
    assert code == 2
    assert "differs from the model's 5" in err
