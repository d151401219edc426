"""Some leaves of a tree alone, and modules of other libraries."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import gaussfold as gf
from tests.deep.problems import hidden, hidden_start

rng = np.random.default_rng(8)
X = rng.normal(size=(60, 2)).astype(np.float32)
Y = np.sin(X[:, 0]).astype(np.float32)


def test_a_last_layer_has_the_posterior_of_a_linear_model():
    trained = hidden_start(seed=3)
    head = gf.deep.only(hidden, trained, "['v']")
    features = np.tanh(X @ trained["a"]["w"] + trained["a"]["b"]).astype(float)
    precision = features.T @ features / 0.3**2 + 4.0 * np.eye(4)
    shift = features.T @ Y / 0.3**2 + 4.0 * trained["v"]
    model = gf.deep.LRVGA(head.apply, gf.likelihoods.Gaussian(0.3), head.params, prior_std=0.5, rank=4)
    found = model.fit(X, Y)
    np.testing.assert_allclose(found.mean["['v']"], np.linalg.solve(precision, shift), atol=1e-3)
    np.testing.assert_allclose(found.std()["['v']"], np.sqrt(np.diag(np.linalg.inv(precision))), rtol=1e-3)
    np.testing.assert_array_equal(head.whole(found.mean)["a"]["w"], trained["a"]["w"])
    assert found.predict(head.apply, X[:3]).mean.shape == (3,)


@pytest.mark.parametrize("method", [gf.deep.VIFA, gf.deep.SWAG, gf.deep.SLANG, gf.deep.MAP])
def test_every_method_learns_some_leaves(method):
    part = gf.deep.only(hidden, hidden_start(), lambda path, leaf: leaf.ndim == 1 and "b" in path)
    assert list(part.params) == ["['a']['b']"]
    found = method(gf.deep.log_likelihood(part.apply, gf.likelihoods.Gaussian(0.3)), part.params).fit(X, Y, steps=40)
    assert found.belief.dim == 4
    np.testing.assert_array_equal(part.whole(found.mean)["v"], hidden_start()["v"])


def test_several_names_and_the_beginning_of_one():
    assert set(gf.deep.only(hidden, hidden_start(), "['a']").params) == {"['a']['b']", "['a']['w']"}
    assert set(gf.deep.only(hidden, hidden_start(), ["['a']['b']", "['v']"]).params) == {"['a']['b']", "['v']"}


def test_a_choice_that_is_none_is_refused():
    with pytest.raises(
        ValueError, match=r"where=\"\['head'\]\": no leaf has a path that begins so; the tree has \['a'\]"
    ):
        gf.deep.only(hidden, hidden_start(), "['head']")
    with pytest.raises(ValueError, match="it chooses none of the 3 leaves"):
        gf.deep.only(hidden, hidden_start(), lambda path, leaf: False)
    with pytest.raises(ValueError, match=r"leaf .*'n'.* is an array of int"):
        gf.deep.only(hidden, hidden_start() | {"n": np.arange(3)}, "['n']")


def learned(wrapped, rows=X):
    function = gf.deep.log_likelihood(wrapped.apply, gf.likelihoods.Gaussian(0.3))
    found = gf.deep.VIFA(function, wrapped.params).fit(rows, Y, epochs=40)
    nothing = gf.deep.Posterior(gf.deep.PointMass(np.zeros(found.belief.dim)), found.layout, found.likelihood)
    scores = [each.predict(wrapped.apply, rows).log_prob(Y).mean() for each in (found, nothing)]
    assert scores[0] > scores[1] + 0.5
    return found


def test_an_equinox_module_as_it_is(tmp_path):
    eqx = pytest.importorskip("equinox")
    key = jax.random.key(0)
    module = eqx.nn.Sequential([eqx.nn.MLP(2, "scalar", 8, 1, key=key), eqx.nn.Dropout(0.5)])
    wrapped = gf.deep.wrap(module)
    predicting = eqx.nn.inference_mode(module)
    np.testing.assert_allclose(wrapped.apply(wrapped.params, X), jax.vmap(predicting)(X), rtol=1e-6)
    found = learned(wrapped)
    found.save(tmp_path / "eqx.gf")
    again = gf.deep.load(tmp_path / "eqx.gf", like=wrapped.params)
    np.testing.assert_array_equal(again.predict(wrapped.apply, X[:4]).mean, found.predict(wrapped.apply, X[:4]).mean)


def test_an_nnx_module_as_it_is():
    nnx = pytest.importorskip("flax.nnx")

    class Network(nnx.Module):
        def __init__(self, rngs):
            self.first, self.last = nnx.Linear(2, 8, rngs=rngs), nnx.Linear(8, 1, rngs=rngs)
            self.norm, self.dropout = nnx.BatchNorm(8, rngs=rngs), nnx.Dropout(0.5, rngs=rngs)

        def __call__(self, x):
            return self.last(self.dropout(jnp.tanh(self.norm(self.first(x)))))[..., 0]

    module = Network(nnx.Rngs(0))
    wrapped = gf.deep.wrap(module)
    found = learned(wrapped)
    assert found.belief.dim == 2 * 8 + 8 + 8 + 1 + 16  # weights, biases, and the norm's own two; no statistics
    assert module.dropout.deterministic is False  # it is as it was


def test_a_linen_module_as_it_is():
    linen = pytest.importorskip("flax.linen")

    class Network(linen.Module):
        @linen.compact
        def __call__(self, x, train):
            x = linen.BatchNorm(use_running_average=not train)(linen.Dense(8)(x))
            return linen.Dense(1)(linen.Dropout(0.5, deterministic=not train)(jnp.tanh(x)))[..., 0]

    module = Network()
    variables = module.init(jax.random.key(0), X, train=False)
    learned(gf.deep.wrap(module, variables, train=False))
    with pytest.raises(ValueError, match=r"give what module\.init"):
        gf.deep.wrap(module)
    with pytest.raises(ValueError, match="running statistic"):
        gf.deep.VIFA(gf.deep.log_likelihood(module.apply, "bernoulli"), variables)


def test_what_is_no_module_is_refused():
    with pytest.raises(ValueError, match="module: a dict; one of Equinox"):
        gf.deep.wrap(hidden_start())
