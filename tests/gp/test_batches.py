"""Batches: sites tied to one factor, hyperparameters and inducing inputs learned on the way."""

import warnings

import numpy as np
import pytest

from gaussfold import likelihoods as lk
from gaussfold.gp import GaussianProcess, LogNormal, Matern32, Matern52
from gaussfold.gp.priors import Slopes
from gaussfold.gp.sparse import Solved, SparsePrior, Tied


def _waves(rows, seed, columns=1):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-2.0, 2.0, (rows, columns))
    return X, np.sin(2.5 * X).sum(axis=1), rng


def test_the_gradient_at_a_fixed_posterior_is_that_of_its_function():
    """Against differences of an arbitrary function of the marginals, two latents, q held in whitened coordinates."""
    rng = np.random.default_rng(3)
    X, Z = rng.normal(size=(14, 2)), rng.normal(size=(5, 2))
    root = rng.normal(size=(10, 10))
    solved = Solved(Tied(root @ root.T, rng.normal(size=10)))
    by_mean = rng.normal(size=(14, 2))
    by_cov = rng.normal(size=(14, 2, 2))
    by_cov = by_cov + by_cov.swapaxes(1, 2)

    def value(logs, Z):
        kernels = [Matern52(np.exp(logs[0]), np.exp(logs[1])), Matern32(np.exp(logs[2]), np.exp(logs[3]))]
        now = solved.marginals(SparsePrior(kernels, X, Z).features(X))
        return float(np.vdot(by_mean, now.mean) + np.vdot(by_cov, now.cov))

    logs = np.log([1.3, 0.8, 0.6, 1.7])
    prior = SparsePrior([Matern52(1.3, 0.8), Matern32(0.6, 1.7)], X, Z)
    found = prior.gradient_at(X, prior.features(X), solved, Slopes(by_mean, by_cov, np.zeros(by_cov.shape)))
    h = 1e-5
    for i, step in enumerate(h * np.eye(4)):
        want = (value(logs + step, Z) - value(logs - step, Z)) / (2.0 * h)
        assert found.log_parameters[i] == pytest.approx(want, rel=1e-6, abs=1e-7)
    for at in ((0, 0), (3, 1)):
        step = np.zeros(Z.shape)
        step[at] = h
        want = (value(logs, Z + step) - value(logs, Z - step)) / (2.0 * h)
        assert found.inducing[at] == pytest.approx(want, rel=1e-6, abs=1e-7)


def _labelled(noise, seed):
    X, f, rng = _waves(1500, seed)
    if noise == "normal":
        return X, f + 0.3 * rng.normal(size=1500), lk.Gaussian(1.0)
    if noise == "counts":
        return X, rng.poisson(np.exp(1.0 + f)).astype(float), lk.Poisson()
    return X, (rng.random(1500) < 1.0 / (1.0 + np.exp(-2.0 * f))).astype(float), lk.Bernoulli()


@pytest.mark.parametrize("noise", ["normal", "counts", "binary"])
def test_batches_learn_what_all_rows_at_once_teach(noise):
    """As many fresh rows must not tell the two apart: their mean difference is within three standard errors."""
    X, Y, likelihood = _labelled(noise, 7)
    options = {"structure": "sparse", "inducing": 15, "random_state": 2}
    whole = GaussianProcess(Matern32(0.3, 4.0), likelihood, **options).fit(X, Y)
    best = whole.learn_hyperparameters().energy
    model = GaussianProcess(Matern32(0.3, 4.0), likelihood, batch_size=150, **options).fit(X, Y)
    before = model.energy()
    learned = model.learn_hyperparameters()
    assert learned.energy == pytest.approx(model.energy())
    assert learned.energy < before - 0.5 * (before - best)
    fresh, there = _labelled(noise, 8)[:2]
    less = whole.predict_density(fresh, there) - model.predict_density(fresh, there)
    assert less.mean() < 3.0 * less.std() / np.sqrt(len(less))
    if noise == "normal":
        assert model.parameters()["likelihood.std"] == pytest.approx(0.3, rel=0.1)
    grid = np.linspace(-1.9, 1.9, 20)[:, None]
    np.testing.assert_allclose(model.predict_latent(grid)[0], whole.predict_latent(grid)[0], atol=0.35)


def test_large_tables_teach_more_than_a_subset_of_them():
    """More inducing inputs than a small subset can place: batches of all rows go on from there."""
    X, f, rng = _waves(6000, 11, columns=4)
    Y = f + 0.1 * rng.normal(size=6000)
    scores, options = {}, {"structure": "sparse", "inducing": 60, "random_state": 1}
    for name, rows in (("subset", 400), ("all", 5000)):
        model = GaussianProcess(Matern52(1.0, (1.0,) * 4), lk.Gaussian(0.5), **options).fit(X[:rows], Y[:rows])
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "learning has not converged after max_iter=30")  # 240 numbers
            model.learn_hyperparameters(subset=None if name == "subset" else 400, max_iter=30)
        if name == "subset":
            options["inducing"] = model.prior_.Z
            model = GaussianProcess(model.covariances[0], model.likelihood, **options).fit(X[:5000], Y[:5000])
            options["inducing"] = 60
        scores[name] = -float(model.predict_density(X[5000:], Y[5000:]).mean())
    assert scores["all"] < scores["subset"] - 0.02


def test_what_is_fixed_bound_tied_or_known_before_holds_in_batches():
    X, f, rng = _waves(600, 5, columns=2)
    Y = f + 0.2 * rng.normal(size=600)
    model = GaussianProcess(
        Matern32(1.0, (1.0, 1.0)), lk.Gaussian(0.7), structure="sparse", inducing=20, batch_size=100, random_state=0
    ).fit(X, Y)
    first, second = "covariance.lengthscale[0]", "covariance.lengthscale[1]"
    Z = model.prior_.Z.copy()
    model.learn_hyperparameters(
        max_iter=15, fixed=["covariance.variance"], bounds={"likelihood.std": (0.5, 0.9)}, tied=[(first, second)],
        priors={first: LogNormal(0.5, 0.3)}, learn_inducing=False,
    )  # fmt: skip
    found = model.parameters()
    assert found["covariance.variance"] == 1.0
    assert found["likelihood.std"] == pytest.approx(0.5)  # wants to be 0.2
    assert found[first] == found[second] != 1.0
    np.testing.assert_array_equal(model.prior_.Z, Z)


def test_a_fit_from_batches_starts_and_ends_where_the_labels_are():
    """Counts of 500 by default options: no step may run off, and the last batch must not outweigh the others."""
    X = np.linspace(0.0, 10.0, 400)
    model = GaussianProcess(
        Matern32(1.0, 2.0), "poisson", structure="sparse", inducing=10, batch_size=40, random_state=3
    )
    found = model.fit(X, np.full(400, 500.0)).predict([5.0])
    assert found[0] == pytest.approx(500.0, rel=0.02)


def test_rules_without_an_energy_to_estimate_say_so():
    X, f, _ = _waves(60, 1)
    model = GaussianProcess(Matern32(), "bernoulli", "ep", structure="sparse", inducing=5, batch_size=20, damping=0.2)
    model.fit(X, (f > 0.0).astype(float))
    with pytest.raises(ValueError, match="rule='ep' with batch_size=20: batches learn hyperparameters with rule 'vi'"):
        model.learn_hyperparameters()
