import tracemalloc

import numpy as np
import pytest
from scipy.stats import multivariate_normal
from sklearn.base import clone

import gaussfold as gf
from gaussfold.factors.gradient import SGD
from tests.reference import lowrank as reference
from tests.shared import ORACLES, needs_oracles

STREAMS = ["fa_d100_p10", "fa_breastcancer_p3", "fa_breastcancer_p5", "fa_wdbc_p5", "fa_d1000_p5"]
METHODS = {
    "recursive": {"block_size": 1},
    "recursive em": {"projection": "em", "inner_loops": 3, "block_size": 1},
    "recursive blocks": {"block_size": 7, "inner_loops": 2},
    "power": {"method": "online-em", "block_size": 1},
    "power blocks": {"method": "online-em"},
    "average": {"method": "online-em", "step": "average"},
    "gradient": {"method": "gradient", "learning_rate": 3e-3},
    "adam": {"method": "gradient", "optimizer": "adam"},
}


def rows(n=600, d=12, p=2, seed=0):
    rng = np.random.default_rng(seed)
    F, psi = 1.5 * rng.standard_normal((d, p)), rng.uniform(0.3, 1.5, d)
    X = 0.7 + rng.standard_normal((n, p)) @ F.T + np.sqrt(psi) * rng.standard_normal((n, d))
    return X, F @ F.T + np.diag(psi)


@pytest.mark.parametrize("ppca", [False, True])
@pytest.mark.parametrize("name", METHODS)
def test_one_model_however_it_is_asked(name, ppca, tmp_path):
    X, _ = rows()
    make = lambda: gf.StreamingFactorAnalysis(2, random_state=3, ppca=ppca, warm_up=50, **METHODS[name])  # noqa: E731
    whole, parts = make().fit(X), make()
    for piece in (slice(0, 1), slice(1, 30), slice(30, 333), slice(333, 444)):
        parts.partial_fit(X[piece])
    gf.save(parts, tmp_path / "model")
    loaded = gf.load(tmp_path / "model").partial_fit(X[444:])
    parts.partial_fit(X[444:])
    for model in (parts, loaded):
        np.testing.assert_allclose(model.get_covariance(), whole.get_covariance(), rtol=1e-9, atol=1e-11)
    cov = whole.get_covariance()
    np.testing.assert_allclose(whole.mean_, X.mean(axis=0), rtol=1e-10)
    np.testing.assert_allclose(cov, whole.components_.T @ whole.components_ + np.diag(whole.noise_variance_))
    np.testing.assert_allclose(whole.get_precision() @ cov, np.eye(12), atol=1e-9)
    density = multivariate_normal(whole.mean_, cov)
    np.testing.assert_allclose(whole.score_samples(X[:9]), density.logpdf(X[:9]), rtol=1e-9)
    np.testing.assert_allclose(whole.score(X), density.logpdf(X).mean(), rtol=1e-9)
    gain = whole.components_ @ np.linalg.inv(cov)
    np.testing.assert_allclose(whole.transform(X[:9]), (X[:9] - whole.mean_) @ gain.T, rtol=1e-8)
    assert whole.n_samples_seen_ == 600
    assert (np.ptp(whole.noise_variance_) < 1e-12) == ppca


def test_it_learns_the_covariance():
    X, truth = rows(n=4000)
    sample = np.linalg.norm(np.cov(X.T) - truth) / np.linalg.norm(truth)
    for name in ("recursive", "recursive blocks", "power blocks"):
        model = gf.StreamingFactorAnalysis(2, random_state=0, **METHODS[name]).fit(X)
        error = np.linalg.norm(model.get_covariance() - truth) / np.linalg.norm(truth)
        assert error < 1.3 * sample + 0.01, name


def test_batches_of_blocks_are_the_exact_covariance_while_rank_suffices():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((5, 8)) + 3.0
    model = gf.StreamingFactorAnalysis(5, warm_up=5, block_size=2).fit(X)
    scale = ((X - X.mean(axis=0)) ** 2).mean()
    expected = (np.cov(X.T, bias=True) * 5 + scale * np.eye(8)) / 6
    np.testing.assert_allclose(model.get_covariance(), expected, rtol=1e-10, atol=1e-12)


def test_no_factor_collapses():
    """Rank ten from rows whose first has exact zeros: the authors' α₁ = 0 ends with one factor, or divides by zero."""
    rng = np.random.default_rng(2)
    truth = rng.standard_normal((50, 10))
    X = rng.standard_normal((3000, 10)) @ truth.T + 0.1 * rng.standard_normal((3000, 50))
    X[0, ::3] = 0.0
    S = X.T @ X / len(X)
    for options in ({}, {"projection": "em", "inner_loops": 3, "block_size": 1}):
        model = gf.StreamingFactorAnalysis(10, center=False, random_state=0, **options).fit(X)
        values = np.linalg.svd(model.components_, compute_uv=False)
        assert values[-1] > 0.5 * np.linalg.svd(truth, compute_uv=False)[-1]
        assert np.linalg.norm(model.get_covariance() - S) < (0.5 if options else 0.01) * np.linalg.norm(S)


@needs_oracles
@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("em", {"method": "online-em", "step": "average", "prior_count": 0}),
        ("sga", {"method": "gradient"}),
        ("sga", {"method": "gradient", "optimizer": SGD(1e-3)}),
        ("sga_adam", {"method": "gradient", "optimizer": "adam"}),
    ],
)
def test_the_thesis(name, options):
    z = np.load(ORACLES / "swafa" / "online_fa_small_D100.npz")
    model = gf.StreamingFactorAnalysis(10, start=z["F0"], start_noise=np.ones(100), warm_up=100, **options)
    last = 0
    for t in (1, 2, 99, 100, 101, 102, 105, 150, 200, 300):
        model.partial_fit(z["samples"][last:t])
        last = t
        np.testing.assert_allclose(model.components_.T, z[f"{name}_t{t}_F"], rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(model.noise_variance_, z[f"{name}_t{t}_psi"], rtol=1e-9)
        np.testing.assert_allclose(model.mean_, z[f"{name}_t{t}_c"], rtol=1e-9)


@needs_oracles
@pytest.mark.parametrize("spectrum", [10, 100, 1000])
def test_the_thesis_over_many_rows(spectrum):
    z = np.load(ORACLES / "swafa" / f"online_fa_portable_D100_s{spectrum}_seed0.npz")
    rng = np.random.default_rng(int(z["sample_seed"]))
    T, D = int(z["T"]), 100
    H, E = rng.standard_normal((T, int(z["K"]))), rng.standard_normal((T, D))
    X = z["true_c"] + H @ z["true_F"].T + np.sqrt(z["true_psi"]) * E
    np.testing.assert_allclose(X[[0, 1, T - 1], :5], z["x_check"])
    options = {"start": z["F0"], "start_noise": np.ones(D), "warm_up": 100}
    em = {"method": "online-em", "step": "average", "prior_count": 0}
    for name, method in (("em", em), ("sga", {"method": "gradient"})):
        model = gf.StreamingFactorAnalysis(10, **method, **options).fit(X)
        np.testing.assert_allclose(model.components_.T, z[f"{name}_t20000_F"], rtol=1e-9, atol=1e-10)
        np.testing.assert_allclose(model.noise_variance_, z[f"{name}_t20000_psi"], rtol=1e-9)


@needs_oracles
@pytest.mark.parametrize("spectrum", [10, 100, 1000])
@pytest.mark.parametrize("seed", [0, 1])
def test_better_than_the_thesis(spectrum, seed):
    """The thesis's models and rows: below its online EM and its gradient, and below scikit-learn's batch fit."""
    path = ORACLES / "swafa" / f"online_fa_portable_D100_s{spectrum}_seed{seed}.npz"
    if not path.exists():
        pytest.skip(f"{path.name} is not among the oracles")
    z = np.load(path)
    rng = np.random.default_rng(int(z["sample_seed"]))
    T = int(z["T"])
    H, E = rng.standard_normal((T, int(z["K"]))), rng.standard_normal((T, 100))
    X = z["true_c"] + H @ z["true_F"].T + np.sqrt(z["true_psi"]) * E
    truth = z["true_F"] @ z["true_F"].T + np.diag(z["true_psi"])
    for options in ({"block_size": 32}, {"method": "online-em"}):
        got = gf.StreamingFactorAnalysis(10, random_state=0, **options).fit(X).get_covariance()
        error = np.linalg.norm(got - truth) / np.linalg.norm(truth)
        assert error <= min(z["em_relcov"][-1], z["sga_relcov"][-1])
        if not options.get("method"):
            assert error <= 1.02 * z["sklearn_relcov"][-1]


@needs_oracles
@pytest.mark.parametrize("name", STREAMS)
def test_the_authors_recursions(name):
    z = np.load(ORACLES / "lrvga" / f"{name}.npz")
    start = {"start": z["W0"], "start_noise": z["psi0"], "center": False, "warm_up": 0}
    p = int(z["p"])
    cases = (
        ("recem1_shift1", {"projection": "em", "block_size": 1}),
        ("recem3_shift1", {"projection": "em", "inner_loops": 3, "block_size": 1}),
        ("onlineem_priorstats", {"method": "online-em", "prior_count": 1, "average_from": 10**9}),
    )
    for key, options in cases:
        got = gf.StreamingFactorAnalysis(p, **options, **start).fit(z["X"]).get_covariance()
        expected = z[f"{key}_W"] @ z[f"{key}_W"].T + np.diag(z[f"{key}_psi"])
        assert np.abs(got - expected).max() <= 1e-7 * np.abs(expected).max(), key


@needs_oracles
@pytest.mark.parametrize("name", ["fa_d100_p10", "fa_breastcancer_p3", "fa_breastcancer_p5", "fa_wdbc_p5"])
def test_better_than_the_paper(name):
    """One loop of the eigen-projection against three of EM, the authors' start and ours."""
    z = np.load(ORACLES / "lrvga" / f"{name}.npz")
    S = z["X"].T @ z["X"] / len(z["X"])
    model = gf.StreamingFactorAnalysis(int(z["p"]), center=False, block_size=32).fit(z["X"])
    ours = reference.kl_to_covariance(model.components_.T, model.noise_variance_, S)
    assert ours < min(z["recem3_shift1_kl"][-1] * 1.1, z["recem3_authors_kl"][-1], z["onlineem_authors_kl"][-1])


def test_constant_features_and_equal_rows():
    X, _ = rows(n=200)
    X[:, 3] = 2.0
    for data in (X, np.tile(X[:1], (200, 1)), np.zeros((200, 12))):
        for name in ("recursive", "recursive em", "recursive blocks"):
            model = gf.StreamingFactorAnalysis(2, random_state=0, **METHODS[name]).fit(data)
            assert np.isfinite(model.get_covariance()).all()
            assert (model.noise_variance_ > 0).all()


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"n_components": 13}, "n_components=13.*1 to 12"),
        ({"n_components": 0}, "n_components"),
        ({"method": "svd"}, "method"),
        ({"inner_loops": 0}, "inner_loops"),
        ({"block_size": 0}, "block_size"),
        ({"projection": "qr"}, "projection"),
        ({"warm_up": -1}, "warm_up"),
        ({"start": np.zeros((2, 2))}, r"start: shape \(2, 2\)"),
        ({"start_noise": np.zeros(12)}, "start_noise: entry 0"),
        ({"method": "gradient", "optimizer": "lbfgs"}, "optimizer"),
        ({"method": "gradient", "learning_rate": 0.0}, "learning_rate"),
    ],
)
def test_bad_parameters(options, match):
    with pytest.raises(ValueError, match=match):
        gf.StreamingFactorAnalysis(**({"n_components": 2} | options)).fit(rows()[0])


def test_a_failing_chunk_leaves_the_model_as_it_was():
    X, _ = rows()
    for method in METHODS.values():
        model = gf.StreamingFactorAnalysis(2, random_state=0, warm_up=20, **method).fit(X[:100])
        before = model._stream.state()
        with pytest.raises(ValueError, match="NaN"):
            model.partial_fit(np.where(np.arange(600)[:, None] == 150, np.nan, X))
        with pytest.raises(ValueError, match="X"):
            model.partial_fit(np.where(np.arange(600)[:, None] == 150, 1e200, X))
        for name, array in before.items():
            np.testing.assert_array_equal(array, model._stream.state()[name])


def test_cloning_and_names():
    X, _ = rows()
    model = clone(gf.StreamingFactorAnalysis(3, inner_loops=2)).fit(X)
    assert model.get_params()["inner_loops"] == 2
    assert list(model.get_feature_names_out()) == [f"streamingfactoranalysis{i}" for i in range(3)]
    assert model.fit_transform(X).shape == (600, 3)


def test_a_row_that_waits_costs_no_copy_of_the_model_and_a_bad_one_changes_nothing():
    rng = np.random.default_rng(8)
    d, p = 20_000, 8
    model = gf.StreamingFactorAnalysis(p, block_size=4, warm_up=1, random_state=0)
    rows = rng.standard_normal((11, d))
    model.partial_fit(rows[:4]).partial_fit(rows[4:5])  # a block, and a row that waits
    tracemalloc.start()
    model.partial_fit(rows[5:6])
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 8 * d * p
    before = gf.StreamingFactorAnalysis(p, block_size=4, warm_up=1, random_state=0).partial_fit(rows[:6])
    bad = rows[6:8].copy()
    bad[1] = 1e200
    with pytest.raises(ValueError, match="X: "):
        model.partial_fit(bad)  # fills the block
    for name, value in before.state().items():
        np.testing.assert_array_equal(model.state()[name], value, err_msg=name)
    for row in rows[6:]:
        model.partial_fit(row[None])
    whole = gf.StreamingFactorAnalysis(p, block_size=4, warm_up=1, random_state=0).partial_fit(rows)
    np.testing.assert_allclose(model.components_, whole.components_, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(model.noise_variance_, whole.noise_variance_, rtol=1e-9)


@pytest.mark.parametrize("method", ["recursive-em", "online-em", "gradient"])
def test_parameters_that_change_between_calls_are_taken(method):
    rng = np.random.default_rng(9)
    rows = rng.standard_normal((40, 6))
    model = gf.StreamingFactorAnalysis(2, method=method, block_size=4, warm_up=4, random_state=0).partial_fit(rows[:20])
    with pytest.raises(ValueError, match="warm_up"):
        model.set_params(warm_up=-1).partial_fit(rows[20:])
    model.set_params(warm_up=4).partial_fit(rows[20:])
    again = gf.StreamingFactorAnalysis(2, method=method, block_size=4, warm_up=4, random_state=0).partial_fit(rows)
    np.testing.assert_allclose(model.components_, again.components_, rtol=1e-9, atol=1e-12)


def test_a_row_that_waits_copies_neither_the_model_nor_its_neighbours():
    rng = np.random.default_rng(8)
    rows = rng.standard_normal((140, 5000))
    model = gf.StreamingFactorAnalysis(10, block_size=32).partial_fit(rows[:100])  # 4 of them wait
    for row in rows[100:120]:
        model.partial_fit(row[None])
    tracemalloc.start()
    for row in rows[120:127]:
        model.partial_fit(row[None])
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 8 * 5000 * (7 + 5)  # seven rows of numbers and room to check one; the factors are ten
    whole = gf.StreamingFactorAnalysis(10, block_size=32).partial_fit(rows[:127])
    np.testing.assert_array_equal(model.components_, whole.components_)
