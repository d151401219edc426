"""What a diagonal belief promises whatever the rule: chunks, time, storage, duplicates, whole or nothing."""

import math

import numpy as np
import pytest
from scipy import sparse

import gaussfold as gf
from gaussfold.beliefs.diagonal.coupling import Joint, Marginal
from gaussfold.dynamics import Forgetting, RandomWalk
from gaussfold.likelihoods import Bernoulli, Gaussian, Poisson, StudentT
from tests.beliefs.sparse_streams import dicts, draw
from tests.reference import diagonal as paper

APPROXIMATE = Bernoulli("logit", "probit")
DIM = 11
WIDE = 5000  # more features than entries: changes are logged, not copied
MAKERS = {
    "marginal": lambda dim=DIM: gf.DiagonalGaussian.isotropic(dim, std=0.7, mean=0.1),
    "float32": lambda dim=DIM: gf.DiagonalGaussian.isotropic(dim, std=0.7, mean=0.1, dtype="float32"),
    "joint": lambda dim=DIM: gf.DiagonalGaussian.isotropic(dim, std=0.7, coupling="joint"),
    "mixture": lambda dim=DIM: gf.DiagonalMixture.isotropic(dim, stds=(0.2, 0.7, 2.5)),
}
each_maker = pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS.keys())


def dynamics_of(kind, make, dim=DIM):
    return {"still": None, "forgets": Forgetting(0.97, make(dim)), "walks": RandomWalk(0.13)}[kind]


def same(a, b):
    a, b = a.state(), b.state()
    return a.keys() == b.keys() and all(np.array_equal(a[name], b[name]) for name in a)


@each_maker
@pytest.mark.parametrize("kind", ["still", "forgets", "walks"])
@pytest.mark.parametrize("dim", [DIM, WIDE])
def test_any_chunking_gives_the_same_bits_also_through_a_file(make, kind, dim, tmp_path):
    X, y, rng = draw(90, dim, seed=1)
    y[rng.random(90) < 0.1] = np.nan
    w = rng.choice([0.0, 1.0, 2.5], size=90)
    options = {"rule": "newton", "dynamics": dynamics_of(kind, make, dim)}
    whole, parts = make(dim), make(dim)
    a = gf.fold(whole, APPROXIMATE, X, y, sample_weight=w, **options)
    scores = []
    for part in np.split(np.arange(90), [1, 2, 30, 31, 77]):
        scores.append(gf.fold(parts, APPROXIMATE, X[part], y[part], sample_weight=w[part], **options).log_predictive)
        before = parts.state()
        gf.save(parts, tmp_path / "belief")
        assert all(np.array_equal(before[name], array) for name, array in parts.state().items()), "saving changed it"
        parts = gf.load(tmp_path / "belief")
    assert same(whole, parts)
    np.testing.assert_array_equal(a.log_predictive, np.concatenate(scores))
    assert np.isnan(a.log_predictive[np.isnan(y)]).all()


@each_maker
@pytest.mark.parametrize("kind", ["still", "forgets", "walks"])
@pytest.mark.parametrize("dim", [DIM, WIDE])
def test_a_row_that_fails_leaves_no_trace(make, kind, dim):
    X, y, _ = draw(40, dim, seed=2)
    belief = make(dim)
    options = {"rule": "newton", "dynamics": dynamics_of(kind, make, dim)}
    gf.fold(belief, APPROXIMATE, X, y, **options)
    before = belief.copy()
    bad = sparse.vstack([X, sparse.csr_array(([1e200, 1.0], ([0, 0], [3, 4])), shape=(1, dim)), X]).tocsr()
    labels = np.concatenate([y, [1.0], y])
    with pytest.raises(ValueError, match="row 40"):
        gf.fold(belief, APPROXIMATE, bad, labels, **options)
    assert same(belief, before)
    gf.fold(belief, APPROXIMATE, X, y, **options)  # and goes on as if nothing had happened
    gf.fold(before, APPROXIMATE, X, y, **options)
    assert same(belief, before)


@each_maker
def test_predicting_and_weight_zero_change_nothing(make):
    X, y, _ = draw(60, DIM, seed=3)
    belief = make()
    dynamics = Forgetting(0.97, make())
    gf.fold(belief, APPROXIMATE, X, y, rule="newton", dynamics=dynamics)
    before = belief.copy()
    looked = belief.marginal(X)
    silent = gf.fold(belief, APPROXIMATE, X, np.full(60, np.nan), rule="newton", dynamics=dynamics)
    unweighted = gf.fold(belief, APPROXIMATE, X, y, rule="newton", sample_weight=np.zeros(60), dynamics=dynamics)
    assert same(belief, before)
    np.testing.assert_allclose(silent.mean, looked.mean, rtol=1e-14, atol=1e-15)
    np.testing.assert_allclose(unweighted.variance, looked.variance, rtol=1e-13)


@each_maker
@pytest.mark.parametrize("likelihood", [APPROXIMATE, Gaussian(0.6)], ids=["logit", "gaussian"])
def test_a_feature_listed_twice_adds(make, likelihood):
    rng = np.random.default_rng(4)
    columns = np.array([2, 7, 2, 2, 0, 5, 0, 9])
    values = rng.normal(size=8)
    twice = sparse.csr_array((values, columns, [0, 4, 8]), shape=(2, DIM))
    once = twice.copy()
    once.sum_duplicates()
    a, b = make(), make()
    one = gf.fold(a, likelihood, twice, [1.0, 0.0], rule="newton")
    two = gf.fold(b, likelihood, once, [1.0, 0.0], rule="newton")
    np.testing.assert_allclose(a.state()["cells"], b.state()["cells"], rtol=1e-6 if a.dtype == np.float32 else 1e-14)
    np.testing.assert_allclose(one.variance, two.variance, rtol=1e-6 if a.dtype == np.float32 else 1e-14)
    np.testing.assert_allclose(a.marginal(twice).variance, a.marginal(once).variance, rtol=1e-14)
    assert np.isfinite(a.state()["cells"]).all()


def test_lazy_forgetting_is_forgetting():
    """The reference relaxes every feature at every learned row; features come back after long absences."""
    X, y, rng = draw(200, DIM, seed=5, active=2)
    y[rng.random(200) < 0.2] = np.nan
    prior_mean, prior_var = np.linspace(-0.3, 0.5, DIM), np.geomspace(0.4, 2.0, DIM)
    belief = gf.DiagonalGaussian(prior_mean, prior_var)
    gf.fold(belief, APPROXIMATE, X, y, rule="newton", dynamics=Forgetting(0.97, belief.copy()))
    means, variances = prior_mean.tolist(), prior_var.tolist()
    for row, label in zip(dicts(X), y, strict=True):
        if not np.isnan(label):
            paper.forget(means, variances, 0.97, prior_mean, prior_var)
            paper.marginal_logit(means, variances, row, 1 if label else -1)
    np.testing.assert_allclose(belief.mean, means, rtol=1e-11)
    np.testing.assert_allclose(belief.var, variances, rtol=1e-11)
    # the clock alone: long silence brings the prior back, and never more than the prior
    Forgetting(0.97, gf.DiagonalGaussian(prior_mean, prior_var)).tick(belief, 1e4)
    np.testing.assert_allclose(belief.mean, prior_mean, rtol=1e-12)
    np.testing.assert_allclose(belief.var, prior_var, rtol=1e-12)
    np.testing.assert_allclose(belief.marginal(np.eye(DIM)).variance, prior_var, rtol=1e-12)


def test_a_random_walk_adds_its_variance_before_each_learned_row():
    X, y, _ = draw(30, DIM, seed=6)
    belief = gf.DiagonalGaussian.isotropic(DIM, std=0.7)
    gf.fold(belief, APPROXIMATE, X, y, rule="newton", dynamics=RandomWalk(0.13))
    means, variances = [0.0] * DIM, [0.49] * DIM
    for row, label in zip(dicts(X), y, strict=True):
        variances = [v + 0.13**2 for v in variances]
        paper.marginal_logit(means, variances, row, 1 if label else -1)
    np.testing.assert_allclose(belief.mean, means, rtol=1e-12)
    np.testing.assert_allclose(belief.var, variances, rtol=1e-12)


def test_float32_stores_half_and_stays_close():
    X, y, _ = draw(2000, DIM, seed=7)
    single, double = MAKERS["float32"](), MAKERS["marginal"]()
    a = gf.fold(single, APPROXIMATE, X, y, rule="newton")
    b = gf.fold(double, APPROXIMATE, X, y, rule="newton")
    assert single.state()["cells"].nbytes == double.state()["cells"].nbytes / 2 == DIM * 8
    np.testing.assert_allclose(single.mean, double.mean, atol=2e-5)
    assert 0 < abs(a.log_predictive.sum() - b.log_predictive.sum()) < 1e-3


def test_a_billion_features_cost_nothing_before_the_first_row_and_two_numbers_after():
    belief = gf.DiagonalGaussian.isotropic(2**30, std=0.7)
    X = sparse.csr_array(([1.0, 2.0], ([0, 0], [5, 2**30 - 1])), shape=(1, 2**30))
    _mean, variance = belief.marginal(X)
    assert variance == pytest.approx([5 * 0.49])
    assert sum(array.nbytes for array in belief.state().values()) < 200


@pytest.mark.parametrize("soft", [False, True])
@pytest.mark.parametrize("case", ["logit", "quadrature", "probit", "gaussian", "poisson"])
def test_the_mixture_loses_at_most_log_k_against_the_best_prior_in_hindsight(case, soft):
    likelihood = {
        "logit": APPROXIMATE,
        "quadrature": Bernoulli("logit"),
        "probit": Bernoulli("probit"),
        "gaussian": Gaussian(0.7),
        "poisson": Poisson(),
    }[case]
    X, y, rng = draw(400, DIM, seed=8)
    if case == "gaussian":
        y = X @ rng.normal(size=DIM) + rng.normal(size=400)
    elif case == "poisson":
        y = rng.poisson(2.0, size=400).astype(float)
    elif soft:
        y = np.clip(y, 0.1, 0.8)
    mixture = gf.DiagonalMixture.isotropic(DIM)
    mixed = gf.fold(mixture, likelihood, X, y, rule="newton").log_predictive
    stds = [2.0**k for k in range(-4, 4)]
    alone = np.array(
        [gf.fold(gf.DiagonalGaussian.isotropic(DIM, s), likelihood, X, y, rule="newton").log_predictive for s in stds]
    )
    best = alone.sum(axis=1).max()
    assert -mixed.sum() <= -best + math.log(8) + 1e-9
    if not soft:  # exactly the log of the averaged product, hence never more than log 8 at any time
        product = np.logaddexp.reduce(np.cumsum(alone, axis=1), axis=0) - math.log(8)
        np.testing.assert_allclose(np.cumsum(mixed), product, rtol=1e-11)
    np.testing.assert_allclose(
        mixture.log_weights, alone.sum(axis=1) - np.logaddexp.reduce(alone.sum(axis=1)), atol=1e-9
    )
    weights = mixture.weights
    components = [c.marginal(X).mean for c in mixture.components]
    np.testing.assert_allclose(mixture.marginal(X).mean, weights @ components, rtol=1e-12, atol=1e-12)


def test_densities_divergences_and_products_agree_with_the_dense_belief():
    rng = np.random.default_rng(9)
    a, b, c = (gf.DiagonalGaussian(rng.normal(size=4), rng.uniform(0.5, 2.0, size=4)) for _ in range(3))
    theta = rng.normal(size=(5, 4))
    np.testing.assert_allclose(a.log_prob(theta), a.to_dense().log_prob(theta), rtol=1e-12)
    assert a.kl(b) == pytest.approx(a.to_dense().kl(b.to_dense()), rel=1e-12)
    assert a.entropy() == pytest.approx(a.to_dense().entropy(), rel=1e-12)
    sharp = [gf.DiagonalGaussian(p.mean, p.var / 9) for p in (b, c)]
    ours = gf.DiagonalGaussian.combine(a, sharp)
    dense = gf.DenseGaussian.combine(a.to_dense(), [p.to_dense() for p in sharp])
    np.testing.assert_allclose(ours.mean, dense.mean, rtol=1e-12)
    np.testing.assert_allclose(ours.var, dense.variance(), rtol=1e-12)


@each_maker
def test_samples_have_the_moments(make):
    X, y, rng = draw(300, DIM, seed=10)
    belief = make()
    gf.fold(belief, APPROXIMATE, X, y, rule="newton")
    mean, variance = belief.marginal(X[:5])
    for draws in (belief.sample(40_000, rng) @ X[:5].T, belief.sample_latent(X[:5], 40_000, rng)):
        np.testing.assert_allclose(np.mean(draws, axis=0), mean, atol=5 * np.sqrt(variance.max() / 40_000))
        np.testing.assert_allclose(np.var(draws, axis=0), variance, rtol=0.06)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: gf.DiagonalGaussian([0.0], [0.0]), "entry 0 is 0.0, 0.0"),
        (lambda: gf.DiagonalGaussian([0.0, np.inf], [1.0, 1.0]), "entry 1 is inf"),
        (lambda: gf.DiagonalGaussian([0.0], [1e-50], dtype="float32"), "variances from"),
        (lambda: gf.DiagonalGaussian([0.0], [1.0, 1.0]), "shapes"),
        (lambda: gf.DiagonalGaussian([0.0], [1.0], dtype="int8"), "dtype='int8'"),
        (lambda: gf.DiagonalGaussian.isotropic(2**31), "dim=2147483648"),
        (lambda: gf.DiagonalGaussian.isotropic(3, coupling="both"), "coupling='both'"),
        (lambda: Marginal(mean="two-step"), "mean='two-step'"),
        (lambda: gf.fold(gf.DiagonalGaussian.isotropic(1), StudentT(3.0, 1.0), [[1.0]], [0.0]), "Student-t"),
        (
            lambda: gf.fold(
                gf.DiagonalGaussian.isotropic(1, coupling=Marginal("one-step")), APPROXIMATE, [[1.0]], [0.0]
            ),
            "goes with rule='newton'",
        ),
        (lambda: gf.DiagonalMixture([]), "components"),
    ],
)
def test_bad_arguments_say_what_is_allowed(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_sweeping_is_refused():
    X, y, _ = draw(5, DIM, seed=11)
    belief = gf.DiagonalGaussian.isotropic(DIM, coupling=Joint())
    sites = gf.fold(belief, APPROXIMATE, X, y, rule="newton")
    with pytest.raises(ValueError, match="use a full covariance"):
        gf.sweep(belief, APPROXIMATE, X, y, sites, rule="newton")
