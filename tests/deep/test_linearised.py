"""One pass with the network linearised at the mean, and predictions without drawing networks."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import gaussfold as gf
from gaussfold.deep import factored, glm, linearised
from tests.deep.problems import ALPHA, NOISE, hidden, hidden_start, linear, relative, straight

X, Y, EXACT = linear()
SPREAD = ALPHA**-0.5
KNOWN = gf.likelihoods.Gaussian(NOISE)


def line(likelihood=KNOWN, d=3, **options):
    settings = {"rank": 3, "prior_std": SPREAD} | options
    return gf.deep.LRVGA(straight, likelihood, {"w": np.zeros(d, np.float32)}, **settings)


def classes(n=90, seed=3):
    rng = np.random.default_rng(seed)
    inputs = rng.normal(size=(n, 2)).astype("f")
    return inputs, (inputs[:, 0] > 0).astype(int) + (inputs[:, 1] > 0.5)


def softmax(**options):
    return gf.deep.LRVGA(hidden, "softmax", hidden_start(2, 4, 3), **options)


def same(one, two):
    for name, array in one.state().items():
        np.testing.assert_array_equal(array, two.state()[name], err_msg=name)


def test_linear_regression_is_the_exact_posterior():
    found = line().fit(X, Y).belief
    np.testing.assert_allclose(found.mean, EXACT.mean, rtol=1e-4, atol=1e-5)
    assert relative(found.to_dense().cov, EXACT.cov) < 1e-4


@pytest.mark.parametrize("rows", [4, 5, 6])
def test_more_factors_than_parameters_are_as_many(rows):
    """Between projections there is room for six of them, and the posterior has three."""
    found = line().fit(X[:rows], Y[:rows]).belief
    precision = ALPHA * np.eye(3) + X[:rows].T @ X[:rows] / NOISE**2
    assert found.W.shape == (3, 3)
    assert relative(found.to_dense().cov, np.linalg.inv(precision)) < 1e-4


@pytest.mark.parametrize("rank", [0, 2, 4])
def test_a_step_is_its_equations(rank):
    """Against D×D matrices: R-VGA's implicit site, the exact gain, and the best factors once no more have room."""
    inputs, labels = classes(6)
    weight = np.linspace(0.5, 2.0, 6)
    model, params = softmax(rank=rank, prior_std=0.7), hidden_start(2, 4, 3)
    layout = gf.deep.layout_of(params)
    mean, psi, low = np.asarray(layout.flatten(params), float), np.full(layout.dim, 0.7**-2), 0.0
    outputs = lambda flat, x: hidden(layout.unflatten(flat), x[None])[0]  # noqa: E731
    used = 0
    for x, y, w in zip(inputs, labels, weight, strict=True):
        flat = jnp.asarray(mean, jnp.float32)
        eta, J = np.asarray(outputs(flat, x), float), np.asarray(jax.jacobian(outputs)(flat, x), float)
        precision = np.diag(psi) + low
        S = J @ np.linalg.solve(precision, J.T)
        at, v = eta, np.diag(S)
        for _ in range(linearised.SETTLING + 1):
            p = np.asarray(jax.nn.softmax(at / np.sqrt(1.0 + np.pi / 8.0 * v)), float)
            H = w * (np.diag(p) - np.outer(p, p))
            score = w * (np.eye(3)[y] - p) + H @ (at - eta)
            at, v = eta + np.linalg.solve(np.eye(3) + S @ H, S @ score), np.diag(np.linalg.solve(np.eye(3) + S @ H, S))
        mean = mean + np.linalg.solve(precision + J.T @ H @ J, J.T @ score)
        low, used = low + J.T @ H @ J, used + 3
        if used + 3 > rank:
            values, vectors = np.linalg.eigh(low / np.sqrt(np.outer(psi, psi)))
            first = layout.dim - rank
            W = np.sqrt(psi)[:, None] * vectors[:, first:] * np.sqrt(np.maximum(values[first:], 0))
            psi, low, used = psi + np.diag(low - W @ W.T), W @ W.T, 0
    model.partial_fit(inputs, labels, weight)
    state = model.state()
    np.testing.assert_allclose(state["pass_mean"], mean, rtol=2e-3, atol=2e-4)
    np.testing.assert_allclose(state["pass_psi"], psi, rtol=2e-3)
    if rank:
        W = state["pass_W"]
        assert relative(W.T @ W, low) < 1e-2
        np.testing.assert_allclose(state["pass_gram"], W @ (W / state["pass_psi"]).T, rtol=1e-3, atol=1e-3)


def test_rows_between_projections_lose_nothing():
    """With room for all of them, one belief of rank D and one of half of it are the same."""
    inputs, labels = classes(4)
    wide, narrow = (softmax(rank=rank, prior_std=0.7).partial_fit(inputs, labels).state() for rank in (24, 13))
    np.testing.assert_allclose(narrow["pass_mean"], wide["pass_mean"], rtol=1e-4, atol=1e-5)


def test_several_passes_count_a_row_once():
    one, four = line().fit(X, Y).belief, line().fit(X, Y, passes=4).belief
    np.testing.assert_allclose(four.mean, EXACT.mean, rtol=1e-3, atol=1e-4)
    assert relative(four.to_dense().cov, EXACT.cov) < 1e-3
    assert relative(one.to_dense().cov, four.to_dense().cov) < 1e-3


def test_several_passes_learn_a_network_further_and_undo_what_fails():
    rng = np.random.default_rng(8)
    inputs = rng.uniform(-1.0, 1.0, (120, 2)).astype("f")
    target = np.sin(3.0 * inputs[:, 0]) * inputs[:, 1]
    fits = [gf.deep.LRVGA(hidden, "gaussian", hidden_start(2, 20, 1)).fit(inputs, target, passes=n) for n in (1, 6)]
    errors = [np.mean((np.ravel(f.predict(hidden, inputs).mean) - target) ** 2) for f in fits]
    assert errors[1] < 0.7 * errors[0]
    model = line(forgetting=0.9)
    with pytest.raises(ValueError, match="passes=2: 1"):
        model.fit(X, Y, passes=2)
    with pytest.raises(ValueError, match="passes=0"):
        line().fit(X, Y, passes=0)


def test_any_chunking_and_a_save_between_give_the_same_belief(tmp_path):
    inputs, labels = classes(300)
    whole = softmax(forgetting=0.99, random_walk=0.01)
    whole.fit(inputs, labels)
    parts = softmax(forgetting=0.99, random_walk=0.01)
    for piece in np.split(np.arange(300), [1, 7, 260]):
        parts.partial_fit(inputs[piece], labels[piece])
        parts.save(tmp_path / "model")
        parts = gf.deep.LRVGA.load(tmp_path / "model", hidden)
    for name in ("pass_mean", "pass_W", "pass_psi", "pass_gram", "pass_filled", "pass_gains", "pass_count"):
        np.testing.assert_array_equal(parts.state()[name], whole.state()[name], err_msg=name)
    np.testing.assert_allclose(parts.progressive_log_loss, whole.progressive_log_loss, rtol=1e-6)


def test_weight_zero_and_missing_labels_learn_nothing():
    inputs, labels = classes(20)
    one, two = softmax(), softmax()
    one.partial_fit(inputs[:10], labels[:10])
    two.partial_fit(inputs, np.where(np.arange(20) < 10, labels, np.nan))
    same(one, two)
    two.partial_fit(inputs, labels, np.zeros(20))
    same(one, two)


def test_a_row_that_overflows_is_named_and_changes_nothing():
    apply = lambda params, x: jnp.where(x[..., 0] > 50.0, jnp.inf, x @ params["w"])  # noqa: E731
    model = gf.deep.LRVGA(apply, KNOWN, {"w": np.zeros(3, np.float32)})
    model.partial_fit(X[:5], Y[:5])
    before = model.state()
    bad = X[5:9].copy()
    bad[2, 0] = 99.0
    with pytest.raises(ValueError, match="NaN or infinity at row 2"):
        model.partial_fit(bad, Y[5:9])
    for name, array in before.items():
        np.testing.assert_array_equal(model.state()[name], array)


def test_forgetting_never_exceeds_the_prior_and_a_walk_is_woodbury():
    model = line(forgetting=0.9)
    for _ in range(5):
        model.partial_fit(X, Y)
    variance = np.diag(model.posterior.belief.to_dense().cov)
    assert (variance <= SPREAD**2 * (1 + 1e-5)).all()
    assert (variance > 1.5 * np.diag(line().fit(X, Y).belief.to_dense().cov)).all()
    walker = line(random_walk=0.3)
    walker.partial_fit(X[:9], Y[:9])
    mean, cov = np.zeros(3), np.eye(3) * SPREAD**2
    for x, y in zip(X[:9].astype(float), Y[:9], strict=True):
        cov = cov + 0.3**2 * SPREAD**2 * np.eye(3)
        gain = cov @ x / (x @ cov @ x + NOISE**2)
        mean, cov = mean + gain * (y - x @ mean), cov - np.outer(gain, x @ cov)
    found = walker.posterior.belief
    np.testing.assert_allclose(found.mean, mean, rtol=1e-3, atol=1e-4)
    assert relative(found.to_dense().cov, cov) < 1e-3


def test_noise_is_learned_and_outliers_count_less():
    inputs, labels, exact = linear(n=900, seed=5)
    model = line("gaussian")
    found = model.fit(inputs, labels)
    assert abs(found.likelihood.std / NOISE - 1.0) < 0.1
    np.testing.assert_allclose(found.belief.mean, exact.mean, atol=0.05)
    spoiled = labels.copy()
    spoiled[::25] += 40.0
    plain, robust = line().fit(inputs, spoiled), line(robust=3.0).fit(inputs, spoiled)
    assert relative(robust.belief.mean, exact.mean) < 0.2 * relative(plain.belief.mean, exact.mean)


def test_a_narrower_belief_has_to_predict_better_by_more_than_chance():
    start = factored.start(jnp.zeros(2), jnp.ones(2), 0, 1.0, 4)
    gains = jnp.asarray([[0.0, 0.02, 0.3, 0.1], [0.0, 1.0, 1.0, 0.02]])
    assert linearised.best_of(start._replace(count=jnp.asarray(30.0), gains=gains)) == (0.03, 1.0)
    assert linearised.best_of(start._replace(count=jnp.asarray(300.0), gains=gains)) == (0.1, 1.0)
    assert linearised.best_of(start) == (1.0, 1.0)


def test_a_level_of_the_noise_is_scored_beside_each_width():
    pairs = linearised.candidates(learned_noise=True)
    start = factored.start(jnp.zeros(2), jnp.ones(2), 0, 1.0, len(pairs))
    gains = jnp.zeros((2, len(pairs))).at[:, pairs.index((0.3, 2.0))].set(jnp.asarray([0.4, 0.2]))
    assert linearised.best_of(start._replace(count=jnp.asarray(200.0), gains=gains)) == (0.3, 2.0)


@pytest.mark.parametrize("kind", ["factor", "precision"])
def test_linearised_predictions_of_a_linear_network_are_exact(kind):
    rng = np.random.default_rng(2)
    low, d, mean = rng.standard_normal((3, 2)), rng.uniform(0.5, 2.0, 3), rng.standard_normal(3)
    belief = gf.FactorGaussian(mean, low, d) if kind == "factor" else gf.LowRankGaussian(mean, low, d)
    posterior = gf.deep.Posterior(belief, {"w": np.zeros(3, np.float32)}, KNOWN)
    found = posterior.predict(straight, X, method="linearised")
    variance = np.einsum("ni,ij,nj->n", X, belief.to_dense().cov, X)
    np.testing.assert_allclose(found.mean, X @ mean, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(found.epistemic_std, np.sqrt(variance), rtol=1e-3)
    total = variance + NOISE**2
    density = -0.5 * (Y - X @ mean) ** 2 / total - 0.5 * np.log(2 * np.pi * total)
    np.testing.assert_allclose(found.log_prob(Y), density, rtol=1e-3, atol=1e-4)
    middle = posterior.predict(straight, X, method="mean")
    np.testing.assert_allclose(middle.std, NOISE, rtol=1e-6)


@pytest.mark.parametrize("family", ["bernoulli", "poisson", "softmax", "gaussian"])
def test_linearised_predictions_are_near_those_of_many_networks(family):
    """For a linear network both are integrals over the same normal outputs."""
    outputs = 3 if family == "softmax" else None
    shape = (3, outputs) if outputs else (3,)
    tree = {"w": np.zeros(shape, np.float32)}
    tree = gf.deep.with_noise(tree, 0.5) if family == "gaussian" else tree
    dim = gf.deep.layout_of(tree).dim
    mean = 0.4 * np.random.default_rng(1).standard_normal(dim)
    psi = np.full(dim, 0.09)
    if family == "gaussian":
        mean[0], psi[0] = np.log(0.5), 1e-10
    likelihood = gf.deep.log_likelihood(straight, family).likelihood
    posterior = gf.deep.Posterior(gf.FactorGaussian(mean, np.zeros((dim, 1)), psi), tree, likelihood)
    labels = np.arange(12) % 2
    many, closed = (posterior.predict(straight, X[:12], 20_000, method=way) for way in ("samples", "linearised"))
    np.testing.assert_allclose(closed.mean, many.mean, rtol=0.05, atol=0.02)
    np.testing.assert_allclose(closed.log_prob(labels), many.log_prob(labels), rtol=0.06, atol=0.05)


def test_a_saved_posterior_predicts_as_it_did(tmp_path):
    posterior = line().fit(X, Y)
    posterior.save(tmp_path / "posterior")
    again = gf.deep.load(tmp_path / "posterior")
    assert again.usual == "linearised"
    np.testing.assert_array_equal(again.predict(straight, X).std, posterior.predict(straight, X).std)
    assert "3 parameters in 1 leaves" in repr(again)
    assert glm.ROWS > 0


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"linearise": "median"}, "linearise='median'"),
        ({"n_samples": 3}, "n_samples=3: linearise='samples'"),
        ({"block_size": 2}, "block_size=2"),
        ({"forgetting": 0.0}, "forgetting"),
        ({"random_walk": -1.0}, "random_walk"),
        ({"robust": 0.0}, "robust"),
        ({"robust": 3.0, "likelihood": "poisson"}, "robust=3.0"),
        ({"linearise": "samples", "forgetting": 0.5}, "need linearise='mean'"),
        ({"linearise": "samples", "likelihood": "gaussian"}, "a known noise level"),
        ({"prior_std": -1.0}, "prior_std"),
        ({"rank": 4}, "rank=4"),
    ],
)
def test_bad_construction(options, match):
    with pytest.raises(ValueError, match=match):
        line(**options)


def test_bad_ways_to_predict():
    with pytest.raises(ValueError, match="method='median'"):
        line().fit(X, Y).predict(straight, X, method="median")
