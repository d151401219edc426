"""Belief × likelihood × rule × at: every cell that is defined gives the numbers of the textbook's row loop.

The twin (``tests/reference``) multiplies precisions and inverts them, integrates by panels of Gauss-Legendre and solves
by SciPy's Powell iteration to 1e-14. It differs from the engine by at most 1.1e-13 on this grid: 1e-11 leaves room for
another BLAS and none for another formula.
"""

import numpy as np
import pytest

import gaussfold as gf
from gaussfold.rules import EP, PL, VI, Extragradient, Newton, Quadratic, Taylor
from tests import problems
from tests.reference import sites
from tests.reference.dense import Textbook

DIM, ROWS = 3, 6
WEIGHT = np.array([1.0, 2.5, 0.3, 2.5, 1.0, 0.3])
TOLERANCE = 1e-11
FORMS = [Extragradient("printed"), Extragradient("mean-only")]
FORM_CELLS = [
    (likelihood, rule, at)
    for likelihood in problems.FAMILIES
    for rule in problems.RULES
    for at in FORMS
    if problems.is_defined(rule, at, likelihood)
]


def _data(likelihood, seed=11):
    X, y = problems.data(likelihood, ROWS, DIM, seed)
    if isinstance(likelihood, gf.likelihoods.Bernoulli):
        y[[2, 4]] = 0.3, 0.85
    return X, y


def _name(value):
    return f"{value.name}-{value.form}" if isinstance(value, Extragradient) else problems.name(value)


@pytest.mark.parametrize(("likelihood", "rule", "at"), problems.CELLS, ids=_name)
def test_dense_gaussian_is_the_row_loop(likelihood, rule, at):
    X, y = _data(likelihood)
    belief = gf.DenseGaussian(*problems.prior(DIM))
    result = gf.fold(belief, likelihood, X, y, rule, at, sample_weight=WEIGHT)
    twin = Textbook(*problems.prior(DIM)).learn(likelihood.config(), X, y, rule.name, rule.alpha, at, WEIGHT)
    assert problems.relative(belief.mean, twin.mean) < TOLERANCE
    assert problems.relative(belief.cov, twin.cov) < TOLERANCE
    assert problems.relative(result.mean, np.array(twin.means)) < TOLERANCE
    assert problems.relative(result.variance, np.array(twin.variances)) < TOLERANCE
    assert problems.relative(result.site_precision, np.array(twin.precisions)) < TOLERANCE
    assert problems.relative(result.site_shift, np.array(twin.shifts)) < TOLERANCE


@pytest.mark.parametrize(("likelihood", "rule", "at"), FORM_CELLS, ids=_name)
def test_mirror_prox_as_printed(likelihood, rule, at):
    """lrvga (137)-(140), and (141)-(143), which keeps the first covariance; on matrices, as they stand there."""
    X, y = _data(likelihood)
    belief = gf.DenseGaussian(*problems.prior(DIM))
    gf.fold(belief, likelihood, X, y, rule, at, sample_weight=WEIGHT)
    mean, cov = problems.prior(DIM)
    for x, label, w in zip(X, y, WEIGHT, strict=True):
        m0, v0 = x @ mean, x @ cov @ x
        see = lambda m, v, m0=m0, v0=v0, label=label, w=w: sites.surrogate(  # noqa: E731
            likelihood.config(), rule.name, rule.alpha, label, w, m, v, m0, v0
        )
        J, H = see(m0, v0)
        trial = np.linalg.inv(np.linalg.inv(cov) - H * np.outer(x, x))
        trial_mean = mean + trial @ x * J
        J, H = see(x @ trial_mean, x @ trial @ x)
        cov = trial if at.form == "mean-only" else np.linalg.inv(np.linalg.inv(cov) - H * np.outer(x, x))
        mean = mean + cov @ x * J
    assert problems.relative(belief.mean, mean) < TOLERANCE
    assert problems.relative(belief.cov, cov) < TOLERANCE


def test_the_grid_is_the_whole_table():
    """Seven families × seven rules × three ats, less what has no meaning: counted by hand."""
    not_quadratic = 3  # Poisson has no bound
    not_log_concave = 2 * 2  # newton and vi of Student-t elsewhere than at the posterior
    assert len(problems.CELLS) == 7 * 7 * 3 - not_quadratic - not_log_concave
    assert {type(rule) for _, rule, _ in problems.CELLS} == {Newton, Taylor, VI, EP, PL, Quadratic}


@pytest.mark.parametrize("rule", problems.RULES, ids=_name)
@pytest.mark.parametrize("at", problems.ATS)
def test_all_rules_agree_on_gaussian_data(rule, at):
    """rvga Th. 2: everything is the Kalman filter then."""
    likelihood = gf.likelihoods.Gaussian(std=0.7)
    X, y = _data(likelihood)
    belief = gf.DenseGaussian(*problems.prior(DIM))
    gf.fold(belief, likelihood, X, y, rule, at, sample_weight=WEIGHT)
    mean, cov = problems.prior(DIM)
    for x, label, w in zip(X, y, WEIGHT, strict=True):
        gain = cov @ x / (0.7**2 / w + x @ cov @ x)
        mean = mean + gain * (label - x @ mean)
        cov = cov - np.outer(gain, x @ cov)
    np.testing.assert_allclose(belief.mean, mean, rtol=1e-12, atol=1e-13)
    np.testing.assert_allclose(belief.cov, cov, rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize(
    ("likelihood", "rule", "at", "remedy"),
    [
        (gf.likelihoods.Poisson(), "quadratic", "posterior", "use rule='vi'"),
        (gf.likelihoods.StudentT(3.5, 0.8), "newton", "prior", "use at='posterior'"),
        (gf.likelihoods.StudentT(3.5, 0.8), "vi", Extragradient("printed"), "use at='posterior'"),
        (gf.likelihoods.StudentT(1.5, 0.8), "taylor", "posterior", "use rule='vi'"),
        (gf.likelihoods.StudentT(1.5, 0.8), "pl", "prior", "use rule='vi'"),
    ],
)
def test_a_cell_without_meaning_says_which_ones_have_one(likelihood, rule, at, remedy):
    belief = gf.DenseGaussian.isotropic(1, 0.7)
    with pytest.raises(ValueError, match=f"rule='{rule}'.*{remedy}"):
        gf.fold(belief, likelihood, [[0.4]], [1.0], rule, at)
    np.testing.assert_array_equal(belief.factor, [[0.7]])
