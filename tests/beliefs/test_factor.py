"""FactorGaussian against the Gaussian with its covariance written out."""

import numpy as np
import pytest
from scipy import sparse

import gaussfold as gf


def belief(seed=0, d=7, p=3, **options):
    rng = np.random.default_rng(seed)
    return gf.FactorGaussian(rng.standard_normal(d), rng.standard_normal((d, p)), rng.uniform(0.3, 2.0, d), **options)


def dense_of(one):
    return gf.DenseGaussian(one.mean, one.F @ one.F.T + np.diag(one.psi))


@pytest.fixture(params=[0, 1, 3, 7], ids=lambda p: f"rank{p}")
def one(request):
    return belief(3, p=request.param)


def test_moments(one):
    cov = one.F @ one.F.T + np.diag(one.psi)
    X = np.random.default_rng(1).standard_normal((5, 7))
    np.testing.assert_allclose(one.variance(), np.diag(cov), rtol=1e-12)
    np.testing.assert_allclose(one.trace(), np.trace(cov), rtol=1e-12)
    np.testing.assert_allclose(one.to_dense().cov, cov, rtol=1e-10, atol=1e-12)
    for rows in (X, sparse.csr_matrix(X), sparse.csr_array(X)):
        moments = one.marginal(rows)
        np.testing.assert_allclose(moments.mean, X @ one.mean, rtol=1e-12)
        np.testing.assert_allclose(moments.variance, np.einsum("ij,jk,ik->i", X, cov, X), rtol=1e-11)


def test_density_entropy_and_divergence(one):
    dense = dense_of(one)
    theta = np.random.default_rng(2).standard_normal((4, 7))
    np.testing.assert_allclose(one.log_prob(theta), dense.log_prob(theta), rtol=1e-10)
    np.testing.assert_allclose(one.log_prob(theta[1]), dense.log_prob(theta[1]), rtol=1e-10)
    np.testing.assert_allclose(one.entropy(), dense.entropy(), rtol=1e-10)
    for other in (belief(8), belief(8, p=0)):
        np.testing.assert_allclose(one.kl(other), dense.kl(dense_of(other)), rtol=1e-10)
        np.testing.assert_allclose(one.kl(dense_of(other)), dense.kl(dense_of(other)), rtol=1e-10)
    assert abs(one.kl(one)) < 1e-10


@pytest.mark.parametrize("waiting", [0, 3, -3])
def test_divergence_to_a_low_rank_precision(one, waiting):
    """Rows that wait for their projection, dense (3) or sparse (-3), are a part of the other belief."""
    rng = np.random.default_rng(4)
    other = gf.LowRankGaussian(
        rng.standard_normal(7), rng.standard_normal((7, 2)), rng.uniform(0.5, 2.0, 7), block_size=8
    )
    if waiting:
        X = rng.standard_normal((abs(waiting), 7))
        gf.fold(other, gf.likelihoods.Gaussian(0.7), X if waiting > 0 else sparse.csr_matrix(X), np.ones(abs(waiting)))
    assert other.pending == abs(waiting)
    np.testing.assert_allclose(one.kl(other), dense_of(one).kl(other.to_dense()), rtol=1e-9)


def test_samples_have_the_covariance():
    one = belief(5)
    draws = one.sample(200_000, np.random.default_rng(0))
    error = np.cov(draws.T) - dense_of(one).cov
    scale = np.sqrt(np.outer(one.variance(), one.variance()) * 2.0 / len(draws))
    assert (np.abs(error) < 5.0 * scale).all()
    assert (np.abs(draws.mean(axis=0) - one.mean) < 5.0 * np.sqrt(one.variance() / len(draws))).all()
    np.testing.assert_array_equal(one.sample(3, np.random.default_rng(1)), one.sample(3, np.random.default_rng(1)))


def test_combine_is_the_exact_product():
    prior = gf.FactorGaussian.isotropic(7, 2, std=1.3, mean=0.4)
    shards = [
        gf.FactorGaussian(shard.mean, 0.3 * shard.F, 0.3 * shard.psi) for shard in (belief(1, p=2), belief(2, p=3))
    ]
    both = gf.FactorGaussian.combine(prior, shards)
    expected = gf.DenseGaussian.combine(prior.to_dense(), [dense_of(shard) for shard in shards])
    np.testing.assert_allclose(both.mean, expected.mean, rtol=1e-9)
    np.testing.assert_allclose(both.to_dense().cov, expected.cov, rtol=1e-9, atol=1e-12)
    assert both.rank == 5
    wide = gf.FactorGaussian.combine(prior, [*shards, *shards])
    assert wide.rank == 7  # never more than the parameters
    np.testing.assert_allclose(
        wide.to_dense().cov,
        gf.DenseGaussian.combine(prior.to_dense(), [dense_of(shard) for shard in (*shards, *shards)]).cov,
        rtol=1e-9,
        atol=1e-12,
    )
    with pytest.raises(ValueError, match=r"prior: .*diagonal"):
        gf.FactorGaussian.combine(belief(3), shards)
    with pytest.raises(ValueError, match="know less than the prior"):
        gf.FactorGaussian.combine(gf.FactorGaussian.isotropic(7, 0, std=0.01), [belief(1)] * 2)


def test_isotropic():
    one = gf.FactorGaussian.isotropic(6, 2, std=0.7, mean=0.3)
    np.testing.assert_allclose(one.to_dense().cov, 0.49 * np.eye(6), atol=1e-15)
    np.testing.assert_array_equal(one.mean, np.full(6, 0.3))
    start = gf.FactorGaussian.isotropic(6, 2, std=0.7, rng=np.random.default_rng(2), share=0.25)
    np.testing.assert_allclose(start.trace(), 6 * 0.49)
    np.testing.assert_allclose(start.F.T @ start.F, 0.25 * 6 * 0.49 / 2 * np.eye(2), atol=1e-12)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_save_and_load_bit_for_bit(tmp_path, dtype):
    one = belief(6, dtype=dtype)
    gf.save(one, tmp_path / "belief")
    twin = gf.load(tmp_path / "belief")
    for name, array in one.state().items():
        assert array.dtype == dtype
        np.testing.assert_array_equal(array, twin.state()[name], strict=True)
    copy = one.copy()
    copy._mean += 1.0
    np.testing.assert_array_equal(one.mean, twin.mean)
    np.testing.assert_allclose(one.log_prob(one.mean), dense_of(one).log_prob(one.mean), rtol=1e-6)


def test_linear_in_the_dimension():
    one = gf.FactorGaussian.isotropic(200_000, 2, std=0.7, rng=np.random.default_rng(0), share=0.1)
    assert abs(one.kl(one.copy())) < 1e-6
    assert np.isfinite(one.log_prob(one.sample(2, np.random.default_rng(1)))).all()


def test_folding_is_refused():
    with pytest.raises(ValueError, match="use LowRankGaussian"):
        gf.fold(belief(), gf.likelihoods.Gaussian(0.7), np.ones((1, 7)), np.ones(1))


@pytest.mark.parametrize(
    ("arguments", "match"),
    [
        ({"F": np.zeros((3, 4))}, r"rank=4.*0 to 3"),
        ({"F": np.full((3, 1), np.nan)}, "F: NaN"),
        ({"F": np.zeros((2, 1))}, "shapes"),
        ({"psi": [1.0, 0.0, 1.0]}, "psi: entry 1 is 0.0"),
        ({"psi": [1.0, np.nan, 1.0]}, "psi: entry 1"),
        ({"mean": [0.0, np.inf, 0.0]}, "mean"),
        ({"dtype": np.int64}, "dtype"),
    ],
)
def test_bad_construction(arguments, match):
    good = {"mean": np.zeros(3), "F": np.zeros((3, 1)), "psi": np.ones(3)}
    with pytest.raises(ValueError, match=match):
        gf.FactorGaussian(**(good | arguments))


# As for LowRankGaussian, whose arguments and sentences are others.


def test_bad_priors_and_rows():
    for arguments, match in (((3, 4), "rank=4"), ((3, -1), "rank=-1"), ((3, 2, 0.0), "std"), ((0, 1), "dim=0")):
        with pytest.raises(ValueError, match=match):
            gf.FactorGaussian.isotropic(*arguments)
    with pytest.raises(ValueError, match=r"share=1\.0"):
        gf.FactorGaussian.isotropic(3, 1, share=1.0)
    with pytest.raises(ValueError, match=r"X: shape \(2, 3\)"):
        belief().marginal(np.ones((2, 3)))
