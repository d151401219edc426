"""Curvature policies: positive semi-definite whatever happens, the secant equation, and the pairs that are refused."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gaussfold import likelihoods as lk
from gaussfold import rules
from gaussfold.rules.bfgs import QuasiNewtonMemory, bfgs_update, first_memory, hessian_block
from gaussfold.rules.curvature import Target
from gaussfold.rules.curvature.reach import within_reach
from gaussfold.types import Sites, VectorSite
from tests.likelihoods.chained import NOISE

MODELS = [
    lk.HeteroscedasticGaussian(),
    lk.ProductGaussian(std=np.sqrt(0.1)),
    lk.RegressionNetwork(0.1 * NOISE[:2, :2], 1),
]
RULES = [rules.Newton(), rules.VI(), rules.EP(alpha=0.5), rules.PL(), rules.PL2(), rules.Taylor()]
SAFE = [rules.Heuristic(), rules.GaussNewton(), rules.QuasiNewton(0.5), rules.QuasiNewton(None), rules.QuasiNewton(0.8)]
CELLS = [(rule, policy) for rule in RULES for policy in SAFE if policy.name in rule.curvatures]


def name(value):
    if isinstance(value, rules.QuasiNewton):
        return f"quasi-newton-{value.damping}"
    return getattr(value, "name", None)


def times_sites(prior, at, sites):
    """N(at, prior) times each row's site: with prior = L L' and Λ = W W', L (I + L'WW'L)⁻¹ L' by least squares."""
    L = np.linalg.cholesky(prior)
    values, vectors = np.linalg.eigh(sites.precision)
    W = vectors * np.sqrt(np.maximum(values, 0.0))[:, None, :]
    stacked = np.concatenate([np.broadcast_to(np.eye(at.shape[1]), W.shape), np.swapaxes(W, 1, 2) @ L], axis=1)
    half = np.swapaxes(L, 1, 2)
    half = np.linalg.solve(np.swapaxes(np.linalg.qr(stacked, mode="r"), 1, 2), half)
    pull = sites.shift[:, :, None] - sites.precision @ at[:, :, None]
    cov = np.swapaxes(half, 1, 2) @ half
    return at + (cov @ pull)[:, :, 0], cov


@pytest.mark.parametrize(("rule", "policy"), CELLS, ids=name)
@settings(max_examples=12, deadline=None, derandomize=True)
@given(
    seed=st.integers(0, 2**32 - 1),
    model=st.sampled_from(MODELS),
    prior=st.floats(-3.0, 3.0),
    size=st.floats(-1.0, 2.0),
    damping=st.sampled_from([0.1, 0.3, 1.0]),
)
def test_sites_stay_positive(rule, policy, seed, model, prior, size, damping):
    """Several visits of three rows with priors of std 10^±1.5 and labels up to 100: precisions never go negative."""
    rng = np.random.default_rng(seed)
    D = model.latents
    Y = 10.0**size * rng.standard_normal((3, model.outputs))
    root = rng.standard_normal((3, D, D))
    start = 10.0**prior * (root @ np.swapaxes(root, 1, 2) / D + 0.01 * np.eye(D))
    at = 10.0 ** (0.5 * prior) * rng.standard_normal((3, D))
    sites = Sites(0.01 * np.broadcast_to(np.eye(D), (3, D, D)), np.zeros((3, D)))
    memory = None
    for _ in range(4):
        mean, cov = times_sites(start, at, sites)
        if not (np.abs(mean) < 300.0).all():
            return  # softplus(-300) squared has underflown: there is no likelihood left to look at
        update = rules.update_sites(
            rules.SiteRecipe(rule, policy, model), Y, rules.Gaussians(mean, cov), sites, memory, damping=damping
        )
        sites, memory = update.sites, update.memory
        scale = np.abs(sites.precision).max(axis=(1, 2))
        assert (np.linalg.eigvalsh(sites.precision)[:, 0] >= -1e-9 * scale).all()
        assert update.non_positive == 0


def test_heuristic_keeps_the_diagonal():
    model = MODELS[0]
    Y, mean = np.array([[3.0], [0.1]]), np.array([[0.2, -0.5], [0.0, 0.3]])
    cov = np.broadcast_to(0.2 * np.eye(2), (2, 2, 2))
    sites = Sites(np.zeros((2, 2, 2)), np.zeros((2, 2)))
    plain = rules.update_sites(
        rules.SiteRecipe(rules.Newton(), rules.Exact(), model), Y, rules.Gaussians(mean, cov), sites
    ).sites
    kept = rules.update_sites(
        rules.SiteRecipe(rules.Newton(), rules.Heuristic(floor=0.03), model), Y, rules.Gaussians(mean, cov), sites
    ).sites
    diagonal = np.diagonal(plain.precision, axis1=1, axis2=2)
    assert (diagonal < 0.0).any()
    want = np.where(diagonal < 0.0, 0.03, diagonal)[..., None] * np.eye(2)
    np.testing.assert_array_equal(kept.precision, want)
    J = model.derivatives(Y, mean)[0]
    np.testing.assert_allclose(kept.shift, J + (want @ mean[:, :, None])[:, :, 0], rtol=1e-13)


@pytest.mark.parametrize("damping", [None, 0.5, 0.8])
def test_bfgs(damping):
    """The secant equation where undamped, s'r = (1-ξ) s'Bs where damped, negative definite always."""
    rng = np.random.default_rng(2)
    root = rng.standard_normal((50, 5, 5))
    B = -(root @ np.swapaxes(root, 1, 2)) - 0.1 * np.eye(5)
    memory = QuasiNewtonMemory(np.linalg.cholesky(-B), rng.standard_normal((50, 5)), rng.standard_normal((50, 5)))
    point, gradient = rng.standard_normal((50, 5)), 5.0 * rng.standard_normal((50, 5))
    after = hessian_block(bfgs_update(memory, point, gradient, damping), 5)
    assert (np.linalg.eigvalsh(after) < 0.0).all()
    s, g = point - memory.point, gradient - memory.gradient
    for i in range(50):
        sBs, sg = s[i] @ B[i] @ s[i], s[i] @ g[i]
        if damping is None and sg >= 0.0:
            np.testing.assert_allclose(after[i], B[i], rtol=1e-13)
        elif damping is None or sg <= (1.0 - damping) * sBs:
            np.testing.assert_allclose(after[i] @ s[i], g[i], rtol=1e-7, atol=1e-8)
            Bs = B[i] @ s[i]
            want = B[i] - np.outer(Bs, Bs) / sBs + np.outer(g[i], g[i]) / sg  # (48) as printed
            np.testing.assert_allclose(after[i], want, rtol=1e-7, atol=1e-7)
        else:
            assert s[i] @ after[i] @ s[i] == pytest.approx((1.0 - damping) * sBs, rel=1e-9)
    assert (damping is None) or ((s * g).sum(1) > 0).any()


def test_bfgs_without_a_step_changes_nothing():
    memory = first_memory(3, 2, 6, 100.0)
    np.testing.assert_array_equal(bfgs_update(memory, memory.point, memory.gradient, 0.5), memory.root)


def test_bfgs_does_not_learn_rounding():
    """A step whose change of the gradient is lost in the gradient's rounding leaves B alone; a larger one does not."""
    memory = first_memory(1, 2, 2, 100.0)._replace(gradient=np.array([[1e3, -2e3]]))
    for size, learns in ((1e-13, False), (1e-5, True)):
        step = size * np.array([[0.6, -0.8]])
        after = bfgs_update(memory, memory.point + step, memory.gradient - 7.0 * step, 0.5)
        assert (after != memory.root).any() == learns
    with np.errstate(all="raise"):  # nor does it overflow
        after = bfgs_update(memory, memory.point + 1e200, memory.gradient - 1e200, 0.5)
    np.testing.assert_array_equal(after, memory.root)


def test_bfgs_stays_negative_where_the_target_is_convex():
    """Every damped update halves B along the step; after 300 of them its eigenvalues are 1e-80, and not below zero."""
    memory = first_memory(1, 3, 3, 100.0)
    rng = np.random.default_rng(3)
    for _ in range(300):
        point = memory.point + rng.standard_normal((1, 3))
        memory = QuasiNewtonMemory(bfgs_update(memory, point, 2.0 * point, 0.5), point, 2.0 * point)
    assert np.linalg.svd(memory.root)[1][0, -1] ** 2 < 1e-25
    assert (np.diagonal(hessian_block(memory.root, 3)[0]) < 0.0).all()


def test_a_gradient_beyond_reach_moves_the_mean_by_eight_standard_deviations():
    model, cov = MODELS[0], np.array([[[2.0, 0.3], [0.3, 30.0]]])
    mean, sites = np.array([[0.1, -1.0]]), Sites(0.01 * np.eye(2)[None], np.zeros((1, 2)))
    target = Target(rules.VI(), rules.View(model, np.array([[0.4]]), mean, cov), sites, 0.3)
    curvature = -np.array([[[50.0, 3.0], [3.0, 20.0]]])
    near, far = np.array([[1.5, -0.7]]), 1e20 * np.array([[1.5, -0.7]])
    kept = within_reach(target, VectorSite(near, curvature))
    np.testing.assert_array_equal(kept.gradient, near)
    site = within_reach(target, VectorSite(far, curvature))
    old = sites.shift - (sites.precision @ mean[:, :, None])[:, :, 0]
    precision = np.linalg.inv(cov) + 0.3 * (-curvature - sites.precision)
    moved = np.linalg.solve(precision, 0.3 * (site.gradient - old)[:, :, None])
    both = cov + np.linalg.inv(precision)  # before and after
    assert float(moved[0, :, 0] @ np.linalg.solve(both[0], moved[0, :, 0])) == pytest.approx(64.0, rel=1e-9)


def test_quasi_newton_finds_a_constant_curvature():
    """On Gaussian data the true Hessian is constant; the block of B that acts along the steps reaches it."""
    likelihood = lk.Gaussian(std=0.5)
    y, cov = np.array([[0.7]]), np.full((1, 1, 1), 0.3)
    sites, memory = Sites(np.full((1, 1, 1), 0.01), np.zeros((1, 1))), None
    rng = np.random.default_rng(0)
    for _ in range(30):
        mean = rng.normal(0.0, 1.0, (1, 1))
        update = rules.update_sites(
            rules.SiteRecipe(rules.Newton(), rules.QuasiNewton(None), likelihood),
            y,
            rules.Gaussians(mean, cov),
            sites,
            memory,
        )
        memory = update.memory
    assert update.sites.precision[0, 0, 0] == pytest.approx(4.0, rel=1e-9)


@pytest.mark.parametrize("form", ["safe", "printed"])
def test_ep_quasi_newton_matches_the_tilted_mean(form):
    """Cavity times site^α has the mean m\\ + αC∇L, for any B that leaves the site positive."""
    model, alpha = MODELS[1], 0.5
    Y, mean = np.array([[0.4], [-0.3]]), np.array([[0.3, 0.2], [-0.5, 0.4]])
    cov = np.broadcast_to(np.array([[0.05, 0.01], [0.01, 0.04]]), (2, 2, 2))
    blank = Sites(np.zeros((2, 2, 2)), np.zeros((2, 2)))
    policy = rules.QuasiNewton(0.5, start=3.0, ep=form)
    update = rules.update_sites(rules.SiteRecipe(rules.EP(alpha), policy, model), Y, rules.Gaussians(mean, cov), blank)
    assert update.non_positive == 0
    precision = np.linalg.inv(cov) + alpha * update.sites.precision
    shift = np.linalg.solve(cov, mean[:, :, None])[:, :, 0] + alpha * update.sites.shift
    got = np.linalg.solve(precision, shift[:, :, None])[:, :, 0]
    gradient = model.tilted(Y, mean, cov, alpha)[1]  # of log E p^α = αL
    np.testing.assert_allclose(got, mean + (cov @ gradient[:, :, None])[:, :, 0], rtol=1e-9)


def test_riemannian_is_positive_from_a_positive_site():
    """Whatever H is: (58) leaves (Λ + (I - ρGΛ⁻¹) Λ (I - ρΛ⁻¹G))/2."""
    model = MODELS[0]
    rng = np.random.default_rng(8)
    Y, mean = 30.0 * rng.standard_normal((20, 1)), rng.standard_normal((20, 2))
    root = rng.standard_normal((20, 2, 2))
    cov = root @ np.swapaxes(root, 1, 2) + 0.1 * np.eye(2)
    old = Sites(root @ np.swapaxes(root, 1, 2) + 0.1 * np.eye(2), np.zeros((20, 2)))
    for rho in (0.1, 0.5, 1.0):
        plain = rules.update_sites(
            rules.SiteRecipe(rules.Newton(), rules.Exact(), model), Y, rules.Gaussians(mean, cov), old, damping=rho
        )
        bent = rules.update_sites(
            rules.SiteRecipe(rules.Newton(), rules.Riemannian(), model), Y, rules.Gaussians(mean, cov), old, damping=rho
        )
        assert plain.non_positive > 0
        assert bent.non_positive == 0
        G = old.precision + model.derivatives(Y, mean)[1]
        turn = np.eye(2) - rho * G @ np.linalg.inv(old.precision)
        want = 0.5 * (old.precision + turn @ old.precision @ np.swapaxes(turn, 1, 2))
        np.testing.assert_allclose(bent.sites.precision, want, rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize(
    ("rule", "curvature"),
    [("ep", "gauss-newton"), ("taylor", "quasi-newton"), ("pl", "riemannian"), ("quadratic", "heuristic")],
)
def test_undefined_pairs_are_refused(rule, curvature):
    rule, policy = rules.resolve_local(rule), rules.resolve_curvature(curvature)
    with pytest.raises(
        ValueError,
        match=rf"curvature='{curvature}' is not defined for rule='{rule.name}'; it is for '.*goes with 'exact'",
    ):
        rules.check_pair(rule, policy)


@pytest.mark.parametrize("rule", RULES, ids=name)
def test_defined_pairs_pass(rule):
    for policy in (rules.Exact(), rules.Heuristic()):
        rules.check_pair(rule, policy)


def test_names_and_parameters():
    assert rules.resolve_curvature("quasi-newton") == rules.QuasiNewton(0.5)
    assert rules.resolve_local("pl2") == rules.PL2()
    with pytest.raises(ValueError, match=r"curvature='bfgs': allowed are 'exact', 'heuristic'"):
        rules.resolve_curvature("bfgs")
    with pytest.raises(ValueError, match=r"rule='pl3': allowed are .*'pl2'"):
        rules.resolve_local("pl3")
    for wrong in ({"damping": 1.0}, {"start": 0.0}, {"stored": "old"}, {"ep": "minus"}):
        with pytest.raises(ValueError, match=next(iter(wrong))):
            rules.QuasiNewton(**wrong)
    with pytest.raises(ValueError, match="floor=-1"):
        rules.Heuristic(-1)
