"""A bank is its members, each folded by itself with its own dynamics, weighed by fixed share; it keeps the promises."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import gaussfold as gf
from gaussfold.beliefs.bank.weights import SHARES, SharedWeights
from gaussfold.dynamics import Forgetting, RandomWalk
from gaussfold.protocols import Belief
from gaussfold.trace import RowError
from tests.reference.bank import fixed_share

D = 3
PRIORS = {
    "dense": lambda: gf.DenseGaussian.isotropic(D, 0.7),
    "lowrank": lambda: gf.LowRankGaussian.isotropic(D, 2, 0.7, block_size=1),
    "diagonal": lambda: gf.DiagonalGaussian.isotropic(D, 0.7, coupling="joint"),
}
UNITS = np.array([0.5, 2.0, 1.3])


def _bank(kind="dense", moves="walks", **options):
    prior = PRIORS[kind]()
    if moves == "forgets":
        return gf.Bank.forgetting(prior, (1.0, 0.97, 0.8), **options)
    return gf.Bank.walking(prior, (0.0, 0.05, 0.4), UNITS if moves == "scaled" else None, **options)


def _rows(n=60, seed=0, likelihood="logit"):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, D))
    turns = np.where(np.arange(n) < n // 2, 1.5, -1.5)
    f = turns * X[:, 0]
    y = {
        "logit": lambda: (rng.random(n) < 1 / (1 + np.exp(-f))).astype(float),
        "linear": lambda: f + 0.6 * rng.standard_normal(n),
        "poisson": lambda: rng.poisson(np.exp(f)).astype(float),
    }[likelihood]()
    weight = rng.choice([1.0, 2.5, 0.3], n)
    y[5::11] = np.nan
    weight[7::9] = 0.0
    return X, y, weight


LIKELIHOODS = {
    "logit": gf.likelihoods.Bernoulli(),
    "linear": gf.likelihoods.Gaussian(0.6),
    "poisson": gf.likelihoods.Poisson(),
}


def _same_bits(one, other):
    assert one.state().keys() == other.state().keys()
    for name, array in one.state().items():
        np.testing.assert_array_equal(array, other.state()[name], err_msg=name, strict=True)


@given(
    seed=st.integers(0, 2**32 - 1),
    members=st.integers(1, 6),
    shares=st.integers(1, 3),
    scale=st.sampled_from([0.1, 3.0, 900.0]),
)
@settings(max_examples=30, deadline=None)
def test_weights_are_fixed_share(seed, members, shares, scale):
    rng = np.random.default_rng(seed)
    scores = -scale * rng.exponential(size=(40, members))
    scores[3], scores[9] = np.nan, -np.inf
    weight = rng.choice([0.0, 0.3, 1.0, 2.5], 40)
    prior, some = rng.uniform(0.1, 1.0, members), (0.2, 0.01, 0.003)[:shares]
    start = SharedWeights.start(prior, some)
    after, before = start.follow(scores, weight)
    wanted_before, wanted = fixed_share(scores, weight, prior, some)
    np.testing.assert_allclose(before, wanted_before, rtol=1e-10, atol=1e-14)
    np.testing.assert_allclose(after.members, wanted, rtol=1e-10, atol=1e-14)
    np.testing.assert_allclose(after.table.sum(), 1.0, rtol=1e-12)
    half, first = start.follow(scores[:17], weight[:17])
    rest, last = half.follow(scores[17:], weight[17:])
    np.testing.assert_array_equal(rest.table, after.table)  # however the rows are cut, to the last bit
    np.testing.assert_array_equal(np.vstack([first, last]), before)


def test_the_total_loss_is_bounded_by_the_best_member_and_by_the_best_two():
    rng = np.random.default_rng(3)
    scores = np.log(rng.uniform(0.2, 0.8, (4000, 5)))
    scores[:2000, 1] = scores[2000:, 3] = np.log(0.9)
    prior = np.full(5, 0.2)
    _, before = SharedWeights.start(prior).follow(scores, np.ones(4000))
    loss = -np.log((before * np.exp(scores)).sum(axis=1)).sum()
    best_two = -(scores[:2000, 1].sum() + scores[2000:, 3].sum())
    # to choose a member and a share, one change, what the share of a thousandth or less costs while nothing changes,
    # and the share among shares
    assert loss - best_two < np.log(5) + np.log(3) + np.log(5 / 0.0001) + 4000 * 0.0002
    assert loss < -scores.sum(axis=0).max()


@pytest.mark.parametrize("name", LIKELIHOODS)
@pytest.mark.parametrize("moves", ["walks", "forgets", "scaled"])
@pytest.mark.parametrize("kind", PRIORS)
def test_a_bank_is_its_members(kind, moves, name):
    X, y, weight = _rows(likelihood=name)
    if kind == "diagonal" and moves == "scaled":
        with pytest.raises(ValueError, match="leave scale=None"):
            gf.fold(_bank(kind, moves), LIKELIHOODS[name], X, y)
        return
    bank = _bank(kind, moves)
    alone, dynamics = [member.copy() for member in bank.members], bank.dynamics
    result = gf.fold(bank, LIKELIHOODS[name], X, y, sample_weight=weight)
    parts = [
        gf.fold(one, LIKELIHOODS[name], X, y, sample_weight=weight, dynamics=moving)
        for one, moving in zip(alone, dynamics, strict=True)
    ]
    for member, one in zip(bank.members, alone, strict=True):
        _same_bits(member, one)
    scores = np.stack([part.log_predictive for part in parts], axis=1)
    before, after = fixed_share(scores, np.where(np.isnan(y), 0.0, weight), [0.5, 0.25, 0.25], SHARES)
    np.testing.assert_allclose(bank.weights, after, rtol=1e-10)
    np.testing.assert_allclose(result.log_predictive, np.log((before * np.exp(scores)).sum(axis=1)), rtol=1e-9)
    mean = sum(w * part.mean for w, part in zip(before.T, parts, strict=True))
    second = sum(w * (part.variance + part.mean**2) for w, part in zip(before.T, parts, strict=True))
    np.testing.assert_allclose(result.mean, mean, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(result.variance, second - mean**2, rtol=1e-7)
    assert np.ptp(after) > 0.05  # the weights have moved


def test_of_a_soft_label_each_side_is_averaged():
    X, _, _ = _rows(8)
    bank = _bank(per_row=False)
    gf.fold(bank, LIKELIHOODS["logit"], X, np.array([0, 1, 1, 0, 1, 0, 0, 1.0]))
    latent, weights = bank.marginals(X[:1]), bank.weights
    p = float(LIKELIHOODS["logit"].predictive(latent).mean[0] @ weights)
    result = gf.fold(bank, LIKELIHOODS["logit"], X[:1], [0.3])
    np.testing.assert_allclose(result.log_predictive, 0.3 * np.log(p) + 0.7 * np.log1p(-p), rtol=1e-10)


@pytest.mark.parametrize("moves", ["walks", "forgets", "scaled"])
@pytest.mark.parametrize("kind", ["dense", "lowrank"])
def test_promises(kind, moves, tmp_path):
    X, y, weight = _rows()
    likelihood = LIKELIHOODS["logit"]
    whole, parts = _bank(kind, moves), _bank(kind, moves)
    assert isinstance(whole, Belief)
    result = gf.fold(whole, likelihood, X, y, sample_weight=weight)
    scores = []
    for cut in (slice(0, 1), slice(1, 20), slice(20, 20), slice(20, 60)):  # any chunks, saved and loaded in between
        scores.append(gf.fold(parts, likelihood, X[cut], y[cut], sample_weight=weight[cut]).log_predictive)
        gf.save(parts, tmp_path / "bank")
        loaded = gf.load(tmp_path / "bank")
        _same_bits(loaded, parts)
        parts = loaded
    np.testing.assert_allclose(np.concatenate(scores), result.log_predictive, rtol=1e-9)
    np.testing.assert_allclose(parts.weights, whole.weights, rtol=1e-8)
    np.testing.assert_allclose(parts.mean, whole.mean, rtol=1e-8)
    np.testing.assert_allclose(parts.variance(), whole.variance(), rtol=1e-8)
    before = whole.copy()
    gf.fold(whole, likelihood, X, np.full(60, np.nan))  # nothing to learn from
    gf.fold(whole, likelihood, X, y, sample_weight=np.zeros(60))
    _same_bits(whole, before)
    X[4] = 1e200
    with pytest.raises(RowError):
        gf.fold(whole, likelihood, X, y)
    _same_bits(whole, before)
    with pytest.raises(RowError) as caught:
        gf.fold(whole, likelihood, X, y, whole=False)
    assert caught.value.row == 4
    gf.fold(before, likelihood, X[:4], y[:4])
    np.testing.assert_allclose(whole.weights, before.weights, rtol=1e-10)


def test_on_a_clock_nothing_moves_until_time_passes():
    X, y, _ = _rows()
    bank = _bank(per_row=False)
    gf.fold(bank, LIKELIHOODS["logit"], X, y)
    first, *others = bank.members
    for other in others:
        _same_bits(other, first)
    bank.pass_time(2.5)
    for member, rate in zip(bank.members, (0.0, 0.05, 0.4), strict=True):
        np.testing.assert_allclose(member.variance(), first.variance() + 2.5 * rate**2, rtol=1e-12)


def test_what_can_be_read_is_the_mixture():
    X, y, _ = _rows()
    bank = _bank()
    gf.fold(bank, LIKELIHOODS["logit"], X, y)
    draws = bank.sample(40_000, np.random.default_rng(1))
    np.testing.assert_allclose(draws.mean(axis=0), bank.mean, atol=5 * np.sqrt(bank.variance() / 40_000).max())
    np.testing.assert_allclose(draws.var(axis=0), bank.variance(), rtol=0.1)
    mean, variance = bank.marginal(X)
    np.testing.assert_allclose((draws @ X.T).mean(axis=0), mean, atol=0.1)
    np.testing.assert_allclose((draws @ X.T).var(axis=0), variance, rtol=0.1)
    parts = np.stack([member.log_prob(draws[:3]) for member in bank.members])
    np.testing.assert_allclose(bank.log_prob(draws[:3]), np.log(bank.weights @ np.exp(parts)), rtol=1e-10)


def test_refusals():
    dense = gf.DenseGaussian.isotropic
    with pytest.raises(ValueError, match="members, dynamics: 2 and 1; as many of each"):
        gf.Bank([dense(2), dense(2)], [None])
    with pytest.raises(ValueError, match="all of one kind and dimension"):
        gf.Bank([dense(2), dense(3)], [None, None])
    with pytest.raises(ValueError, match="different priors; give all of them the same object"):
        gf.Bank([dense(2), dense(2)], [Forgetting(0.9, dense(2)), Forgetting(0.8, dense(2))])
    with pytest.raises(ValueError, match="different scales"):
        gf.Bank([dense(2), dense(2)], [RandomWalk(0.1), RandomWalk(0.2, np.ones(2))])
    with pytest.raises(ValueError, match=r"prior_weights: shape \(3,\)"):
        gf.Bank([dense(2), dense(2)], [None, None], prior_weights=np.ones(3))
    bank = gf.Bank.walking(dense(2))
    with pytest.raises(ValueError, match="each by its own dynamics"):
        gf.fold(bank, LIKELIHOODS["logit"], np.ones((1, 2)), [1], dynamics=RandomWalk(0.1), block_size=2)
    state = bank.state()
    for name, wrong in [("table", state["table"] * 0.5), ("rates", -state["rates"]), ("kinds", state["kinds"] + 3)]:
        with pytest.raises(ValueError, match=name):
            gf.Bank.from_state(state | {name: wrong})
    with pytest.raises(ValueError, match="part"):
        gf.Bank.from_state({name: array for name, array in state.items() if name != "2.factor"})
