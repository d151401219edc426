"""Beliefs that travel: what workers learn is added up, in any order, to the last bit."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

import gaussfold as gf
from tests.reference import deltas as reference

LOGIT = gf.likelihoods.Bernoulli("logit")
D = 40


def rows(n, seed, d=D):
    rng = np.random.default_rng(seed)
    X = sparse.random(n, d, density=0.1, format="csr", random_state=rng, data_rvs=rng.standard_normal)
    return X, (rng.random(n) < 0.4).astype(float)


def diagonal(**options):
    return gf.DiagonalGaussian.isotropic(D, std=0.7, **options)


MAKERS = {
    "marginal": diagonal,
    "joint": lambda: diagonal(coupling="joint"),
    "float32": lambda: diagonal(dtype="float32"),
    "own priors": lambda: gf.DiagonalGaussian.independent(np.linspace(-1, 1, D), np.linspace(0.2, 9.0, D)),
    "mixture": lambda: gf.DiagonalMixture.isotropic(D, stds=(0.1, 0.7, 3.0)),
    "dense": lambda: gf.DenseGaussian.isotropic(D, std=0.7),
}
each = pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)


def learned(belief, n, seed):
    belief = belief.copy()
    X, y = rows(n, seed)
    gf.fold(belief, LOGIT, X if not isinstance(belief, gf.DenseGaussian) else X.toarray(), y, rule="newton")
    return belief


def same_bits(a, b):
    ours, theirs = a.state(), b.state()
    return ours.keys() == theirs.keys() and all(
        ours[name].dtype == theirs[name].dtype and ours[name].tobytes() == theirs[name].tobytes() for name in ours
    )


@each
def test_a_delta_brings_the_base_to_what_was_learned(make):
    base = learned(make(), 30, seed=1)
    shard = learned(base, 50, seed=2)
    joined = base.copy()
    joined.apply(shard.delta(base))
    std = np.sqrt(shard.variance())
    np.testing.assert_allclose(joined.mean / std, shard.mean / std, atol=2e-5)
    np.testing.assert_allclose(joined.variance(), shard.variance(), rtol=2e-5)
    if isinstance(joined, gf.DiagonalMixture):
        np.testing.assert_allclose(joined.weights, shard.weights, rtol=1e-4)


@each
def test_any_order_and_grouping_gives_the_same_bits(make):
    base = learned(make(), 30, seed=1)
    parts = [learned(base.tempered(4), 20, seed).delta(base.tempered(4)) for seed in range(2, 6)]
    found = []
    for a, b, c, d in itertools.permutations(parts):
        for total in (a.merge(b).merge(c).merge(d), a.merge(b).merge(c.merge(d))):
            joined = base.copy()
            joined.apply(total)
            found.append(joined)
    assert all(same_bits(found[0], other) for other in found[1:])
    assert not same_bits(found[0], base)


def test_normal_noise_adds_up_to_one_pass():
    rng = np.random.default_rng(3)
    base = gf.DenseGaussian.isotropic(6, std=1.3)
    X = rng.normal(size=(90, 6)) @ rng.normal(size=(6, 6))
    y = rng.normal(size=90)
    noise = gf.likelihoods.Gaussian(0.4)
    shards = [base.copy() for _ in range(3)]
    for shard, part in zip(shards, np.array_split(np.arange(90), 3), strict=True):
        gf.fold(shard, noise, X[part], y[part])
    one = base.copy()
    gf.fold(one, noise, X, y)
    total = shards[0].delta(base).merge(shards[1].delta(base)).merge(shards[2].delta(base))
    joined = base.copy()
    joined.apply(total)
    assert joined.kl(one) < 1e-12
    np.testing.assert_allclose(joined.mean, one.mean, rtol=1e-9)


def test_cells_are_what_exact_fractions_say():
    base = learned(diagonal(), 30, seed=1)
    parts = [learned(base, 20, seed) for seed in (2, 3)]
    deltas = [part.delta(base) for part in parts]
    cells = base.cells()[:, :, 0]
    expected = [
        {j: reference.change(cells[j], after[j]) for j in np.flatnonzero((after != cells).any(axis=1)).tolist()}
        for after in (part.cells()[:, :, 0] for part in parts)
    ]

    def plain(delta):
        fixed = delta.cells
        return {
            int(j): (int(h), int(p), int(s))
            for j, h, p, s in zip(
                fixed.slots, fixed.exponent[:, 0], fixed.precision[:, 0], fixed.shift[:, 0], strict=True
            )
        }

    for delta, known in zip(deltas, expected, strict=True):
        assert plain(delta) == known
    total = deltas[0].merge(deltas[1])
    assert plain(total) == reference.summed(expected)
    joined = base.copy()
    joined.apply(total)
    for j, one in plain(total).items():
        np.testing.assert_allclose(joined.cells()[j, :, 0], reference.added(cells[j], one), rtol=1e-13)


@pytest.mark.parametrize("shards", [1, 2, 7])
def test_a_tempered_base_keeps_means_and_what_is_hardly_known(shards):
    belief = learned(diagonal(), 400, seed=1)
    base = belief.tempered(shards, least=5.0)
    np.testing.assert_array_equal(base.mean, belief.mean)
    for v, tempered in zip(belief.var, base.var, strict=True):
        assert tempered == pytest.approx(reference.tempered(0.0, v, shards, max(5.0, 1 / 0.49))[1], rel=1e-14)
    dense = learned(gf.DenseGaussian.isotropic(D, std=0.7), 40, seed=1)
    np.testing.assert_allclose(dense.tempered(shards).cov, shards * dense.cov, rtol=1e-12, atol=1e-14)


def test_a_large_belief_is_not_looked_through():
    dim = 2**23  # 128 MB of cells: pages that rows have met are marked
    base = gf.DiagonalGaussian.isotropic(dim, std=0.7)
    rng = np.random.default_rng(5)
    columns = np.sort(rng.choice(dim, 300, replace=False))
    X = sparse.csr_matrix((np.ones(300), columns, np.arange(0, 301, 3)), shape=(100, dim))
    shards = [base.copy() for _ in range(2)]
    for shard, y in zip(shards, (np.ones(100), np.zeros(100)), strict=True):
        gf.fold(shard, LOGIT, X, y, rule="newton")
    total = shards[0].delta(base).merge(shards[1].delta(base))
    np.testing.assert_array_equal(total.cells.slots, columns)
    joined = base.copy()
    joined.apply(total)
    np.testing.assert_array_equal(joined.touched(), columns)
    plain = gf.DiagonalGaussian.combine(base, shards)
    np.testing.assert_array_equal(plain.touched(), columns)
    np.testing.assert_allclose(joined.moments(columns).variance, plain.moments(columns).variance, rtol=1e-5)
    gf.fold(joined, LOGIT, X, np.ones(100), rule="newton")  # cells that were not written are written now
    other = np.setdiff1d(rng.choice(dim, 50), columns)
    np.testing.assert_array_equal(joined.moments(other).variance, np.full(other.size, 0.7**2))
    again = joined.delta(base)
    np.testing.assert_array_equal(again.cells.slots, columns)


@given(
    mean=st.floats(-1e3, 1e3), std=st.floats(1e-3, 1e3), gain=st.floats(1e-9, 1e9), move=st.floats(-1e3, 1e3)
)  # fmt: skip
@settings(max_examples=60, deadline=None)
def test_a_cell_comes_back_to_a_millionth_of_a_standard_deviation(mean, std, gain, move):
    base = gf.DiagonalGaussian([mean], [std**2])
    variance = 1.0 / (std**-2 + gain)
    after = gf.DiagonalGaussian([mean + move * std], [variance])
    joined = base.copy()
    try:
        joined.apply(after.delta(base))
    except ValueError:  # refused, but only where precision or shift near the end of 64 bits
        assert gain * std**2 * (1.0 + abs(move) + abs(mean) / std) > 2.0**38
        return
    assert abs(joined.mean[0] - after.mean[0]) <= 4e-6 * (std + abs(after.mean[0]))
    assert joined.var[0] == pytest.approx(variance, rel=4e-6)


def test_what_cannot_be_added_is_refused_and_changes_nothing():
    base = learned(diagonal(), 30, seed=1)
    delta = learned(base, 20, seed=2).delta(base)
    flatter = learned(gf.DiagonalGaussian.isotropic(D, std=9.0), 30, seed=1)
    elsewhere = learned(flatter, 20, seed=2).delta(flatter)
    with pytest.raises(ValueError, match="another base"):
        delta.merge(elsewhere)
    wide = gf.DiagonalGaussian.isotropic(D + 1, std=0.7)
    with pytest.raises(ValueError, match=f"{D + 1}"):
        delta.merge(learned_wide(wide))
    before = wide.copy()
    with pytest.raises(ValueError, match="delta"):
        wide.apply(delta)
    assert same_bits(wide, before)
    with pytest.raises(ValueError, match="base"):
        base.delta(wide)
    with pytest.raises(ValueError, match="components"):
        base.delta(gf.DiagonalMixture.isotropic(D, stds=(0.1, 1.0)))
    with pytest.raises(ValueError, match="shards=0"):
        base.tempered(0)
    flat, sharp = gf.DiagonalGaussian([0.0], [1e12]), gf.DiagonalGaussian([0.0], [1e-9])
    with pytest.raises(ValueError, match="feature 0 has learned more than 64 bits hold"):
        sharp.delta(flat)
    dense = [gf.DenseGaussian([0.0], [[v]]) for v in (1e12, 1e-9)]
    with pytest.raises(ValueError, match="64 bits"):
        dense[1].delta(dense[0])
    # precision taken away: more than there is
    wider = gf.DiagonalGaussian([0.0], [4.0])
    start = gf.DiagonalGaussian([0.0], [1.0])
    loss = wider.delta(start)
    with pytest.raises(ValueError, match="no longer be a Gaussian"):
        start.apply(loss.merge(loss))
    assert start.var[0] == 1.0
    moving = base.copy()
    gf.fold(moving, LOGIT, *rows(5, 1), rule="newton", dynamics=gf.dynamics.Forgetting(0.97, diagonal()))
    with pytest.raises(ValueError, match="time passes"):
        moving.delta(base)


def learned_wide(belief):
    shard = belief.copy()
    gf.fold(shard, LOGIT, *rows(10, 3, D + 1), rule="newton")
    return shard.delta(belief)
