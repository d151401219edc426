"""CustomLikelihood: one function in, and the built-in families out."""

import builtins

import numpy as np
import pytest

from gaussfold import likelihoods as lk
from gaussfold import rules
from gaussfold.expectations.cubature import GaussHermite
from gaussfold.types import Sites
from tests.likelihoods.chained import rows

jax = pytest.importorskip("jax")
jnp = jax.numpy


def hetero(y, f):
    scale = jnp.logaddexp(0.0, f[1])
    return -0.5 * ((y[0] - f[0]) / scale) ** 2 - jnp.log(scale) - 0.5 * jnp.log(2.0 * jnp.pi)


CUSTOM = lk.CustomLikelihood(
    hetero,
    latents=2,
    conditional=lambda f: (f[:1], jnp.logaddexp(0.0, f[1])[None, None] ** 2),
    gaussian_noise=True,
)
TWIN = lk.HeteroscedasticGaussian()


def test_it_is_the_built_in_family():
    Y, mean, cov = rows(TWIN, 7, 2)
    Y[3] = np.nan
    np.testing.assert_allclose(CUSTOM.log_prob(Y, mean), TWIN.log_prob(Y, mean), rtol=1e-13)
    pairs = [
        (CUSTOM.derivatives(Y, mean), TWIN.derivatives(Y, mean)),
        (CUSTOM.expected_derivatives(Y, mean, cov), TWIN.expected_derivatives(Y, mean, cov)),
        (CUSTOM.tilted(Y, mean, cov, 0.5), TWIN.tilted(Y, mean, cov, 0.5, GaussHermite(20))),
        (CUSTOM.predictive(mean, cov), TWIN.predictive(mean, cov)),
        ((CUSTOM.gauss_newton(Y, mean),), (TWIN.gauss_newton(Y, mean),)),
    ]
    for got, want in pairs:
        for a, b in zip(got, want, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-10, atol=1e-11)


@pytest.mark.parametrize("rule", ["newton", "vi", "ep", "taylor", "pl", "pl2"])
def test_every_rule(rule):
    Y, mean, cov = rows(TWIN, 5, 4)
    Y[1] = np.nan
    sites = Sites(np.zeros((5, 2, 2)), np.zeros((5, 2)))
    rule = rules.resolve_local(rule)
    got, want = (
        rules.update_sites(
            rules.SiteRecipe(rule, rules.Exact(), lik, "gauss-hermite"),
            Y,
            rules.Gaussians(mean, cov),
            sites,
            damping=0.7,
        ).sites
        for lik in (CUSTOM, TWIN)
    )
    for a, b in zip(got, want, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-10)


def test_discrete_labels_give_moments():
    mine = lk.CustomLikelihood(lambda y, f: y[0] * f[0] - jnp.logaddexp(0.0, f[0]), labels=[0.0, 1.0])
    F = np.array([[-0.4], [1.3]])
    twin = lk.as_vector(lk.Bernoulli())
    for got, want in zip(mine.conditional_curvatures(F), twin.conditional_curvatures(F), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-10, atol=1e-12)
    with pytest.raises(ValueError, match=r"Y\[0, 0\] = 0.5"):
        mine.check_labels([[0.5]])


def test_the_global_precision_is_left_alone():
    before = jnp.ones(2).dtype
    value = CUSTOM.log_prob(np.array([[0.3]]), np.array([[0.1, 1e-9]]))
    assert value.dtype == np.float64
    assert value[0] == pytest.approx(TWIN.log_prob([[0.3]], [[0.1, 1e-9]])[0], rel=1e-14)
    assert jnp.ones(2).dtype == before


def test_what_it_cannot_do():
    mine = lk.CustomLikelihood(hetero, latents=2)
    with pytest.raises(ValueError, match=r"no conditional moments.*conditional=lambda f"):
        mine.conditional(np.zeros((1, 2)))
    with pytest.raises(ValueError, match="cannot be saved"):
        mine.config()
    with pytest.raises(ValueError, match=r"latents=0: CustomLikelihood needs"):
        lk.CustomLikelihood(hetero, latents=0)
    with pytest.raises(ValueError, match="labels are for one discrete output"):
        lk.CustomLikelihood(hetero, latents=2, outputs=2, labels=[0.0, 1.0])


def test_without_jax(monkeypatch):
    real = builtins.__import__

    def blocked(name, *args, **kwargs):
        if name.split(".")[0] == "jax":
            raise ImportError(name)
        return real(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", blocked)
    with pytest.raises(ImportError, match=r"pip install 'gaussfold\[jax\]'"):
        lk.CustomLikelihood(hetero, latents=2)


def test_a_likelihood_that_returns_nan_is_named():
    bad = lk.CustomLikelihood(lambda y, f: jnp.sqrt(f[0] - 1.0) + 0.0 * y[0])
    Y, mean, cov = np.zeros((3, 1)), np.array([[2.0], [0.5], [3.0]]), np.full((3, 1, 1), 1e-3)
    sites = Sites(np.zeros((3, 1, 1)), np.zeros((3, 1)))
    with pytest.raises(ValueError, match=r"rule='vi': the gradient of CustomLikelihood is \[nan\] in row 1.*\[0.5\]"):
        rules.update_sites(rules.SiteRecipe(rules.VI(), rules.Exact(), bad), Y, rules.Gaussians(mean, cov), sites)
    with pytest.raises(ValueError, match=r"rule='vi': the energy of CustomLikelihood is nan in row 1"):
        rules.likelihood_energy(rules.SiteRecipe(rules.VI(), rules.Exact(), bad), Y, rules.Gaussians(mean, cov), sites)
