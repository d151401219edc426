"""Every term of the objective against automatic differentiation of the textbook's D×D formula."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import gaussfold as gf
from gaussfold.deep import objective
from gaussfold.deep.steps import planned
from gaussfold.deep.variational import VIFAProgram
from gaussfold.deep.vifa import GROUPS, RATES

D, TOLERANCE = 6, 1e-6
PRECISION = np.linspace(0.3, 2.0, D)
PRIOR_MEAN = np.linspace(-1.0, 0.5, D)


@pytest.fixture(autouse=True)
def _digits():
    with jax.enable_x64(True):
        yield


def variables(rank, seed=0):
    rng = np.random.default_rng(seed)
    arrays = {
        "mean": rng.standard_normal(D),
        "factors": rng.standard_normal((rank, D)),
        "log_psi": rng.standard_normal(D),
    }
    return {name: jnp.asarray(array) for name, array in arrays.items()}


def covariance(v):
    return v["factors"].T @ v["factors"] + jnp.diag(jnp.exp(v["log_psi"]))


def agree(found, expected):
    for name in GROUPS:
        np.testing.assert_allclose(found[name], expected[name], rtol=TOLERANCE, atol=TOLERANCE, err_msg=name)


@pytest.mark.parametrize("rank", [0, 1, 3, D])
def test_entropy_term(rank):
    v = variables(rank)
    value, gradient = jax.jit(objective.entropy_term)(v)
    exact = lambda v: -0.5 * jnp.linalg.slogdet(covariance(v))[1]  # noqa: E731
    expected, slope = jax.jit(jax.value_and_grad(exact))(v)
    np.testing.assert_allclose(value, expected, rtol=1e-10)
    agree(gradient, slope)


@pytest.mark.parametrize("rank", [0, 1, 3])
def test_prior_term(rank):
    v = variables(rank)
    value, gradient = jax.jit(objective.prior_term)(v, PRECISION, PRIOR_MEAN)

    def exact(v):
        away = v["mean"] - PRIOR_MEAN
        return 0.5 * (jnp.trace(jnp.diag(PRECISION) @ covariance(v)) + away @ jnp.diag(PRECISION) @ away)

    expected, slope = jax.jit(jax.value_and_grad(exact))(v)
    np.testing.assert_allclose(value, expected, rtol=1e-10)
    agree(gradient, slope)


@pytest.mark.parametrize(("rows", "columns"), [(0, 5000), (3, 1 << 14), (5, 7)])
def test_sums_over_rows_long_and_short(rows, columns):
    array = np.random.default_rng(3).standard_normal((rows, columns))
    np.testing.assert_allclose(objective._over_rows(jnp.asarray(array)), array.sum(axis=0), rtol=1e-12, atol=1e-12)


def network(params, X):
    return jnp.tanh(X @ params["w"]) @ params["v"]


@pytest.mark.parametrize("rank", [0, 2])
@pytest.mark.parametrize("shared", [False, True])
def test_likelihood_term(rank, shared):
    """The reparametrised gradient is autodiff through the draws, whichever way the networks are taken."""
    rng = np.random.default_rng(1)
    params = {"v": np.zeros(2), "w": np.zeros((2, 2))}
    layout = gf.deep.layout_of(params)
    function = gf.deep.log_likelihood(network, gf.likelihoods.Gaussian(0.7))
    program = VIFAProgram(
        function, layout, rank, 4, shared, "independent", planned("sgd", None, RATES, None).steps, False
    )
    count = 1 if shared else 4
    batches = jnp.asarray(rng.standard_normal((count, 5, 2))), jnp.asarray(rng.standard_normal((count, 5)))
    h, z = jnp.asarray(rng.standard_normal((4, rank))), jnp.asarray(rng.standard_normal((4, D)))
    v = variables(rank)

    def exact(v):
        terms = []
        for number in range(4):
            theta = v["mean"] + v["factors"].T @ h[number] + jnp.exp(v["log_psi"]) ** 0.5 * z[number]
            X, y = (part[0 if shared else number] for part in batches)
            away = (y - network({"v": theta[:2], "w": theta[2:].reshape(2, 2)}, X)) / 0.7
            terms.append(2.5 * (0.5 * away**2 + jnp.log(0.7 * jnp.sqrt(2 * jnp.pi))).sum())
        return sum(terms) / 4

    value, gradient = jax.jit(program.likelihood_term)(v, batches, (h, z), 2.5)
    expected, slope = jax.jit(jax.value_and_grad(exact))(v)
    np.testing.assert_allclose(value, expected, rtol=1e-10)
    agree(gradient, slope)


@pytest.mark.parametrize("samples", ["independent", "antithetic", "qmc"])
def test_networks_one_after_the_other_are_the_same(samples, monkeypatch):
    params = {"v": np.zeros(2), "w": np.zeros((2, 2))}
    function = gf.deep.log_likelihood(network, gf.likelihoods.Gaussian(0.7))
    program = VIFAProgram(
        function, gf.deep.layout_of(params), 2, 4, False, samples, planned("sgd", None, RATES, None).steps, False
    )
    rng = np.random.default_rng(2)
    count = 4 // program.pairs
    batches = jnp.asarray(rng.standard_normal((count, 5, 2))), jnp.asarray(rng.standard_normal((count, 5)))
    hyper = {"key": jax.random.key_data(jax.random.key(3))}
    look = lambda v: program.likelihood_term(v, batches, program.draw(hyper, 7), 2.5)  # noqa: E731
    together = jax.jit(look)(variables(2))
    monkeypatch.setattr("gaussfold.deep.variational.AT_ONCE", 1)
    apart = jax.jit(lambda v: look(v))(variables(2))  # another function: traced anew
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-10, atol=1e-12), together, apart)


def test_the_objective_is_the_negative_elbo_of_a_linear_model():
    """Up to the constants it leaves out, against gaussfold.metrics.elbo, with the expectation by many draws."""
    rng = np.random.default_rng(4)
    X, y = rng.standard_normal((20, D)), rng.standard_normal(20)
    v = variables(2)
    function = gf.deep.log_likelihood(lambda params, X: X @ params, gf.likelihoods.Gaussian(0.7))
    layout = gf.deep.layout_of(np.zeros(D))
    program = VIFAProgram(function, layout, 2, 40_000, True, "qmc", planned("sgd", None, RATES, None).steps, False)
    key = {"key": jax.random.key_data(jax.random.key(0))}
    batch = jnp.asarray(X)[None], jnp.asarray(y)[None]
    fit, _ = jax.jit(lambda v: program.likelihood_term(v, batch, program.draw(key, 0), 1.0))(v)
    entropy, _ = objective.entropy_term(v)
    prior, _ = objective.prior_term(v, 1 / 0.49, 0.0)
    constant = -0.5 * D - 0.5 * D * np.log(1 / 0.49)
    belief = gf.FactorGaussian(v["mean"], v["factors"].T, np.exp(v["log_psi"]))
    prior_belief = gf.FactorGaussian.isotropic(D, 0, std=0.7)
    exact = -gf.metrics.elbo(belief, prior_belief, gf.likelihoods.Gaussian(0.7), X, y)
    np.testing.assert_allclose(float(fit + entropy + prior + constant), exact, rtol=5e-3)
