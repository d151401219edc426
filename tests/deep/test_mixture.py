"""Several posteriors as one: moments, prediction, files; plain networks among them."""

import numpy as np
import pytest

import gaussfold as gf
from tests.deep.problems import ALPHA, LINEAR, hidden, hidden_start, linear, start, straight


def normal(mean, variance, tree=None):
    belief = gf.FactorGaussian(mean, np.zeros((len(mean), 1)), variance)
    return gf.deep.Posterior(belief, start(len(mean)) if tree is None else tree, gf.likelihoods.Gaussian(0.5))


def test_moments_are_those_of_the_mixture():
    both = gf.deep.MultiPosterior([normal([1.0, -2.0], [0.04, 0.09]), normal([0.0, 3.0], [0.16, 0.01])])
    np.testing.assert_allclose(both.mean["w"], [0.5, 0.5])
    np.testing.assert_allclose(both.std()["w"] ** 2, [0.1 + 0.25, 0.05 + 6.25], rtol=1e-6)
    drawn = np.array([tree["w"] for tree in both.sample(1, 20_000)])
    np.testing.assert_allclose(drawn.var(axis=0), [0.35, 6.3], rtol=0.03)  # 4 standard errors


def test_a_mixture_is_saved_and_loaded(tmp_path):
    both = gf.deep.MultiPosterior([normal([1.0, -2.0], [0.04, 0.09]), normal([0.0, 3.0], [0.16, 0.01])])
    both.save(tmp_path / "both.gf")
    X = np.array([[0.3, -0.7]], np.float32)
    wanted = both.predict(straight, X, 50, rng=4)
    for found in (gf.deep.load(tmp_path / "both.gf"), gf.load(tmp_path / "both.gf")):
        assert repr(found) == repr(both)
        np.testing.assert_array_equal(found.predict(straight, X, 50, rng=4).outputs, wanted.outputs)


def test_linearised_outputs_of_several_parts_are_refused():
    both = gf.deep.MultiPosterior([normal([1.0], [0.04])] * 2)
    with pytest.raises(ValueError, match="method='linearised': 'samples' or 'mean' is needed; outputs"):
        both.predict(straight, np.ones((1, 1), np.float32), method="linearised")


def test_plain_training_ends_at_the_maximum():
    X, y, exact = linear(200)
    model = gf.deep.MAP(LINEAR, start(), prior_precision=ALPHA, batch_size=200)
    posterior = model.fit(X, y, steps=3000)
    np.testing.assert_allclose(posterior.belief.mean, exact.mean, atol=1e-3)  # of a Gaussian the mean is the maximum
    assert posterior.belief.variance().max() == 0.0
    assert posterior.predict(straight, X).epistemic_std.max() == 0.0
    with pytest.raises(ValueError, match="a point mass has no density"):
        posterior.log_prob(start())


def test_an_ensemble_is_its_methods_and_goes_on_after_a_break(tmp_path):
    X = np.random.default_rng(5).normal(size=(60, 2)).astype(np.float32)
    y = np.sin(X[:, 0])
    function = gf.deep.log_likelihood(hidden, gf.likelihoods.Gaussian(0.3))
    methods = [
        gf.deep.MAP(function, hidden_start(seed=1), seed=1),
        gf.deep.VIFA(function, hidden_start(seed=2), seed=2),
    ]
    found = gf.deep.Ensemble(methods).fit(X, y, steps=60)
    for part, method in zip(found.parts, methods, strict=True):
        np.testing.assert_array_equal(part.belief.mean, method.posterior.belief.mean)
    found.save(tmp_path / "ensemble.gf")
    again = gf.deep.load(tmp_path / "ensemble.gf")
    assert type(again.parts[0].belief) is gf.deep.PointMass
    np.testing.assert_array_equal(again.mean["v"], found.mean["v"])
    half = gf.deep.MAP(function, hidden_start(seed=1), seed=1)
    half.fit(X, y, steps=60, stop=25)
    half.save(tmp_path / "half.gf")
    rest = gf.deep.MAP(function, hidden_start(seed=1), seed=1).restore(tmp_path / "half.gf")
    np.testing.assert_array_equal(rest.fit(X, y, steps=60, resume=True).belief.mean, found.parts[0].belief.mean)


def test_an_ensemble_needs_one_tree():
    methods = [gf.deep.MAP(LINEAR, start(2)), gf.deep.MAP(LINEAR, start(3))]
    with pytest.raises(ValueError, match="methods: mismatched tree"):
        gf.deep.Ensemble(methods)
    with pytest.raises(ValueError, match="methods: empty"):
        gf.deep.Ensemble([])
