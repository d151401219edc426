"""The families in JAX against their NumPy twins, and networks of other libraries."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import gaussfold as gf
from gaussfold.deep import likelihoods
from gaussfold.deep.families import form_of
from gaussfold.likelihoods.libraries import library_of
from tests.deep.problems import straight

WHOLE, REAL = (lambda rng: rng.integers(0, 2, (40, 2)).astype(float)), (lambda rng: rng.standard_normal((40, 2)))
COUNTS = lambda rng: rng.integers(0, 40, (40, 2)).astype(float)  # noqa: E731
FAMILIES = [
    (gf.likelihoods.Gaussian(0.7), REAL),
    (gf.likelihoods.Bernoulli("logit"), WHOLE),
    (gf.likelihoods.Bernoulli("probit"), WHOLE),
    (gf.likelihoods.Poisson(), COUNTS),
    (gf.likelihoods.StudentT(3.5, 0.8), REAL),
    (gf.likelihoods.NegativeBinomial(2.5), COUNTS),
    (gf.likelihoods.Gamma(1.7), lambda rng: rng.gamma(1.7, 1.0, (40, 2))),
    (gf.likelihoods.Beta(3.3), lambda rng: rng.beta(1.2, 0.8, (40, 2))),
    (gf.likelihoods.Beta(0.6, link="probit"), lambda rng: rng.beta(1.2, 0.8, (40, 2))),
    (gf.likelihoods.Ordinal([-0.7, 0.3, 2.1], scale=0.6), lambda rng: rng.integers(0, 4, (40, 2)).astype(float)),
    (
        gf.likelihoods.Ordinal([0.1, 0.9], scale=1.3, link="probit"),
        lambda rng: rng.integers(0, 3, (40, 2)).astype(float),
    ),
]


@pytest.mark.parametrize(("family", "labels"), FAMILIES, ids=[str(family) for family, _ in FAMILIES])
def test_families_are_those_of_numpy(family, labels):
    rng = np.random.default_rng(0)
    f, y = 3.0 * rng.standard_normal((40, 2)), labels(rng)
    with jax.enable_x64(True):
        found = likelihoods.log_prob(family, y, jnp.asarray(f))
        slope = jax.grad(lambda f: likelihoods.log_prob(family, y, f).sum())(jnp.asarray(f))
        mean, variance = likelihoods.conditional(family, jnp.asarray(f))
    digits = 1e-6 if isinstance(family, gf.likelihoods.NegativeBinomial) else 1e-9  # JAX's betaln has no more
    np.testing.assert_allclose(found, family.log_prob(y, f).sum(axis=1), rtol=digits)
    np.testing.assert_allclose(slope, family.derivatives(y, f)[0], rtol=1e-7, atol=1e-9)
    np.testing.assert_allclose(mean, family.conditional(f).mean, rtol=1e-9)
    np.testing.assert_allclose(variance, family.conditional(f).variance, rtol=1e-7)


@pytest.mark.parametrize(("family", "labels"), FAMILIES, ids=[str(family) for family, _ in FAMILIES])
def test_information_is_what_the_score_varies_by(family, labels):
    """E[score²] = -E[curvature] over labels drawn from the family; StudentT's own is checked in closed form."""
    del labels
    f = np.array([-0.8, -0.4, -1.1])  # a share close to 1 is no double; close to 0 it is
    with jax.enable_x64(True):
        root = form_of(family).root(jnp.zeros(3) + 0.5, jnp.asarray(f))
    found = np.diag(np.asarray(root)) ** 2
    rng = np.random.default_rng(1)
    name = type(family).__name__
    if name == "Ordinal":
        y = np.arange(len(family.cutpoints) + 1.0)[:, None]
        wanted = (np.exp(family.log_prob(y, f)) * family.derivatives(y, f)[0] ** 2).sum(axis=0)
    elif name in ("Poisson", "NegativeBinomial", "Bernoulli"):
        y = np.arange(2.0 if name == "Bernoulli" else 400.0)[:, None]
        wanted = (np.exp(family.log_prob(y, f)) * family.derivatives(y, f)[0] ** 2).sum(axis=0)
    else:
        grid = {"Beta": np.linspace(1e-9, 1.0 - 1e-9, 400_001), "Gamma": np.linspace(1e-9, 120.0, 400_001)}
        y = grid.get(name, np.linspace(-400.0, 400.0, 400_001))[:, None]
        weight = np.exp(family.log_prob(y, f)) * family.derivatives(y, f)[0] ** 2
        if name == "Beta":  # singular at the ends: draw instead
            g = family.conditional(f).mean
            y = np.clip(rng.beta(family.scale * g, family.scale * (1.0 - g), (400_000, 3)), 1e-300, 1.0 - 1e-16)
            wanted = (family.derivatives(y, f)[0] ** 2).mean(axis=0)
            np.testing.assert_allclose(found, wanted, rtol=0.02)  # four standard errors
            return
        wanted = np.trapezoid(weight, y[:, 0], axis=0)
    np.testing.assert_allclose(found, wanted, rtol=1e-4)


def test_noise_that_the_network_tells():
    family = gf.likelihoods.HeteroscedasticGaussian()
    rng = np.random.default_rng(2)
    F, y = rng.standard_normal((30, 2)), rng.standard_normal(30)
    y[4] = np.nan
    with jax.enable_x64(True):
        found = likelihoods.log_prob(family, y, jnp.asarray(F))
        mean, variance = likelihoods.conditional(family, jnp.asarray(F))
    np.testing.assert_allclose(found, family.log_prob(y[:, None], F), rtol=1e-9)
    np.testing.assert_allclose(mean, F[:, 0])
    np.testing.assert_allclose(variance, family.conditional(F).cov[:, 0, 0], rtol=1e-9)
    with pytest.raises(ValueError, match=r"outputs: shape \(30, 3\); a mean and a noise level"):
        likelihoods.log_prob(family, y, jnp.ones((30, 3)))


@pytest.mark.parametrize("method", ["vifa", "lrvga"])
def test_a_network_learns_where_the_noise_is_large(method):
    rng = np.random.default_rng(3)
    X = rng.uniform(-1.0, 1.0, (1500, 1)).astype(np.float32)
    std = np.where(X[:, 0] > 0.0, 1.0, 0.2)
    y = (2.0 * X[:, 0] + std * rng.standard_normal(1500)).astype(np.float32)
    params = {"w": np.zeros((1, 2), np.float32), "b": np.zeros(2, np.float32), "step": np.zeros(2, np.float32)}

    def apply(params, X):
        return X @ params["w"] + params["b"] + (X > 0.0) * params["step"]

    if method == "vifa":
        function = gf.deep.log_likelihood(apply, "heteroscedastic")
        found = gf.deep.VIFA(function, params, prior_precision=0.1, temperature=1.0).fit(X, y, epochs=60)
    else:
        found = gf.deep.LRVGA(apply, "heteroscedastic", params, prior_std=3.0, rank=6).fit(X, y)
    told = found.predict(apply, np.array([[-0.5], [0.5]], np.float32))
    np.testing.assert_allclose(told.mean, [-1.0, 1.0], atol=0.15)
    np.testing.assert_allclose(told.std, [0.2, 1.0], rtol=0.3)


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
    with pytest.raises(ValueError, match="likelihood=Product"):
        gf.deep.log_likelihood(straight, gf.likelihoods.ProductGaussian(0.3))
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


@pytest.mark.parametrize(("family", "labels"), FAMILIES, ids=[str(family) for family, _ in FAMILIES])
def test_far_outputs_in_single_precision(family, labels):
    """Values, slopes and informations of ±80, where shares of 1e-35 and 0 have to be reckoned with."""
    y = labels(np.random.default_rng(0))[:6, :1]
    far = np.array([[-80.0], [-30.0], [-5.0], [5.0], [30.0], [80.0]])
    f, form = jnp.asarray(far, jnp.float32), form_of(family)
    value, slope = form.log_prob(y, f), jax.grad(lambda f: form.log_prob(y, f).sum())(f)
    with np.errstate(over="ignore", invalid="ignore"):
        wanted, steep = family.log_prob(y, far)[:, 0], family.derivatives(y, far)[0]
    inside = np.abs(wanted) < 1e30
    assert inside.any()
    np.testing.assert_allclose(np.asarray(value)[inside], wanted[inside], rtol=1e-3, atol=1e-6)
    known = inside[:, None] & np.isfinite(steep)  # NumPy's own slope of a share beyond 1e-308 is no number
    np.testing.assert_allclose(np.asarray(slope)[known], steep[known], rtol=1e-2, atol=1e-3)
    information = jax.vmap(form.root)(jnp.asarray(y), f)
    assert np.isfinite(np.asarray(information)[inside]).all()


class Smooth(gf.likelihoods.ScalarLikelihood):
    """The double exponential smoothed at its tip, in NumPy."""

    log_concave = True

    def log_prob(self, y, f):
        return -np.log(np.pi) - np.logaddexp(y - f, f - y) + np.log(2.0)

    def derivatives(self, y, f):
        t = np.tanh(y - f)
        return t, t * t - 1.0

    def conditional(self, f):
        return gf.types.Moments(np.asarray(f, dtype=float), np.full(np.shape(f), np.pi**2 / 4.0))


class Traced(Smooth):
    """The same by operators alone, which any array has."""

    def log_prob(self, y, f):
        library = library_of(y, f)
        away = y - f
        return -library.log(library.exp(away) + library.exp(-away)) + np.log(2.0 / np.pi)

    def conditional(self, f):
        return gf.types.Moments(1.0 * f, 0.0 * f + np.pi**2 / 4.0)


@pytest.mark.parametrize("family", [Smooth(), Traced()])
def test_a_likelihood_of_ones_own(family):
    rng = np.random.default_rng(4)
    f, y = rng.standard_normal((12, 2)), rng.standard_normal((12, 2))
    y[3, 1] = np.nan
    known = np.where(np.isnan(y), 0.0, 1.0)
    filled = np.where(np.isnan(y), 0.0, y)
    with jax.enable_x64(True):
        total = lambda f: likelihoods.log_prob(family, y, f).sum()  # noqa: E731
        value, slope = jax.jit(jax.value_and_grad(total))(jnp.asarray(f))
        along = rng.standard_normal(f.shape)
        _, bend = jax.jvp(jax.grad(total), (jnp.asarray(f),), (jnp.asarray(along),))
        information = form_of(family).root(jnp.asarray([0.3, np.nan]), jnp.asarray([0.5, 0.5]))
    first, second = Smooth().derivatives(filled, f)
    assert value == pytest.approx((known * Smooth().log_prob(filled, f)).sum(), rel=1e-12)
    np.testing.assert_allclose(slope, known * first, rtol=1e-12)
    np.testing.assert_allclose(bend, known * second * along, rtol=1e-12)
    np.testing.assert_allclose(information, np.diag([2.0 / np.pi, 0.0]), rtol=1e-6)


def test_networks_learn_with_a_likelihood_of_ones_own():
    rng = np.random.default_rng(5)
    X = rng.standard_normal((300, 2)).astype(np.float32)
    y = (X @ [1.0, -2.0] + 0.3 * rng.standard_normal(300)).astype(np.float32)
    apply = lambda params, X: X @ params  # noqa: E731
    found = gf.deep.LRVGA(apply, Smooth(), np.zeros(2, np.float32)).fit(X, y)
    np.testing.assert_allclose(found.belief.mean, [1.0, -2.0], atol=0.1)
