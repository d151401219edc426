"""The families in JAX against their NumPy twins, and networks of other libraries."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import gaussfold as gf
from gaussfold.deep import likelihoods
from tests.deep.problems import straight

FAMILIES = [
    gf.likelihoods.Gaussian(0.7),
    gf.likelihoods.Bernoulli("logit"),
    gf.likelihoods.Bernoulli("probit"),
    gf.likelihoods.Poisson(),
    gf.likelihoods.StudentT(3.5, 0.8),
]


@pytest.mark.parametrize("family", FAMILIES, ids=str)
def test_families_are_those_of_numpy(family):
    rng = np.random.default_rng(0)
    f = rng.standard_normal((6, 2))
    y = rng.integers(0, 2, (6, 2)).astype(float)
    with jax.enable_x64(True):
        found = likelihoods.log_prob(family, y, jnp.asarray(f))
        mean, variance = likelihoods.conditional(family, jnp.asarray(f))
    np.testing.assert_allclose(found, family.log_prob(y, f).sum(axis=1), rtol=1e-9)
    np.testing.assert_allclose(mean, family.conditional(f).mean, rtol=1e-9)
    np.testing.assert_allclose(variance, family.conditional(f).variance, rtol=1e-9)


def test_softmax_and_learned_noise():
    f = jnp.asarray([[1.0, 2.0, 0.5], [0.0, 0.0, 3.0]])
    p = np.exp(f) / np.exp(f).sum(axis=1, keepdims=True)
    np.testing.assert_allclose(likelihoods.log_prob(gf.deep.Softmax(), [1, 2], f), np.log(p[[0, 1], [1, 2]]), rtol=1e-5)
    mean, variance = likelihoods.conditional(gf.deep.Softmax(), f)
    np.testing.assert_allclose(mean, p, rtol=1e-5)
    np.testing.assert_allclose(variance, p * (1 - p), rtol=1e-5)
    missing = likelihoods.log_prob(gf.deep.Softmax(), np.array([1.0, np.nan]), f)
    np.testing.assert_allclose(missing, [np.log(p[0, 1]), 0.0], rtol=1e-5)
    outputs = jnp.asarray([1.0, 2.0]), jnp.log(0.7)
    expected = gf.likelihoods.Gaussian(0.7).log_prob([0.5, 2.5], [1.0, 2.0])
    np.testing.assert_allclose(
        likelihoods.log_prob(gf.deep.LearnedGaussian(), [0.5, 2.5], outputs), expected, rtol=1e-5
    )


def test_a_missing_label_says_nothing():
    found = likelihoods.log_prob(gf.likelihoods.Gaussian(0.7), np.array([np.nan, 1.0]), jnp.asarray([0.3, 0.3]))
    assert found[0] == 0.0
    slope = jax.grad(lambda f: likelihoods.log_prob(gf.likelihoods.Poisson(), np.array([np.nan]), f).sum())(jnp.ones(1))
    assert slope == 0.0


def test_single_outputs_need_no_axis_and_other_shapes_are_refused():
    noise = gf.likelihoods.Gaussian(0.7)
    y, f = np.array([1.0, 2.0]), jnp.asarray([0.5, 1.0])
    np.testing.assert_array_equal(likelihoods.log_prob(noise, y, f[:, None]), likelihoods.log_prob(noise, y, f))
    np.testing.assert_array_equal(likelihoods.log_prob(noise, y[:, None], f), likelihoods.log_prob(noise, y, f))
    with pytest.raises(ValueError, match=r"y, outputs: shapes \(2,\) and \(2, 3\)"):
        likelihoods.log_prob(noise, y, jnp.ones((2, 3)))
    with pytest.raises(ValueError, match="softmax needs"):
        likelihoods.log_prob(gf.deep.Softmax(), y, f)


def test_names_and_errors():
    assert gf.deep.log_likelihood(straight, "softmax").likelihood == gf.deep.Softmax()
    assert gf.deep.log_likelihood(straight, "poisson").likelihood == gf.likelihoods.Poisson()
    assert gf.deep.log_likelihood(straight, "gaussian").likelihood == gf.deep.LearnedGaussian()
    with pytest.raises(ValueError, match="likelihood='cauchy': allowed are"):
        gf.deep.log_likelihood(straight, "cauchy")
    with pytest.raises(ValueError, match="likelihood=NegativeBinomial"):
        gf.deep.log_likelihood(straight, gf.likelihoods.NegativeBinomial(2.0))
    with pytest.raises(ValueError, match="with_noise"):
        gf.deep.log_likelihood(lambda params, X: X, "gaussian")({"w": 1.0}, (np.ones(1), np.ones(1)))
    assert gf.deep.log_likelihood(straight, gf.likelihoods.Softmax(3)).likelihood == gf.deep.Softmax()
    with pytest.raises(ValueError, match="std=0"):
        gf.deep.with_noise({}, std=0)


@pytest.mark.parametrize(
    ("likelihood", "labels", "match"),
    [
        ("softmax", [0, 1, -1], r"y\[2\] = -1\.0: softmax labels"),
        ("softmax", [0.5, 1, 2], r"y\[0\] = 0\.5"),
        ("poisson", [0, 1, -2], r"y\[2\] = -2\.0"),
        ("bernoulli", [-1, 1, 1], r"y\[0\] = -1\.0"),
        ("gaussian", [0.0, np.inf, 1.0], r"y\[1\] = inf"),
    ],
)
def test_labels_are_checked_before_anything_is_learned(likelihood, labels, match):
    params = {"w": np.zeros(1, np.float32)}
    method = gf.deep.VIFA(gf.deep.log_likelihood(lambda params, X: X @ params["w"], likelihood), params)
    with pytest.raises(ValueError, match=match):
        method.fit((np.ones((3, 1), np.float32), np.array(labels)))
    with pytest.raises(ValueError, match=r"a pair \(X, y\)"):
        method.fit({"x": np.ones((3, 1))})


@pytest.mark.parametrize("name", ["softmax", "gaussian"])
def test_own_families_are_saved(tmp_path, name):
    one = gf.deep.Posterior(
        gf.FactorGaussian.isotropic(2, 1), {"w": np.zeros(2, np.float32)}, likelihoods.resolve(name)
    )
    one.save(tmp_path / "posterior")
    assert gf.load(tmp_path / "posterior").likelihood == one.likelihood


def test_classification_learns_and_knows_what_it_does_not_know():
    """Two clusters; far away from both the classes are open."""
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 2, 200)
    X = (rng.standard_normal((200, 2)) * 0.4 + np.where(labels, 1.5, -1.5)[:, None]).astype(np.float32)

    def network(params, X):
        return jnp.tanh(X @ params["a"]) @ params["b"]

    params = {name: 0.3 * rng.standard_normal(s).astype(np.float32) for name, s in {"a": (2, 8), "b": (8, 2)}.items()}
    function = gf.deep.log_likelihood(network, "softmax")
    posterior = gf.deep.VIFA(function, params, rank=2, n_samples=4, learning_rate=0.03).fit((X, labels), steps=300)
    look = posterior.predict(network, X, 50)
    assert (look.mean.argmax(axis=1) == labels).mean() > 0.97
    assert -look.log_prob(labels).mean() < 0.1
    middle = posterior.predict(network, np.array([[3.0, -3.0]], np.float32), 50)
    assert middle.entropy()[0] > 3 * look.entropy().mean()


def test_equinox_and_flax_trees_are_trees():
    eqx = pytest.importorskip("equinox")
    linen = pytest.importorskip("flax.linen")
    rng = np.random.default_rng(1)
    X = rng.standard_normal((50, 3)).astype(np.float32)
    y = X @ np.array([1.0, -1.0, 0.5], np.float32)
    module = eqx.nn.MLP(3, "scalar", 4, 1, key=jax.random.key(0))
    params, static = eqx.partition(module, eqx.is_inexact_array)
    dense = linen.Dense(1)
    cases = [
        (params, lambda params, X: jax.vmap(eqx.combine(params, static))(X)),
        (dense.init(jax.random.key(0), X), dense.apply),
    ]
    for tree, apply in cases:
        function = gf.deep.log_likelihood(apply, gf.likelihoods.Gaussian(0.3))
        posterior = gf.deep.VIFA(function, tree, rank=1, n_samples=2).fit((X, y), steps=20)
        assert jax.tree.structure(posterior.mean) == jax.tree.structure(tree)
        assert np.isfinite(posterior.predict(apply, X, 5).log_prob(y)).all()
    with pytest.raises(ValueError, match=r"equinox\.partition"):
        gf.deep.layout_of(module)
