"""What must hold exactly: conjugate data in one step, one answer from three structures, ep with a vanishing power."""

import numpy as np
import pytest

from gaussfold import likelihoods as lk
from gaussfold.gp import Constant, GaussianProcess, Matern32, Matern52
from gaussfold.rules import EP, Newton, QuasiNewton

RNG = np.random.default_rng(2)
N = 30
X = RNG.uniform(0.0, 6.0, N)
X[11] = X[4]
LATENT = 1.5 * np.sin(X)
COVARIANCE = Matern32(1.7, 0.8) + Constant(0.3)
LABELS = {
    "gaussian": (lk.Gaussian(0.4), LATENT + 0.4 * RNG.normal(size=N)),
    "logit": (lk.Bernoulli(), (RNG.random(N) < 1.0 / (1.0 + np.exp(-2.0 * LATENT))).astype(float)),
    "probit": (lk.Bernoulli("probit"), (LATENT + RNG.normal(size=N) > 0.0).astype(float)),
    "poisson": (lk.Poisson(), RNG.poisson(np.exp(LATENT)).astype(float)),
}
RULES = {
    "newton": "newton",
    "taylor": "taylor",
    "vi": "vi",
    "ep": "ep",
    "power-ep": EP(0.4),
    "pl": "pl",
    "pl2": "pl2",
}


def model(name, rule, structure, **options):
    inducing = np.unique(X)[:, None] if structure == "sparse" else None
    # pl2's own target is not log-concave for binary labels
    curvature = "gauss-newton" if rule == "pl2" else "exact"
    return GaussianProcess(COVARIANCE, LABELS[name][0], rule, curvature, structure, inducing=inducing, **options)


@pytest.mark.parametrize("structure", ["dense", "markov", "sparse"])
@pytest.mark.parametrize("rule", [*RULES, "quadratic"])
def test_conjugate_data_take_one_step(rule, structure):
    """Posterior and log marginal likelihood of exact Gaussian-process regression, with a missing label."""
    y = LABELS["gaussian"][1].copy()
    y[3] = np.nan
    gp = model("gaussian", RULES.get(rule, rule), structure).fit(X, y, iterations=1)
    seen = ~np.isnan(y)
    K = COVARIANCE(X[:, None])
    S = K[np.ix_(seen, seen)] + 0.16 * np.eye(seen.sum())
    mean = K[:, seen] @ np.linalg.solve(S, y[seen])
    cov = K - K[:, seen] @ np.linalg.solve(S, K[seen])
    evidence = -0.5 * (y[seen] @ np.linalg.solve(S, y[seen]) + np.linalg.slogdet(2.0 * np.pi * S)[1])
    # the jitter of the inducing inputs is 1e-10 of the variance
    close = 1e-6 if structure == "sparse" else 1e-8
    np.testing.assert_allclose(gp.marginals_.mean[:, 0], mean, atol=close)
    np.testing.assert_allclose(gp.marginals_.cov[:, 0, 0], np.diag(cov), atol=close)
    assert gp.energy() == pytest.approx(-evidence, abs=close)
    assert gp.energy() == pytest.approx(gp.resume(iterations=1).energy(), abs=1e-9)


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("name", ["gaussian", "logit", "probit", "poisson"])
def test_dense_markov_and_sparse_agree(name, rule):
    y = LABELS[name][1]
    damping = 0.7 if name == "poisson" else 1.0
    dense, *others = [
        model(name, RULES[rule], s, damping=damping).fit(X, y, iterations=4) for s in ("dense", "markov", "sparse")
    ]
    test = np.linspace(-1.0, 7.0, 9)
    mean, std = dense.predict(test, return_std=True)
    for other in others:
        np.testing.assert_allclose(other.sites_.precision, dense.sites_.precision, rtol=1e-6, atol=1e-6)
        np.testing.assert_allclose(other.sites_.shift, dense.sites_.shift, rtol=1e-6, atol=1e-6)
        np.testing.assert_allclose(other.marginals_.mean, dense.marginals_.mean, atol=1e-6)
        np.testing.assert_allclose(other.marginals_.cov, dense.marginals_.cov, atol=1e-6)
        np.testing.assert_allclose(other.result_.history, dense.result_.history, atol=2e-6)
        found = other.predict(test, return_std=True)
        np.testing.assert_allclose(found[0], mean, rtol=1e-6, atol=1e-6)
        np.testing.assert_allclose(found[1], std, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("structure", ["dense", "sparse"])
@pytest.mark.parametrize("name", ["logit", "poisson"])
def test_power_ep_tends_to_vi_step_by_step(name, structure):
    """Remarks 4 and 5, with few inducing inputs; the difference falls in proportion to the power."""
    y = LABELS[name][1]
    options = {"inducing": np.linspace(0.0, 6.0, 6)[:, None], "damping": 0.6}
    gaps = []
    for alpha in (1e-4, 1e-6):
        vi = GaussianProcess(COVARIANCE, LABELS[name][0], "vi", structure=structure, **options)
        ep = GaussianProcess(COVARIANCE, LABELS[name][0], EP(alpha), structure=structure, **options)
        for gp in (vi, ep):
            gp.fit(X, y, iterations=0)
        worst = 0.0
        for _ in range(6):
            vi.step()
            ep.step()
            worst = max(worst, np.abs(vi.sites_.precision - ep.sites_.precision).max())
            worst = max(worst, np.abs(vi.marginals_.mean - ep.marginals_.mean).max(), abs(vi.energy() - ep.energy()))
        gaps.append(worst)
    assert gaps[1] < 1e-2 * gaps[0] * 1.5
    assert gaps[1] < 1e-3


def test_a_row_seen_by_two_latents():
    """Independent covariances per latent: heteroscedastic noise, three structures, a policy that remembers."""
    y = LABELS["gaussian"][1]
    covariances = [Matern32(1.3, 0.9), Matern52(0.6, 1.9)]
    for rule, curvature in ((Newton(), "gauss-newton"), ("vi", QuasiNewton()), ("pl2", "heuristic")):
        dense, *others = [
            GaussianProcess(
                covariances, lk.HeteroscedasticGaussian(), rule, curvature, s,
                inducing=np.unique(X)[:, None], damping=0.4,
            ).fit(X, y, iterations=5)
            for s in ("dense", "markov", "sparse")
        ]  # fmt: skip
        for other in others:
            np.testing.assert_allclose(other.marginals_.mean, dense.marginals_.mean, atol=1e-6)
            np.testing.assert_allclose(other.marginals_.cov, dense.marginals_.cov, atol=1e-6)
            assert other.energy() == pytest.approx(dense.energy(), abs=1e-5)


def test_order_of_the_rows_does_not_matter():
    y = LABELS["logit"][1]
    order = RNG.permutation(N)
    one = model("logit", "vi", "markov").fit(X, y, iterations=5)
    two = model("logit", "vi", "markov").fit(X[order], y[order], iterations=5)
    np.testing.assert_allclose(two.marginals_.mean, one.marginals_.mean[order], atol=1e-12)
    np.testing.assert_allclose(two.sites_.shift, one.sites_.shift[order], atol=1e-12)
    test = np.array([5.0, -1.0, X[4], 2.0])
    np.testing.assert_allclose(one.predict(test)[::-1], one.predict(test[::-1]), rtol=1e-12)


def test_a_missing_row_changes_nothing():
    y = LABELS["logit"][1]
    more, labels = np.append(X, [2.5, 7.0]), np.append(y, [np.nan, np.nan])
    for structure in ("dense", "markov"):
        with_gaps = model("logit", "ep", structure).fit(more, labels, iterations=5)
        without = model("logit", "ep", structure).fit(X, y, iterations=5)
        np.testing.assert_allclose(with_gaps.marginals_.mean[:N], without.marginals_.mean, atol=1e-10)
        np.testing.assert_allclose(with_gaps.predict_latent([2.5])[0], with_gaps.marginals_.mean[[N]], atol=1e-10)
        assert with_gaps.energy() == pytest.approx(without.energy(), abs=1e-9)
