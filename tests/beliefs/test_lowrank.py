import numpy as np
import pytest
from scipy import sparse

import gaussfold as gf
from tests.reference import lowrank as reference


def belief(seed=0, d=9, p=3, **options):
    rng = np.random.default_rng(seed)
    return gf.LowRankGaussian(rng.standard_normal(d), rng.standard_normal((d, p)), rng.uniform(0.3, 2.0, d), **options)


def waiting(seed=0, d=9, p=3, rows=5, kind=np.asarray, **options):
    """A belief with rows that wait for their projection."""
    one = belief(seed, d, p, block_size=8, **options)
    rng = np.random.default_rng(seed + 100)
    X = rng.standard_normal((rows, d)) * (rng.random((rows, d)) < 0.6)
    gf.fold(one, gf.likelihoods.Gaussian(0.7), kind(X), rng.standard_normal(rows))
    assert one.pending == rows
    return one


def dense_of(one):
    state = one.state()
    precision = state["W"] @ state["W"].T + np.diag(state["psi"])
    if "rows" in state:
        precision = precision + state["rows"].T @ state["rows"]
    elif "rows_data" in state:
        parts = tuple(state[f"rows_{part}"] for part in ("data", "indices", "indptr"))
        rows = sparse.csr_matrix(parts, shape=(one.pending, one.dim)).toarray()
        precision = precision + rows.T @ rows
    return state["mean"], np.linalg.inv(precision)


@pytest.fixture(params=["settled", "waiting", "waiting sparse"])
def one(request):
    if request.param == "settled":
        return belief(3)
    return waiting(3, kind=sparse.csr_matrix if "sparse" in request.param else np.asarray)


def test_moments(one):
    mean, cov = dense_of(one)
    X = np.random.default_rng(1).standard_normal((7, one.dim))
    np.testing.assert_allclose(one.mean, mean)
    np.testing.assert_allclose(one.variance(), np.diag(cov), rtol=1e-10)
    np.testing.assert_allclose(one.trace(), np.trace(cov), rtol=1e-10)
    for rows in (X, sparse.csr_matrix(X)):
        moments = one.marginal(rows)
        np.testing.assert_allclose(moments.mean, X @ mean, rtol=1e-12)
        np.testing.assert_allclose(moments.variance, np.einsum("ij,jk,ik->i", X, cov, X), rtol=1e-10)


def test_density_and_divergence(one):
    mean, cov = dense_of(one)
    dense = gf.DenseGaussian(mean, cov)
    theta = np.random.default_rng(2).standard_normal((4, one.dim))
    np.testing.assert_allclose(one.log_prob(theta), dense.log_prob(theta), rtol=1e-10)
    np.testing.assert_allclose(one.log_prob(theta[0]), dense.log_prob(theta[0]), rtol=1e-10)
    np.testing.assert_allclose(one.entropy(), dense.entropy(), rtol=1e-10)
    np.testing.assert_allclose(one.to_dense().cov, cov, rtol=1e-9, atol=1e-12)
    for other in (belief(8), waiting(9)):
        expected = dense.kl(other.to_dense())
        np.testing.assert_allclose(one.kl(other), expected, rtol=1e-9)
        np.testing.assert_allclose(one.kl(other.to_dense()), expected, rtol=1e-9)
    assert abs(one.kl(one)) < 1e-10


def test_samples_have_the_exact_covariance(one):
    mean, cov = dense_of(one)
    samples = one.sample(100_000, np.random.default_rng(5))
    assert reference.sample_covariance_error(samples, cov) < 4.5
    error = np.sqrt(np.diag(cov) / len(samples))
    assert (np.abs(samples.mean(axis=0) - mean) < 4.5 * error).all()


def test_rows_so_strong_that_the_identity_is_lost():
    """I + F'Ψ⁻¹F is then indefinite by rounding; the covariance must stay a covariance all the same."""
    rng = np.random.default_rng(0)
    rows = rng.standard_normal((3, 20)) * 1e9
    rows = np.vstack([rows, rows @ np.diag(np.ones(20)), 2.0 * rows])
    strong = gf.LowRankGaussian.isotropic(20, 2).precision().plus(rows)
    x = rng.standard_normal((4, 20))
    flat = x - x @ np.linalg.pinv(rows[:3]) @ rows[:3]  # what the rows say nothing about keeps the prior's variance
    np.testing.assert_allclose(strong.variances(x), np.einsum("ij,ij->i", flat, flat), rtol=1e-6)
    assert np.isfinite(strong.log_det())


def test_isotropic_and_independent_priors():
    exact = gf.LowRankGaussian.isotropic(7, 2, std=0.7, mean=0.3)
    np.testing.assert_allclose(exact.to_dense().cov, 0.49 * np.eye(7), rtol=1e-12)
    np.testing.assert_array_equal(exact.mean, np.full(7, 0.3))
    start = gf.LowRankGaussian.isotropic(7, 2, 0.7, rng=np.random.default_rng(3), epsilon=1e-2)
    np.testing.assert_allclose(np.linalg.norm(start.W, axis=0), np.sqrt(1e-2 * 7 / 2) / 0.7)
    np.testing.assert_allclose(start.psi, 0.99 / 0.49)
    np.testing.assert_allclose((start.W**2).sum() + start.psi.sum(), 7 / 0.49)
    std = np.array([0.5, 2.0, 10.0])
    np.testing.assert_allclose(gf.LowRankGaussian.independent(np.zeros(3), std, 2).variance(), std**2, rtol=1e-12)
    assert gf.LowRankGaussian.isotropic(7, 2, projection="em").W.any()


def test_combine_is_one_pass_over_everything():
    rng = np.random.default_rng(4)
    X, y = rng.standard_normal((8, 12)), rng.standard_normal(8)
    likelihood = gf.likelihoods.Gaussian(0.7)
    prior = gf.LowRankGaussian.isotropic(12, 8, std=1.3, mean=0.2)
    whole, parts = prior.copy(), []
    gf.fold(whole, likelihood, X, y)
    for piece in (slice(0, 3), slice(3, 8)):
        part = prior.copy()
        gf.fold(part, likelihood, X[piece], y[piece])
        parts.append(part)
    both = gf.LowRankGaussian.combine(prior, parts)  # rank 8 holds 8 rows: nothing is lost
    np.testing.assert_allclose(both.mean, whole.mean, rtol=1e-9)
    np.testing.assert_allclose(both.to_dense().cov, whole.to_dense().cov, rtol=1e-9, atol=1e-11)
    with pytest.raises(ValueError, match="diagonal prior"):
        gf.LowRankGaussian.combine(belief(), parts)


@pytest.mark.parametrize("variance", [0.3, 4.0])
def test_diffusion_is_exact(one, variance):
    one.flush()
    _, cov = dense_of(one)
    one.diffuse(variance)
    np.testing.assert_allclose(one.to_dense().cov, cov + variance * np.eye(one.dim), rtol=1e-9)


def test_relaxing_is_exact_for_a_diagonal_prior():
    one, prior = belief(2, p=4), gf.LowRankGaussian.isotropic(9, 4, 1.7, mean=0.4)
    precision = np.linalg.inv(one.to_dense().cov)
    expected = 0.97 * precision + 0.03 * np.eye(9) / 1.7**2
    shift = 0.97 * precision @ one.mean + 0.03 * prior.mean / 1.7**2
    one.relax(0.97, prior)
    np.testing.assert_allclose(np.linalg.inv(one.to_dense().cov), expected, rtol=1e-9)
    np.testing.assert_allclose(one.mean, np.linalg.solve(expected, shift), rtol=1e-9)


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_matrix])
def test_state_round_trip_is_bit_for_bit(kind):
    one = waiting(6, kind=kind)
    twin = gf.LowRankGaussian.from_state(one.state())
    rng = np.random.default_rng(0)
    X, y = kind(rng.standard_normal((20, 9))), rng.standard_normal(20)
    for each in (one, twin):
        gf.fold(each, gf.likelihoods.Gaussian(0.7), X, y)
    assert one.options == twin.options
    for name, array in one.state().items():
        np.testing.assert_array_equal(array, twin.state()[name], strict=True)


def test_copy_shares_nothing():
    one = waiting(1)
    before = one.state()
    twin = one.copy()
    gf.fold(twin, gf.likelihoods.Gaussian(0.7), np.ones((9, 9)), np.ones(9))
    for name, array in before.items():
        np.testing.assert_array_equal(array, one.state()[name])


def test_reading_W_does_not_disturb_a_block():
    one, twin = waiting(1), waiting(1)
    assert one.W.shape == (9, 3)
    assert (one.psi > 0).all()
    assert one.pending == twin.pending == 5
    np.testing.assert_array_equal(one.state()["W"], twin.state()["W"])
    twin.flush()
    np.testing.assert_array_equal(one.W, twin.W)


@pytest.mark.parametrize(
    ("arguments", "match"),
    [
        ({"W": np.zeros((3, 4))}, r"rank=4.*1 to 3"),
        ({"W": np.zeros((3, 0))}, "rank=0"),
        ({"W": np.full((3, 1), np.nan)}, "W: NaN"),
        ({"W": np.zeros((2, 1))}, "shapes"),
        ({"psi": [1.0, 0.0, 1.0]}, "psi: entry 1 is 0.0"),
        ({"psi": [1.0, 1.0, -2.0]}, "psi: entry 2 is -2.0"),
        ({"psi": [np.nan, 1.0, 1.0]}, "psi: entry 0"),
        ({"mean": [0.0, np.inf, 0.0]}, "mean"),
        ({"inner_loops": 0}, "inner_loops=0"),
        ({"inner_loops": 1.5}, r"inner_loops=1\.5"),
        ({"block_size": 0}, "block_size=0"),
        ({"gain": "best"}, "gain='best'.*'exact'"),
        ({"gain": "projected", "block_size": 2}, "block_size=2"),
        ({"projection": "svd"}, "projection='svd'.*'eigen'"),
        ({"projection": "em"}, "W: all zero.*projection='em'.*epsilon > 0"),
        ({"dtype": np.int64}, "dtype"),
    ],
)
def test_bad_construction(arguments, match):
    good = {"mean": np.zeros(3), "W": np.zeros((3, 1)), "psi": np.ones(3)}
    with pytest.raises(ValueError, match=match):
        gf.LowRankGaussian(**(good | arguments))


def test_bad_priors():
    for arguments, match in (((3, 4), "rank=4"), ((3, 0), "rank=0"), ((3, 2, 0.0), "std"), ((0, 1), "dim=0")):
        with pytest.raises(ValueError, match=match):
            gf.LowRankGaussian.isotropic(*arguments)
    with pytest.raises(ValueError, match="epsilon"):
        gf.LowRankGaussian.isotropic(3, 1, epsilon=1.0)
