"""Streams: sparse models whose inducing inputs follow the data, Markov models that forget their history, files."""

import numpy as np
import pytest

import gaussfold as gf
from gaussfold import likelihoods as lk
from gaussfold.gp import ConstantMean, GaussianProcess, Matern32, Matern52, NotConvergedWarning

RNG = np.random.default_rng(21)
X = RNG.uniform(-2.0, 2.0, (240, 2))
F = np.sin(2.0 * X[:, 0]) * np.cos(X[:, 1])
Y = F + 0.3 * RNG.normal(size=240)
GRID = RNG.uniform(-2.0, 2.0, (30, 2))
Z = RNG.uniform(-2.0, 2.0, (25, 2))


def _sparse(inducing=Z, likelihood=None, **options):
    likelihood = lk.Gaussian(0.3) if likelihood is None else likelihood
    return GaussianProcess(
        Matern52(1.3, 1.1), likelihood, structure="sparse", inducing=inducing, random_state=0, **options
    )


@pytest.mark.parametrize("cuts", [[100], [1, 2, 50, 239]])
def test_any_chunks_are_one_fit_under_normal_noise(cuts):
    whole = _sparse(mean=ConstantMean(0.2)).fit(X, Y)
    stream = _sparse(mean=ConstantMean(0.2))
    for x, y in zip(np.split(X, cuts), np.split(Y, cuts), strict=True):
        stream.partial_fit(x, y)
    for a, b in zip(stream.predict_latent(GRID), whole.predict_latent(GRID), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-11)


def test_the_energies_of_a_stream_add_up():
    whole = _sparse().fit(X, Y)
    stream, total = _sparse(), 0.0
    for x, y in zip(np.split(X, 4), np.split(Y, 4), strict=True):
        total += stream.partial_fit(x, y).energy()
    assert total == pytest.approx(whole.energy(), rel=1e-9)


def test_counts_in_a_stream_are_close_to_one_fit():
    y = np.random.default_rng(4).poisson(np.exp(1.0 + F)).astype(float)
    whole = _sparse(likelihood=lk.Poisson()).fit(X, y)
    stream = _sparse(likelihood=lk.Poisson())
    for x, part in zip(np.split(X, 6), np.split(y, 6), strict=True):
        stream.partial_fit(x, part)
    (m, v), (m0, v0) = stream.predict_latent(GRID), whole.predict_latent(GRID)
    assert np.abs((m - m0)[:, 0] / np.sqrt(v0[:, 0, 0])).max() < 0.5
    np.testing.assert_allclose(v, v0, rtol=0.2)


def test_inducing_inputs_follow_the_data_and_remember():
    """A walk along a line: a fixed set would be left behind; the past is still known at the end."""
    t = np.linspace(0.0, 30.0, 600)
    y = np.sin(t) + 0.1 * np.random.default_rng(5).normal(size=600)
    stream = GaussianProcess(Matern32(1.0, 1.5), lk.Gaussian(0.1), structure="sparse", inducing=60, random_state=0)
    for x, part in zip(np.split(t, 12), np.split(y, 12), strict=True):
        stream.partial_fit(x, part)
    assert len(stream.prior_.Z) <= 60
    assert stream.prior_.Z.max() > 28.0
    assert len(stream.X_) == 50  # memory does not grow
    mean, std = stream.predict(t, return_std=True)
    assert np.sqrt(np.mean((mean - np.sin(t)) ** 2)) < 0.1
    assert (std < 0.3).all()


def test_a_stream_that_fails_changes_nothing():
    stream = _sparse(likelihood=lk.Poisson(), inducing=20).partial_fit(X[:50], np.ones(50))
    before = {k: v.copy() for k, v in stream.state().items()}
    for bad in (lambda: stream.partial_fit(X[:3], [1.0, -2.0, 0.5]), lambda: stream.partial_fit(X[:3, :1], np.ones(3))):
        with pytest.raises(ValueError, match=r"Y\[1|columns"):
            bad()
    after = stream.state()
    assert before.keys() == after.keys()
    for name, array in before.items():
        np.testing.assert_array_equal(array, after[name])
    for refused in (
        lambda: stream.partial_fit(X[50:60], np.ones(10)).learn_hyperparameters(),
        lambda: stream.set_parameters({"covariance.variance": 2.0}),
        lambda: stream.components(GRID),
    ):
        with pytest.raises(ValueError, match="earlier rows are gone"):
            refused()
    with pytest.warns(NotConvergedWarning, match=r"learning has not converged after max_iter=2 .* raise max_iter"):
        assert stream.fit(X, np.ones(240)).learn_hyperparameters(max_iter=2).evaluations > 0


def test_sparse_streams_resume_bit_for_bit(tmp_path):
    y = (F > 0.1).astype(float)

    def grown(model, rows):
        return model.partial_fit(X[rows], y[rows])

    straight = _sparse(inducing=20, likelihood=lk.Bernoulli())
    halted = _sparse(inducing=20, likelihood=lk.Bernoulli())
    for rows in (slice(0, 80), slice(80, 160)):
        grown(straight, rows)
        grown(halted, rows)
    gf.save(halted, tmp_path / "half")
    halted = gf.load(tmp_path / "half")
    for model in (straight, halted):
        grown(model, slice(160, 240))
    for name, array in straight.state().items():
        np.testing.assert_array_equal(array, halted.state()[name], err_msg=name)


TIMES = np.cumsum(RNG.gamma(1.0, 0.1, 400))
COUNTS = RNG.poisson(np.exp(1.0 + np.sin(TIMES))).astype(float)


def _chunks(model, cuts, **options):
    for x, y in zip(np.split(TIMES, cuts), np.split(COUNTS, cuts), strict=True):
        model.partial_fit(x, y, lag=30, **options)
    return model


def test_a_markov_stream_that_forgets_predicts_as_one_that_does_not():
    cuts = [100, 130, 260, 399]
    whole = _chunks(GaussianProcess(Matern32(1.0, 2.0), "poisson", structure="markov"), cuts)
    short = _chunks(GaussianProcess(Matern32(1.0, 2.0), "poisson", structure="markov"), cuts, keep_history=False)
    ahead = np.concatenate([TIMES[-20:], TIMES[-1] + np.linspace(0.1, 3.0, 9)])
    for a, b in zip(short.predict_latent(ahead), whole.predict_latent(ahead), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-8, atol=1e-10)
    assert len(short.state()["X"]) < 45
    assert len(whole.state()["X"]) == 400
    # again, by the prior instead of the window
    for a, b in zip(short.predict_latent(ahead), whole.predict_latent(ahead), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-8, atol=1e-10)
    with pytest.raises(ValueError, match="earlier rows are gone"):
        short.predict(TIMES[:3])
    with pytest.raises(ValueError, match="earlier rows are gone"):
        short.learn_hyperparameters()
    assert np.isfinite(short.sample_posterior(ahead, 2, 0)).all()


@pytest.mark.parametrize("keep", [True, False])
def test_markov_streams_resume_bit_for_bit(keep, tmp_path):
    first, last = slice(0, 250), slice(250, 400)

    def grown(model, part):
        rows = np.arange(400)[part]
        for few in np.array_split(rows, 5):
            model.partial_fit(TIMES[few], COUNTS[few], lag=30, keep_history=keep)
        return model

    models = [grown(GaussianProcess(Matern32(1.0, 2.0), "poisson", structure="markov"), first) for _ in range(2)]
    gf.save(models[1], tmp_path / "half")
    models[1] = gf.load(tmp_path / "half")
    straight, halted = (grown(model, last) for model in models)
    for name, array in straight.state().items():
        np.testing.assert_array_equal(array, halted.state()[name], err_msg=name)


def test_times_that_go_backwards_are_refused():
    model = _chunks(GaussianProcess(Matern32(1.0, 2.0), "poisson", structure="markov"), [200], keep_history=False)
    before = {k: v.copy() for k, v in model.state().items()}
    with pytest.raises(ValueError, match=r"X\[0\] = .* lies before .*raise lag"):
        model.partial_fit([0.5], [1.0], lag=30)
    for name, array in before.items():
        np.testing.assert_array_equal(array, model.state()[name])


@pytest.mark.parametrize("structure", ["markov", "sparse"])
@pytest.mark.parametrize("noise", [lk.Gaussian(0.5), lk.Poisson(), lk.StudentT(4.0, 0.3)])
def test_a_label_beyond_double_precision_is_one_sentence_and_changes_nothing(noise, structure):
    """And not a warning of NumPy's before it: those are errors in these tests."""
    X = np.arange(20.0)
    model = GaussianProcess(Matern32(), noise, structure=structure).fit(X, np.ones(20))
    before = model.predict_latent(X)
    with pytest.raises(ValueError, match=r"check the|double precision"):
        model.partial_fit([20.0, 21.0], [1e300, 1.0])
    for mine, other in zip(model.predict_latent(X), before, strict=True):
        np.testing.assert_array_equal(mine, other)
