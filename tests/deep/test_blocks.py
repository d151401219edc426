"""Networks larger than a block: moved piece by piece, they end where they end in one piece."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import gaussfold as gf
from gaussfold import store
from gaussfold.deep import batches, blocks, variational
from gaussfold.deep.draws import DRAWS
from gaussfold.deep.state import TrainingState
from gaussfold.deep.vifa import THESIS

D = 37
rng = np.random.default_rng(8)
X = rng.standard_normal((40, D)).astype(np.float32)
Y = (X @ rng.standard_normal(D) / 6 + 0.5 * rng.standard_normal(40)).astype(np.float32)
PRECISION = np.linspace(0.5, 3.0, D).astype(np.float32)


def trained(block, monkeypatch, steps=25, bad=(), **options):
    """A function of its own each time, so that nothing compiled with another block is reused."""
    monkeypatch.setattr(variational, "BLOCK", block)

    def log_likelihood(params, batch):
        inputs, labels, spoiled = batch
        value = -0.5 * ((labels - inputs @ params["w"]) / 0.5) ** 2
        return jnp.where(spoiled, jnp.nan, value)

    spoiled = np.isin(np.arange(40), bad)
    settings = {"rank": 2, "prior_precision": PRECISION, "n_samples": 2, "batch_size": 8, "seed": 3}
    settings = THESIS | settings | options
    method = gf.deep.VIFA(log_likelihood, {"w": np.zeros(D, np.float32)}, **settings)
    return method, method.fit((X, Y, spoiled), steps=steps).belief


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"rank": 0},
        {"max_grad_norm": 3.0},
        {"average": 3.0, "samples": "antithetic", "share_batch": True},
        {"optimizer": "sgd", "learning_rate": {"mean": 1e-3, "factors": 1e-4, "log_psi": 1e-3}},
        {"bad": (7,), "n_samples": 1},
    ],
)
def test_blocks_change_nothing(options, monkeypatch):
    """Blocks of 8 parameters leave a shorter one at the end; blocks of 1 do not."""
    whole, expected = trained(1 << 17, monkeypatch, **options)
    for numbers in (32 if options.get("rank", 2) else 16, 4 if options.get("rank", 2) else 2):
        method, found = trained(numbers, monkeypatch, **options)
        assert method.skipped == whole.skipped == (5 if "bad" in options else 0)
        for name, array in expected.state().items():
            np.testing.assert_allclose(found.state()[name], array, rtol=2e-4, atol=2e-5, err_msg=name)


def test_networks_one_after_the_other_in_blocks(monkeypatch):
    _, expected = trained(1 << 17, monkeypatch)
    monkeypatch.setattr(variational, "AT_ONCE", 1)
    _, found = trained(32, monkeypatch)
    for name, array in expected.state().items():
        np.testing.assert_allclose(found.state()[name], array, rtol=2e-4, atol=2e-5, err_msg=name)


def test_an_unknown_optimiser_sees_all_parameters_at_once(monkeypatch):
    """A norm over everything would be another one over blocks."""
    import optax

    chain = optax.chain(optax.clip_by_global_norm(0.5), optax.sgd(0.1))
    _, expected = trained(1 << 17, monkeypatch, optimizer=chain, learning_rate=None)
    _, found = trained(32, monkeypatch, optimizer=chain, learning_rate=None)
    np.testing.assert_allclose(found.mean, expected.mean, rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("ok", [True, False])
@pytest.mark.parametrize("size", [1, 4, 5, 10, 100])
def test_sums_and_rewritten_trees(size, ok):
    tree = {"long": jnp.arange(20.0).reshape(2, 10), "count": jnp.asarray(3), "flat": jnp.arange(10.0)}
    given = jnp.arange(10.0) ** 2
    total = jax.jit(lambda tree: blocks.total(lambda b: (b["long"] @ b["long"].T, b["flat"].sum()), tree, 10, size))
    gram, flat = total(tree)
    np.testing.assert_allclose(gram, tree["long"] @ tree["long"].T)
    assert flat == 45.0

    def change(block, given):
        return {"long": block["long"] + given, "count": block["count"] + 1, "flat": block["flat"] * block["count"]}

    rewrite = jax.jit(lambda ok, tree, given: blocks.rewritten(ok, change, tree, given, 10, size))
    expected = change(tree, given) if ok else tree
    jax.tree.map(np.testing.assert_array_equal, rewrite(ok, tree, given), expected)


@pytest.mark.parametrize("name", DRAWS)
def test_draws_do_not_depend_on_how_many_are_drawn(name):
    """Large networks draw more than they need."""
    key = jax.random.key(5)
    few = DRAWS[name](key, 1, 4, 1001, np.float32)
    np.testing.assert_array_equal(DRAWS[name](key, 1, 4, 1536, np.float32)[:1001], few)


def test_large_networks_have_the_draws_of_small_ones(monkeypatch):
    program = gf.deep.VIFA(lambda params, batch: batch * 0.0, jnp.zeros(50), rank=3, n_samples=2).program()
    hyper = {"key": jax.random.key_data(jax.random.key(1))}
    h, z = program.draw(hyper, 4)
    monkeypatch.setattr(variational, "_LARGE", 16)
    for found, expected in zip(jax.jit(program.draw)(hyper, 4), (h, z), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-6)


@pytest.mark.parametrize("rows", [7, 4096, 5000])
def test_shuffled_rows_are_permutations_without_a_preferred_place(rows):
    shuffled = batches._block(3, 1, 300, rows)
    np.testing.assert_array_equal(np.sort(shuffled, axis=1), np.broadcast_to(np.arange(rows), shuffled.shape))
    places = np.argsort(shuffled, axis=1).mean(axis=0)  # of each row, over the epochs
    spread = rows / np.sqrt(12 * 300)
    assert np.abs(places - 0.5 * (rows - 1)).max() < 5.0 * spread
    assert abs(np.corrcoef(np.arange(rows), places)[0, 1]) < 0.08 if rows > 7 else True


def test_a_training_saved_with_factors_in_columns_goes_on(tmp_path, monkeypatch):
    """Version 1 of the files."""
    whole, expected = trained(1 << 17, monkeypatch, steps=12)
    first = gf.deep.VIFA(
        whole.log_likelihood, {"w": np.zeros(D, np.float32)}, rank=2, batch_size=8, seed=3,
        **(THESIS | {"prior_precision": PRECISION, "n_samples": 2}),
    )  # fmt: skip
    data = X, Y, np.zeros(40, bool)
    first.fit(data, steps=5)
    first.save(tmp_path / "new")
    saved = store.load(tmp_path / "new")
    assert saved.settings.pop("version") == 2
    arrays = {name: value.T if "factors" in name else value for name, value in saved.arrays.items()}
    store.save(TrainingState(saved.method, saved.settings, saved.layout, arrays), tmp_path / "old")
    found = first.restore(tmp_path / "old").fit(data, steps=12, resume=True).belief
    np.testing.assert_array_equal(found.F, expected.F)
