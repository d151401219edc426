"""How inference walks: negative sites on a chain, accelerated steps, starts that lead somewhere, honest ends."""

import warnings

import numpy as np
import pytest
from benchmarks.gp_fuzz import LaplaceNoise

from gaussfold import likelihoods as lk
from gaussfold.gp import Constant, GaussianProcess, Matern12, Matern32, Matern52, NotConvergedWarning, chain
from gaussfold.gp.dense import DensePrior
from gaussfold.gp.inference import problem_of, start
from gaussfold.gp.markov import MarkovPrior
from gaussfold.gp.walk import Walk, measured
from gaussfold.likelihoods.against_others import AgainstOthers
from gaussfold.types import Sites


def _negative(kernels, rows, rng):
    """Sites of which every third has a negative direction, yet a posterior."""
    D = len(kernels)
    root = rng.normal(size=(rows, D, D))
    side = rng.normal(size=(rows, D))
    precision = 3.0 * root @ root.swapaxes(1, 2)
    precision[::3] = 0.1 * precision[::3] - 0.3 * side[::3, :, None] * side[::3, None, :]
    return Sites(precision, rng.normal(size=(rows, D)))


KERNELS = {
    "pair": [Matern32(1.3, 0.7)],
    "two latents": [Matern32(1.3, 0.7), Matern52(0.7, 1.1)],
    "constant part": [Matern12(1.0, 0.9) + Constant(2.0)] * 2,
}


def test_a_leap_is_not_an_end():
    """Slopes of opposite sign cancel in a combination of steps, which then stays where it is: here at zero."""
    x, y = np.array([20636.83212941, 19825.40736736]), np.array([-14.80317217, -13.66391284])
    scale, kernel = 3.159352128210564, Matern32(2446.435992108522, 2841.0966881912823)
    model = GaussianProcess(kernel, LaplaceNoise(scale), "newton", structure="markov", max_iter=300)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NotConvergedWarning)  # a kink has no Newton step
        model.fit(x, y)
    found = measured(problem_of(model), model.sites_, None, model.marginals_).merit
    at_labels = 2.0 * np.log(2.0 * scale) + 0.5 * y @ np.linalg.solve(kernel(x[:, None]), y)
    assert found < at_labels + 1e-3  # it was nine nats above


def test_a_place_that_the_step_length_decides_is_no_fixed_point():
    """Outliers ask for negative sites, which a retraction cannot give: it ends somewhere else for every damping."""
    rng = np.random.default_rng(2)
    x = np.sort(rng.uniform(0.0, 5.0, 30))
    y = np.sin(x) + 0.2 * rng.standard_t(2.0, 30)
    y[[4, 20]] += 2.0
    ended = []
    for damping in (1.0, 0.3):
        model = GaussianProcess(
            Matern32(0.5, 1.0), lk.StudentT(3.0, 0.2), "vi", "riemannian", damping=damping, max_iter=1500
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", NotConvergedWarning)
            ended.append(model.fit(x, y).energy())
    assert abs(ended[0] - ended[1]) < 2e-3


@pytest.mark.parametrize("name", KERNELS)
def test_negative_sites_on_a_chain_are_those_of_the_dense_prior(name, monkeypatch):
    monkeypatch.setattr(chain, "INFLATED", 0.0)  # in two passes whatever the filter says
    rng = np.random.default_rng(5)
    X = rng.uniform(0.0, 3.0, (50, 1))
    sites = _negative(KERNELS[name], 50, rng)
    assert (np.linalg.eigvalsh(sites.precision) < -1e-3).any()
    here, there = MarkovPrior(KERNELS[name], X).update(sites), DensePrior(KERNELS[name], X).update(sites)
    np.testing.assert_allclose(here.mean, there.mean, atol=1e-11)
    np.testing.assert_allclose(here.cov, there.cov, atol=1e-11)
    assert here.log_z == pytest.approx(there.log_z, abs=1e-11)


def test_a_negative_site_before_those_that_outweigh_it():
    """In time order there is no posterior after the first row; in the end there is one."""
    kernel, X = [Matern32(1.0, 2.0)], np.linspace(0.0, 0.5, 6)[:, None]
    precision = np.array([-1.5, 4.0, 4.0, 4.0, 4.0, 4.0])[:, None, None]
    sites = Sites(precision, np.ones((6, 1)))
    here, there = MarkovPrior(kernel, X).update(sites), DensePrior(kernel, X).update(sites)
    np.testing.assert_allclose(here.cov, there.cov, rtol=1e-9)
    np.testing.assert_allclose(here.mean, there.mean, rtol=1e-9)
    assert here.log_z == pytest.approx(there.log_z, abs=1e-9)
    with pytest.raises(ValueError, match="no positive definite posterior"):
        MarkovPrior(kernel, X).update(Sites(np.full((6, 1, 1), -1.5), np.ones((6, 1))))


def test_noise_that_changes_ends_in_the_same_place_on_a_chain_and_dense():
    rng = np.random.default_rng(12)
    x = np.sort(rng.uniform(0.0, 1.0, 150))
    y = np.sin(6.0 * x) + np.where(x < 0.5, 0.1, 1.5) * rng.normal(size=150)
    kernels = [Matern32(1.7, 1.5) + Constant(1.7)] * 2
    for rule in ("vi", "ep"):
        found = [
            GaussianProcess(kernels, lk.HeteroscedasticGaussian(), rule, structure=s, max_iter=200).fit(x, y)
            for s in ("dense", "markov")
        ]
        assert all(gp.result_.converged for gp in found)
        assert found[1].energy() == pytest.approx(found[0].energy(), abs=1e-3)


def test_accelerated_steps_take_fewer_and_end_in_the_same_place():
    rng = np.random.default_rng(2)
    x = np.linspace(0.0, 9.0, 60)
    y = np.digitize(np.sin(x) + 0.2 * rng.normal(size=60), [-0.4, 0.4]).astype(float)
    gp = GaussianProcess([Matern32(100.0, 2.0)] * 3, lk.Softmax(3)).fit(x, y)
    start(gp, chosen=True)
    counts = {}
    for name in ("plain", "mixed"):
        problem = problem_of(gp)
        walk = Walk(problem, measured(problem, gp.sites_, None, gp.marginals_), 1.0)
        if name == "plain":
            walk._mixer = None
        while not walk.has_settled(1e-9) and walk._steps < 400:
            walk.step()
        counts[name] = walk._steps, walk.now.energy
    assert counts["mixed"][1] == pytest.approx(counts["plain"][1], abs=1e-6)
    assert counts["mixed"][0] < 0.7 * counts["plain"][0]


def test_sum_and_slopes_from_the_same_nodes():
    rng = np.random.default_rng(3)
    mean, root = rng.normal(size=(7, 3)), rng.normal(size=(7, 3, 3))
    cov = root @ root.swapaxes(1, 2) + 0.1 * np.eye(3)
    blank = np.zeros((7, 1))
    model = AgainstOthers(3)
    value, by_mean, by_cov = model.summed(blank, mean, cov)
    np.testing.assert_allclose(value, model._average(lambda y, f: (model.log_prob(y, f),), blank, mean, cov, None)[0])
    slopes = model.summed_slopes(blank, mean, cov)
    np.testing.assert_allclose(by_mean, slopes[0], atol=1e-13)
    np.testing.assert_allclose(by_cov, slopes[1], atol=1e-12)
    Y = np.array([[0.0], [1.0], [2.0], [3.0], [np.nan], [1.0], [0.0]])
    mean, root = rng.normal(size=(7, 4)), rng.normal(size=(7, 4, 4))
    cov = root @ root.swapaxes(1, 2) + 0.1 * np.eye(4)
    whole = lk.Softmax(4)
    value, by_mean, by_cov = whole.summed(Y, mean, cov)
    assert value[4] == 0.0
    assert not by_mean[4].any()
    np.testing.assert_allclose(value, whole.expected_log_prob(Y, mean, cov), rtol=1e-13)
    first, second = whole.expected_derivatives(Y, mean, cov)
    np.testing.assert_allclose(by_mean, first, atol=1e-4)
    np.testing.assert_allclose(by_cov, 0.5 * second, atol=1e-3)


@pytest.mark.parametrize("curvature", ["exact", "quasi-newton", "heuristic"])
@pytest.mark.parametrize("rule", ["ep", "vi"])
def test_normal_noise_is_exact_whatever_the_rule_and_the_curvature(rule, curvature):
    rng = np.random.default_rng(7)
    x = np.linspace(0.0, 5.0, 20)
    y = 0.01 * (np.sin(x) + 0.1 * rng.normal(size=20))
    gp = GaussianProcess(Matern12(1e-4, 0.5), lk.Gaussian(0.001), rule, curvature).fit(x, y)
    assert gp.result_.converged
    assert -gp.energy() == pytest.approx(gp.log_marginal_likelihood(x, y), abs=1e-8)


def test_a_rule_without_energy_starts_where_vi_leads():
    """Labels twenty prior standard deviations away: from the rows' own modes ep ran off to f = -90."""
    rng = np.random.default_rng(8)
    x = np.sort(rng.uniform(0.0, 1.0, 200))
    y = rng.gamma(2.0, 0.001, 200)
    gp = GaussianProcess(Matern52(0.1, 0.1), lk.Gamma(2.0), "ep", "heuristic", "markov").fit(x, y)
    assert gp.result_.converged
    by_vi = GaussianProcess(Matern52(0.1, 0.1), lk.Gamma(2.0), structure="markov").fit(x, y)
    assert gp.predict([0.5])[0] == pytest.approx(by_vi.predict([0.5])[0], rel=0.02)


def test_a_walk_that_only_rounds_does_not_say_that_it_has_converged():
    """With room to leave for minus infinity, latents of zero counts go on for long: a warning, not a made-up end."""
    y = np.random.default_rng(3).poisson(np.exp(1.5 * np.sin(np.linspace(0.0, 20.0, 60)))).astype(float)
    gp = GaussianProcess(Matern32(1e5, 1.0), "poisson", structure="markov", max_iter=40)
    with pytest.warns(NotConvergedWarning, match="may change by"):
        gp.fit(np.linspace(0.0, 20.0, 60), y)
    assert gp.energy() < 300.0  # it was 1032 after steps of 1e-11


def test_the_rule_that_is_taken_when_none_is_named():
    kernels, noise = [Matern32()] * 2, lk.HeteroscedasticGaussian()
    assert GaussianProcess(kernels, noise).rule.name == "ep"
    assert GaussianProcess(kernels, noise, curvature="gauss-newton").rule.name == "vi"
    assert GaussianProcess(kernels, noise, structure="sparse", batch_size=10).rule.name == "vi"
    assert GaussianProcess(Matern32(), "poisson").rule.name == "vi"
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        x = np.linspace(0.0, 5.0, 40)
        GaussianProcess(kernels, noise, structure="markov").fit(x, np.sin(x) + 0.1 * np.cos(7.0 * x))
