"""Rules on f in R^D: one definition of each rule, shared with the streaming code; Tables 1 and 2 of bayes-newton."""

import numpy as np
import pytest

from gaussfold import likelihoods as lk
from gaussfold import rules
from gaussfold.engine.arrays import over_arrays as maps
from gaussfold.expectations.cubature import GaussHermite, Unscented
from gaussfold.likelihoods import normal
from gaussfold.likelihoods.regression import regress
from gaussfold.rules.cavities import cavities
from gaussfold.types import Moments, Sites
from tests.likelihoods.chained import CHAINED, name, rows
from tests.problems import FAMILIES, is_defined, labels
from tests.problems import name as family_name
from tests.reference.dense_gp import marginals, matern32, posterior, stacked

RULES = [rules.Newton(), rules.Taylor(), rules.VI(), rules.EP(), rules.EP(alpha=0.5), rules.PL(), rules.PL2()]
STREAMING = [*RULES[:-1], rules.Quadratic()]
POLICIES = [rules.Exact(), rules.Heuristic(), rules.GaussNewton(), rules.QuasiNewton(), rules.Riemannian()]
PAIRS = [(rule, policy) for rule in RULES for policy in POLICIES if policy.name in rule.curvatures]


def blank(n, latents, precision=0.0):
    return Sites(precision * np.broadcast_to(np.eye(latents), (n, latents, latents)), np.zeros((n, latents)))


def any_name(value):
    return name(value) or family_name(value)


def site(rule, likelihood, Y, mean, cov, cubature=None):
    """Gradient and curvature as update_sites makes them from no site: J = shift - precision m."""
    recipe = rules.SiteRecipe(rule, rules.Exact(), likelihood, cubature)
    found = rules.update_sites(recipe, Y, rules.Gaussians(mean, cov), blank(*mean.shape)).sites
    J = found.shift - (found.precision @ mean[:, :, None])[:, :, 0]
    return J, -found.precision


def slopes(fn, m, step=1e-5):
    shifts = step * np.eye(m.shape[-1])
    return np.stack([(fn(m + s) - fn(m - s)) / (2 * step) for s in shifts], axis=-1)


# One latent: what the streaming code says.


@pytest.mark.parametrize(
    ("likelihood", "rule"),
    [(f, r) for f in FAMILIES for r in STREAMING if is_defined(r, "posterior", f)],
    ids=any_name,
)
def test_one_latent_is_the_streaming_rule_and_the_engine(likelihood, rule):
    rng = np.random.default_rng(5)
    n = 40
    y, m, v = np.clip(labels(likelihood, rng, n), -4.0, 7.0), rng.normal(0.0, 1.2, n), 10.0 ** rng.uniform(-2.0, 0.0, n)
    J, H = site(rule, likelihood, y[:, None], m[:, None], v[:, None, None])
    want = rule.site(likelihood, y, Moments(m, v))
    tolerance = 1e-8 if rule.name in ("pl", "ep") else 1e-12  # there pl is a difference, ep 64 nodes
    np.testing.assert_allclose(H[:, 0, 0], want.curvature, rtol=tolerance, atol=tolerance)
    np.testing.assert_allclose(J[:, 0], want.gradient, rtol=tolerance, atol=10 * tolerance)
    want = maps.surrogates(likelihood.record, rule.record, y, np.ones(n), m, v)
    np.testing.assert_allclose(H[:, 0, 0], want[1], rtol=1e-10, atol=1e-11)
    np.testing.assert_allclose(J[:, 0], want[0], rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("rule", RULES[:-1], ids=any_name)
def test_nodes_agree_with_the_engine(rule):
    """The same rules by cubature, as several latents take them."""
    rng = np.random.default_rng(6)
    y, m, v = rng.choice([0.0, 1.0], (20, 1)), rng.normal(0.0, 1.2, (20, 1)), rng.uniform(0.1, 1.0, (20, 1, 1))
    exact = site(rule, lk.Bernoulli(), y, m, v)
    nodes = site(rule, lk.Bernoulli(), y, m, v, cubature=GaussHermite(64))
    for a, b in zip(exact, nodes, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-10)


# Table 1: targets, Jacobians and Hessians. Newton's are the likelihood's own derivatives, which the tests of the
# likelihoods compare with differences in the same two lines: here it is the rule that is held against them.


@pytest.mark.parametrize("likelihood", CHAINED, ids=any_name)
def test_table_1_newton(likelihood):
    Y, mean, cov = rows(likelihood, 4, 21)
    J, H = site(rules.Newton(), likelihood, Y, mean, cov)
    np.testing.assert_allclose(J, slopes(lambda m: likelihood.log_prob(Y, m), mean), rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(H, slopes(lambda m: likelihood.derivatives(Y, m)[0], mean), rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("likelihood", CHAINED, ids=any_name)
def test_table_1_taylor_and_pl(likelihood):
    """J = ν'ᵀ S⁻¹ (y - ν), H = -ν'ᵀ S⁻¹ ν', with S the noise at the mean, or Ω; written out row by row."""
    Y, mean, cov = rows(likelihood, 3, 22)
    given = likelihood.conditional_slopes(mean)
    J, H = site(rules.Taylor(), likelihood, Y, mean, cov)
    noise = np.broadcast_to(given.cov, (3, likelihood.responses, likelihood.responses))
    response = likelihood.response(Y)
    for i in range(3):
        A = np.linalg.solve(noise[i], given.mean_slope[i]).T
        np.testing.assert_allclose(J[i], A @ (response[i] - given.mean[i]), rtol=1e-10, atol=1e-12)
        np.testing.assert_allclose(H[i], -A @ given.mean_slope[i], rtol=1e-10, atol=1e-12)
    rule = GaussHermite(12) if likelihood.latents < 4 else Unscented(5)
    nodes, weights = rule.nodes(likelihood.latents)
    J, H = site(rules.PL(), likelihood, Y, mean, cov, cubature=rule)
    for i in range(3):
        f = mean[i] + nodes @ np.linalg.cholesky(cov[i]).T
        at = likelihood.conditional(f)
        mu = weights @ at.mean
        A = ((weights[:, None] * (at.mean - mu)).T @ (f - mean[i])) @ np.linalg.inv(cov[i])
        left = at.mean - mu - (f - mean[i]) @ A.T
        every = np.broadcast_to(at.cov, (len(weights), *at.cov.shape[1:]))
        omega = (weights[:, None] * left).T @ left + np.einsum("p,pij->ij", weights, every)
        pull = np.linalg.solve(omega, A).T
        np.testing.assert_allclose(J[i], pull @ (response[i] - mu), rtol=1e-9, atol=1e-11)
        np.testing.assert_allclose(H[i], -pull @ A, rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize("likelihood", CHAINED[:3] + CHAINED[4:], ids=any_name)
def test_table_1_vi_and_pep(likelihood):
    Y, mean, cov = rows(likelihood, 4, 23)
    J, H = site(rules.VI(), likelihood, Y, mean, cov, cubature=GaussHermite(12))
    target = lambda m: likelihood.expected_log_prob(Y, m, cov, GaussHermite(12))  # noqa: E731
    np.testing.assert_allclose(J, slopes(target, mean), rtol=1e-6, atol=1e-6)
    again = slopes(lambda m: slopes(target, m, 1e-4), mean, 1e-4)
    np.testing.assert_allclose(H, again, rtol=1e-4, atol=1e-4)
    alpha = 0.6
    target = lambda m: likelihood.log_predictive(Y, m, cov, alpha=alpha) / alpha  # noqa: E731
    gradient = slopes(target, mean)
    hessian = slopes(lambda m: slopes(target, m, 1e-4), mean, 1e-4)
    J, H = site(rules.EP(alpha), likelihood, Y, mean, cov)
    for i in range(4):
        precision = np.linalg.inv(cov[i])
        R = precision @ np.linalg.inv(alpha * hessian[i] + precision)
        np.testing.assert_allclose(J[i], R @ gradient[i], rtol=1e-3, atol=1e-4)
        np.testing.assert_allclose(H[i], R @ hessian[i], rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize(
    "likelihood", [*CHAINED[:3], lk.Bernoulli(), lk.Poisson(), lk.NegativeBinomial(2.5)], ids=any_name
)
def test_pl2_differentiates_its_target(likelihood):
    """(45): log N(y | E ν, Ω), both moving, by differences; in the covariance too, where nodes converge."""
    model = lk.as_vector(likelihood)
    Y, mean, cov = rows(model, 3, 24)
    if model is not likelihood:
        Y = np.array([[1.0], [0.0], [1.0]])
    target = lambda m, c: normal.log_density(Y, regress(model, m, c, GaussHermite(20)).moments)  # noqa: E731
    J, H = site(rules.PL2(), likelihood, Y, mean, cov, cubature=GaussHermite(20))
    np.testing.assert_allclose(J, slopes(lambda m: target(m, cov), mean), rtol=1e-5, atol=1e-6)
    again = slopes(lambda m: slopes(lambda x: target(x, cov), m, 1e-4), mean, 1e-4)
    np.testing.assert_allclose(H, again, rtol=1e-3, atol=1e-4)
    _, by_cov = rules.PL2().slopes_several(rules.View(model, Y, mean, cov, GaussHermite(20)))
    step = np.zeros((model.latents, model.latents))
    step[0, 0] = 1e-5
    want = (target(mean, cov + step) - target(mean, cov - step)) / 2e-5
    np.testing.assert_allclose(by_cov[:, 0, 0], want, rtol=1e-4, atol=1e-5)


# Table 2: what kind of approximation each one is.


@pytest.mark.parametrize("likelihood", CHAINED, ids=any_name)
def test_table_2_taylor_and_pl_are_gauss_newton(likelihood):
    """Their precision is a sum of squares of first derivatives, and Taylor's is Newton's generalised one, (40)."""
    Y, mean, cov = rows(likelihood, 5, 25)
    for rule in (rules.Taylor(), rules.PL()):
        _, H = site(rule, likelihood, Y, mean, cov)
        assert (np.linalg.eigvalsh(-H) > -1e-12).all()
        assert np.linalg.matrix_rank(H[0], tol=1e-9) <= likelihood.responses
    if not likelihood.gaussian_noise or likelihood.conditional_slopes(mean).cov_slope is None:
        found = rules.Newton().gauss_newton_several(rules.View(likelihood, Y, mean, cov))
        np.testing.assert_allclose(found.curvature, H_taylor(likelihood, Y, mean, cov), rtol=1e-10, atol=1e-12)


def H_taylor(likelihood, Y, mean, cov):
    return site(rules.Taylor(), likelihood, Y, mean, cov)[1]


def test_figure_1_point_estimates():
    """As the marginal shrinks vi becomes newton, and pl becomes taylor."""
    for likelihood in CHAINED:
        Y, mean, cov = rows(likelihood, 3, 26)
        for wide, narrow in ((rules.VI(), rules.Newton()), (rules.PL(), rules.Taylor())):
            for a, b in zip(
                site(wide, likelihood, Y, mean, 1e-10 * cov), site(narrow, likelihood, Y, mean, cov), strict=True
            ):
                np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("likelihood", [*CHAINED[:3], lk.Bernoulli(), lk.StudentT(3.5, 0.8)], ids=any_name)
def test_remark_4_ep_becomes_vi(likelihood):
    """Step by step, from sites that are not blank, so that the cavities differ from the marginals."""
    model = lk.as_vector(likelihood)
    Y, mean, cov = rows(model, 4, 27)
    if isinstance(likelihood, lk.Bernoulli):
        Y = (Y > 0).astype(float)
    old = Sites(0.3 * np.broadcast_to(np.eye(model.latents), cov.shape), 0.2 * np.ones(mean.shape))
    want = rules.update_sites(
        rules.SiteRecipe(rules.VI(), rules.Exact(), likelihood), Y, rules.Gaussians(mean, cov), old, damping=0.4
    ).sites
    near, nearer = (
        rules.update_sites(
            rules.SiteRecipe(rules.EP(alpha), rules.Exact(), likelihood),
            Y,
            rules.Gaussians(mean, cov),
            old,
            damping=0.4,
        ).sites
        for alpha in (1e-5, 1e-6)
    )
    for a, b, c in zip(near, nearer, want, strict=True):
        size = np.abs(c).max()
        assert np.abs(b - c).max() < 3e-4 * size
        assert np.abs(b - c).max() < 0.11 * np.abs(a - c).max() + 1e-8 * size  # of first order in alpha
        np.testing.assert_allclose((10.0 * b - a) / 9.0, c, atol=1e-5 * size)  # and so the limit is vi's
    energy = [
        rules.likelihood_energy(rules.SiteRecipe(rule, rules.Exact(), likelihood), Y, rules.Gaussians(mean, cov), old)
        - rules.site_energy(rule, rules.Gaussians(mean, cov), old)
        for rule in (rules.EP(1e-5), rules.VI())
    ]
    np.testing.assert_allclose(energy[0], energy[1], rtol=1e-3, atol=1e-3)


# Gaussian likelihoods: everybody is exact.


@pytest.mark.parametrize(("rule", "policy"), [p for p in PAIRS if p[1].name in ("exact", "gauss-newton")], ids=any_name)
def test_gaussian_is_exact_in_one_step(rule, policy):
    rng = np.random.default_rng(31)
    X, y = np.sort(rng.uniform(0.0, 4.0, 12)), rng.standard_normal((12, 1))
    K = stacked([matern32(X, 1.3, 0.9)])
    start = blank(12, 1)
    mean, cov = marginals(*posterior(K, start)[:2], 1)
    update = rules.update_sites(
        rules.SiteRecipe(rule, policy, lk.Gaussian(std=0.4)), y, rules.Gaussians(mean, cov), start
    )
    got_mean, got_cov, log_z = posterior(K, update.sites)
    want = K @ np.linalg.solve(K + 0.16 * np.eye(12), y[:, 0])
    np.testing.assert_allclose(got_mean, want, atol=1e-10)
    np.testing.assert_allclose(got_cov, K - K @ np.linalg.solve(K + 0.16 * np.eye(12), K), atol=1e-10)
    mean, cov = marginals(got_mean, got_cov, 1)
    energy = rules.site_energy(rule, rules.Gaussians(mean, cov), update.sites).sum() - log_z
    energy -= rules.likelihood_energy(
        rules.SiteRecipe(rule, rules.Exact(), lk.Gaussian(std=0.4)), y, rules.Gaussians(mean, cov), update.sites
    ).sum()
    S = K + 0.16 * np.eye(12)
    want = 0.5 * (y[:, 0] @ np.linalg.solve(S, y[:, 0]) + np.linalg.slogdet(2.0 * np.pi * S)[1])
    assert energy == pytest.approx(want, abs=1e-9)


def test_several_outputs_of_one_gaussian():
    """Correlated noise on a linear map of two latents (signals held at one): the textbook conditional."""
    noise = np.array([[0.3, -0.1], [-0.1, 0.4]])
    net = lk.RegressionNetwork(noise, signals=1)
    mean = np.array([[1.0, 0.3, -0.7]])
    cov = np.diag([1e-14, 0.8, 0.5])[None]
    Y = np.array([[0.6, -0.2]])
    J, H = site(rules.VI(), net, Y, mean, cov)
    np.testing.assert_allclose(-H[0, 1:, 1:], np.linalg.inv(noise), rtol=1e-9)
    np.testing.assert_allclose(J[0, 1:], np.linalg.solve(noise, Y[0] - mean[0, 1:]), rtol=1e-9)


# The update itself.


def test_damping_is_a_mixture_of_natural_parameters():
    likelihood = CHAINED[0]
    Y, mean, cov = rows(likelihood, 5, 41)
    old = Sites(0.7 * np.broadcast_to(np.eye(2), cov.shape), 0.2 * np.ones(mean.shape))
    full = rules.update_sites(
        rules.SiteRecipe(rules.VI(), rules.Exact(), likelihood), Y, rules.Gaussians(mean, cov), old
    ).sites
    half = rules.update_sites(
        rules.SiteRecipe(rules.VI(), rules.Exact(), likelihood), Y, rules.Gaussians(mean, cov), old, damping=0.3
    ).sites
    for a, b, c in zip(half, full, old, strict=True):
        np.testing.assert_allclose(a, 0.7 * c + 0.3 * b, rtol=1e-13, atol=1e-13)


def test_cavities_put_back_give_the_posterior():
    _, mean, cov = rows(CHAINED[1], 5, 42)
    old = Sites(0.3 * np.broadcast_to(np.eye(2), cov.shape), 0.2 * np.ones(mean.shape))
    without = cavities(mean, cov, old, 0.4)
    for i in range(5):
        precision = np.linalg.inv(without.cov[i]) + 0.4 * old.precision[i]
        np.testing.assert_allclose(np.linalg.inv(precision), cov[i], rtol=1e-10, atol=1e-13)
        shift = np.linalg.solve(without.cov[i], without.mean[i]) + 0.4 * old.shift[i]
        np.testing.assert_allclose(np.linalg.solve(precision, shift), mean[i], rtol=1e-9, atol=1e-10)
    strong = Sites(30.0 * np.broadcast_to(np.eye(2), cov.shape), old.shift)
    with pytest.raises(ValueError, match=r"rule='ep': the cavity of row 0 is not a Gaussian .*smaller alpha"):
        rules.update_sites(
            rules.SiteRecipe(rules.EP(), rules.Exact(), CHAINED[1]), mean[:, :1], rules.Gaussians(mean, cov), strong
        )


@pytest.mark.parametrize(("rule", "policy"), PAIRS, ids=any_name)
def test_missing_rows_and_outputs(rule, policy):
    """A missing row has no site, does not disturb the others, and its memory waits; twice, to use the memory."""
    likelihood = CHAINED[2]
    Y, at, around = rows(likelihood, 6, 43, spread=0.1)
    Y[4, 1] = np.nan
    holes = Y.copy()
    holes[1] = holes[5] = np.nan
    seen = [0, 2, 3, 4]
    sites = Sites(0.2 * np.broadcast_to(np.eye(3), around.shape), 0.1 * np.ones(at.shape))
    kept, memory, memory_kept = Sites(sites.precision[seen], sites.shift[seen]), None, None
    for _ in range(2):
        cov = np.linalg.inv(np.linalg.inv(around) + sites.precision)
        mean = (cov @ (np.linalg.solve(around, at[:, :, None]) + sites.shift[:, :, None]))[:, :, 0]
        energy = rules.likelihood_energy(
            rules.SiteRecipe(rule, rules.Exact(), likelihood), holes, rules.Gaussians(mean, cov), sites
        )
        assert energy[1] == energy[5] == 0.0
        assert np.isfinite(energy).all()
        update = rules.update_sites(
            rules.SiteRecipe(rule, policy, likelihood), holes, rules.Gaussians(mean, cov), sites, memory, damping=0.5
        )
        part = rules.update_sites(
            rules.SiteRecipe(rule, policy, likelihood),
            Y[seen],
            rules.Gaussians(mean[seen], cov[seen]),
            kept,
            memory_kept,
            damping=0.5,
        )
        sites, memory, kept, memory_kept = update.sites, update.memory, part.sites, part.memory
        for a, b in zip(sites, kept, strict=True):
            np.testing.assert_allclose(a[seen], b, rtol=1e-12, atol=1e-13)
            assert not a[[1, 5]].any()
    nothing = rules.update_sites(
        rules.SiteRecipe(rule, policy, likelihood), np.full_like(Y, np.nan), rules.Gaussians(mean, cov), sites
    )
    assert not nothing.sites.precision.any()


def test_non_positive_sites_are_reported_and_left_alone():
    likelihood = lk.StudentT(df=3.0, scale=0.5)
    y, mean, cov = np.array([[0.1], [9.0], [0.2], [-7.0]]), np.zeros((4, 1)), np.full((4, 1, 1), 0.1)
    update = rules.update_sites(
        rules.SiteRecipe(rules.Newton(), rules.Exact(), likelihood), y, rules.Gaussians(mean, cov), blank(4, 1)
    )
    assert (update.non_positive, update.first_non_positive) == (2, 1)
    assert update.sites.precision[1, 0, 0] == pytest.approx(-likelihood.derivatives(9.0, 0.0)[1])
    holes = np.concatenate([[[np.nan]], y])
    mean, cov = np.zeros((5, 1)), np.full((5, 1, 1), 0.1)
    update = rules.update_sites(
        rules.SiteRecipe(rules.Newton(), rules.Exact(), likelihood), holes, rules.Gaussians(mean, cov), blank(5, 1)
    )
    assert (update.non_positive, update.first_non_positive) == (2, 2)


def test_ep_refuses_nodes_that_are_too_coarse():
    """A tilted covariance below zero is integration error: named, not turned into a site."""
    likelihood = lk.HeteroscedasticGaussian()
    Y, mean = np.array([[0.3], [2.0]]), np.array([[0.0, 0.5], [0.0, -4.0]])
    cov = np.stack([0.05 * np.eye(2), np.eye(2)])
    with pytest.raises(ValueError, match=r"rule='ep': the cubature of Heterosc.* row 1 of .*too sharp"):
        rules.update_sites(
            rules.SiteRecipe(rules.EP(), rules.Heuristic(), likelihood, GaussHermite(20)),
            Y,
            rules.Gaussians(mean, cov),
            blank(2, 2),
        )
    fine = rules.update_sites(
        rules.SiteRecipe(rules.EP(), rules.Heuristic(), likelihood), Y, rules.Gaussians(mean, cov), blank(2, 2)
    )
    assert np.isfinite(fine.sites.shift).all()
