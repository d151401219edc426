"""The three priors against each other under the same sites, and their gradients against differences."""

import numpy as np
import pytest

from gaussfold.gp import Constant, Linear, Matern12, Matern32, Matern52, SquaredExponential
from gaussfold.gp.chain import steps_of
from gaussfold.gp.dense import DensePrior
from gaussfold.gp.markov import MarkovPrior
from gaussfold.gp.priors import Slopes
from gaussfold.gp.sparse import SparsePrior
from gaussfold.linalg.jitter import jittered_root
from gaussfold.types import Sites

RNG = np.random.default_rng(11)
COUNT = 22
X = RNG.uniform(0.0, 6.0, (COUNT, 1))
X[7] = X[3]  # a repeated input; the order is random
COVARIANCES = {
    "one": [Matern32(1.3, 0.9)],
    "one-of-three-states": [Matern52(0.6, 1.4) + Linear(0.2, centre=3.0)],
    "two": [Matern32(1.3, 0.9), Matern12(0.7, 1.5) + Constant(0.3)],
}


def some_sites(latents, negative=True):
    roots = RNG.normal(size=(COUNT, latents, latents))
    precision = roots @ roots.swapaxes(1, 2)
    precision[5] = 0.0
    if latents == 2:
        precision[6] = np.outer(roots[6, 0], roots[6, 0])  # rank one
    if negative:
        precision[2] *= -0.01
        precision[9] -= 0.1 * precision[9, 0, 0] * np.eye(latents)
    return Sites(precision, np.where(precision[:, :, 0] == 0.0, 0.0, RNG.normal(size=(COUNT, latents))))


@pytest.mark.parametrize("negative", [False, True], ids=["positive", "some-negative"])
@pytest.mark.parametrize("name", COVARIANCES)
def test_three_structures_are_one_posterior(name, negative):
    covariances = COVARIANCES[name]
    sites = some_sites(len(covariances), negative)
    dense, markov = DensePrior(covariances, X), MarkovPrior(covariances, X)
    sparse = SparsePrior(covariances, X, np.unique(X, axis=0))
    want = dense.update(sites)
    K = np.zeros((len(covariances), COUNT) * 2)
    big = np.zeros((len(covariances), COUNT) * 2)
    n = np.arange(COUNT)
    for d, covariance in enumerate(covariances):
        K[d, :, d] = covariance(X)
    big[:, n, :, n] = sites.precision
    K, big = (a.reshape(len(covariances) * COUNT, -1) for a in (K, big))
    C = np.linalg.solve(np.eye(len(K)) + K @ big, K)
    plain = (C @ sites.shift.T.ravel()).reshape(len(covariances), -1).T
    np.testing.assert_allclose(want.mean, plain, atol=1e-9)
    half = 0.5 * sites.shift.T.ravel() @ plain.T.ravel() - 0.5 * np.linalg.slogdet(np.eye(len(K)) + K @ big)[1]
    assert want.log_z == pytest.approx(half, abs=1e-9)
    for other, close in ((markov, 1e-10), (sparse, 1e-6)):
        found = other.update(sites)
        assert found.log_z == pytest.approx(want.log_z, abs=close)
        np.testing.assert_allclose(found.mean, want.mean, atol=close)
        np.testing.assert_allclose(found.cov, want.cov, atol=close)
    test = np.array([[-1.0], [2.2], [X[4, 0]], [2.2], [9.0]])
    mean, cov = dense.predict(sites, test)
    _, joint = dense.predict(sites, test, joint=True)
    np.testing.assert_allclose(np.diag(joint), np.diagonal(cov, axis1=1, axis2=2).T.ravel(), atol=1e-12)
    for other, close in ((markov, 1e-10), (sparse, 1e-6)):
        for mine, theirs in zip(other.predict(sites, test), (mean, cov), strict=True):
            np.testing.assert_allclose(mine, theirs, atol=close)


def changed(covariances, d, name, h):
    out = list(covariances)
    out[d] = out[d].replace({name: out[d].parameters()[name] * np.exp(h)})
    return out


@pytest.mark.parametrize("chain", [False, True], ids=["log-z", "with-slopes"])
@pytest.mark.parametrize("structure", ["dense", "markov", "sparse"])
@pytest.mark.parametrize("name", COVARIANCES)
def test_gradients(name, structure, chain):
    covariances = COVARIANCES[name]
    D = len(covariances)
    sites = some_sites(D)
    Z = np.linspace(0.3, 5.7, 7)[:, None]
    make = {"dense": DensePrior, "markov": MarkovPrior, "sparse": lambda c, x: SparsePrior(c, x, Z)}[structure]
    prior = make(covariances, X)
    g, G = RNG.normal(size=(COUNT, D)), RNG.normal(size=(2, COUNT, D, D))
    G = G + G.swapaxes(2, 3)

    def value(other):
        found = other.update(sites)
        if not chain:
            return -found.log_z
        return -found.log_z + np.vdot(g, found.mean) + np.vdot(G[0], found.cov) + np.vdot(G[1], found.inner)

    got = prior.gradient(sites, Slopes(g, G[0], G[1]) if chain else None)
    h = 1e-5
    i = 0
    for d, covariance in enumerate(covariances):
        for parameter in covariance.parameters():
            sides = [value(prior.with_covariances(changed(covariances, d, parameter, s))) for s in (h, -h)]
            want = (sides[0] - sides[1]) / (2 * h)
            assert got.log_parameters[i] == pytest.approx(want, rel=1e-6, abs=1e-6)
            i += 1
    assert i == len(got.log_parameters)
    if structure == "sparse":
        for row in range(len(Z)):
            step = h * (np.arange(len(Z)) == row)[:, None]
            sides = [value(prior.with_covariances(covariances, Z + s * step)) for s in (1, -1)]
            assert got.inducing[row, 0] == pytest.approx((sides[0] - sides[1]) / (2 * h), rel=1e-6, abs=1e-6)


def test_sites_that_outweigh_the_prior_are_an_error():
    sites = some_sites(1)
    sites.precision[4] = -30.0
    for prior in (
        DensePrior([Matern32()], X),
        MarkovPrior([Matern32()], X),
        SparsePrior([Matern32()], X, np.unique(X, axis=0)),
    ):
        with pytest.raises(ValueError, match="no positive definite posterior covariance"):
            prior.update(sites)


def test_samples_have_the_posterior_s_moments():
    """Joint draws of all three, against the dense joint posterior, to their Monte Carlo error."""
    covariances = COVARIANCES["two"]
    sites = some_sites(2, negative=False)
    test = np.array([[4.0], [0.5], [2.0]])
    dense = DensePrior(covariances, X)
    mean, joint = dense.predict(sites, test, joint=True)
    for prior in (dense, MarkovPrior(covariances, X), SparsePrior(covariances, X, np.unique(X, axis=0))):
        n = 1500
        draws = prior.sample(sites, test, n, np.random.default_rng(1)).transpose(0, 2, 1).reshape(n, -1)
        error = np.sqrt(np.diag(joint) / n)
        assert (np.abs(draws.mean(axis=0) - mean.T.ravel()) < 4.5 * error).all()
        scale = np.sqrt(np.outer(np.diag(joint), np.diag(joint)))
        assert np.abs((np.cov(draws.T) - joint) / scale).max() < 5.0 / np.sqrt(n)


def test_equal_steps_share_one_table_entry():
    steps = steps_of(np.linspace(0.0, 1000.0, 100_001))
    assert steps.table.size < 5
    np.testing.assert_allclose(steps.table[steps.step[1:]], 0.01, rtol=1e-9)
    irregular = np.sort(RNG.uniform(0.0, 5.0, 50))
    irregular[7] = irregular[6]
    found = steps_of(irregular)
    np.testing.assert_allclose(found.table[found.step[1:]], np.diff(irregular), rtol=1e-14)
    assert found.table[found.step[7]] == 0.0


def test_singular_prior_is_named():
    with pytest.raises(ValueError, match=r"covariance of the 1 inducing inputs is numerically singular.*White"):
        SparsePrior([Linear(1.0)], X, np.zeros((1, 1)))  # a line through zero has no variance there
    with pytest.raises(ValueError, match="not finite"):
        jittered_root(np.array([[np.inf]]), "K", "")


def test_smooth_priors_survive_close_inputs():
    """A squared exponential over 200 inputs is singular in floating point; dense inference factors no prior."""
    x = np.linspace(0.0, 1.0, 200)[:, None]
    sites = Sites(np.full((200, 1, 1), 25.0), 25.0 * np.sin(6.0 * x))
    found = DensePrior([SquaredExponential(1.0, 0.5)], x).update(sites)
    assert np.isfinite(found.log_z)
    assert (found.cov[:, 0, 0] > 0.0).all()
    np.testing.assert_allclose(found.mean, np.sin(6.0 * x), atol=0.05)


def some_slopes(latents):
    mean, cov, inner = RNG.normal(size=(COUNT, latents)), *RNG.normal(size=(2, COUNT, latents, latents))
    return Slopes(mean, cov + cov.swapaxes(1, 2), inner + inner.swapaxes(1, 2))


@pytest.mark.parametrize("inputs", [X, np.round(X)], ids=["irregular", "few-distances"])
@pytest.mark.parametrize("name", COVARIANCES)
def test_blocks_and_used_memory_do_not_show(name, inputs, monkeypatch):
    """A short series in one block and in many, in new memory and in what another filter left."""
    covariances = COVARIANCES[name]
    sites, slopes = some_sites(len(covariances)), some_slopes(len(covariances))
    Z = np.unique(inputs, axis=0)[::2]

    def answers(markov, sparse):
        found = [*markov.update(sites)[:3], *sparse.update(sites)[:3]]
        for prior in (markov, sparse):
            for chain in (None, slopes):
                got = prior.gradient(sites, chain)
                found += [got.log_parameters, got.inducing if got.inducing is not None else 0.0]
        return found

    want = answers(MarkovPrior(covariances, inputs), SparsePrior(covariances, inputs, Z))
    monkeypatch.setattr("gaussfold.gp.chain.BLOCK", 5)
    monkeypatch.setattr("gaussfold.gp.sparse.BLOCK", 7)
    used = MarkovPrior(
        [changed(covariances, 0, next(iter(covariances[0].parameters())), 0.4)[0], *covariances[1:]], inputs
    )
    before = used.update(some_sites(len(covariances), negative=False))
    kept = before.mean.copy()
    again = used.with_covariances(covariances)
    for mine, theirs in zip(answers(again, SparsePrior(covariances, inputs, Z)), want, strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-9, atol=1e-9)
    np.testing.assert_array_equal(before.mean, kept)
    slope = again.gradient(some_sites(len(covariances)), None)  # other sites: filtered anew
    assert np.abs(slope.log_parameters - want[6]).max() > 1e-3
    np.testing.assert_allclose(again.gradient(sites, None).log_parameters, want[6], rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("name", COVARIANCES)
def test_sites_may_be_read_only_and_of_any_layout(name):
    prior = MarkovPrior(COVARIANCES[name], X)
    sites = some_sites(len(COVARIANCES[name]))
    want = prior.update(sites)
    locked = Sites(np.asfortranarray(sites.precision), sites.shift.copy())
    for array in locked:
        array.flags.writeable = False
    found = prior.update(locked)
    np.testing.assert_array_equal(found.mean, want.mean)
    np.testing.assert_array_equal(
        prior.gradient(locked, None).log_parameters, prior.gradient(sites, None).log_parameters
    )
