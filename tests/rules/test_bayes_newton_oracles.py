"""Numbers from the authors' programs, where they and bayes-newton agree; see ../shared/oracles/README_bn_swafa.md."""

import functools

import numpy as np
import pytest

from gaussfold import likelihoods as lk
from gaussfold import rules
from gaussfold.expectations.cubature import GaussHermite, Unscented
from gaussfold.likelihoods.regression import regress
from gaussfold.rules.bfgs import QuasiNewtonMemory
from gaussfold.types import Moments
from tests.reference.dense_gp import flat_sites, marginals, matern32, posterior, stacked
from tests.shared import ORACLES, needs_oracles

pytestmark = needs_oracles
SIGMA = np.array([[0.02, -0.015, -0.005], [-0.015, 0.04, 0.01], [-0.005, 0.01, 0.06]])
CHAINED = {
    "hetero": lk.HeteroscedasticGaussian(),
    "product": lk.ProductGaussian(std=np.sqrt(0.1)),
    "gprn": lk.RegressionNetwork(SIGMA, signals=2, weight_offset=0.1),
}
CUBATURE = {"gh20": GaussHermite(20), "ut3": Unscented(3), "ut5": Unscented(5)}
NODES = [("hetero", "gh20"), ("hetero", "ut3"), ("hetero", "ut5"), ("product", "gh20"), ("gprn", "ut5")]
SCALAR = {
    "gaussian": lk.Gaussian(0.3),
    "bernoulli_logit": lk.Bernoulli(),
    "poisson_exp": lk.Poisson(),
    "gamma": lk.Gamma(1.0),
    "negbin": lk.NegativeBinomial(1.0 / 0.7),
    "studentst": lk.StudentT(3.0, 0.2),
}


@functools.cache
def stored(name):
    with np.load(ORACLES / "bayesnewton" / f"{name}.npz", allow_pickle=True) as found:
        return {key: found[key] for key in found.files if key != "log"}


def close(key, *ours, rows=slice(None), skip=0, tolerance=1e-8):
    table = stored("likelihood_pointwise")
    for i, mine in enumerate(ours):
        theirs = table[f"{key}__{i + skip}"]
        mine = np.asarray(mine).reshape(theirs.shape)
        np.testing.assert_allclose(mine[rows], theirs[rows], rtol=tolerance, atol=tolerance, err_msg=f"{key} {i}")


def chained(name):
    table = stored("likelihood_pointwise")
    return CHAINED[name], table[f"{name}__y"], table[f"{name}__m"][..., 0], table[f"{name}__V"]


@pytest.mark.parametrize("name", CHAINED)
def test_pointwise_of_several_latents(name):
    likelihood, Y, m, V = chained(name)
    close(f"{name}__loglik_grad_hess", likelihood.log_prob(Y, m), *likelihood.derivatives(Y, m))
    close(f"{name}__gaussnewton", *rules.Newton().gauss_newton_several(rules.View(likelihood, Y, m, V)), skip=1)


@pytest.mark.parametrize(("name", "nodes"), NODES)
def test_integrated_over_several_latents(name, nodes):
    likelihood, Y, m, V = chained(name)
    rule = CUBATURE[nodes]
    expected = likelihood.expected_log_prob(Y, m, V, rule)
    close(f"{name}__varexp_{nodes}", expected, *likelihood.expected_derivatives(Y, m, V, rule))
    close(f"{name}__vgn_{nodes}", *rules.VI().gauss_newton_several(rules.View(likelihood, Y, m, V, rule)), skip=1)
    fit = regress(likelihood, m, V, rule, second_order=True).moments
    close(f"{name}__slr_{nodes}", fit.mean, fit.cov, fit.mean_slope, fit.mean_curvature)
    # Where outputs are missing their pl2 divides by a large variance instead of leaving them out.
    rows = ~np.isnan(Y).any(axis=1)
    close(
        f"{name}__pl2_newton_{nodes}",
        *rules.PL2().site_several(rules.View(likelihood, Y, m, V, rule)),
        rows=rows,
        skip=1,
    )
    found = rules.PL2().gauss_newton_several(rules.View(likelihood, Y, m, V, rule))
    close(f"{name}__pl2_gaussnewton_{nodes}", *found, rows=rows, skip=1)
    close(f"{name}__predict_{nodes}", *likelihood.predictive(m, V, rule))


@pytest.mark.parametrize(("name", "nodes"), NODES)
@pytest.mark.parametrize("alpha", [1.0, 0.5])
def test_moment_matching_of_several_latents(name, nodes, alpha):
    """Rows whose normaliser they clip (log 1e-6) are left out: clipping is not in the paper."""
    likelihood, Y, m, V = chained(name)
    rule = CUBATURE[nodes]
    rows = stored("likelihood_pointwise")[f"{name}__momentmatch_p{alpha}_{nodes}__0"] > np.log(1.001e-6)
    assert rows.any()
    close(f"{name}__momentmatch_p{alpha}_{nodes}", *likelihood.tilted(Y, m, V, alpha, rule), rows=rows)
    if alpha == 0.5:
        by_cov = likelihood.tilted_slopes(Y, m, V, alpha, rule)[1]
        close(f"{name}__momentmatch_dv_p0.5_{nodes}", by_cov, rows=rows, skip=3)


@pytest.mark.parametrize("name", SCALAR)
def test_pointwise_of_one_latent(name):
    table, likelihood = stored("likelihood_pointwise"), SCALAR[name]
    y, m = table[f"{name}__y"], table["scalar_m"].ravel()
    found = (likelihood.log_prob(y, m), *likelihood.derivatives(y, m))
    close(f"{name}__loglik_grad_hess", *found)
    model = lk.as_vector(likelihood)
    V = table["scalar_v"].reshape(-1, 1, 1)
    curvature = rules.Newton().gauss_newton_several(rules.View(model, y[:, None], m[:, None], V)).curvature
    close(f"{name}__gaussnewton", curvature, skip=2)
    slopes = model.conditional_slopes(m[:, None])
    close(f"{name}__linearisation", slopes.mean_slope, skip=0)
    close(f"{name}__linearisation", np.sqrt(slopes.cov), skip=2)


@pytest.mark.parametrize(
    ("name", "tolerance"), [("gaussian", 1e-8), ("bernoulli_logit", 1e-6), ("poisson_exp", 1e-8), ("gamma", 1e-8)]
)
def test_integrated_over_one_latent(name, tolerance):
    """Their twenty nodes against our exact integrals: the logit has converged to 1e-7 there, Student-t not (0.1)."""
    table, likelihood = stored("likelihood_pointwise"), SCALAR[name]
    moments = Moments(table["scalar_m"].ravel(), table["scalar_v"].ravel())
    y = table[f"{name}__y"]
    found = (likelihood.expected_log_prob(y, moments), *likelihood.expected_derivatives(y, moments))
    close(f"{name}__varexp_gh20", *found, tolerance=tolerance)
    close(f"{name}__slr", likelihood.predictive(moments).mean, tolerance=tolerance)


# Whole runs on thirty points with heteroscedastic noise.

RULES = {
    "newton": rules.Newton(), "vi": rules.VI(), "pep05": rules.EP(alpha=0.5), "pl2": rules.PL2(), "pl": rules.PL(),
    "taylor": rules.Taylor(),
}  # fmt: skip
POLICIES = {
    "heuristic": rules.Heuristic(),
    "gaussnewton": rules.GaussNewton(),
    "quasinewton": rules.QuasiNewton(0.5, stored="averaged", ep="programs"),  # their habits, to compare with them
    "riemann": rules.Riemannian(),
    "": rules.Exact(),
    "eks": rules.Exact(),
}
METHODS = [
    "newton_heuristic",
    "newton_gaussnewton",
    "newton_quasinewton",
    "newton_riemann",
    "vi_heuristic",
    "vi_gaussnewton",
    "vi_quasinewton",
    "vi_riemann",
    "pl2_heuristic",
    "pl2_gaussnewton",
    "pl2_riemann",
    "pl",
    "taylor_eks",
    "pep05_quasinewton",
]
THEIRS_FAIL = ("newton_gaussnewton", "pl2_gaussnewton", "pl", "taylor_eks")  # NaN from the start with a full step
RUNS = [(m, "0.3") for m in METHODS] + [(m, "1.0") for m in METHODS if m not in THEIRS_FAIL]


@pytest.mark.parametrize(("method", "rate"), RUNS)
def test_toy_runs(method, rate):
    """Posterior and energy after k iterations. Their Laplace energy is (17) less half a trace, so that is added."""
    table = stored("toy_heteroscedastic")
    X, Y = table["X"].ravel(), table["Y"].reshape(-1, 1)
    head, _, tail = method.partition("_")
    rule, policy, likelihood = RULES[head], POLICIES[tail], lk.HeteroscedasticGaussian()
    K = stacked([matern32(X)] * 2)
    sites, memory, nodes = flat_sites(30, 2), None, GaussHermite(20)
    if method == "pep05_quasinewton":  # theirs is the Hessian of log E p^α, α times ours, and starts at -100 I
        memory = _their_start(30, 2)
    tolerance = 1e-5 if head == "pep05" else 1e-7  # their cavities carry a jitter of 1e-8
    mean, cov = marginals(*posterior(K, sites)[:2], 2)
    for k in range(1, 21):
        update = rules.update_sites(
            rules.SiteRecipe(rule, policy, likelihood, nodes),
            Y,
            rules.Gaussians(mean, cov),
            sites,
            memory,
            damping=float(rate),
        )
        sites, memory = update.sites, update.memory
        joint_mean, joint_cov, log_z = posterior(K, sites)
        mean, cov = marginals(joint_mean, joint_cov, 2)
        key = f"{method}__lr{rate}__it{k}_post"
        if f"{key}_mean" in table:
            np.testing.assert_allclose(mean, table[f"{key}_mean"][..., 0], atol=tolerance, err_msg=f"mean at {k}")
            np.testing.assert_allclose(cov, table[f"{key}_cov"], atol=tolerance, err_msg=f"covariance at {k}")
        if rule.name in ("newton", "vi", "taylor"):
            energy = rules.site_energy(rule, rules.Gaussians(mean, cov), sites).sum() - log_z
            energy -= rules.likelihood_energy(
                rules.SiteRecipe(rule, rules.Exact(), likelihood, nodes), Y, rules.Gaussians(mean, cov), sites
            ).sum()
            if rule.name != "vi":
                energy -= 0.5 * np.einsum("nde,ned->", sites.precision, cov)
            assert energy == pytest.approx(table[f"{method}__lr{rate}__energy"][k - 1], abs=1e-5), k


def _their_start(rows, latents):
    size = latents + latents**2
    point = np.zeros((rows, size))
    point[:, latents:] = 100.0 * np.eye(latents).ravel()
    root = np.broadcast_to(np.sqrt(200.0) * np.eye(size), (rows, size, size))
    return QuasiNewtonMemory(root, point, np.zeros((rows, size)))
