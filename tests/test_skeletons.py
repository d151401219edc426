"""What docs/skeletons offers to copy runs as it stands: a file and a line each, compiled where it says so, saved.

Together with ``tests/conformance/test_from_outside.py`` this measures CONTRIBUTING's table of files to touch.
"""

import json

import numpy as np
import pytest
from docs.skeletons import format as jsonl
from docs.skeletons.belief import InformationGaussian
from docs.skeletons.covariance import HeavyTailed
from docs.skeletons.likelihood import WaitingTime
from docs.skeletons.rule import Mixed
from scipy import stats

import gaussfold as gf
from gaussfold import registry
from gaussfold.data import formats
from gaussfold.data.messages import DataError
from gaussfold.data.readers import Stream
from gaussfold.data.reading import Reading
from gaussfold.dynamics import Forgetting, RandomWalk
from gaussfold.engine.arrays import over_arrays
from gaussfold.gp import GaussianProcess
from gaussfold.protocols import Belief, Gaussian
from gaussfold.rules import resolve_at
from gaussfold.rules.python_sites import make_site
from gaussfold.trace import RowError
from tests import problems


@pytest.fixture
def registered():
    """A line each, undone afterwards."""
    lines = {"likelihood": WaitingTime, "rule": Mixed, "covariance": HeavyTailed, "model": InformationGaussian}
    for kind, own in lines.items():
        registry.register(kind, own)
    yield
    for kind, own in lines.items():
        registry.unregister(kind, own)


@pytest.mark.usefixtures("registered")
def test_likelihood_and_rule(tmp_path):
    """Sites in machine code and in Python, density and moments by SciPy, and a model file."""
    likelihood, rule, at = WaitingTime(), Mixed(), resolve_at("posterior")
    law = stats.expon(scale=np.exp(-0.4))
    assert likelihood.log_prob(1.3, 0.4) == pytest.approx(law.logpdf(1.3))
    np.testing.assert_allclose(likelihood.conditional(0.4), (law.mean(), law.var()))
    with pytest.raises(ValueError, match=r"y\[0\] = -1.0: WaitingTime labels must be numbers >= 0"):
        likelihood.check_labels([-1.0])
    y, w, m0, v0 = np.array([0.7, 2.9]), np.array([1.0, 2.5]), np.array([0.2, -0.6]), np.array([0.5, 1.1])
    _, curvature, m, _, _ = over_arrays.sites(likelihood.record, rule.record, at.code, y, w, m0, v0)
    for i in range(2):
        precision, shift = make_site(rule, at, likelihood, y[i], w[i], m0[i], v0[i])
        assert -curvature[i] == pytest.approx(precision, rel=1e-9)
        assert m[i] == pytest.approx((m0[i] / v0[i] + shift) / (1.0 / v0[i] + precision), rel=1e-9)
    x = np.linspace(0.0, 2.0, 5)
    model = GaussianProcess(HeavyTailed(0.7, 1.2, 0.8), likelihood, rule).fit(x, np.exp(-np.sin(x)))
    gf.save(model, tmp_path / "model")
    loaded = gf.load(tmp_path / "model")
    assert (loaded.likelihood, loaded.rule, loaded.covariances) == (likelihood, rule, model.covariances)
    np.testing.assert_array_equal(loaded.predict(x), model.predict(x))


def test_covariance():
    covariance, X = HeavyTailed(0.7, 1.2, 0.8), np.random.default_rng(3).normal(size=(5, 2))
    assert np.linalg.eigvalsh(covariance(X)).min() > 0.0
    wide = HeavyTailed(0.7, 1.2, 1e7)
    np.testing.assert_allclose(wide(X), gf.gp.SquaredExponential(0.7, 1.2)(X), rtol=1e-4)
    bar, h = np.random.default_rng(4).normal(size=(5, 5)), 1e-6
    for i, (name, value) in enumerate(covariance.parameters().items()):
        up, down = (covariance.replace({name: value * np.exp(sign * h)})(X) for sign in (1.0, -1.0))
        assert covariance.vjp(X, None, bar)[i] == pytest.approx(np.vdot(bar, up - down) / (2.0 * h), rel=1e-6)


DIM, ROWS = 3, 6


def beliefs():
    mean, cov = problems.prior(DIM)
    precision = np.linalg.inv(cov)
    return InformationGaussian(precision, precision @ mean), gf.DenseGaussian(mean, cov)


def same(own, known):
    assert problems.relative(own.mean, known.mean) < 1e-10
    assert problems.relative(own.to_dense().cov, known.cov) < 1e-10


@pytest.mark.parametrize("likelihood", [gf.likelihoods.Poisson(), gf.likelihoods.Bernoulli()], ids=problems.name)
@pytest.mark.parametrize("at", problems.ATS)
@pytest.mark.parametrize("rule", ["newton", "vi", "ep"])
def test_belief_in_a_fold(likelihood, rule, at):
    """The loop over the grid, beside the dense belief."""
    X, y = problems.data(likelihood, ROWS, DIM, seed=11)
    y[2] = np.nan
    own, known = beliefs()
    weight = np.array([1.0, 2.5, 0.3, 2.5, 0.0, 0.3])
    got, want = (gf.fold(belief, likelihood, X, y, rule, at, sample_weight=weight) for belief in (own, known))
    same(own, known)
    for ours, theirs in zip(got, want, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-9, atol=1e-12)


def test_belief_keeps_its_promises(tmp_path):
    likelihood = gf.likelihoods.Poisson()
    X, y = problems.data(likelihood, ROWS, DIM, seed=11)
    own, known = beliefs()
    assert isinstance(own, Belief)
    assert isinstance(own, Gaussian)
    prior, known_prior = beliefs()
    for belief in (own, known):
        gf.fold(belief, likelihood, X, y)
    same(InformationGaussian.combine(prior, [own, own]), gf.DenseGaussian.combine(known_prior, [known, known]))
    for make in (lambda prior: Forgetting(0.97, prior), lambda prior: RandomWalk(0.1)):
        for belief in (own, known):
            gf.fold(belief, likelihood, X, y, dynamics=make(belief.copy()))
        same(own, known)
    for belief in (own, known):
        gf.sweep(belief, likelihood, X, y, gf.fold(belief, likelihood, X, y), n_sweeps=2)
    same(own, known)
    assert own.entropy() == pytest.approx(known.entropy())
    assert own.kl(prior) == pytest.approx(known.kl(known_prior))
    before = own.state()
    bad = np.array([[0.1, 0.2, 0.3], [0.0, 1e200, 0.0]])
    with pytest.raises(RowError, match="row 1"), np.errstate(all="ignore"):
        gf.fold(own, likelihood, bad, [1.0, 2.0])
    for name, array in before.items():
        np.testing.assert_array_equal(own.state()[name], array)
    registry.register("model", InformationGaussian)
    gf.save(own, tmp_path / "belief")
    loaded = gf.load(tmp_path / "belief")
    registry.unregister("model", InformationGaussian)
    for name, array in before.items():
        np.testing.assert_array_equal(loaded.state()[name], array)


def test_format(tmp_path):
    """Registered by a line, told by its name or its first line, read in chunks of any size."""
    lines = [{"label": k % 2, "weight": 1 + k, "features": {str(k): 0.5, "3": 2.0 * k}} for k in range(20, 30)]
    text = "\n".join([*map(json.dumps, lines), "", json.dumps({"features": {}})])
    formats.register(jsonl.JSON_LINES)
    try:
        for name in ("a.jsonl", "unnamed"):
            (tmp_path / name).write_text(text)
            chunks = list(Stream(tmp_path / name, Reading(bits=6), copy=True, chunk_bytes=200))
            X = np.concatenate([chunk.X.toarray() for chunk in chunks])
            label = np.concatenate([chunk.label for chunk in chunks])
            assert X.shape == (11, 65)
            np.testing.assert_array_equal(label, [*([0, 1] * 5), np.nan])
            np.testing.assert_array_equal(X[4, [3, 24, 64]], [48.0, 0.5, 1.0])
            assert chunks[-1].line[-1] == 12
        (tmp_path / "bad.jsonl").write_text('{"label": 1}\n')
        with pytest.raises(DataError, match=r"bad\.jsonl:1: expected an object with features"):
            list(Stream(tmp_path / "bad.jsonl"))
    finally:
        formats.unregister(jsonl.JSON_LINES)
    assert "jsonl" not in formats.names()
