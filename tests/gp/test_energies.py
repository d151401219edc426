"""Energies: their gradients at fixed sites, their descent, and the identities between them."""

import numpy as np
import pytest

from gaussfold import likelihoods as lk
from gaussfold.gp import GaussianProcess, Matern32, Matern52, hyper
from gaussfold.rules import EP

RNG = np.random.default_rng(4)
N = 16
X = np.sort(RNG.uniform(0.0, 4.0, N))
F = 1.2 * np.sin(2.0 * X)
LABELS = {
    "gaussian": (lk.Gaussian(0.4), F + 0.4 * RNG.normal(size=N)),
    "logit": (lk.Bernoulli(), (F > 0.0).astype(float)),
    "student": (lk.StudentT(4.5, 0.3), F + 0.3 * RNG.standard_t(4.5, size=N)),
    "negative-binomial": (lk.NegativeBinomial(2.5), RNG.poisson(np.exp(F)).astype(float)),
    "two-latents": (lk.HeteroscedasticGaussian(), F + 0.3 * RNG.normal(size=N)),
}
RULES = {"newton": "newton", "vi": "vi", "ep": EP(0.6), "pl": "pl"}
Z = np.linspace(0.2, 3.8, 5)[:, None]


def unsettled(name, rule, structure):
    """Two damped iterations: the sites are far from where the rule wants them."""
    likelihood, y = LABELS[name]
    y = y.copy()
    y[4] = np.nan
    covariance = [Matern32(1.3, 0.7), Matern52(0.5, 1.1)] if name == "two-latents" else Matern32(1.3, 0.7)
    curvature = "heuristic" if name in ("student", "two-latents") else "exact"
    gp = GaussianProcess(
        covariance, likelihood, RULES[rule], curvature, structure, inducing=Z, damping=0.5, start_precision=0.3
    )
    return gp.fit(X, y, iterations=2)


def at(gp, values, inducing=None):
    """The energy with other hyperparameters and the same sites."""
    covariances, likelihood = hyper.replaced(gp.covariances, gp.likelihood, values)
    before = gp.likelihood, gp.marginals_
    prior = gp.prior_.with_covariances(covariances, *([] if inducing is None else [inducing]))
    gp.likelihood, gp.marginals_ = likelihood, prior.update(gp.sites_)
    value = gp.energy()
    gp.likelihood, gp.marginals_ = before
    return value


@pytest.mark.parametrize("structure", ["dense", "markov", "sparse"])
@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("name", ["gaussian", "logit", "student", "two-latents"])
def test_gradients_of_every_energy(name, rule, structure):
    gp = unsettled(name, rule, structure)
    got = gp.energy_gradient()
    values = gp.parameters()
    assert list(got.parameters) == list(values)
    h = 1e-4
    close = 2e-6
    for parameter, slope in got.parameters.items():
        sides = [at(gp, {parameter: values[parameter] * np.exp(s * h)}) for s in (1, -1)]
        assert slope == pytest.approx((sides[0] - sides[1]) / (2 * h), rel=close, abs=close), parameter
    if structure == "sparse":
        for row in (0, 3):
            moved = h * (np.arange(len(Z)) == row)[:, None]
            sides = [at(gp, {}, Z + s * moved) for s in (1, -1)]
            assert got.inducing[row, 0] == pytest.approx((sides[0] - sides[1]) / (2 * h), rel=close, abs=close)


@pytest.mark.parametrize("rule", ["vi", "ep"])
@pytest.mark.parametrize("structure", ["dense", "markov", "sparse"])
def test_settled_sites_need_no_chain(structure, rule):
    likelihood, y = LABELS["logit"]
    gp = GaussianProcess(Matern32(1.3, 0.7), likelihood, RULES[rule], structure=structure, inducing=Z, tol=0.0)
    gp.fit(X, y, iterations=60)
    short, long = gp.energy_gradient(settled=True), gp.energy_gradient()
    for parameter, slope in short.parameters.items():
        assert slope == pytest.approx(long.parameters[parameter], abs=1e-7)


def test_laplace_energy_has_two_forms():
    """(17) is (18) for every Gaussian q made of sites: log Z is log p(m) + log t(m) - log q(m)."""
    gp = unsettled("logit", "newton", "dense")
    y = gp.Y_[:, 0]
    seen = ~np.isnan(y)
    K = gp.covariances[0](gp.X_) + 1e-12 * np.eye(N)
    m = gp.marginals_.mean[:, 0]
    fit = gp.likelihood.log_prob(y[seen], m[seen]).sum()
    B = np.eye(N) + K @ np.diag(gp.sites_.precision[:, 0, 0])
    r_and_w = -fit + 0.5 * m @ np.linalg.solve(K, m) + 0.5 * np.linalg.slogdet(B)[1]
    assert gp.energy() == pytest.approx(r_and_w, abs=1e-7)


@pytest.mark.parametrize("structure", ["dense", "markov", "sparse"])
@pytest.mark.parametrize("name", ["logit", "negative-binomial", "gaussian"])
def test_variational_energy_goes_down(name, structure):
    likelihood, y = LABELS[name]
    gp = GaussianProcess(Matern32(2.0, 0.5), likelihood, structure=structure, inducing=Z, damping=0.5)
    history = np.array(gp.fit(X, y, iterations=40).result_.history)
    assert (np.diff(history) <= 1e-9 * np.abs(history[1:])).all()
    assert history[0] - history[-1] > 0.01
    assert abs(history[-1] - history[-2]) < 1e-8


def test_energy_bounds():
    """Minus the variational energy is a lower bound: below ep's estimate, and sparse above dense."""
    likelihood, y = LABELS["logit"]
    dense, sparse = (
        GaussianProcess(Matern32(1.3, 0.7), likelihood, structure=s, inducing=Z).fit(X, y) for s in ("dense", "sparse")
    )
    ep = GaussianProcess(Matern32(1.3, 0.7), likelihood, "ep").fit(X, y)
    assert ep.energy() < dense.energy() < sparse.energy()
