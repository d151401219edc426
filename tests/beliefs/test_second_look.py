"""Rows that are kept and visited once more: beside the plain twin, and every promise of a fold."""

import copy
import math
import pickle

import numpy as np
import pytest
from scipy import sparse

import gaussfold as gf
from gaussfold.beliefs import Joint, Marginal
from gaussfold.dynamics import Forgetting
from gaussfold.likelihoods import Bernoulli, Gaussian, Poisson
from tests.beliefs.sparse_streams import dicts, draw
from tests.reference import diagonal, second_look

LOGIT = Bernoulli("logit", "probit")
MAKERS = {
    "one": lambda d: gf.DiagonalGaussian.isotropic(d, 0.7, 0.1),
    "one, joint": lambda d: gf.DiagonalGaussian.isotropic(d, 0.7, coupling="joint"),
    "eight": lambda d: gf.DiagonalMixture.isotropic(d),
    "three": lambda d: gf.DiagonalMixture.isotropic(d, (0.2, 1.0, 5.0)),
    "stack": lambda d: gf.DiagonalStack.isotropic(d),
    "stack of floats": lambda d: gf.DiagonalStack.isotropic(d, dtype="float32"),
}


def fold(belief, X, y, w=None, likelihood=LOGIT, **how):
    return gf.fold(belief, likelihood, X, y, rule="newton", sample_weight=w, **how)


def arrays(belief):
    return {name: array.tobytes() for name, array in sorted(belief.state().items())}


def data(n=160, dim=9, seed=3):
    X, y, rng = draw(n, dim, seed)
    y[rng.random(n) < 0.1] = np.nan
    w = rng.choice([0.0, 0.5, 1.0, 2.5], n)
    return X, y, w


@pytest.mark.parametrize("form", ["solved", "one-step"])
@pytest.mark.parametrize("lag", [1, 7, 500])
def test_the_textbook(form, lag):
    X, y, w = data()
    belief = gf.DiagonalGaussian.isotropic(9, 0.7, 0.1, coupling=Marginal(form)).look_again(lag)
    trace = fold(belief, X, y, w)

    def visit(means, variances, row, label, weight):
        diagonal.marginal_logit(means, variances, row, label, weight, mean_form=form)

    means, variances = [0.1] * 9, [0.49] * 9
    met = second_look.learn(means, variances, list(dicts(X)), 2 * y - 1, w, lag, visit)
    np.testing.assert_allclose(np.stack([trace.mean, trace.variance], axis=1), met, rtol=3e-6, atol=1e-8)
    np.testing.assert_allclose(belief.mean, means, rtol=3e-6, atol=1e-8)
    np.testing.assert_allclose(belief.var, variances, rtol=3e-6)


def test_the_textbook_jointly():
    X, y, w = data(seed=4)
    belief = gf.DiagonalGaussian.isotropic(9, 1.3, coupling=Joint()).look_again(11)
    gf.fold(belief, Bernoulli("logit"), X, y, rule="newton", sample_weight=w)
    means, variances = [0.0] * 9, [1.69] * 9
    second_look.learn(means, variances, list(dicts(X)), 2 * y - 1, w, 11, diagonal.dim_gauss)
    np.testing.assert_allclose(belief.mean, means, rtol=1e-9, atol=1e-11)
    np.testing.assert_allclose(belief.var, variances, rtol=1e-9)


@pytest.mark.parametrize("stds", [(0.3,), (0.3, 1.0, 2.0, 6.0), tuple(2.0**k for k in range(-4, 4)), (0.3, 6.0)])
def test_lanes_look_again_as_each_alone(stds):
    X, y, w = data(seed=5)
    together = gf.DiagonalMixture.isotropic(9, stds).look_again(13)
    fold(together, X, y, w)
    for k, std in enumerate(stds):
        alone = gf.DiagonalGaussian.isotropic(9, std).look_again(13)
        fold(alone, X, y, w)
        np.testing.assert_allclose(together.components[k].mean, alone.mean, rtol=2e-6, atol=1e-9)
        np.testing.assert_allclose(together.components[k].var, alone.var, rtol=2e-6)


def test_one_feature_is_where_it_was():
    """Alone in its rows a feature loses nothing at the first visit, and a second finds the same mode, nearly."""
    X, y = np.ones((40, 1)), (np.arange(40) % 3 == 0).astype(float)
    once, twice = (gf.DiagonalGaussian.isotropic(1, 2.0).look_again(n) for n in (0, 5))
    for belief in (once, twice):
        gf.fold(belief, Gaussian(0.7), X, y, rule="newton")
    np.testing.assert_allclose(twice.mean, once.mean, rtol=1e-12)
    np.testing.assert_allclose(twice.var, once.var, rtol=1e-12)


def test_closer_to_what_all_rows_say():
    X, y, _ = draw(3000, 30, 8, active=12)
    exact = gf.DenseGaussian.isotropic(30, 1.0)
    gf.fold(exact, LOGIT, X.toarray(), y, rule="newton")
    away = []
    for rows in (0, 300):
        belief = gf.DiagonalGaussian.isotropic(30, 1.0).look_again(rows)
        fold(belief, X, y)
        away.append(float(np.abs((belief.mean - exact.mean) / np.sqrt(np.diag(exact.cov))).mean()))
    assert away[1] < 0.9 * away[0]


@pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)
def test_any_chunking(make):
    X, y, w = data(seed=6)
    whole = make(9).look_again(17)
    expected = fold(whole, X, y, w)
    rng = np.random.default_rng(1)
    for _ in range(3):
        cut, told, at = make(9).look_again(17), [], 0
        while at < len(y):
            stop = at + int(rng.integers(1, 50))
            told.append(fold(cut, X[at:stop], y[at:stop], w[at:stop], whole=bool(rng.integers(2))))
            at = stop
        assert arrays(cut) == arrays(whole)
        np.testing.assert_array_equal(np.concatenate([each.log_predictive for each in told]), expected.log_predictive)


@pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)
def test_save_and_go_on(make, tmp_path):
    X, y, w = data(seed=7)
    whole = make(9).look_again(17)
    fold(whole, X, y, w)
    for cut in (0, 1, 60, 159):
        first = make(9).look_again(17)
        fold(first, X[:cut], y[:cut], w[:cut])
        gf.save(first, tmp_path / "a")
        for second in (gf.load(tmp_path / "a"), first.copy(), copy.deepcopy(first), pickle.loads(pickle.dumps(first))):
            fold(second, X[cut:], y[cut:], w[cut:])
            assert arrays(second) == arrays(whole)


@pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)
def test_whole_or_not_at_all(make):
    X, y, w = data(seed=9)
    belief = make(9).look_again(17)
    fold(belief, X[:80], y[:80], w[:80])
    before = arrays(belief)
    bad = sparse.csr_array(X[80:]).copy()
    bad.data[40] = 1e300
    with pytest.raises(ValueError, match="X: row"):
        fold(belief, bad, y[80:], w[80:] + 0.5)
    assert arrays(belief) == before
    twin = belief.copy()
    for each in (belief, twin):
        fold(each, X[80:], y[80:], w[80:])
    assert arrays(belief) == arrays(twin)


@pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)
def test_rows_that_say_nothing(make):
    X, y, rng = draw(120, 9, 10)
    some = rng.random(120) < 0.4
    with_gaps, weight = np.where(some, np.nan, y), np.ones(120)
    weight[50:60] = 0.0
    told = ~some & (weight > 0.0)
    belief, other = make(9).look_again(6), make(9).look_again(6)
    fold(belief, X, with_gaps, weight)
    fold(other, X[told], y[told])
    left, right = belief.state(), other.state()
    for name in left:
        np.testing.assert_array_equal(left[name], right[name], err_msg=name)


def test_rows_by_the_thousand_in_bounded_memory():
    X, y, _ = draw(20_000, 50, 11)
    belief = gf.DiagonalStack.isotropic(50, dtype="float32").look_again(200)
    fold(belief, X, y, whole=False)
    kept = belief.parts().kept
    assert len(kept) == 200
    assert kept.room.indices.size < 400_000
    one = gf.DiagonalStack.isotropic(50, dtype="float32").look_again(200)
    for start in range(0, 20_000, 3000):
        fold(one, X[start : start + 3000], y[start : start + 3000])
    assert arrays(one) == arrays(belief)


def test_a_cell_that_would_be_no_gaussian_stays():
    """With a precision that is all rounding without its last row, a second look would invent a prior."""
    belief = gf.DiagonalGaussian.isotropic(1, 1e6, dtype="float32").look_again(1)
    X = np.array([[1e-9], [1e-9], [1e-9], [1e6], [1e-9], [1e-9]])
    fold(belief, X[:4], [1.0] * 4, likelihood=Gaussian(1.0))
    kept = belief.mean.copy(), belief.var.copy()
    assert len(belief.parts().kept) == 1
    fold(belief, X[4:], [1.0, 0.0], likelihood=Gaussian(1.0))
    np.testing.assert_array_equal((belief.mean, belief.var), kept)


def test_change_of_units():
    """Labels in another unit: as if they had been told so from the beginning."""
    X, y, _ = draw(90, 6, 12)
    X = sparse.csr_array(np.concatenate([X.toarray(), np.ones((90, 1))], axis=1))
    y = X @ np.arange(7.0) + 0.3 * y
    plain, moved = (gf.DiagonalGaussian.isotropic(7, 0.7).look_again(20) for _ in range(2))
    fold(plain, X[:40], y[:40], likelihood=Gaussian(1.0))
    ratio, shift = 2.5, -0.4
    fold(moved, X[:40], y[:40], likelihood=Gaussian(1.0))
    moved.change_units(ratio, shift, 6)
    plain_prior = gf.DiagonalGaussian(np.r_[np.zeros(6), shift], np.full(7, 0.49)).look_again(20)
    fold(plain_prior, X[:40], y[:40] / ratio + shift, likelihood=Gaussian(1.0))
    for belief in (moved, plain_prior):
        fold(belief, X[40:], y[40:] / ratio + shift, likelihood=Gaussian(1.0))
    np.testing.assert_allclose(moved.mean, plain_prior.mean, rtol=1e-10)
    np.testing.assert_allclose(moved.var, plain_prior.var, rtol=1e-12)


def test_counts():
    X, _, rng = draw(200, 9, 13)
    y = rng.poisson(2.0, 200).astype(float)
    belief = gf.DiagonalGaussian.isotropic(9, 0.7).look_again(25)
    trace = fold(belief, X, y, likelihood=Poisson())
    assert np.isfinite(trace.log_predictive).all()
    assert np.isfinite(belief.mean).all()


def test_refused():
    belief = gf.DiagonalGaussian.isotropic(3).look_again(5)
    forgets = Forgetting(0.9, belief.copy())
    X, y = np.eye(3), [1.0, 0.0, 1.0]
    for wrong in (-1, 2.5, True, "all", 10**12):
        with pytest.raises(ValueError, match="second_look"):
            gf.DiagonalGaussian.isotropic(3).look_again(wrong)
    with pytest.raises(ValueError, match="faded"):
        fold(belief, X, y, dynamics=forgets)
    with pytest.raises(ValueError, match="faded"):
        belief.relax(0.5, gf.DiagonalGaussian.isotropic(3))
    with pytest.raises(ValueError, match="second look"):
        belief.tempered(2)
    with pytest.raises(ValueError, match="second look"):
        gf.DiagonalStack.isotropic(3).look_again(2).apart(2)
    still = gf.DiagonalGaussian.isotropic(3)
    fold(still, X, y, dynamics=Forgetting(0.9, gf.DiagonalGaussian.isotropic(3)))
    with pytest.raises(ValueError, match="faded"):
        still.look_again(3)
    with pytest.raises(ValueError, match="second_look=3: classes"):
        gf.DiagonalBlocks.isotropic(3, 4).look_again(3)


@pytest.mark.parametrize(
    ("name", "spoil"),
    [
        ("look.indices", lambda a: a + 99),
        ("look.indices", lambda a: a - 99),
        ("look.ends", lambda a: a[::-1].copy()),
        ("look.ends", lambda a: a[:-1]),
        ("look.weight", lambda a: -a - 1.0),
        ("look.y", lambda a: a * math.nan),
        ("look.sites", lambda a: a[:-1]),
        ("look.rows", lambda a: a * 0),
        ("look.rows", lambda a: a * 0 + 1),
        ("look.learned", lambda a: a - 1000),
    ],
)
def test_files_that_lie(name, spoil):
    X, y, w = data()
    belief = gf.DiagonalGaussian.isotropic(9).look_again(17)
    fold(belief, X, y, w)
    state = belief.state()
    state[name] = spoil(state[name])
    with pytest.raises(ValueError, match=r"part 'look\."):
        gf.DiagonalGaussian.from_state(state)


def test_estimators(tmp_path):
    X, y, _ = draw(400, 9, 14)
    for prior in (1.0, "auto"):
        model = gf.StreamingClassifier(covariance="diagonal", second_look=50, prior_std=prior, fit_intercept=False)
        model.partial_fit(X[:150], y[:150])
        gf.save(model, tmp_path / "m")
        model.partial_fit(X[150:], y[150:])
        other = gf.load(tmp_path / "m")
        other.partial_fit(X[150:], y[150:])
        assert arrays(model.posterior_) == arrays(other.posterior_)
        assert model.posterior_.second_look == 50
    belief = gf.DiagonalGaussian.isotropic(9).look_again(50)
    gf.fold(belief, Bernoulli("logit"), X, y, rule="newton")
    one = gf.StreamingClassifier(covariance="diagonal", second_look=50, prior_std=1.0, fit_intercept=False)
    np.testing.assert_array_equal(one.partial_fit(X, y).coef_.ravel(), belief.mean)
    with pytest.raises(ValueError, match="ensemble=3"):
        gf.StreamingClassifier(covariance="diagonal", second_look=5, ensemble=3).partial_fit(X, y)
    with pytest.raises(ValueError, match="forgetting"):
        gf.StreamingClassifier(covariance="diagonal", second_look=5, forgetting=0.9).partial_fit(X, y)
    with pytest.raises(ValueError, match="low-rank"):
        gf.StreamingClassifier(covariance="lowrank", second_look=5).partial_fit(X.toarray(), y)
