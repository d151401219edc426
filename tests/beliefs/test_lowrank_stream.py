import numpy as np
import pytest
from scipy import sparse

import gaussfold as gf
from gaussfold.dynamics import Forgetting, RandomWalk
from tests.reference import lowrank as reference

LIKELIHOODS = {
    "gaussian": gf.likelihoods.Gaussian(0.7),
    "logit": gf.likelihoods.Bernoulli("logit"),
    "probit": gf.likelihoods.Bernoulli("probit"),
    "poisson": gf.likelihoods.Poisson(),
    "student": gf.likelihoods.StudentT(4.0, 0.6),
    "negbin": gf.likelihoods.NegativeBinomial(2.5),
}


def rows(name, n=40, d=14, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d)) * 0.7
    f = X @ rng.standard_normal(d) * 0.5
    if name in ("logit", "probit"):
        return X, (rng.random(n) < 1 / (1 + np.exp(-f))).astype(float)
    if name in ("poisson", "negbin"):
        return X, rng.poisson(np.exp(f)).astype(float)
    noise = rng.standard_t(3, n) if name == "student" else rng.standard_normal(n)
    return X, f + 0.7 * noise


@pytest.mark.parametrize("rule", ["newton", "taylor", "vi", "ep", "pl", "quadratic"])
@pytest.mark.parametrize("at", ["prior", "posterior", "extragradient"])
@pytest.mark.parametrize("name", LIKELIHOODS)
def test_with_full_rank_it_is_the_dense_belief(name, rule, at):
    """Nothing is projected away while rank >= rows: every rule, at and likelihood must agree with dense."""
    X, y = rows(name, n=12)
    weight = np.random.default_rng(1).uniform(0.0, 2.5, 12)
    dense = gf.DenseGaussian.isotropic(14, 1.3, mean=0.1)
    try:
        expected = gf.fold(dense, LIKELIHOODS[name], X, y, rule, at, sample_weight=weight)
    except ValueError as problem:
        pytest.skip(f"not defined: {problem}")
    for block, kind in ((1, np.asarray), (5, np.asarray), (5, sparse.csr_matrix)):
        one = gf.LowRankGaussian.isotropic(14, 14, 1.3, mean=0.1, block_size=block)
        result = gf.fold(one, LIKELIHOODS[name], kind(X), y, rule, at, sample_weight=weight)
        if (expected.site_precision < 0).any():  # EM takes negative sites: close, not equal
            assert np.abs(one.mean - dense.mean).max() < 0.3
            continue
        np.testing.assert_allclose(one.mean, dense.mean, rtol=1e-7, atol=1e-9)
        np.testing.assert_allclose(one.to_dense().cov, dense.cov, rtol=1e-6, atol=1e-9)
        for column in ("mean", "variance", "log_predictive", "site_precision", "site_shift"):
            np.testing.assert_allclose(getattr(result, column), getattr(expected, column), rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize(
    ("projection", "block"),
    [("em", 1), ("em", 4), ("eigen", 3), ("eigen", 4), ("marginal", 1), ("marginal", 3), ("marginal", 4)],
)
def test_linear_regression_against_the_textbook(projection, block):
    X, y = rows("gaussian", n=24)
    start = gf.LowRankGaussian.isotropic(14, 3, 1.7, mean=0.2, projection=projection, block_size=block)

    def project(W, psi, part, weights):
        if projection == "em":
            return reference.algorithm_1(W, psi, part, weights)
        textbook = reference.eigen_projection if projection == "eigen" else reference.marginal_projection
        kept, psi = textbook(W, psi, part, weights)
        values, vectors = np.linalg.eigh(kept)
        return vectors[:, -3:] * np.sqrt(np.maximum(values[-3:], 0.0)), psi

    mean, W, psi = reference.linear_regression(start.W, start.psi, start.mean, X, y, 0.7, project, block=block)
    gf.fold(start, LIKELIHOODS["gaussian"], X, y)
    np.testing.assert_allclose(start.mean, mean, rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(start.psi, psi, rtol=1e-6)
    np.testing.assert_allclose(start.W @ start.W.T, W @ W.T, rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_matrix])
@pytest.mark.parametrize("block", [1, 7, None])
def test_chunks_do_not_matter(block, kind):
    X, y = rows("logit", n=60)
    X[np.abs(X) < 0.4] = 0.0
    X[[4, 17]] = 0.0  # rows of zeros teach nothing
    y[[5, 20, 21]] = np.nan
    weight = np.random.default_rng(1).uniform(0, 2, 60)
    weight[[3, 30]] = 0.0
    results = []
    for cuts in ((60,), (1, 2, 3, 20, 33, 34, 60), range(1, 61)):
        one, start, seen = gf.LowRankGaussian.isotropic(14, 3, 2.0, block_size=block), 0, []
        for stop in cuts:
            piece = slice(start, stop)
            seen.append(gf.fold(one, LIKELIHOODS["logit"], kind(X)[piece], y[piece], sample_weight=weight[piece]))
            start = stop
        results.append(
            (one, np.concatenate([part.mean for part in seen]), np.concatenate([part.variance for part in seen]))
        )
    for one, mean, variance in results[1:]:
        np.testing.assert_allclose(one.mean, results[0][0].mean, rtol=1e-9, atol=1e-11)
        np.testing.assert_allclose(one.to_dense().cov, results[0][0].to_dense().cov, rtol=1e-8, atol=1e-10)
        np.testing.assert_allclose(mean, results[0][1], rtol=1e-8, atol=1e-10)
        np.testing.assert_allclose(variance, results[0][2], rtol=1e-8)
        assert one.pending == results[0][0].pending


@pytest.mark.parametrize("block", [1, 5, None])
def test_a_failing_chunk_leaves_the_belief_as_it_was(block, monkeypatch):
    for limit in (1 << 26, 0):  # in memory, and on disk
        monkeypatch.setattr("gaussfold.beliefs.lowrank.snapshot.SNAPSHOT_BYTES", limit)
        X, y = rows("poisson", n=23)
        one = gf.LowRankGaussian.isotropic(14, 3, 2.0, block_size=block)
        gf.fold(one, LIKELIHOODS["poisson"], X[:8], y[:8])
        before = one.state()
        X[20] = 1e200
        with pytest.raises(ValueError, match="row 12"):
            gf.fold(one, LIKELIHOODS["poisson"], X[8:], y[8:])
        X[20, 3] = np.nan
        with pytest.raises(ValueError, match="row 12"):
            gf.fold(one, LIKELIHOODS["poisson"], X[8:], y[8:])
        for name, array in before.items():
            np.testing.assert_array_equal(array, one.state()[name], strict=True)


def test_degenerate_rows_are_harmless():
    """All-equal rows, a constant feature, zeros, a row of zeros: finite, positive, and close to exact."""
    rng = np.random.default_rng(0)
    streams = {
        "equal": np.tile(rng.standard_normal(10), (30, 1)),
        "constant": np.hstack([rng.standard_normal((30, 9)), np.full((30, 1), 5.0)]),
        "zeros": np.vstack([np.zeros((5, 10)), rng.standard_normal((25, 10)) * (rng.random((25, 10)) < 0.2)]),
    }
    for X in streams.values():
        y = X @ np.ones(10) + rng.standard_normal(30)
        exact = gf.DenseGaussian.isotropic(10, 3.0)
        gf.fold(exact, LIKELIHOODS["gaussian"], X, y)
        for block in (1, 8):
            for projection in ("eigen", "em", "marginal", "calibrated"):
                one = gf.LowRankGaussian.isotropic(10, 4, 3.0, projection=projection, block_size=block)
                gf.fold(one, LIKELIHOODS["gaussian"], X, y)
                assert np.isfinite(one.mean).all()
                assert (one.psi > 0).all()
                assert (one.variance() > 0).all()
                if projection != "em":  # rank 4 of 10, and the default must not be far off
                    assert one.kl(exact) < {"eigen": 12.0, "marginal": 16.0, "calibrated": 16.0}[projection]


def test_zero_weight_and_missing_labels_change_nothing():
    one = gf.LowRankGaussian.isotropic(14, 3, 2.0, block_size=4)
    X, y = rows("logit", n=6)
    gf.fold(one, LIKELIHOODS["logit"], X, y)
    before = one.state()
    result = gf.fold(one, LIKELIHOODS["logit"], X, np.full(6, np.nan))
    gf.fold(one, LIKELIHOODS["logit"], X, y, sample_weight=np.zeros(6))
    for name, array in before.items():
        np.testing.assert_array_equal(array, one.state()[name])
    np.testing.assert_allclose(result.variance, one.marginal(X).variance)


def test_dynamics():
    X, y = rows("gaussian", n=12)
    for dense_dynamics, low_dynamics in (
        (
            Forgetting(0.97, gf.DenseGaussian.isotropic(14, 1.3)),
            Forgetting(0.97, gf.LowRankGaussian.isotropic(14, 14, 1.3)),
        ),
        (RandomWalk(0.2), RandomWalk(0.2)),
    ):
        dense, one = gf.DenseGaussian.isotropic(14, 1.3), gf.LowRankGaussian.isotropic(14, 14, 1.3)
        gf.fold(dense, LIKELIHOODS["gaussian"], X, y, dynamics=dense_dynamics)
        gf.fold(one, LIKELIHOODS["gaussian"], X, y, dynamics=low_dynamics)
        np.testing.assert_allclose(one.mean, dense.mean, rtol=1e-7, atol=1e-9)
        np.testing.assert_allclose(one.to_dense().cov, dense.cov, rtol=1e-6, atol=1e-9)
    with pytest.raises(ValueError, match="block_size=4"):
        gf.fold(
            gf.LowRankGaussian.isotropic(14, 2, block_size=4), LIKELIHOODS["gaussian"], X, y, dynamics=RandomWalk(0.2)
        )


def test_block_size_of_a_fold():
    one = gf.LowRankGaussian.isotropic(14, 3)
    X, y = rows("gaussian", n=6)
    gf.fold(one, LIKELIHOODS["gaussian"], X, y, block_size=4)
    assert (one.options.block_size, one.pending) == (4, 2)
    with pytest.raises(ValueError, match="2 rows wait"):
        gf.fold(one, LIKELIHOODS["gaussian"], X, y, block_size=5)


def test_blocks_that_suit_are_small_among_the_first_rows():
    """As if one had asked for 4 during the first 2d rows and for twice the factors, at least 8, from then on."""
    X, y = rows("gaussian", n=70)
    one, two = (gf.LowRankGaussian.isotropic(14, 3, 2.0, block_size=size) for size in (None, 4))
    gf.fold(one, LIKELIHOODS["gaussian"], X, y)
    gf.fold(two, LIKELIHOODS["gaussian"], X[:28], y[:28])
    gf.fold(two, LIKELIHOODS["gaussian"], X[28:], y[28:], block_size=8)
    assert one.pending == two.pending == 2
    np.testing.assert_allclose(one.mean, two.mean, rtol=1e-9)
    np.testing.assert_allclose(one.variance(), two.variance(), rtol=1e-9)


def test_blocks_that_suit_go_on_from_a_file():
    X, y = rows("logit", n=50)
    one = gf.LowRankGaussian.isotropic(14, 3, 2.0, block_size=None)
    gf.fold(one, LIKELIHOODS["logit"], X[:27], y[:27])
    state = one.state()
    two = gf.LowRankGaussian.from_state(state)
    for each in (one, two):
        gf.fold(each, LIKELIHOODS["logit"], X[27:], y[27:])
    for name, array in one.state().items():
        np.testing.assert_array_equal(array, two.state()[name], strict=True)
    with pytest.raises(ValueError, match="taken: a belief with block_size=None"):
        gf.LowRankGaussian.from_state({name: array for name, array in state.items() if name != "taken"})
    with pytest.raises(ValueError, match="block_size=0"):
        gf.fold(two, LIKELIHOODS["logit"], X, y, block_size=0)
    with pytest.raises(ValueError, match="block_size=None: forgetting"):
        gf.fold(two, LIKELIHOODS["logit"], X, y, dynamics=RandomWalk(0.2))


def test_rows_at_a_time_no_longer_cost_quality():
    """Linear, prior 100, condition 10⁴, p = 20 of 50: blocks of 32 from the start were three times as far off."""
    rng = np.random.default_rng(77)
    X = (rng.standard_normal((1000, 50)) * np.logspace(0.0, -2.0, 50)) @ np.linalg.qr(rng.standard_normal((50, 50)))[0]
    y = X @ rng.standard_normal(50) + 0.1 * rng.standard_normal(1000)
    exact = gf.DenseGaussian.isotropic(50, 100.0)
    gf.fold(exact, gf.likelihoods.Gaussian(0.1), X, y)
    found = {}
    for size in (1, None):
        one = gf.LowRankGaussian.isotropic(50, 20, 100.0, block_size=size)
        gf.fold(one, gf.likelihoods.Gaussian(0.1), X, y)
        found[size] = one.kl(exact)
    assert found[None] < 1.2 * found[1]


def test_a_block_size_that_failed_is_forgotten():
    X, y = rows("poisson", n=9)
    one = gf.LowRankGaussian.isotropic(14, 3, 2.0)
    X[7] = 1e200
    with pytest.raises(ValueError, match="row 7"):
        gf.fold(one, LIKELIHOODS["poisson"], X, y, block_size=8)
    with pytest.raises(ValueError, match="block_size=8: forgetting and drift"):
        gf.fold(one, LIKELIHOODS["poisson"], X[:3], y[:3], block_size=8, dynamics=RandomWalk(0.2))
    assert one.options.block_size == 1


@pytest.mark.parametrize("condition", [1.0, 100.0])
@pytest.mark.parametrize("prior", [1.0, 10.0])
def test_error_bars_can_be_believed(condition, prior):
    """Few factors for many directions: better than the diagonal belief and the paper's projection."""
    rng = np.random.default_rng(7)
    spectrum = np.logspace(0.0, -0.5 * np.log10(condition), 40)
    X = (rng.standard_normal((1000, 40)) * spectrum) @ np.linalg.qr(rng.standard_normal((40, 40)))[0]
    y = X @ rng.standard_normal(40) + 0.7 * rng.standard_normal(1000)
    losses, shares = [], []
    for one in (
        gf.LowRankGaussian.isotropic(40, 8, prior, block_size=2),
        gf.DiagonalGaussian.isotropic(40, prior),
        gf.LowRankGaussian.isotropic(40, 8, prior, projection="em"),
    ):
        gf.fold(one, LIKELIHOODS["gaussian"], X[:600], y[:600])
        mean, variance = one.marginal(X[600:])
        variance = variance + 0.49
        losses.append(np.mean(np.log(variance) + (y[600:] - mean) ** 2 / variance))
        shares.append(np.mean(np.abs(y[600:] - mean) < 1.645 * np.sqrt(variance)))
    assert losses[0] < losses[1]
    assert losses[0] < losses[2] - 0.05
    assert shares[0] > 0.84
    assert shares[2] < shares[0]


def test_sweeps_are_refused():
    one = gf.LowRankGaussian.isotropic(14, 3)
    X, y = rows("gaussian", n=6)
    result = gf.fold(one, LIKELIHOODS["gaussian"], X, y)
    with pytest.raises(ValueError, match="refine needs a dense belief"):
        gf.sweep(one, LIKELIHOODS["gaussian"], X, y, result)


def test_float32_follows_float64():
    X, y = rows("logit", n=60)
    single = gf.LowRankGaussian.isotropic(14, 3, 2.0, dtype=np.float32, block_size=4)
    double = gf.LowRankGaussian.isotropic(14, 3, 2.0, block_size=4)
    for one in (single, double):
        gf.fold(one, LIKELIHOODS["logit"], X, y)
    assert single.W.dtype == np.float32
    np.testing.assert_allclose(single.mean, double.mean, rtol=1e-3, atol=1e-3)
    np.testing.assert_allclose(single.variance(), double.variance(), rtol=1e-3)
