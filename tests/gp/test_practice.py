"""What practitioners add: means, offsets, weights, several outputs, quantiles and draws of y, components, pictures."""

import numpy as np
import pytest
from scipy import stats

import gaussfold as gf
from gaussfold import likelihoods as lk
from gaussfold.gp import (
    BasisMean,
    Brownian,
    ConstantMean,
    GammaPrior,
    GaussianProcess,
    LinearMean,
    LogNormal,
    Matern12,
    Matern32,
    Outputs,
    Periodic,
    White,
)
from gaussfold.gp.linear_parts import LinearParts

rng = np.random.default_rng(11)
X = np.sort(rng.uniform(0.0, 8.0, 40))
Y = 1.5 - 0.6 * X + np.sin(2.0 * X) + 0.3 * rng.normal(size=40)
NEW = np.array([0.7, 3.3, 11.0])
KERNEL = Matern32(1.3, 0.8)
STRUCTURES = ("dense", "sparse", "markov")


def process(structure, likelihood=None, kernel=KERNEL, **options):
    more = {"inducing": X[:, None]} if structure == "sparse" else {}
    return GaussianProcess(kernel, likelihood or lk.Gaussian(0.3), structure=structure, **more, **options)


def regression(mean_data, mean_new):
    """Textbook: log marginal likelihood, and predictive mean, around a known mean."""
    K = KERNEL(X[:, None]) + 0.09 * np.eye(40)
    residual = Y - mean_data
    evidence = -0.5 * residual @ np.linalg.solve(K, residual) - 0.5 * np.linalg.slogdet(2.0 * np.pi * K)[1]
    return evidence, mean_new + KERNEL(NEW[:, None], X[:, None]) @ np.linalg.solve(K, residual)


@pytest.mark.parametrize("structure", STRUCTURES)
def test_a_known_mean_and_the_same_as_an_offset(structure):
    mean = LinearMean(1.4, -0.55)
    evidence, predicted = regression(mean(X[:, None]), mean(NEW[:, None]))
    by_mean = process(structure, mean=mean).fit(X, Y)
    by_offset = process(structure).fit(X, Y, offset=mean(X[:, None]))
    for gp, known in ((by_mean, None), (by_offset, mean(NEW[:, None]))):
        np.testing.assert_allclose(-gp.energy(), evidence, rtol=1e-6)
        np.testing.assert_allclose(gp.predict(NEW, offset=known), predicted, rtol=1e-6)


@pytest.mark.parametrize("structure", STRUCTURES)
@pytest.mark.parametrize("likelihood", ["bernoulli", "gaussian"])
def test_weights_are_copies_and_zero_is_nothing(structure, likelihood):
    weights = np.random.default_rng(2).integers(0, 4, 40).astype(float)
    copies = np.repeat(np.arange(40), weights.astype(int))
    y = (Y > 0.0).astype(float) if likelihood == "bernoulli" else Y
    noise = likelihood if likelihood == "bernoulli" else lk.Gaussian(0.7)
    for rule in ("vi", "newton"):
        gp = process(structure, noise, rule=rule, tol=1e-9).fit(X, y, sample_weight=weights)
        twin = process(structure, noise, rule=rule, tol=1e-9).fit(X[copies], y[copies])
        np.testing.assert_allclose(gp.energy(), twin.energy(), rtol=1e-6)
        np.testing.assert_allclose(gp.predict(NEW), twin.predict(NEW), rtol=1e-5)
    seen = np.where(weights > 0.0, 1.0, 0.0)
    a = process(structure, noise).fit(X, y, sample_weight=seen)
    b = process(structure, noise).fit(X, np.where(seen > 0.0, y, np.nan))
    np.testing.assert_allclose(a.predict(NEW), b.predict(NEW), rtol=1e-9)


def test_weighted_ep_is_the_power_of_the_likelihood():
    """With one row the tilted distribution is what ep matches: its moments by integration."""
    gp = GaussianProcess(Matern32(1.7, 1.0), "poisson", "ep", tol=1e-9).fit([0.0], [3.0], sample_weight=[2.5])
    f = np.linspace(-8.0, 8.0, 20001)
    log_density = 2.5 * lk.Poisson().log_prob(3.0, f) + stats.norm.logpdf(f, 0.0, np.sqrt(1.7))
    density = np.exp(log_density - log_density.max())
    density /= density.sum()
    mean = density @ f
    np.testing.assert_allclose(gp.marginals_.mean[0, 0], mean, rtol=1e-6)
    np.testing.assert_allclose(gp.marginals_.cov[0, 0, 0], density @ (f - mean) ** 2, rtol=1e-5)


@pytest.mark.parametrize("mean", [ConstantMean(0.3), LinearMean(0.2, -0.1), BasisMean(lambda x: np.hstack([x, x**2]))])
@pytest.mark.parametrize("structure", ["dense", "markov"])
def test_the_slope_of_the_energy_in_a_mean(mean, structure):
    gp = process(structure, lk.Poisson(), mean=mean, tol=1e-10).fit(X, np.round(np.abs(3.0 * Y)))
    parts = LinearParts(gp, ())
    start, slope = parts.get(), parts.gradient()
    for i in range(start.size):
        energies = []
        for h in (1e-4, -1e-4):
            x = start.copy()
            x[i] += h
            gp.prior_ = parts.set(x, gp.prior_)
            gp.marginals_ = gp.prior_.update(gp.sites_)
            energies.append(gp.resume().energy())
        np.testing.assert_allclose((energies[0] - energies[1]) / 2e-4, slope[i], rtol=1e-3, atol=1e-4)


def test_a_mean_is_learned_by_generalised_least_squares():
    gp = process("markov", mean=LinearMean()).fit(X, Y)
    gp.learn_hyperparameters(fixed=list(gp.parameters()))
    K = KERNEL(X[:, None]) + 0.09 * np.eye(40)
    features = np.stack([np.ones(40), X], axis=1)
    whitened = np.linalg.solve(np.linalg.cholesky(K), np.column_stack([features, Y]))
    want = np.linalg.lstsq(whitened[:, :2], whitened[:, 2], rcond=None)[0]
    np.testing.assert_allclose(gp.means[0].weights, want, rtol=1e-4)


@pytest.mark.parametrize("structure", STRUCTURES)
def test_outputs_that_share_a_process(structure):
    """``f = W g`` beside the dense covariance ``W W' ⊗ K``, one output missing half of the time."""
    W = np.array([[1.0], [-0.7]])
    both = np.stack([Y, -0.7 * Y + 0.2], axis=1)
    both[::2, 1] = np.nan
    gp = process(structure, Outputs([lk.Gaussian(0.3), lk.Gaussian(0.5)]), mixing=W).fit(X, both)
    seen = ~np.isnan(both.T.ravel())
    K = np.kron(W @ W.T, KERNEL(X[:, None]))[np.ix_(seen, seen)]
    K += np.diag(np.repeat([0.09, 0.25], 40)[seen])
    y = both.T.ravel()[seen]
    np.testing.assert_allclose(
        -gp.energy(), -0.5 * y @ np.linalg.solve(K, y) - 0.5 * np.linalg.slogdet(2 * np.pi * K)[1], rtol=1e-5
    )
    cross = np.kron(W @ W.T, KERNEL(NEW[:, None], X[:, None]))[:, seen]
    np.testing.assert_allclose(gp.predict(NEW).T.ravel(), cross @ np.linalg.solve(K, y), rtol=1e-5)


def test_a_mixture_is_learned():
    x = np.linspace(0.0, 10.0, 60)
    g = np.sin(1.3 * x)
    noise = np.random.default_rng(0).normal(size=(60, 2))
    both = np.stack([2.0 * g, -g], axis=1) + 0.1 * noise
    gp = GaussianProcess(
        Matern32(1.0, 1.0), Outputs([lk.Gaussian(0.1), lk.Gaussian(0.1)]), structure="markov", mixing=[[1.0], [0.1]]
    ).fit(x, both)
    before = gp.energy()
    gp.learn_hyperparameters(restarts=0)
    assert gp.energy() < before - 20.0
    assert gp.mixing[1, 0] / gp.mixing[0, 0] == pytest.approx(-0.5, abs=0.05)


@pytest.mark.parametrize("structure", ["dense", "markov"])
def test_components_add_up_and_are_the_textbooks(structure):
    kernel = Matern32(1.0, 2.0) + Periodic(0.7, 1.0, 1.1) + White(0.05)
    gp = process(structure, kernel=kernel).fit(X, Y)
    parts = gp.components(NEW)
    latent, _ = gp.predict_latent(NEW)
    np.testing.assert_allclose(sum(p.mean for p in parts), latent[:, 0], rtol=1e-6, atol=1e-8)
    K = kernel(X[:, None]) + 0.09 * np.eye(40)
    for part in parts[:2]:
        cross = part.covariance(NEW[:, None], X[:, None])
        np.testing.assert_allclose(part.mean, cross @ np.linalg.solve(K, Y), rtol=1e-3, atol=2e-4)
        want = part.covariance.diagonal(NEW[:, None]) - np.einsum("ij,ji->i", cross, np.linalg.solve(K, cross.T))
        np.testing.assert_allclose(part.std**2, want, rtol=2e-3)
    assert [p.name for p in parts] == ["covariance.0", "covariance.1", "covariance.2"]


DRAWN = [
    lk.Gaussian(0.4), lk.StudentT(4.0, 0.3), lk.Poisson(), lk.NegativeBinomial(3.0), lk.Gamma(2.5), lk.Beta(5.0),
    lk.Bernoulli(), lk.Ordinal([-0.5, 0.8]), lk.HeteroscedasticGaussian(),
]  # fmt: skip


@pytest.mark.parametrize("likelihood", DRAWN, ids=lambda each: type(each).__name__)
def test_quantiles_are_those_of_draws(likelihood):
    from gaussfold.gp.outcomes import drawn, quantiles

    D = lk.as_vector(likelihood).latents
    mean, cov = np.array([[0.3, -0.4][:D]]), np.array([[[0.6, 0.1], [0.1, 0.3]]])[:, :D, :D]
    generator = np.random.default_rng(5)
    F = generator.multivariate_normal(mean[0], cov[0], 200_000)
    y = drawn(likelihood, F, generator)
    moments = lk.as_vector(likelihood).predictive(mean, cov)
    if not isinstance(likelihood, lk.Bernoulli):
        np.testing.assert_allclose(y.mean(), moments[0][0, 0], rtol=0.03, atol=0.02)
        np.testing.assert_allclose(y.std(), np.sqrt(moments[1][0, 0, 0]), rtol=0.05)
    for q in (0.05, 0.5, 0.9):
        found = quantiles(likelihood, mean, cov, [q])[0, 0]
        below, up_to = (y < found - 1e-9).mean(), (y <= found + 1e-9).mean()
        assert below - 0.005 <= q <= up_to + 0.005


def test_saved_whole_and_streamed_in_parts(tmp_path):
    gp = process("markov", lk.Poisson(), mean=LinearMean(0.5, -0.2))
    counts, offset, weight = np.round(np.abs(2.0 * Y)), 0.1 * np.cos(X), np.linspace(0.5, 2.0, 40)
    gp.partial_fit(X[:25], counts[:25], offset=offset[:25], sample_weight=weight[:25])
    gf.save(gp, tmp_path / "half")
    again = gf.load(tmp_path / "half")
    for each in (gp, again):
        each.partial_fit(X[25:], counts[25:], offset=offset[25:], sample_weight=weight[25:])
    np.testing.assert_array_equal(gp.predict(NEW), again.predict(NEW))
    whole = process("markov", lk.Poisson(), mean=LinearMean(0.5, -0.2)).fit(
        X, counts, offset=offset, sample_weight=weight
    )
    np.testing.assert_allclose(gp.predict(NEW), whole.predict(NEW), rtol=1e-3)
    gf.save(whole, tmp_path / "whole")
    loaded = gf.load(tmp_path / "whole")
    np.testing.assert_array_equal(loaded.predict(NEW), whole.predict(NEW))
    assert loaded.energy() == whole.energy()
    mixed = process("dense", Outputs(["poisson", lk.Gaussian(0.5)]), mixing=[[1.0], [0.4]]).fit(
        X, np.stack([counts, Y], axis=1)
    )
    gf.save(mixed, tmp_path / "mixed")
    np.testing.assert_array_equal(gf.load(tmp_path / "mixed").predict(NEW), mixed.predict(NEW))


def test_set_by_name_shown_and_drawn():
    plt = pytest.importorskip("matplotlib.pyplot")
    gp = process("markov").fit(X, Y)
    assert "Matern32" in repr(gp)
    assert "fitted on 40 rows" in repr(gp)
    gp.set_parameters({"covariance.lengthscale": 0.5, "likelihood.std": 0.4})
    twin = process("markov", lk.Gaussian(0.4), kernel=Matern32(1.3, 0.5)).fit(X, Y)
    np.testing.assert_allclose(gp.predict(NEW), twin.predict(NEW), rtol=1e-6)
    assert "covariance.lengthscale  0.5" in gp.summary()
    with pytest.raises(ValueError, match=r"'covariance\.length' is not one of"):
        gp.set_parameters({"covariance.length": 2.0})
    axes = gp.plot(np.linspace(0.0, 12.0, 50))
    assert len(axes.collections) == 2
    plt.close(axes.figure)
    low, high = gp.interval(NEW, 0.8)
    mean, std = gp.predict(NEW, return_std=True)
    np.testing.assert_allclose(high - low, 2.0 * 1.2815516 * std, rtol=1e-5)
    draws = gp.sample_outcomes(NEW, 4000, 3)
    np.testing.assert_allclose(draws.mean(axis=0), mean, atol=0.1)
    np.testing.assert_allclose(draws.std(axis=0), std, rtol=0.06)


def test_outputs_and_parts_are_drawn_one_below_the_other():
    plt = pytest.importorskip("matplotlib.pyplot")
    both = Outputs([lk.Gaussian(0.2), lk.Poisson()])
    gp = GaussianProcess([Matern32(1.3, 1.0)] * 2, both).fit(X, np.column_stack([Y, np.round(np.exp(Y))]))
    axes = gp.plot()
    assert [len(each.collections) for each in axes] == [2, 2]
    median = axes[1].lines[0]
    np.testing.assert_array_equal(median.get_ydata(), gp.quantile(median.get_xdata(), 0.5)[:, 1])
    plt.close(axes[0].figure)
    with pytest.raises(ValueError, match="1 of Matplotlib's axes for 2 panels"):
        gp.plot(ax=axes[0])
    parts = GaussianProcess(Matern32(1.3, 3.0) + Matern32(0.2, 0.3), lk.Gaussian(0.2), structure="markov").fit(X, Y)
    axes = parts.plot_components(NEW)
    found = parts.components(np.sort(np.ravel(NEW)))
    for each, part in zip(axes, found, strict=True):
        np.testing.assert_allclose(each.lines[0].get_ydata(), part.mean)
    plt.close(axes[0].figure)


def test_the_ends_of_what_y_may_be():
    counts = GaussianProcess(Matern32(), "poisson").fit(X, np.round(np.exp(Y)))
    low, high = counts.interval(X[:3], 1.0)
    np.testing.assert_array_equal(low, 0.0)
    np.testing.assert_array_equal(high, np.inf)


@pytest.mark.parametrize("structure", ["dense", "sparse", "markov"])
def test_a_trend_is_not_taken_for_a_process(structure):
    rng = np.random.default_rng(41)
    x = np.sort(rng.uniform(0.0, 20.0, 120))
    y = 0.3 * x**2 - x + 1.0 + np.sin(x) + 0.2 * rng.normal(size=120)
    mean = BasisMean(lambda X: np.column_stack([np.ones(len(X)), X, X**2]))
    gp = GaussianProcess(Matern32(1.0, 2.0), lk.Gaussian(0.3), structure=structure, mean=mean, random_state=0)
    learned = gp.fit(x, y).learn_hyperparameters()
    assert learned.parameters["covariance.variance"] < 5.0
    known = GaussianProcess(gp.covariances, gp.likelihood, structure="dense", mean=gp.means).fit(x, y)
    assert abs(learned.energy - known.energy()) < 0.5


def test_rates_with_an_exposure_start_at_their_level():
    rng = np.random.default_rng(42)
    x = np.sort(rng.uniform(0.0, 10.0, 100))
    exposure = np.exp(rng.uniform(5.0, 9.0, 100))
    y = rng.poisson(exposure * np.exp(-6.0 + 0.5 * np.sin(x)))
    gp = GaussianProcess(Matern32(1.0, 1.0), "poisson", structure="markov", mean=ConstantMean())
    gp.fit(x, y, offset=np.log(exposure)).learn_hyperparameters()
    assert gp.means[0].value == pytest.approx(-6.0, abs=0.4)
    assert gp.parameters()["covariance.variance"] < 2.0


@pytest.mark.parametrize("unit", [1e-9, 1e15])
@pytest.mark.parametrize("structure", ["dense", "sparse", "markov"])
def test_the_unit_of_the_inputs_does_not_matter(structure, unit):
    rng = np.random.default_rng(43)
    x = np.sort(rng.uniform(0.0, 20.0, 80))
    y = np.sin(x) + 0.2 * rng.normal(size=80)

    def energy(scale):
        gp = GaussianProcess(Matern32(), lk.Gaussian(0.3), structure=structure, inducing=40, random_state=0)
        return gp.fit(scale * x, y).learn_hyperparameters().energy

    assert energy(unit) == pytest.approx(energy(0.3), abs=0.05)


def test_inducing_inputs_on_rows_do_not_stop_learning():
    rng = np.random.default_rng(44)
    x = np.sort(rng.uniform(0.0, 20.0, 150))
    y = np.sin(x) + 0.1 * x + 0.2 * rng.normal(size=150)
    energies = []
    for moves in (True, False):
        gp = GaussianProcess(Brownian(0.5), lk.Gaussian(0.3), structure="sparse", random_state=0).fit(x, y)
        energies.append(gp.learn_hyperparameters(learn_inducing=moves).energy)
    assert energies[0] <= energies[1] + 1e-6  # 15 more where the first kink was the end


@pytest.mark.parametrize(
    ("call", "why"),
    [
        (lambda gp: gp.quantile(NEW, []), "q=\\[\\] has no levels"),
        (lambda gp: gp.sample_posterior(NEW, 1.5), "n_samples=1.5: a whole number"),
        (lambda gp: gp.step(7.0), "damping=7.0: a number in"),
        (lambda gp: gp.set_parameters({"covariance.lengthscale": 1e-300}), "overflows at these inputs"),
        (lambda gp: gp.fit(X, Y, offset=[1.0]), "offset has shape"),
        (lambda gp: gp.fit(X, Y, offset=np.full(40, -np.inf)), r"offset\[0\] = -inf"),
        (lambda gp: gp.fit(X, Y, sample_weight=-np.ones(40)), r"sample_weight\[0\]"),
        (lambda gp: gp.fit(np.stack([X, X], axis=1), Y), "lengthscale|columns"),
        (lambda gp: gp.quantile(NEW, 1.5), "q"),
        (lambda gp: gp.partial_fit(X - 5.0, Y), "lies before"),
    ],
)
def test_what_does_not_fit_changes_nothing(call, why):
    gp = process("markov").fit(X, Y)
    before = gp.predict(NEW)
    with pytest.raises(ValueError, match=why):
        call(gp)
    np.testing.assert_array_equal(gp.predict(NEW), before)


def test_kernels_whose_dimension_does_not_fit():
    for kernel in (Matern12(1.0, (1.0, 2.0)), Periodic()):
        with pytest.raises(ValueError, match="columns"):
            GaussianProcess(kernel, lk.Gaussian(0.3)).fit(np.zeros((4, 3)), np.zeros(4))


def test_limits_distributions_and_ties():
    kernel = Matern32(1.0, 1.0) + Matern12(1.0, 0.5)
    gp = process("markov", kernel=kernel).fit(X, Y)
    names = ("covariance.0.lengthscale", "covariance.1.lengthscale")
    found = gp.learn_hyperparameters(
        bounds={names[0]: (0.5, 1.5), "likelihood.std": (0.3, 0.5)},
        tied=[("covariance.0.variance", "covariance.1.variance")],
    ).parameters
    assert 0.5 <= found[names[0]] <= 1.5
    assert found["likelihood.std"] >= 0.3 * (1 - 1e-9)
    assert found["covariance.0.variance"] == found["covariance.1.variance"]
    tight = process("markov").fit(X, Y)
    tight.learn_hyperparameters(priors={"covariance.lengthscale": LogNormal(2.5, 0.01)})
    assert tight.parameters()["covariance.lengthscale"] == pytest.approx(2.5, rel=0.03)
    before = tight.predict(NEW)
    with pytest.raises(ValueError, match=r"covariance\.lengthscale = 2\.\d+ lies outside bounds"):
        tight.learn_hyperparameters(bounds={"covariance.lengthscale": (5.0, 9.0)})
    with pytest.raises(ValueError, match="priors: 'length' is not one of"):
        tight.learn_hyperparameters(priors={"length": LogNormal()})
    np.testing.assert_array_equal(tight.predict(NEW), before)


@pytest.mark.parametrize("prior", [LogNormal(1.7, 0.6), GammaPrior(2.5, 0.8)])
def test_slopes_of_priors(prior):
    """``∂/∂log θ`` of the density of θ, against scipy's density."""
    if isinstance(prior, LogNormal):
        density = stats.lognorm(prior.std, scale=prior.median)
    else:
        density = stats.gamma(prior.shape, scale=1.0 / prior.rate)
    value = [prior.log_density(x)[0] - density.logpdf(np.exp(x)) for x in (-0.3, 0.4, 1.1)]
    np.testing.assert_allclose(value, value[0], rtol=1e-9)
    up, down = prior.log_density(0.4 + 1e-6)[0], prior.log_density(0.4 - 1e-6)[0]
    assert prior.log_density(0.4)[1] == pytest.approx((up - down) / 2e-6, rel=1e-6)
