"""Features in units of their own spread: the definition, chunks, files, and what a table gains."""

from __future__ import annotations

import json

import numpy as np
import pytest

import gaussfold as gf
from gaussfold.cli.model import StreamModel
from gaussfold.cli.scales import Scales
from gaussfold.cli.setting import Setting
from gaussfold.data.chunks import Chunk
from gaussfold.data.reading import Column, Reading
from tests.reference.scaling import divided, standardised

RNG = np.random.default_rng(0)
TABLE = Reading(
    bits=8, columns=(Column("y", "label"), Column("a", "number"), Column("b", "number"), Column("c", "category"))
)


def _chunk(values, slots, label, weight, width=257):
    """One feature of each slot in every row."""
    n, k = values.shape
    return Chunk(
        np.arange(0, n * k + 1, k, dtype=np.int32), np.tile(np.array(slots, np.int32), n), values.ravel().copy(),
        label, weight, width, "test", np.arange(1, n + 1),
    )  # fmt: skip


def _rows(n=50):
    label = RNG.integers(0, 2, n).astype(float)
    label[::7] = np.nan
    return RNG.normal(300.0, 20.0, (n, 2)) * [1e-4, 1e3], label, RNG.choice([1.0, 0.0, 2.5], n)


def _slots(reading):
    scales = Scales()
    values, label, weight = _rows(1)
    scales.scaled(_chunk(values, (0, 1), label, weight), reading, learn=False)
    return scales.slots


def test_columns_are_standardised_by_what_was_learned_so_far():
    values, label, weight = _rows()
    slots = _slots(TABLE)
    scaled = Scales().scaled(_chunk(values, slots, label, weight), TABLE, learn=True).data.reshape(-1, 2)
    learn = ~np.isnan(label) & (weight > 0)
    for k in range(2):
        np.testing.assert_allclose(scaled[:, k], standardised(values[:, k], learn), rtol=1e-6, atol=1e-9)


def test_values_of_sparse_features_are_divided_by_their_root_mean_square():
    label, weight = np.ones(60), np.ones(60)
    label[::5] = np.nan
    values = np.column_stack([RNG.choice([1.0, 0.0, 3.0, -0.2], 60), np.full(60, 1.0), RNG.gamma(2.0, 1e6, 60)])
    reading = Reading(bits=8)
    scaled = Scales().scaled(_chunk(values, (3, 4, 256), label, weight), reading, learn=True).data.reshape(-1, 3)
    learn = ~np.isnan(label)
    for k in range(3):
        np.testing.assert_allclose(scaled[:, k], divided(values[:, k], learn), rtol=1e-5)


def test_ones_need_no_scales():
    chunk = _chunk(np.ones((5, 2)), (1, 2), np.ones(5), np.ones(5))
    scales = Scales()
    assert scales.scaled(chunk, Reading(bits=8), learn=True) is chunk
    assert not scales.arrays()


@pytest.mark.parametrize("reading", [TABLE, Reading(bits=8)])
def test_any_chunking_and_any_pause_give_the_same(reading):
    values, label, weight = _rows(120)
    chunk = _chunk(values, _slots(TABLE) if reading is TABLE else (3, 4), label, weight)
    once, pieces = Scales(), Scales()
    whole = once.scaled(chunk, reading, learn=True)
    parts = []
    for start in range(0, 120, 17):
        parts.append(pieces.scaled(chunk.rows(start, min(start + 17, 120)), reading, learn=True).data)
        pieces = Scales.from_arrays(pieces.arrays(), 257)
    np.testing.assert_array_equal(whole.data, np.concatenate(parts))
    for name, array in once.arrays().items():
        np.testing.assert_array_equal(array, pieces.arrays()[name])


def test_what_is_not_learned_is_taken_back():
    """A count that no rate explains ends the run; the scales are those of the rows before it."""
    label = np.array([1.0, 0.0, 2.0, 1.0, 1e100, 1.0])
    values = RNG.normal(0, 1, (6, 2))
    reading = Reading(bits=8, labels="count")
    chunk = _chunk(values, (3, 4), label, np.ones(6))
    setting = Setting(likelihood="poisson", prior_std=1.0)
    whole, prefix = StreamModel(setting, reading), StreamModel(setting, reading)
    try:
        whole.learn(chunk)
        stop = 6
    except gf.trace.RowError as error:
        stop = error.row
    prefix.learn(chunk.rows(0, stop))
    for name, array in prefix.state().items():
        np.testing.assert_array_equal(array, whole.state()[name], err_msg=name)


def _write(path, n=600, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, 5))
    y = rng.random(n) < 1 / (1 + np.exp(-X @ np.array([2.0, -1.0, 1.0, 0.5, 0.0])))
    X = (X + 5.0) * 10.0 ** np.arange(-6, 4, 2)
    lines = [f"{int(label)},{','.join(map(repr, row))}" for label, row in zip(y, X.tolist(), strict=True)]
    path.write_text("label,a,b,c,d,e\n" + "\n".join(lines) + "\n")
    return path


def test_columns_in_any_unit(tmp_path, cli):
    """A table in units from a millionth to a thousand is learned as its standardised twin would be."""
    table = _write(tmp_path / "table.csv", 1500)
    losses = {}
    for scale in ("auto", "none"):
        _, out, _ = cli("train", table, "--scale", scale, "--quiet", "--json")
        losses[scale] = json.loads(out.splitlines()[-1])["average_loss"]
    assert losses["auto"] < 0.45 < losses["none"]


@pytest.mark.parametrize("scale", ["auto", "none"])
@pytest.mark.parametrize("prior", ["auto", "0.7"])
def test_saved_and_gone_on_with_bit_for_bit(tmp_path, cli, scale, prior):
    table = _write(tmp_path / "all.csv")
    lines = table.read_text().splitlines(keepends=True)
    (tmp_path / "a.csv").write_text("".join(lines[:250]))
    (tmp_path / "b.csv").write_text(lines[0] + "".join(lines[250:]))
    options = ("--scale", scale, "--prior-std", prior, "--quiet")
    cli("train", table, "-f", str(tmp_path / "all"), *options)
    cli("train", str(tmp_path / "a.csv"), "-f", str(tmp_path / "half"), *options)
    cli("train", str(tmp_path / "b.csv"), "-i", str(tmp_path / "half"), "-f", str(tmp_path / "rest"), "--quiet")
    one, other = gf.load(tmp_path / "all").state(), gf.load(tmp_path / "rest").state()
    assert one.keys() == other.keys()
    for name in one:
        np.testing.assert_array_equal(one[name], other[name], err_msg=name)


@pytest.mark.parametrize("lie", [{"scales.slots": np.array([5, 3])}, {"scales.columns": -np.ones((2, 3))}])
def test_a_file_that_lies_is_refused(lie):
    arrays = {"scales.slots": np.array([3, 5]), "scales.columns": np.ones((2, 3))}
    with pytest.raises(ValueError, match="scales"):
        Scales.from_arrays(arrays | lie, 257)
