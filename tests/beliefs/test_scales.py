"""Numbers that cannot be right are refused: whatever the scale, a belief stays finite with positive variances."""

from fractions import Fraction

import numpy as np
import pytest
from scipy.sparse import csr_array

import gaussfold as gf
from gaussfold.trace import RowError

BELIEFS = {
    "full": lambda d: gf.DenseGaussian.isotropic(d, 0.7),
    "low rank": lambda d: gf.LowRankGaussian.isotropic(d, 2, 0.7),
    "low rank in blocks": lambda d: gf.LowRankGaussian.isotropic(d, 2, 0.7, block_size=4),
    "low rank by EM": lambda d: gf.LowRankGaussian.isotropic(d, 2, 0.7, projection="em"),
    "low rank, printed": lambda d: gf.LowRankGaussian.isotropic(d, 2, 0.7, projection="em", gain="projected"),
    "low rank, float32": lambda d: gf.LowRankGaussian.isotropic(d, 2, 0.7, dtype=np.float32),
    "diagonal": lambda d: gf.DiagonalGaussian.isotropic(d, 0.7),
    "diagonal, joint": lambda d: gf.DiagonalGaussian.isotropic(d, 0.7, coupling="joint"),
    "diagonal, float32": lambda d: gf.DiagonalGaussian.isotropic(d, 0.7, dtype=np.float32),
    "mixture": lambda d: gf.DiagonalMixture.isotropic(d),
}
SCALES = [1e-300, 1e-30, 1e3, 1e6, 1e9, 1e12, 1e15, 1e18, 1e30, 1e75, 1e100, 1e150, 1e200, 1e308]
LIKELIHOODS = {"logit": gf.likelihoods.Bernoulli("logit"), "gaussian": gf.likelihoods.Gaussian(0.3)}


def scaled_rows(rng, d, scale):
    """A dozen rows in which an entry, a column, a row or all are of another scale."""
    X = rng.normal(size=(12, d))
    where = [(rng.integers(12), rng.integers(d)), (slice(None), rng.integers(d)), rng.integers(12), slice(None)]
    X[where[rng.integers(4)]] *= scale / 10.0
    return X


@pytest.mark.parametrize("likelihood", list(LIKELIHOODS))
@pytest.mark.parametrize("name", list(BELIEFS))
def test_refused_whole_or_finite_with_positive_variances(name, likelihood):
    rng = np.random.default_rng(5)
    for scale in SCALES:
        for _ in range(3):
            d = int(rng.integers(3, 8))
            belief, X = BELIEFS[name](d), scaled_rows(rng, d, scale)
            before = {key: array.tobytes() for key, array in belief.state().items()}
            try:
                trace = gf.fold(belief, LIKELIHOODS[likelihood], X, rng.integers(0, 2, 12).astype(float))
            except RowError:
                assert {key: array.tobytes() for key, array in belief.state().items()} == before
            else:
                assert not np.isnan(trace.log_predictive).any()
            variance = belief.variance()
            assert np.isfinite(belief.mean).all()
            assert (variance > 0.0).all()
            assert np.isfinite(variance).all()
            told = belief.marginal(np.eye(d))
            assert (told.variance > 0.0).all()
            if hasattr(belief, "flush"):
                belief.flush()


def exact_variances(W, psi):
    """The diagonal of (WW' + Ψ)⁻¹ by Gauss and Jordan, in fractions."""
    d = len(psi)
    W = [[Fraction(float(entry)) for entry in row] for row in W]
    table = [
        [
            sum(a * b for a, b in zip(W[i], W[j], strict=True)) + (Fraction(float(psi[i])) if i == j else 0)
            for j in range(d)
        ]
        + [Fraction(int(i == j)) for j in range(d)]
        for i in range(d)
    ]
    for c in range(d):  # positive definite: no pivot is zero
        table[c] = [entry / table[c][c] for entry in table[c]]
        for r in range(d):
            if r != c:
                table[r] = [a - table[r][c] * b for a, b in zip(table[r], table[c], strict=True)]
    return np.array([float(table[i][d + i]) for i in range(d)])


def test_what_low_rank_takes_in_it_can_tell():
    """Variances are those of its factors as far as doubles carry; beyond that rows are refused."""
    rng, tried = np.random.default_rng(7), 0
    for scale in (1e3, 1e6, 1e9, 1e12, 1e18, 1e60):
        for block_size in (1, 4):
            for _ in range(4):
                belief = gf.LowRankGaussian.isotropic(5, 2, 0.7, block_size=block_size)
                try:
                    gf.fold(
                        belief,
                        LIKELIHOODS["logit"],
                        scaled_rows(rng, 5, scale),
                        rng.integers(0, 2, 12).astype(float),
                        rule="newton",
                    )
                except ValueError:
                    continue
                belief.flush()
                wanted = exact_variances(belief.W, belief.psi)
                tolerance = 1e-5 if scale <= 1e6 else 0.1
                np.testing.assert_allclose(belief.variance(), wanted, rtol=tolerance)
                np.testing.assert_allclose(belief.marginal(np.eye(5)).variance, wanted, rtol=tolerance)
                tried += 1
    assert tried > 15


def test_a_site_that_drowns_everything_else_is_refused():
    belief = gf.LowRankGaussian.isotropic(4, 2, 0.7)
    with pytest.raises(ValueError, match="lost in rounding"):
        belief.absorb(np.full(4, 1e9), 0.5, 1.0)
    np.testing.assert_array_equal(belief.mean, 0.0)


@pytest.mark.parametrize("belief", [gf.DenseGaussian, gf.LowRankGaussian, gf.FactorGaussian, gf.DiagonalGaussian])
def test_more_parameters_than_memory_holds_are_refused_in_a_sentence(belief):
    rank = (2,) if belief in (gf.LowRankGaussian, gf.FactorGaussian) else ()
    with pytest.raises(ValueError, match=r"dim=1099511627776: .*;"):
        belief.isotropic(2**40, *rank)


@pytest.mark.parametrize("covariance", ["full", "lowrank", "diagonal"])
def test_more_columns_than_memory_holds_are_refused_in_a_sentence(covariance):
    X = csr_array((np.ones(2), np.array([0, 2**40 - 1]), np.array([0, 1, 2])), shape=(2, 2**40))
    model = gf.StreamingClassifier(covariance=covariance)
    with pytest.raises(ValueError, match="109951162777"):
        model.partial_fit(X, [0, 1], classes=[0, 1])
