"""The experiments of the sparse online paper: streams have the laws they claim, quick runs order the methods."""

import math

import numpy as np
import pytest
from experiments.registry import Context
from experiments.sparse import regret, sampled_vb
from experiments.sparse.keeping import kept
from experiments.sparse.learners import METHODS, Batches
from experiments.sparse.sampled_vb import SampledVB
from experiments.sparse.streams import Stream

from tests.reference import diagonal as paper
from tests.test_experiments import run


def test_bernoulli_streams_have_the_law():
    (chunk,) = Stream(200, 20, 1.0).chunks(20_000, seed=1)
    counts = np.diff(chunk.rows.indptr)
    assert counts.mean() == pytest.approx(20, abs=5 * math.sqrt(18 / 20_000))
    assert counts.var() == pytest.approx(18, rel=0.05)
    per_feature = np.bincount(chunk.rows.indices, minlength=200) / 20_000
    np.testing.assert_allclose(per_feature, 0.1, atol=5 * math.sqrt(0.09 / 20_000))
    for r in range(50):
        row = chunk.rows.indices[chunk.rows.indptr[r] : chunk.rows.indptr[r + 1]]
        assert (np.diff(row) > 0).all()
    # the true weights are calibrated: their mean loss is the mean entropy
    assert 0.2 < chunk.true_loss.mean() < 0.4


@pytest.mark.parametrize("kind", ["uniform", "exponential", "zipf"])
def test_categorical_streams_take_so_many_of_each_category(kind):
    stream = Stream(62, 1, 2.0, "zipf", 5) if kind == "zipf" else Stream(60, 2, 2.0, kind, 3)
    (chunk,) = stream.chunks(5000, seed=2)
    rows = chunk.rows.indices.reshape(5000, -1)
    if kind == "zipf":
        for j in range(1, 6):
            column = rows[:, j - 1] - (2**j - 2)
            assert column.min() == 0
            assert column.max() < 2**j
            expected = (np.arange(2**j) + 1.0) ** -1.75
            share = np.bincount(column, minlength=2**j) / 5000
            np.testing.assert_allclose(share, expected / expected.sum(), atol=0.035)
    else:
        assert (np.sort(rows // 20, axis=1) == [0, 0, 1, 1, 2, 2]).all()
        assert all(len(set(row)) == 6 for row in rows[:200].tolist())
        share = np.bincount(rows.ravel(), minlength=60) / 5000
        assert share.std() < 0.02 if kind == "uniform" else share.std() > 0.1


def test_sampled_vb_approaches_the_exact_one():
    (chunk,) = Stream(10, 3, 1.0).chunks(1, seed=6)
    learner = SampledVB(10, 0.7, samples=200_000, fresh=True)
    learner.learn(chunk.rows, chunk.y)
    row = dict(zip(chunk.rows.indices.tolist(), chunk.rows.data.tolist(), strict=True))
    assert row
    for i, (mean, variance) in paper.marginal_vb([0.0] * 10, [0.49] * 10, row, 1 if chunk.y[0] else -1).items():
        assert learner.mean[i] == pytest.approx(mean, abs=2e-3)
        assert learner.std[i] ** 2 == pytest.approx(variance, rel=5e-3)


def test_sampled_vb_by_series_is_the_direct_sum():
    (chunk,) = Stream(40, 8, 1.0).chunks(3000, seed=7)
    series, direct = SampledVB(40, 1.7, 100, fresh=True), SampledVB(40, 1.7, 100, fresh=True, narrow=0.0)
    np.testing.assert_allclose(series.learn(chunk.rows, chunk.y), direct.learn(chunk.rows, chunk.y), atol=1e-6)
    np.testing.assert_allclose(series.mean, direct.mean, atol=1e-6)
    np.testing.assert_allclose(series.std, direct.std, rtol=1e-6)
    assert direct.std.max() < 0.25  # so that the series did most of the work


@pytest.mark.parametrize("std", [0.7, 3.0])
def test_taylor_vb_solves_its_own_equations(std):
    """Linear in the mean, a quadratic in the standard deviation; beside a root finder on the same samples."""
    (chunk,) = Stream(10, 3, 1.0, values=True).chunks(1, seed=6)
    learner = SampledVB(10, std, samples=300, narrow=0.0, taylor=True)
    learner.draw(5)
    samples = learner.drawn[0][:300].copy()
    learner.learn(chunk.rows, chunk.y)
    row = dict(zip(chunk.rows.indices.tolist(), chunk.rows.data.tolist(), strict=True))
    expected = paper.marginal_vb_taylor([0.0] * 10, [std**2] * 10, row, 1 if chunk.y[0] else -1, samples)
    assert expected
    for i, (mean, scale) in expected.items():
        assert learner.mean[i] == pytest.approx(mean, rel=1e-9)
        assert learner.std[i] == pytest.approx(scale, rel=1e-9)


def test_batches_are_the_paper_s():
    """(47), (48): all features at once, and the diagonal of the inverse kept after each batch."""
    (chunk,) = Stream(12, 4, 1.0, values=True).chunks(50, seed=8)
    learner = Batches(12, 1.3, 7)
    learner.learn(chunk.rows, chunk.y)
    rows = [dict(zip(chunk.rows[r].indices.tolist(), chunk.rows[r].data.tolist(), strict=True)) for r in range(50)]
    means, variances = [0.0] * 12, [1.69] * 12
    for start in range(0, 50, 7):
        part = slice(start, start + 7)
        paper.dim_gauss_batch(means, variances, rows[part], 2 * chunk.y[part] - 1)
    np.testing.assert_allclose(learner.mean, means, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(learner.variance, variances, rtol=1e-9)


def test_a_batch_of_one_is_one_step():
    (chunk,) = Stream(30, 6, 1.0).chunks(400, seed=9)
    one, step = Batches(30, 1.0, 1), METHODS["dimgauss-step"].make(30, 1.0)
    np.testing.assert_allclose(one.learn(chunk.rows, chunk.y), step.learn(chunk.rows, chunk.y), rtol=1e-9)
    np.testing.assert_allclose(one.mean, step.belief.mean, rtol=1e-8, atol=1e-12)


@pytest.mark.parametrize("law", ["normal", "uniform", "two"])
def test_weights_have_the_law(law):
    theta = Stream(100_000, 5, 1.7, law=law).weights(np.random.default_rng(3))
    assert theta.mean() == pytest.approx(0.0, abs=0.03)
    assert theta.std() == pytest.approx(1.7, rel=0.01)
    if law == "uniform":
        assert np.abs(theta).max() <= 1.7 * math.sqrt(3.0)
        np.testing.assert_allclose(np.quantile(theta, [0.25, 0.75]), [-1.7 * 0.866, 1.7 * 0.866], atol=0.03)
    if law == "two":
        assert theta[::2].std() == pytest.approx(0.425, rel=0.02)


def test_fresh_samples_come_to_quadrature():
    """Which is the library's rule vi; the samples' errors average out over the stream."""
    stream = Stream(50, 5, 2.0)
    learners = [METHODS["vb"].make(50, 2.0), SampledVB(50, 2.0, 1000, fresh=True)]
    (exact, _), (sampled, _) = regret.run(learners, stream, 20_000, seed=3)
    assert sampled[-1] == pytest.approx(exact[-1], rel=0.01)


def test_windows_of_the_samples_have_no_error_in_common():
    """Averaged over all windows the samples have mean 0 and variance 1; each window has its own error."""
    learner = SampledVB(3, 1.0, 100, fresh=True, seed=4)
    pool, sums = sampled_vb._pool(sampled_vb._balanced(learner.rng, 4096), 100)
    assert pool.size == 4196
    windows = (sums[100:] - sums[:-100])[:4096] / 100
    np.testing.assert_allclose(windows.mean(axis=0)[:4], [1.0, 0.0, 1.0, 0.0], atol=1e-12)
    assert windows[:, 1].std() == pytest.approx(0.1, rel=0.2)
    np.testing.assert_allclose(windows[7, 3], (pool[7:107] ** 3).mean(), atol=1e-10)


def test_what_is_kept_is_not_computed_again(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    asked = []

    def compute(names):
        asked.append(names)
        return {name: len(name) for name in names}

    assert kept(Context(), (1, "x"), ["sgd", "adf"], compute) == {"sgd": 3, "adf": 3}
    assert kept(Context(), (1, "x"), ["adf", "gauss"], compute) == {"adf": 3, "gauss": 5}
    assert kept(Context(), (2, "x"), ["adf"], compute) == {"adf": 3}
    assert kept(Context(quick=True), (1, "x"), ["adf"], compute) == {"adf": 3}
    assert asked == [["sgd", "adf"], ["gauss"], ["adf"], ["adf"]]


def test_regret_is_counted_from_the_true_weights():
    stream = Stream(50, 5, 1.0)
    ((curve, _),) = regret.run([METHODS["gauss"].make(50, 1.0)], stream, 60_000, seed=3)
    learner, total = METHODS["gauss"].make(50, 1.0), 0.0
    for chunk in stream.chunks(60_000, seed=3):
        total += float((learner.learn(chunk.rows, chunk.y) - chunk.true_loss).sum())
    assert curve[-1] == pytest.approx(total, rel=1e-12)
    assert curve.size == regret.checkpoints(60_000).size
    # close to the lower bound of half a log t per weight
    assert 0.3 * 50 < total / math.log(60_000) < 0.6 * 50


def test_fig1_puts_the_marginal_method_below_sgd_and_adf(tmp_path):
    panels = run("sparse-fig1", tmp_path)["panels"]
    assert len(panels) == 2
    for panel in panels.values():
        final = {name: numbers["r_T"] for name, numbers in panel["methods"].items()}
        assert final["gauss"] < min(final["sgd"], final["adf"], final["dimgauss"])
        assert final["approx"] == pytest.approx(final["gauss"], rel=1e-2)
        assert final["auto"] < final["gauss"] + math.log(8)


def test_fig3_measures_the_probit_approximation(tmp_path):
    assert run("sparse-fig3", tmp_path)["max_abs_difference_distribution"] == pytest.approx(0.01767, abs=2e-5)


@pytest.mark.slow
def test_table_1_at_a_million_examples():
    """What issue 3 must show: r_T of the marginal method, mean of three seeds."""
    for active, limit in ((20, 80.0), (40, 95.0)):
        stream = Stream(200, active, 1.0)
        finals = {}
        for name, value in (("gauss", (1.0,)), ("sgd", (4.0, 1.0, 10.0)), ("adf", (1.0,))):
            runs = [regret.run([METHODS[name].make(200, *value)], stream, 10**6, seed)[0][0] for seed in (1, 2, 3)]
            finals[name] = np.mean([curve[-1] for curve in runs]) / math.log(10**6)
        assert finals["gauss"] <= limit
        assert finals["gauss"] < min(finals["sgd"], finals["adf"])
