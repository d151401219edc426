"""Space x time on a Markov time axis, beside the same covariance on the dense and the sparse prior."""

import numpy as np
import pytest

import gaussfold as gf
from gaussfold import likelihoods as lk
from gaussfold.gp import Constant, GaussianProcess, LinearMean, Matern12, Matern32, Matern52, SpaceTime, hyper
from gaussfold.gp.priors import Slopes
from gaussfold.gp.space_time import space_time_prior
from gaussfold.types import Sites

KERNEL = SpaceTime(Matern32(1.3, 2.1), Matern52(0.7, (0.8, 1.7)), column=1)
TREND = SpaceTime(Matern12(0.4, 9.0) + Constant(0.2), Matern32(1.6, 2.5), column=1)


def _rows(count, seed, *, places=5):
    """Times repeat and are out of order, places repeat, and not every place is seen at every time."""
    rng = np.random.default_rng(seed)
    where = rng.normal(size=(places, 2))[rng.integers(places, size=count)]
    times = np.round(rng.uniform(0.0, 12.0, count), 1)
    return np.column_stack([where[:, 0], times, where[:, 1]]), rng


def _labels(likelihood, X, rng):
    f = np.sin(X[:, 1]) + 0.5 * X[:, 0]
    if isinstance(likelihood, lk.Poisson):
        return rng.poisson(np.exp(0.5 + f)).astype(float)
    if isinstance(likelihood, lk.Bernoulli):
        return (rng.random(len(f)) < 1.0 / (1.0 + np.exp(-f))).astype(float)
    return f + 0.4 * rng.normal(size=len(f)) * (1.0 + (X[:, 1] > 6.0))


@pytest.mark.parametrize(
    ("kernels", "likelihood", "rule"),
    [
        (KERNEL, lk.Gaussian(0.35), "vi"),
        (KERNEL, lk.Poisson(), "vi"),
        (KERNEL + TREND, lk.Bernoulli(), "ep"),
        (KERNEL, lk.Poisson(), "newton"),
        (KERNEL, lk.StudentT(4.0, 0.9), "vi"),
        ([KERNEL, TREND], lk.HeteroscedasticGaussian(), "ep"),
    ],
)
def test_markov_is_dense(kernels, likelihood, rule):
    """Energy, marginals, predictions at new times and places, and the gradient: another form of the same prior."""
    X, rng = _rows(60, 3)
    y = _labels(likelihood, X, rng)
    y[7] = np.nan
    new = np.vstack([X[:4], _rows(6, 8)[0]])
    weights = rng.uniform(0.3, 2.5, len(y))
    found = [
        GaussianProcess(kernels, likelihood, rule, structure=each, tol=1e-12, max_iter=300).fit(
            X, y, sample_weight=weights
        )
        for each in ("dense", "markov")
    ]
    dense, markov = found
    assert markov.energy() == pytest.approx(dense.energy(), rel=1e-8)
    for mine, other in zip(markov.marginals_[:2], dense.marginals_[:2], strict=True):
        np.testing.assert_allclose(mine, other, rtol=1e-6, atol=1e-7)
    for mine, other in zip(markov.predict_latent(new), dense.predict_latent(new), strict=True):
        np.testing.assert_allclose(mine, other, rtol=1e-6, atol=1e-7)
    slopes = [each.energy_gradient().parameters for each in (markov, dense)]
    size = max(map(abs, slopes[1].values()))
    assert slopes[0] == pytest.approx(slopes[1], rel=1e-5, abs=1e-5 * size)


def test_a_few_places_are_sparse_in_space_and_exact_in_time():
    """Beside the sparse prior that has these places at every time as its inducing inputs."""
    X, rng = _rows(50, 5, places=9)
    y = _labels(lk.Poisson(), X, rng)
    places = rng.normal(size=(4, 2))
    times = np.unique(X[:, 1])
    grid = np.column_stack(
        [np.repeat(places[:, 0], len(times)), np.tile(times, len(places)), np.repeat(places[:, 1], len(times))]
    )
    options = {"tol": 1e-12, "max_iter": 300}
    sparse = GaussianProcess(KERNEL, "poisson", structure="sparse", inducing=grid, **options).fit(X, y)
    markov = GaussianProcess(KERNEL, "poisson", structure="markov", inducing=places, **options).fit(X, y)
    assert markov.energy() == pytest.approx(sparse.energy(), rel=1e-6)
    new = _rows(7, 6)[0]
    new[:, 1] = times[:7]  # between the times the sparse prior knows less than the chain
    for mine, other in zip(markov.predict_latent(new), sparse.predict_latent(new), strict=True):
        np.testing.assert_allclose(mine, other, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("few", [False, True])
def test_the_gradient_is_that_of_its_energy(few):
    """An arbitrary function of the marginals minus log Z, at sites that have not settled, against differences."""
    X, rng = _rows(20, 11)
    places = rng.normal(size=(3, 2)) if few else None
    root = rng.normal(size=(20, 2, 2))
    sites = Sites(root @ root.swapaxes(1, 2), rng.normal(size=(20, 2)))
    by_mean, by_cov, by_inner = rng.normal(size=(20, 2)), rng.normal(size=(20, 2, 2)), rng.normal(size=(20, 2, 2))
    by_cov, by_inner = (0.5 * (a + a.swapaxes(1, 2)) for a in (by_cov, by_inner))
    kernels = [KERNEL + TREND, SpaceTime(Matern32(0.6, 3.0), Matern32(1.1, 0.9), column=1)]
    names = [list(k.parameters()) for k in kernels]

    def value(step):
        moved, at = [], 0
        for k, mine in zip(kernels, names, strict=True):
            values = k.parameters()
            moved.append(k.replace({n: values[n] * np.exp(step[at + i]) for i, n in enumerate(mine)}))
            at += len(mine)
        now = space_time_prior(moved, X, places).update(sites)
        return np.vdot(by_mean, now.mean) + np.vdot(by_cov, now.cov) + np.vdot(by_inner, now.inner) - now.log_z

    found = space_time_prior(kernels, X, places).gradient(sites, Slopes(by_mean, by_cov, by_inner)).log_parameters
    h = 1e-4 * np.eye(sum(map(len, names)))
    want = [(8.0 * (value(s) - value(-s)) - value(2.0 * s) + value(-2.0 * s)) / 12e-4 for s in h]
    np.testing.assert_allclose(found, want, rtol=1e-6, atol=1e-6 * np.abs(want).max())


def test_learning_ends_where_the_dense_prior_ends():
    X, rng = _rows(60, 13)
    y = _labels(lk.Gaussian(1.0), X, rng)
    ends = []
    for structure in ("dense", "markov"):
        model = GaussianProcess(KERNEL, lk.Gaussian(0.5), structure=structure).fit(X, y)
        ends.append(model.learn_hyperparameters(restarts=0, fixed=["covariance.space.variance"]).energy)
    assert ends[1] == pytest.approx(ends[0], abs=1e-5)


def test_draws_have_the_posterior_s_moments():
    X, rng = _rows(30, 17)
    y = _labels(lk.Gaussian(1.0), X, rng)
    new = np.vstack([X[:2], _rows(3, 18)[0]])
    model = GaussianProcess(KERNEL + TREND, lk.Gaussian(0.4), structure="markov").fit(X, y)
    dense = GaussianProcess(KERNEL + TREND, lk.Gaussian(0.4)).fit(X, y)
    draws = model.sample_posterior(new, 1500, 1)[:, :, 0]
    mean, cov = dense.prior_.predict(dense.sites_, new, joint=True)
    sd = np.sqrt(np.diag(cov))
    assert (np.abs(draws.mean(axis=0) - mean[:, 0]) < 5.0 * sd / np.sqrt(1500.0)).all()
    # a sample covariance has variance (c_ij² + c_ii c_jj) / n
    bound = 5.0 * np.sqrt((cov**2 + np.outer(sd, sd) ** 2) / 1500.0)
    assert (np.abs(np.cov(draws.T) - cov) < bound).all()


def test_a_model_with_a_mean_and_offsets_is_saved_and_set(tmp_path):
    X, rng = _rows(40, 19, places=12)
    y = _labels(lk.Poisson(), X, rng)
    offset = rng.normal(size=40)
    options = {"structure": "markov", "inducing": 5, "mean": LinearMean()}
    model = GaussianProcess(KERNEL, "poisson", **options).fit(X, y, offset=offset)
    gf.save(model, tmp_path / "model")
    again = gf.load(tmp_path / "model")
    for mine, other in zip(again.predict_latent(X[::3]), model.predict_latent(X[::3]), strict=True):
        np.testing.assert_array_equal(mine, other)
    moved = again.set_parameters({"covariance.space.lengthscale[1]": 0.9})
    fresh = GaussianProcess(moved.covariances, "poisson", **options).fit(X, y, offset=offset)
    assert moved.energy() == pytest.approx(fresh.energy(), abs=1e-5)


def test_parts_of_a_sum_add_up():
    X, rng = _rows(30, 23)
    y = _labels(lk.Gaussian(1.0), X, rng)
    model = GaussianProcess(KERNEL + TREND, lk.Gaussian(0.4), structure="markov").fit(X, y)
    mean, _ = model.predict_latent(X)
    parts = model.components(X)
    np.testing.assert_allclose(sum(part.mean for part in parts), mean[:, 0], atol=1e-8)


def test_what_it_cannot_do_it_says():
    X, rng = _rows(30, 29)
    y = np.ones(30)
    with pytest.raises(ValueError, match="partial_fit with SpaceTime"):
        GaussianProcess(KERNEL, "poisson", structure="markov").partial_fit(X, y)
    with pytest.raises(ValueError, match="counted from 0, and places from at least one other"):
        GaussianProcess(KERNEL, "bernoulli", structure="markov").fit(X[:, :1], y)
    with pytest.raises(ValueError, match="no state-space form without its places"):
        GaussianProcess(KERNEL + Constant(1.0), "bernoulli", structure="markov")
    with pytest.raises(ValueError, match=r"time in columns \[0, 1\]"):
        GaussianProcess(KERNEL + SpaceTime(Matern32(), Matern32()), "bernoulli", structure="markov")
    with pytest.raises(ValueError, match="inducing has 3 columns and X has 2"):
        GaussianProcess(KERNEL, "bernoulli", structure="markov", inducing=X[:4]).fit(X, y)
    with pytest.raises(ValueError, match="has 400 different places"):
        GaussianProcess(KERNEL, "bernoulli", structure="markov").fit(rng.normal(size=(400, 3)), np.ones(400))
    with pytest.raises(TypeError, match=r"time=3\.0 of SpaceTime is not a covariance"):
        SpaceTime(3.0, Matern32())


def test_a_length_scale_is_measured_by_the_columns_that_it_belongs_to():
    """Starts of learning are shares of these."""
    X = np.array([[0.0, 10.0, 3.0], [1.0, 40.0, 5.0]])
    kernels = (KERNEL, Matern32(1.0, 2.0).on(0, 2) + Matern12().on(1))
    names = ["time.lengthscale", "space.lengthscale[0]", "space.lengthscale[1]"]
    found = hyper.ranges_of(kernels, [f"covariance[0].{n}" for n in names], X)
    np.testing.assert_allclose(found, [30.0, 1.0, 2.0])
    found = hyper.ranges_of(kernels, ["covariance[1].0.lengthscale", "covariance[1].1.lengthscale"], X)
    np.testing.assert_allclose(found, [1.5, 30.0])
