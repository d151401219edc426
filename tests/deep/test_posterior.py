"""Trees as vectors, and the belief on them."""

import subprocess
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import gaussfold as gf
from gaussfold.deep import trees

PARAMS = {"layer": [{"w": np.arange(6, dtype=np.float32).reshape(3, 2), "b": np.ones(2, np.float32)}], "scale": 2.5}


def apply(params, X):
    layer = params["layer"][0]
    return (X @ layer["w"] + layer["b"]).sum(axis=1) * params["scale"]


def posterior(kind=gf.FactorGaussian, likelihood=None):
    layout = gf.deep.layout_of(PARAMS)
    rng = np.random.default_rng(0)
    psi = np.full(layout.dim, 0.01) if kind is gf.FactorGaussian else np.full(layout.dim, 100.0)
    belief = kind(layout.flatten(PARAMS), 0.1 * rng.standard_normal((layout.dim, 2)), psi)
    return gf.deep.Posterior(belief, layout, likelihood)


def test_flatten_and_unflatten():
    layout = gf.deep.layout_of(PARAMS)
    assert layout.names == ("['layer'][0]['b']", "['layer'][0]['w']", "['scale']")
    assert layout.dim == 9
    flat = layout.flatten(PARAMS)
    np.testing.assert_array_equal(flat, [1, 1, 0, 1, 2, 3, 4, 5, 2.5])
    assert flat.dtype == jnp.float32
    tree = layout.unflatten(flat)
    assert jax.tree.structure(tree) == jax.tree.structure(PARAMS)
    jax.tree.map(np.testing.assert_array_equal, tree, PARAMS)
    stacked = layout.unflatten(np.stack([flat, 2 * flat]))
    assert stacked["layer"][0]["w"].shape == (2, 3, 2)
    np.testing.assert_array_equal(stacked["scale"], [2.5, 5.0])
    assert hash(layout) == hash(gf.deep.layout_of(PARAMS))
    with pytest.raises(ValueError, match=r"flat: shape \(8,\)"):
        layout.unflatten(np.zeros(8, np.float32))


@pytest.mark.parametrize(
    ("leaf", "match"),
    [
        (np.arange(3), r"\['b'\] is an array of int32"),
        (np.ones(3, complex), r"\['b'\] is an array of complex64"),
        (np.ones(3, bool), r"\['b'\] is an array of bool"),
        (3, r"\['b'\] is an array of int"),
        ("relu", r"\['b'\] is str"),
        (jnp.tanh, r"\['b'\] is "),
    ],
)
def test_leaves_without_real_numbers_are_refused_by_path(leaf, match):
    with pytest.raises(ValueError, match=match):
        gf.deep.layout_of({"w": np.ones(2), "b": leaf})


def test_an_empty_tree_is_refused():
    with pytest.raises(ValueError, match=r"params: .*holds no numbers"):
        gf.deep.layout_of({"w": np.ones((0, 3), np.float32)})


def test_float64_parameters_keep_their_digits():
    with jax.enable_x64(True):
        layout = gf.deep.layout_of({"w": jnp.full(2, 0.1, jnp.float64), "b": jnp.zeros(1, jnp.float32)})
        assert layout.dtype == np.float64
        tree = layout.unflatten(jnp.asarray([1.0, 0.1, 0.3]))
        assert (tree["w"].dtype, tree["b"].dtype) == (jnp.float64, jnp.float32)
    assert gf.deep.layout_of({"w": np.full(2, 0.1)}).dtype == np.float32  # as JAX does without x64


@pytest.mark.parametrize("kind", [gf.FactorGaussian, gf.LowRankGaussian])
def test_mean_std_and_samples_are_the_beliefs(kind):
    one = posterior(kind)
    jax.tree.map(np.testing.assert_array_equal, one.mean, PARAMS)
    np.testing.assert_allclose(one.layout.flatten(one.std()) ** 2, one.belief.variance(), rtol=1e-5)
    draws = one.sample(np.random.default_rng(3), 4)
    assert len(draws) == 4
    assert jax.tree.structure(draws[0]) == jax.tree.structure(PARAMS)
    flat = np.stack([one.layout.flatten(tree) for tree in draws])
    np.testing.assert_allclose(flat, one.belief.sample(4, np.random.default_rng(3)), rtol=1e-5)
    stacked = one.sample(3, 4, stacked=True)
    np.testing.assert_array_equal(stacked["scale"], [tree["scale"] for tree in draws])
    key = jax.random.key(5)
    jax.tree.map(np.testing.assert_array_equal, one.sample(key, 2), one.sample(key, 2))
    assert np.isfinite(one.log_prob(PARAMS))
    with pytest.raises(ValueError, match="n=0"):
        one.sample(0, 0)


def test_prediction_is_the_average_over_networks():
    X = np.random.default_rng(1).standard_normal((5, 3)).astype(np.float32)
    y = np.array([0.0, 20.0, 40.0, -3.0, 5.0])
    one = posterior(likelihood=gf.likelihoods.Gaussian(1.7))
    look = one.predict(apply, X, 30, rng=4)
    outputs = np.stack([apply(tree, X) for tree in one.sample(4, 30)]).astype(np.float64)
    np.testing.assert_allclose(look.mean, outputs.mean(axis=0), rtol=1e-5)
    np.testing.assert_allclose(look.epistemic_std, outputs.std(axis=0), rtol=1e-4)
    np.testing.assert_allclose(look.std, np.sqrt(outputs.var(axis=0) + 1.7**2), rtol=1e-5)
    density = np.exp(-0.5 * ((y - outputs) / 1.7) ** 2) / (1.7 * np.sqrt(2 * np.pi))
    np.testing.assert_allclose(look.log_prob(y), np.log(density.mean(axis=0)), rtol=1e-4)
    plain = posterior().predict(apply, X, 30, rng=4)
    np.testing.assert_allclose(plain.std, outputs.std(axis=0), rtol=1e-4)
    with pytest.raises(ValueError, match="give predict"):
        plain.log_prob(y)
    given = posterior().predict(apply, X, 30, rng=4, likelihood=gf.likelihoods.Gaussian(1.7))
    np.testing.assert_array_equal(given.log_prob(y), look.log_prob(y))


def test_predictions_in_pieces(monkeypatch):
    """Three networks at a time: the generator goes on where it was."""
    monkeypatch.setattr("gaussfold.deep.posterior._AT_ONCE", 3 * 9)
    one, X = posterior(gf.LowRankGaussian), np.ones((2, 3), np.float32)
    rng = np.random.default_rng(1)
    expected = np.concatenate([[apply(tree, X) for tree in one.sample(rng, n)] for n in (3, 3, 1)])
    np.testing.assert_allclose(one.predict(apply, X, 7, rng=1).outputs, expected, rtol=1e-5)


@pytest.mark.parametrize("kind", [gf.FactorGaussian, gf.LowRankGaussian])
def test_save_and_load(tmp_path, kind):
    one = posterior(kind, gf.likelihoods.Gaussian(1.7))
    one.save(tmp_path / "posterior")
    for twin in (gf.load(tmp_path / "posterior"), gf.deep.load(tmp_path / "posterior", like=PARAMS)):
        assert twin.layout == one.layout
        assert twin.likelihood == one.likelihood
        jax.tree.map(np.testing.assert_array_equal, twin.sample(0, 2), one.sample(0, 2))


def test_a_tree_of_another_shape_is_refused_at_load(tmp_path):
    posterior().save(tmp_path / "posterior")
    wrong = {"layer": [{"w": np.zeros((3, 2), np.float32), "b": np.ones(3, np.float32)}], "scale": 2.5}
    with pytest.raises(ValueError, match=r"mismatched tree: \['layer'\]\[0\]\['b'\] float32\[2\] exp.*\[3\] found"):
        gf.deep.load(tmp_path / "posterior", like=wrong)
    with pytest.raises(ValueError, match=r"mismatched tree: \['scale'\] .* expected, missing found"):
        gf.deep.load(tmp_path / "posterior", like={"layer": PARAMS["layer"]})
    with pytest.raises(ValueError, match=r"mismatched tree: \['extra'\] .* is not expected"):
        gf.deep.load(tmp_path / "posterior", like=PARAMS | {"extra": np.ones(1, np.float32)})
    with pytest.raises(ValueError, match="mismatched tree"):
        posterior().layout.flatten({"layer": PARAMS["layer"], "scale": [2.5]})
    gf.save(gf.DenseGaussian.isotropic(2), tmp_path / "belief")
    with pytest.raises(ValueError, match="holds a DenseGaussian"):
        gf.deep.load(tmp_path / "belief")


def test_trees_with_classes_of_their_own_need_a_template(tmp_path):
    @jax.tree_util.register_pytree_with_keys_class
    class Linear:
        def __init__(self, w):
            self.w = w

        def tree_flatten_with_keys(self):
            return [(jax.tree_util.GetAttrKey("w"), self.w)], None

        @classmethod
        def tree_unflatten(cls, _, children):
            return cls(*children)

    params = Linear(np.ones(2, np.float32))
    one = gf.deep.Posterior(gf.FactorGaussian.isotropic(2, 1, 0.7), params)
    one.save(tmp_path / "posterior")
    bare = gf.load(tmp_path / "posterior")
    with pytest.raises(ValueError, match="like=params"):
        _ = bare.mean
    found = gf.deep.load(tmp_path / "posterior", like=params)
    assert isinstance(found.mean, Linear)
    np.testing.assert_array_equal(found.belief.psi, one.belief.psi)


def test_bad_posteriors():
    with pytest.raises(ValueError, match="belief: 8 parameters, but the tree has 9"):
        gf.deep.Posterior(gf.FactorGaussian.isotropic(8, 1), PARAMS)
    with pytest.raises(ValueError, match="belief: DenseGaussian"):
        gf.deep.Posterior(gf.DenseGaussian.isotropic(9), PARAMS)
    with pytest.raises(ValueError, match="at least one"):
        gf.deep.MultiPosterior([])
    with pytest.raises(AttributeError, match="no attribute 'VIFI'"):
        _ = gf.deep.VIFI


def test_mixtures():
    parts = [posterior(likelihood=gf.likelihoods.Gaussian(1.7)) for _ in range(2)]
    parts[1].belief._mean += 3.0
    both = gf.deep.MultiPosterior(parts)
    X = np.ones((2, 3), np.float32)
    look = both.predict(apply, X, 20, rng=0)
    assert look.outputs.shape == (20, 2)
    rng = np.random.default_rng(0)
    each = [part.predict(apply, X, 10, rng=rng) for part in parts]
    np.testing.assert_allclose(look.mean, 0.5 * (each[0].mean + each[1].mean), rtol=1e-6)
    scales = np.array([tree["scale"] for tree in both.sample(0, 40)])
    assert (scales > 4.0).any()
    assert (scales < 4.0).any()


def test_layouts_as_json():
    layout = gf.deep.layout_of({"a": (np.ones(2, np.float32), [np.ones(1, np.float32)])})
    assert trees.layout_from(layout.describe()) == layout


def test_without_jax_the_error_names_the_remedy():
    code = (
        "import sys; sys.modules['jax'] = None; import gaussfold as gf\n"
        "try: gf.deep.VIFA\n"
        "except ModuleNotFoundError as error: print(error)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=True)
    assert done.stdout == "gaussfold.deep.VIFA needs jax, which is not installed: pip install 'gaussfold[jax]'\n"
