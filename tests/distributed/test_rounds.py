"""The driver without an engine: the same bits in any order, with repetitions, after a stop; and near one pass."""

import gzip

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import gaussfold as gf
from gaussfold.cli.model import StreamModel
from gaussfold.data.messages import DataError
from gaussfold.data.readers import Stream
from gaussfold.data.reading import Roles
from gaussfold.data.units import Unit
from gaussfold.distributed import Scheme, ShardError, rounds_of, work
from gaussfold.trace import RowError
from tests.cli.helpers import clicks
from tests.distributed.helpers import SMALL, Dying, Grouped, Here, bits_of, in_order, learn, model


@pytest.fixture
def data(tmp_path):
    path = tmp_path / "clicks.vw"
    path.write_bytes(clicks(4000))
    return path


@given(sizes=st.lists(st.integers(1, 400), min_size=1, max_size=120), done=st.sampled_from([0, 30, 5000]))
def test_a_plan_has_every_unit_once_in_order_and_grows(sizes, done):
    units = [Unit(f"{k}", "vw", rows) for k, rows in enumerate(sizes)]
    rounds = rounds_of(units, SMALL, done)
    assert [unit for shards in rounds for shard in shards for unit in shard.units] == units
    for number, shards in enumerate(rounds):
        assert [(shard.round, shard.index, shard.count) for shard in shards] == [
            (number, k, len(shards)) for k in range(len(shards))
        ]
        assert all(shard.units for shard in shards)
        rows = [sum(unit.rows for unit in shard.units) for shard in shards]
        assert len(shards) <= max(1, min(SMALL.most, sum(rows) // SMALL.head))
        if done < SMALL.head:
            assert len(shards) == 1
        elif len(shards) > 1:  # no shard waits long for another
            assert max(rows) <= sum(rows) / len(shards) + 2 * 400
        done += sum(rows)


MIXED = {"prior": "auto", "lanes": "mixed", "scale": "none"}
OPTIONS = [{}, {"prior": "auto"}, MIXED, {"coupling": "joint"}, {"dtype": "float32"}, {"names": True}]


@pytest.mark.parametrize("options", OPTIONS)
def test_order_and_repetition_do_not_matter(data, options):
    one, outcomes = learn(data, Here(0), model(**options))
    assert max(outcome.shards for outcome in outcomes) > 3
    assert sum(outcome.rows for outcome in outcomes) == 4000 == one.examples
    for engine in (Here(1), Here(2, twice=True), Grouped(3)):
        assert bits_of(learn(data, engine, model(**options))[0]) == bits_of(one)


@pytest.mark.parametrize("stopped", [0, 1, 4, 7])
def test_a_run_that_was_stopped_goes_on_bit_for_bit(data, stopped, tmp_path):
    one, _ = learn(data, Here(0), model("auto"))
    half, place = model("auto"), {}
    with pytest.raises(ShardError):
        learn(data, Dying(stopped), half, place)
    assert place.get("rounds", 0) == stopped
    half.run = dict(place)
    gf.save(half, tmp_path / "m")
    again = gf.load(tmp_path / "m")
    both, outcomes = learn(data, Here(3), again, again.run)
    assert outcomes[0].round == stopped
    assert bits_of(both) == bits_of(one)


def valued(n, seed, start=0):
    """Rows whose features have sizes of their own: 0.01 to 100."""
    rng = np.random.default_rng(7)
    size, weight = 10.0 ** rng.uniform(-2, 2, 30), rng.normal(size=30)
    rng = np.random.default_rng([seed, start])
    which, value = rng.integers(0, 30, (n, 4)), rng.gamma(2.0, 0.5, (n, 4))
    y = np.where(rng.random(n) < 1.0 / (1.0 + np.exp(-(weight[which] * value).sum(axis=1))), 1, -1)
    return "".join(
        f"{label} |f " + " ".join(f"x{j}:{size[j] * v:.5g}" for j, v in zip(js, vs, strict=True)) + "\n"
        for label, js, vs in zip(y, which, value, strict=True)
    )


def test_scales_are_learned_by_shards_as_by_one_pass(tmp_path):
    path = tmp_path / "many.vw"
    path.write_text(valued(12000, 3))
    scheme = Scheme(head=600, most=8)
    one, two = (learn(path, Here(seed), model("auto"), scheme=scheme)[0] for seed in (0, 1))
    assert bits_of(one) == bits_of(two)
    order = in_order(path, model("auto"))
    np.testing.assert_array_equal(one.scales.values[:, 0], order.scales.values[:, 0])
    np.testing.assert_allclose(one.scales.values[:, 1], order.scales.values[:, 1], rtol=1e-4)
    fresh = tmp_path / "fresh.vw"
    fresh.write_text(valued(4000, 3, start=1))
    losses = [
        -np.concatenate([m.score(chunk).log_predictive for chunk in Stream(fresh, m.reading, background=False)]).mean()
        for m in (order, one)
    ]
    assert losses[1] < losses[0] * 1.005, losses


def test_columns_of_tables_are_standardised_by_shards_as_by_one_pass(tmp_path):
    rng = np.random.default_rng(2)
    x = rng.normal(size=(6000, 2)) * [0.01, 50.0] + [3.0, -20.0]
    y = rng.random(6000) < 1.0 / (1.0 + np.exp(-(x - [3.0, -20.0]) @ [150.0, 0.02]))
    path = tmp_path / "t.csv"
    path.write_text("y,a,b\n" + "".join(f"{int(k)},{u:.6f},{v:.4f}\n" for k, (u, v) in zip(y, x, strict=True)))
    roles, scheme = Roles(label="y"), Scheme(head=600, most=8)
    one, two = (learn(path, Here(seed), model("auto"), roles=roles, scheme=scheme)[0] for seed in (0, 1))
    assert bits_of(one) == bits_of(two)
    order = in_order(path, model("auto"), roles=roles)
    np.testing.assert_allclose(one.scales.columns, order.scales.columns, rtol=1e-9)
    assert one.average_loss == pytest.approx(order.average_loss, rel=0.01)


@pytest.mark.parametrize("prior", [0.7, "auto"])
def test_the_loss_is_that_of_one_pass_nearly(tmp_path, prior):
    path = tmp_path / "many.vw"
    path.write_bytes(clicks(30000, seed=5))
    fresh = tmp_path / "fresh.vw"
    fresh.write_bytes(clicks(4000, seed=5, start=30000))
    losses = []
    scheme = Scheme(head=1000, most=16)
    for learned in (in_order(path, model(prior)), learn(path, Here(0), model(prior), scheme=scheme)[0]):
        scores = [learned.score(chunk).log_predictive for chunk in Stream(fresh, learned.reading, background=False)]
        losses.append(-np.concatenate(scores).mean())
    assert losses[1] < losses[0] * 1.003, losses


@pytest.mark.parametrize(("likelihood", "label"), [("gaussian", "{:.3f}"), ("poisson", "{:.0f}")])
def test_other_likelihoods(tmp_path, likelihood, label):
    rng = np.random.default_rng(8)
    weights = rng.normal(size=20) * 0.5
    which = rng.integers(0, 20, 3000)
    y = rng.normal(weights[which]) if likelihood == "gaussian" else rng.poisson(np.exp(weights[which]))
    path = tmp_path / "rows.vw"
    path.write_text("".join(f"{label.format(v)} |a u{k}\n" for v, k in zip(y, which, strict=True)))
    options = {"likelihood": likelihood, "rule": "newton"}
    one, two = (learn(path, Here(seed), model(**options))[0] for seed in (0, 1))
    assert bits_of(one) == bits_of(two)
    assert one.average_loss < in_order(path, model(**options)).average_loss * 1.01


def test_weights_missing_labels_and_names(tmp_path):
    path = tmp_path / "rows.vw"
    lines = clicks(2000).splitlines()
    lines = [line.replace(b" |u", b" 2.5 |u", 1) if k % 3 == 0 else line for k, line in enumerate(lines)]
    nothing = [b"|u " + line.split(b"|u ")[1] if k % 5 == 0 else line for k, line in enumerate(lines)]
    path.write_bytes(b"\n".join(nothing) + b"\n")
    learned, _ = learn(path, Here(0), model("auto", names=True))
    whole = in_order(path, model("auto", names=True))
    np.testing.assert_array_equal(learned.totals[2:], whole.totals[2:])
    assert learned.learned == 1600
    assert learned.names == whole.names


def test_larger_features_have_a_larger_floor(tmp_path):
    """In other units, with a prior in those units, the model is the same."""
    means = []
    for scale in (1.0, 64.0):
        rng = np.random.default_rng(4)
        path = tmp_path / f"{scale}.vw"
        lines = []
        for _ in range(4000):
            a, b = rng.integers(0, 12, 2)
            y = 1 if rng.random() < (a + 1) / 14 else -1
            lines.append(f"{y} |u u{a}:{scale:04.1f} |v v{b}:{scale:04.1f}\n")
        path.write_text("".join(lines))
        start = model(0.7 / scale, scale="none")
        start.reading = gf.data.reading.Reading(bits=10, constant=False)
        start = type(start)(start.setting, start.reading)
        means.append(learn(path, Here(0), start)[0].belief.mean * scale)
    np.testing.assert_allclose(means[0], means[1], rtol=1e-4, atol=1e-4)


def test_bad_records_are_counted_over_all_shards(tmp_path):
    lines = clicks(3000).splitlines()
    for k in (10, 1500, 1501, 2900):
        lines[k] = b"17 |u x"
    path = tmp_path / "bad.vw"
    path.write_bytes(b"\n".join(lines) + b"\n")
    learned, outcomes = learn(path, Here(0), skip_bad=4)
    assert sum(outcome.n_bad for outcome in outcomes) == 4
    assert learned.examples == 2996
    with pytest.raises(DataError, match=r"bad\.vw .*label of -1, 0 or 1"):
        learn(path, Here(0), skip_bad=0)
    with pytest.raises(DataError, match="skip"):
        learn(path, Here(0), skip_bad=3)


def test_a_damaged_row_group_is_refused_or_left_out(tmp_path):
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    rng = np.random.default_rng(2)
    path = tmp_path / "t.parquet"
    rows = pa.table({"y": rng.integers(0, 2, 1500), "a": rng.integers(0, 9, 1500).astype(str)})
    pq.write_table(rows, path, row_group_size=100, use_dictionary=False, compression="none", write_page_checksum=True)
    whole, _ = learn(path, Here(0), roles=Roles(label="y"))
    raw = bytearray(path.read_bytes())
    column = pq.ParquetFile(path).metadata.row_group(7).column(0)
    at = column.data_page_offset + column.total_compressed_size - 20
    raw[at : at + 8] = bytes(255 - byte for byte in raw[at : at + 8])
    path.write_bytes(bytes(raw))
    with pytest.raises(DataError, match=r"t\.parquet \[row group 7\]"):
        learn(path, Here(0), roles=Roles(label="y"))
    left, outcomes = learn(path, Here(0), roles=Roles(label="y"), skip_bad=100)
    assert left.examples == 1400 == whole.examples - 100
    assert any("row group 7" in text for outcome in outcomes for text in outcome.bad)


def test_a_row_that_cannot_be_learned_is_named(tmp_path, monkeypatch):
    path = tmp_path / "rows.vw"
    path.write_bytes(clicks(2000))
    real = StreamModel.learn

    def learn_but_one(self, chunk):
        """The row whose features are as those of row 1900 is out of range."""
        at = next((k for k in range(len(chunk)) if chunk.entries(k) == unlucky), None)
        if at is None:
            return real(self, chunk)
        trace = real(self, chunk.rows(0, at)) if at else None
        raise RowError(at, trace)

    [all_rows] = Stream(path, model().reading, background=False, copy=True)
    unlucky = all_rows.entries(1900)
    same = sum(all_rows.entries(k) == unlucky for k in range(2000))
    monkeypatch.setattr(StreamModel, "learn", learn_but_one)
    with pytest.raises(DataError, match=r"rows\.vw .*rescale"):
        learn(path, Here(0))
    learned, outcomes = learn(path, Here(0), skip_bad=same)
    assert learned.examples == 2000 - same
    assert sum(outcome.n_bad for outcome in outcomes) == same


def test_another_version_is_refused(data, monkeypatch):
    here = work.own_version()
    versions = iter([here] * 3)

    def version():
        return next(versions, "gaussfold 0.0.1, numpy 1, Python 3")

    monkeypatch.setattr(work, "own_version", version)
    with pytest.raises(DataError, match="install the same on both"):
        learn(data, Here(0))


def test_compressed_files_are_shards_of_their_own(tmp_path):
    for k in range(8):
        (tmp_path / f"{k}.vw.gz").write_bytes(gzip.compress(clicks(300, seed=9, start=300 * k)))
    one, _ = learn(str(tmp_path / "*.gz"), Here(0))
    assert one.examples == 2400
    assert bits_of(learn(str(tmp_path / "*.gz"), Here(1))[0]) == bits_of(one)
