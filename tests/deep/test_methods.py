"""SWAG, the factor analysis of iterates and SLANG against their equations written out."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import gaussfold as gf
from gaussfold.deep import curvature, slang, vifa
from gaussfold.deep.swag import THESIS
from tests.deep.problems import ALPHA, LINEAR, NOISE, hidden, hidden_start, linear, relative, start

X, Y, EXACT = linear()
DATA = (X, Y)


def descent(steps, rate, burn_in=0, burn_in_rate=None):
    """Gradient descent on all rows, in NumPy: with one batch of everything there is nothing random."""
    theta, path = np.zeros(3), []
    for step in range(steps):
        slope = (-X.T @ (Y - X @ theta) / NOISE**2 + ALPHA * theta) / len(Y)
        theta = theta - (burn_in_rate if burn_in_rate and step < burn_in else rate) * slope
        path.append(theta)
    return np.array(path)


def swag(**options):
    settings = {"rank": 3, "prior_precision": ALPHA, "batch_size": 60, "learning_rate": 0.05}
    return gf.deep.SWAG(LINEAR, start(), **(THESIS | settings | options))


def test_swag_is_its_equations():
    method = swag(burn_in=10, every=2, burn_in_rate=0.2)
    belief = method.fit(DATA, steps=60).belief
    kept = descent(60, 0.05, 10, 0.2)[11::2]
    assert method.collected == len(kept) == 25
    mean = kept.mean(axis=0)  # (3.1)
    running = np.cumsum(kept, axis=0) / np.arange(1, 26)[:, None]
    deviations = (kept - running)[-3:]
    diagonal = (kept**2).mean(axis=0) - mean**2  # (3.2)
    cov = deviations.T @ deviations / (2 * 2) + 0.5 * np.diag(diagonal)  # (3.5)
    np.testing.assert_allclose(belief.mean, mean, rtol=1e-5)
    assert relative(belief.to_dense().cov, cov) < 1e-4


def test_finite_windows_are_means_of_iterates():
    belief = swag(burn_in=4, every=7, windows=True).fit(DATA, steps=60).belief
    kept = descent(60, 0.05)[4:].reshape(8, 7, 3).mean(axis=1)
    np.testing.assert_allclose(belief.mean, kept.mean(axis=0), rtol=1e-5)
    np.testing.assert_allclose(belief.psi, 0.5 * kept.var(axis=0), rtol=1e-3)


@pytest.mark.parametrize("method", ["recursive-em", "online-em", "gradient"])
def test_factor_iterates_are_the_analysis_of_all_iterates(method):
    settings = THESIS | {"prior_precision": ALPHA, "batch_size": 20, "learning_rate": 0.3, "rank": 1}
    found = gf.deep.FactorIterates(LINEAR, start(), method=method, **settings).fit(DATA, steps=700).belief
    taken = []
    collector = gf.deep.SWAG(LINEAR, start(), **(settings | {"rank": 2}))
    collector.take = lambda samples: taken.append(samples.copy())
    collector.belief = lambda inner: gf.FactorGaussian.isotropic(3, 1)
    collector.fit(DATA, steps=700)
    analysis = gf.StreamingFactorAnalysis(1, method, random_state=0).fit(np.concatenate(taken))
    np.testing.assert_allclose(found.mean, analysis.mean_, rtol=1e-6)
    np.testing.assert_allclose(found.to_dense().cov, analysis.get_covariance(), rtol=1e-4, atol=1e-9)


def test_multiswag_is_a_mixture_from_several_starts():
    starts = [start(), {"w": np.ones(3, np.float32)}]
    settings = THESIS | {"rank": 3, "prior_precision": ALPHA, "batch_size": 60, "learning_rate": 0.05}
    both = gf.deep.MultiSWAG(LINEAR, starts, seed=5, **settings).fit(DATA, steps=60)
    same = swag(seed=5).fit(DATA, steps=60)
    np.testing.assert_array_equal(both.parts[0].belief.mean, same.belief.mean)
    assert np.abs(both.parts[1].belief.mean - same.belief.mean).max() > 1e-3
    with pytest.raises(ValueError, match="starts: empty"):
        gf.deep.MultiSWAG(LINEAR, [])


def test_sgd_iterates_are_not_posterior_samples():
    """Factor-analysis Table B.3: two-dimensional regression, and the covariance is wrong by half or more."""
    rng = np.random.default_rng(1)
    inputs = rng.multivariate_normal(np.zeros(2), [[1.0, 0.5], [0.5, 1.0]], size=1000).astype(np.float32)
    labels = (inputs @ [3.0, -7.0] + np.sqrt(10.0) * rng.standard_normal(1000)).astype(np.float32)
    function = gf.deep.log_likelihood(lambda params, X: X @ params, gf.likelihoods.Gaussian(np.sqrt(10.0)))
    exact = np.linalg.inv(0.1 * inputs.T @ inputs + 0.01 * np.eye(2))
    settings = THESIS | {"learning_rate": 1.0, "burn_in": 500, "batch_size": 100}
    swag = gf.deep.SWAG(function, np.zeros(2, np.float32), rank=2, prior_precision=0.01, **settings)
    cov = swag.fit((inputs, labels), steps=1500).belief.to_dense().cov
    settings = vifa.THESIS | {"prior_precision": 0.01, "average": 3.0}
    exact_in_time = gf.deep.VIFA(function, np.zeros(2, np.float32), rank=1, batch_size=100, **settings)
    better = exact_in_time.fit((inputs, labels), steps=2000).belief.to_dense().cov
    assert relative(cov, exact) >= 0.5
    assert relative(better, exact) < 0.1


def test_swag_errors():
    with pytest.raises(ValueError, match="rank=1: SWAG divides"):
        swag(rank=1)
    with pytest.raises(ValueError, match="rank=0"):
        gf.deep.FactorIterates(LINEAR, start(), rank=0)
    with pytest.raises(ValueError, match=r"posterior: 2 samples after 12 steps.*at least 3"):
        swag(burn_in=10).fit(DATA, steps=12)
    with pytest.raises(ValueError, match="burn_in=-1"):
        swag(burn_in=-1)


@pytest.mark.parametrize("eigen", ["exact", "randomised"])
def test_slang_with_full_rank_reaches_the_exact_posterior(eigen):
    options = {"curvature": "gauss-newton", "samples": "antithetic", "eigen": eigen, "batch_size": 60}
    method = gf.deep.SLANG(
        LINEAR, start(), rank=3, prior_precision=ALPHA, learning_rate=0.3, precision_rate=0.3, **options
    )
    found = method.fit(DATA, steps=120).belief.to_dense()
    np.testing.assert_allclose(found.mean, EXACT.mean, atol=1e-5)
    assert relative(found.cov, EXACT.cov) < 1e-5


def test_slang_as_it_comes_ends_at_the_exact_posterior():
    """Rates, draws and length by default; rows that nobody has split."""
    rng = np.random.default_rng(12)
    inputs = rng.standard_normal((90, 4)) * [1.0, 0.3, 2.0, 0.8]
    labels = inputs @ [0.4, -1.0, 0.2, 2.0] + NOISE * rng.standard_normal(90)
    with jax.enable_x64(True):
        function = gf.deep.log_likelihood(lambda w, X: X @ w, gf.likelihoods.Gaussian(NOISE))
        method = gf.deep.SLANG(function, np.zeros(4), 4, ALPHA, curvature="gauss-newton", batch_size=90)
        found = method.fit((inputs, labels)).belief.to_dense()
    precision = inputs.T @ inputs / NOISE**2 + ALPHA * np.eye(4)
    assert relative(found.mean, np.linalg.solve(precision, inputs.T @ labels) / NOISE**2) < 1e-6
    assert relative(found.cov, np.linalg.inv(precision)) < 1e-6


def test_slang_with_the_empirical_fisher_is_near_it_where_the_model_holds():
    inputs, labels, exact = linear(n=4000, seed=2)
    method = gf.deep.SLANG(
        LINEAR,
        start(),
        rank=3,
        prior_precision=ALPHA,
        batch_size=200,
        n_samples=2,
        learning_rate=0.02,
        precision_rate=0.02,
    )
    found = method.fit((inputs, labels), steps=600).belief.to_dense()
    np.testing.assert_allclose(found.mean, exact.mean, atol=0.01)
    assert relative(found.cov, exact.cov) < 0.1  # squared residuals instead of their mean


@pytest.mark.parametrize(("rank", "randomised"), [(0, False), (2, False), (2, True), (9, False)])
def test_a_step_of_slang_is_its_equations(rank, randomised):
    """(3.6)-(3.9) with D×D matrices; rank 0 is VOGN: the diagonal of the same precision."""
    D, S, M, N = 12, 2, 5, 40
    params = hidden_start(2, 3)
    function = gf.deep.log_likelihood(hidden, gf.likelihoods.Gaussian(NOISE))
    with jax.enable_x64(True):
        params = jax.tree.map(lambda leaf: jnp.asarray(leaf, jnp.float64), params)
        method = gf.deep.SLANG(function, params, rank, n_samples=S, prior_precision=ALPHA, prior_mean=0.3, momentum=0.4)
        rng = np.random.default_rng(3)
        mean, U, d = rng.standard_normal(D), rng.standard_normal((D, rank)), rng.uniform(3, 9, D)
        batch = jnp.asarray(rng.standard_normal((1, M, 2))), jnp.asarray(rng.standard_normal((1, M)))
        normals = rng.standard_normal((S, D + rank))
        velocity = rng.standard_normal(D)
        inner = {"mean": mean, "U": U, "diagonal": d, "velocity": velocity}
        hyper = method.hyper(N, M) | {"rates": (0.2, 0.3)}
        program = method.program()
        program = slang.SLANGProgram(program.columns, program.layout, rank, S, "independent", (None, None), randomised)
        draws = jnp.asarray(normals), jax.random.key_data(jax.random.key(1))
        new, loss, ok = jax.jit(program.step)(jax.tree.map(jnp.asarray, inner), hyper, batch, draws, 0)
        new = {name: np.asarray(array) for name, array in new.items()}

        x = normals[:, :D] / np.sqrt(d)
        L = (U / d[:, None]) @ np.linalg.inv(np.eye(rank) + U.T @ (U / d[:, None]))
        thetas = mean + x + (normals[:, D:] - x @ U) @ L.T
        assert ok
        one = lambda theta, x, y: function(program.layout.unflatten(theta), (x[None], y[None]))[0]  # noqa: E731
        look = jax.jit(jax.value_and_grad(one))
        pairs = [look(theta, batch[0][0, i], batch[1][0, i]) for theta in thetas for i in range(M)]
        values, g = np.array([pair[0] for pair in pairs]), np.array([pair[1] for pair in pairs])
    np.testing.assert_allclose(loss, -N / M * np.sum(values) / S, rtol=1e-9)
    G = N / M * g.T @ g / S
    target = 0.7 * U @ U.T + 0.3 * G
    weights, vectors = np.linalg.eigh(target)
    kept = (vectors[:, D - rank :] * weights[D - rank :]) @ vectors[:, D - rank :].T
    diagonal = 0.7 * d + 0.3 * ALPHA + np.diag(target - kept)
    # two power iterations of the random subspace leave the eigenvectors' errors at the square of small ratios
    tolerance = 1e-2 if randomised else 1e-8
    assert relative(new["U"] @ new["U"].T, kept) < tolerance if rank else new["U"].shape == (D, 0)
    np.testing.assert_allclose(new["diagonal"], diagonal, rtol=tolerance)
    off = thetas.mean(axis=0) - mean
    slope = -N / M * g.sum(axis=0) / S - (d - ALPHA) * off - U @ (U.T @ off) + ALPHA * (mean - 0.3)
    after = 0.4 * velocity + 0.6 * slope
    precision = np.asarray(new["U"] @ new["U"].T) + np.diag(new["diagonal"])
    np.testing.assert_allclose(new["mean"], mean - 0.2 * np.linalg.solve(precision, after), rtol=1e-8)


def test_samples_of_a_low_rank_precision():
    rng = np.random.default_rng(5)
    U, d = rng.standard_normal((4, 2)), rng.uniform(0.5, 2, 4)
    rows = slang.LowRankPrecision(jnp.asarray(U, jnp.float32), jnp.asarray(d, jnp.float32))
    normals = rng.standard_normal((200_000, 6)).astype(np.float32)
    found = np.cov(np.asarray(rows.samples(normals[:, :4], normals[:, 4:])).T)
    assert relative(found, np.linalg.inv(U @ U.T + np.diag(d))) < 0.01


@pytest.mark.parametrize(("likelihood", "outputs"), [("softmax", 3), (gf.likelihoods.Poisson(), None)])
def test_gauss_newton_is_the_hessian_where_networks_are_linear(likelihood, outputs):
    params = {"w": np.zeros((2,) if outputs is None else (2, outputs), np.float32)}
    layout = gf.deep.layout_of(params)
    function = gf.deep.log_likelihood(lambda params, X: X @ params["w"], likelihood)
    rng = np.random.default_rng(6)
    batch = jnp.asarray(rng.standard_normal((5, 2)), jnp.float32), jnp.asarray([0, 2, 1, 1, 0])
    theta = jnp.asarray(0.5 * rng.standard_normal(layout.dim), jnp.float32)
    value, slope, columns = jax.jit(curvature.GaussNewtonColumns(function, layout))(theta, batch)
    whole = lambda flat: function(layout.unflatten(flat), batch).sum()  # noqa: E731
    exact = jax.jit(lambda flat: (whole(flat), jax.grad(whole)(flat), jax.hessian(whole)(flat)))(theta)
    np.testing.assert_allclose(value, exact[0], rtol=1e-5)
    np.testing.assert_allclose(slope, exact[1], rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(np.asarray(columns).T @ columns, -exact[2], rtol=1e-3, atol=1e-4)


def test_slang_errors():
    for arguments, match in (
        ({"rank": 4}, "rank=4"),
        ({"learning_rate": 1.5}, r"learning_rate=1\.5"),
        ({"precision_rate": 0.0}, "precision_rate"),
        ({"momentum": 1.0}, "momentum"),
        ({"curvature": "hessian"}, "curvature='hessian'.*'fisher'"),
        ({"eigen": "power"}, "eigen='power'"),
        ({"prior_precision": -1.0}, "prior_precision"),
    ):
        with pytest.raises(ValueError, match=match):
            gf.deep.SLANG(LINEAR, start(), **arguments)
    with pytest.raises(ValueError, match=r"gaussfold\.deep\.log_likelihood"):
        gf.deep.SLANG(lambda params, batch: 0.0, start(), curvature="gauss-newton")
