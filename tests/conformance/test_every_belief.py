"""Belief × likelihood × rule × at for every belief but the dense one (``test_grid``), values against values.

Where a belief loses nothing it is the dense textbook: low rank with as many factors as parameters, diagonal with
marginal coupling on rows of one feature. With joint coupling it is the textbook that forgets all but the diagonal after
each row. A mixture is its components side by side, weighed by what they predicted.
"""

import numpy as np
import pytest

import gaussfold as gf
from gaussfold.protocols import Belief
from gaussfold.trace import RowError
from tests import problems
from tests.conformance.test_grid import DIM, TOLERANCE, WEIGHT, _data, _name
from tests.reference.dense import Textbook

MEAN, VARIANCE = np.array([0.2, -0.4, 0.1]), np.array([0.5, 0.9, 0.3])
STDS = (0.4, 1.3)
LOSSLESS = {
    "lowrank": lambda: gf.LowRankGaussian(MEAN, np.zeros((DIM, DIM)), 1.0 / VARIANCE),
    "lowrank waiting": lambda: gf.LowRankGaussian(MEAN, np.zeros((DIM, DIM)), 1.0 / VARIANCE, block_size=4),
}
FOLDABLE = {
    "dense": lambda: gf.DenseGaussian(MEAN, np.diag(VARIANCE)),
    "diagonal": lambda: gf.DiagonalGaussian(MEAN, VARIANCE),
    "mixture": lambda: gf.DiagonalMixture.isotropic(DIM, STDS),
    **LOSSLESS,
}
cells = pytest.mark.parametrize(("likelihood", "rule", "at"), problems.CELLS, ids=_name)


class OnlyTheDiagonal(Textbook):
    """What a row says beyond the diagonal is dropped."""

    def absorb(self, x, precision, shift):
        super().absorb(x, precision, shift)
        self.cov = np.diag(np.diag(self.cov))


def learned(twin, likelihood, X, y, rule, at):
    return twin(MEAN, np.diag(VARIANCE)).learn(likelihood.config(), X, y, rule.name, rule.alpha, at, WEIGHT)


def assert_same(belief, result, twin, rows=slice(None)):
    """What was met on the way and, if all rows are looked at, where it led."""
    assert problems.relative(result.mean[rows], np.array(twin.means)[rows]) < TOLERANCE
    assert problems.relative(result.variance[rows], np.array(twin.variances)[rows]) < TOLERANCE
    if rows == slice(None):
        assert problems.relative(belief.mean, twin.mean) < TOLERANCE
        assert problems.relative(belief.variance(), np.diag(twin.cov)) < TOLERANCE


@cells
@pytest.mark.parametrize("kind", LOSSLESS)
def test_low_rank_with_all_factors_is_the_row_loop(kind, likelihood, rule, at):
    X, y = _data(likelihood)
    belief = LOSSLESS[kind]()
    result = gf.fold(belief, likelihood, X, y, rule, at, sample_weight=WEIGHT)
    twin = learned(Textbook, likelihood, X, y, rule, at)
    # No factor holds a negative precision: rows after one are met by an approximation.
    negative = np.flatnonzero(np.array(twin.precisions) < 0.0)
    assert_same(belief, result, twin, slice(negative[0] + 1) if negative.size else slice(None))
    if not negative.size:
        assert problems.relative(belief.to_dense().cov, twin.cov) < TOLERANCE


@cells
def test_joint_coupling_keeps_the_diagonal_of_the_row_loop(likelihood, rule, at):
    X, y = _data(likelihood)
    belief = gf.DiagonalGaussian(MEAN, VARIANCE, "joint")
    result = gf.fold(belief, likelihood, X, y, rule, at, sample_weight=WEIGHT)
    assert_same(belief, result, learned(OnlyTheDiagonal, likelihood, X, y, rule, at))


@cells
def test_marginal_coupling_is_the_row_loop_on_rows_of_one_feature(likelihood, rule, at):
    X, y = _data(likelihood)
    X *= np.eye(DIM)[np.arange(len(X)) % DIM]
    belief = FOLDABLE["diagonal"]()
    if isinstance(likelihood, gf.likelihoods.StudentT):
        with pytest.raises(ValueError, match="use coupling='joint'"):
            gf.fold(belief, likelihood, X, y, rule, at, sample_weight=WEIGHT)
        np.testing.assert_array_equal(belief.mean, MEAN)
        return
    result = gf.fold(belief, likelihood, X, y, rule, at, sample_weight=WEIGHT)
    assert_same(belief, result, learned(Textbook, likelihood, X, y, rule, at))


@cells
def test_a_mixture_is_its_components(likelihood, rule, at):
    X, y = _data(likelihood)
    y = np.round(y) if isinstance(likelihood, gf.likelihoods.Bernoulli) else y  # of a soft label each side is averaged
    parts = [gf.DiagonalGaussian.isotropic(DIM, std, 0.2, "joint") for std in STDS]
    mixture = gf.DiagonalMixture(parts)
    result = gf.fold(mixture, likelihood, X, y, rule, at, sample_weight=WEIGHT)
    scores = np.array(
        [gf.fold(part, likelihood, X, y, rule, at, sample_weight=WEIGHT).log_predictive for part in parts]
    )
    total = np.vstack([np.zeros(2), np.cumsum(WEIGHT[:, None] * scores.T, axis=0)])
    log_weights = total - np.logaddexp.reduce(total, axis=1, keepdims=True)
    np.testing.assert_allclose(mixture.log_weights, log_weights[-1], rtol=1e-12, atol=1e-13)
    expected = np.logaddexp.reduce(log_weights[:-1] + scores.T, axis=1)
    np.testing.assert_allclose(result.log_predictive, expected, rtol=1e-12, atol=1e-13)
    for part, component in zip(parts, mixture.components, strict=True):
        np.testing.assert_array_equal(component.mean, part.mean)
        np.testing.assert_array_equal(component.var, part.var)


@pytest.mark.parametrize("kind", FOLDABLE)
def test_what_can_be_folded_into_is_a_belief(kind):
    assert isinstance(FOLDABLE[kind](), Belief)


@pytest.mark.parametrize("kind", FOLDABLE)
def test_rows_before_one_that_fails_stay_learned_if_asked(kind):
    X, y = _data(gf.likelihoods.Bernoulli())
    X[4] = 1e200
    wanted, belief, whole = (FOLDABLE[kind]() for _ in range(3))
    trace = gf.fold(wanted, gf.likelihoods.Bernoulli(), X[:4], y[:4], "newton")
    with pytest.raises(RowError, match="nothing from it on") as caught:
        gf.fold(belief, gf.likelihoods.Bernoulli(), X, y, "newton", whole=False)
    assert caught.value.row == 4
    for name, array in wanted.state().items():
        np.testing.assert_array_equal(belief.state()[name], array)
    np.testing.assert_array_equal(caught.value.trace.log_predictive, trace.log_predictive)
    with pytest.raises(RowError, match="nothing was learned"):
        gf.fold(whole, gf.likelihoods.Bernoulli(), X, y, "newton")
    np.testing.assert_array_equal(whole.mean, FOLDABLE[kind]().mean)


def test_a_gaussian_that_is_no_belief_says_what_to_use():
    factor = gf.FactorGaussian(MEAN, np.ones((DIM, 1)), VARIANCE)
    for use in (gf.fold, gf.sweep):
        with pytest.raises(ValueError, match=r"folded into a FactorGaussian; use LowRankGaussian .*DenseGaussian"):
            use(factor, gf.likelihoods.Bernoulli(), np.ones((1, DIM)), np.ones(1), *[None][: use is gf.sweep])
