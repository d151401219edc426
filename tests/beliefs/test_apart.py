"""Shards of a round in one process: each as if it were alone, and put together what one pass knows, nearly."""

import itertools

import numpy as np
import pytest
from scipy import sparse

import gaussfold as gf
from gaussfold.folding import recipe_of
from gaussfold.observations import check
from gaussfold.trace import RowError

LOGIT = gf.likelihoods.Bernoulli("logit")
PROGRAM = recipe_of(LOGIT, "newton", "posterior").program
D = 60
MAKERS = {
    "gaussian": lambda: gf.DiagonalGaussian.isotropic(D, std=0.7),
    "own priors": lambda: gf.DiagonalGaussian.independent(np.linspace(-1, 1, D), np.linspace(0.2, 3.0, D)),
    "joint, single": lambda: gf.DiagonalGaussian.isotropic(D, std=0.7, coupling="joint", dtype="float32"),
    "mixture": lambda: gf.DiagonalMixture.isotropic(D, stds=(0.1, 0.7, 3.0)),
    "stack": lambda: gf.DiagonalStack.isotropic(D, dtype="float32"),
}
each = pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)


def rows(n, seed):
    rng = np.random.default_rng(seed)
    X = sparse.random(n, D, density=0.08, format="csr", random_state=rng, data_rvs=rng.standard_normal)
    theta = np.random.default_rng(0).normal(size=D)
    y = (rng.random(n) < 1.0 / (1.0 + np.exp(-(X @ theta)))).astype(float)
    y[::13] = np.nan
    return check(LOGIT, X, y, D, np.where(np.arange(n) % 5 == 2, 2.5, np.arange(n) % 9 > 0))


def begun(make, n=300):
    belief = make()
    data = rows(n, 1)
    gf.fold(belief, LOGIT, data.X, data.y, rule="newton", sample_weight=data.weight)
    return belief


def bits(belief):
    return {name: (array.dtype.str, array.tobytes()) for name, array in belief.state().items()}


def shard(apart, index, count, n=400):
    apart.begin(index)
    trace = apart.learn(rows(n, 10 + index), PROGRAM)
    return apart.delta(last=index == count - 1), trace


def joined(belief, deltas):
    total = deltas[0]
    for delta in deltas[1:]:
        total = total.merge(delta)
    after = belief.copy()
    after.apply(total)
    return after


@each
def test_shards_by_one_process_are_shards_by_many_in_any_order(make):
    belief = begun(make)
    before = bits(belief)
    one = belief.apart(4)
    here = [shard(one, k, 4) for k in (2, 0, 3, 1)]
    apart = [shard(belief.apart(4), k, 4) for k in (2, 0, 3, 1)]
    for (_, ours), (_, theirs) in zip(here, apart, strict=True):
        np.testing.assert_array_equal(ours.log_predictive, theirs.log_predictive)
    expected = bits(joined(belief, [delta for delta, _ in here]))
    for order in itertools.islice(itertools.permutations(apart), 0, 24, 5):
        assert bits(joined(belief, [delta for delta, _ in order])) == expected
    assert bits(belief) == before
    assert expected != before


@each
def test_a_shard_alone_learns_and_predicts_as_always(make, tmp_path):
    belief, fresh = begun(make), rows(200, 3)
    delta, trace = shard(belief.apart(1), 0, 1)
    after = joined(belief, [delta])
    data = rows(400, 10)
    plain = gf.fold(belief, LOGIT, data.X, data.y, rule="newton", sample_weight=data.weight)
    np.testing.assert_array_equal(trace.log_predictive, plain.log_predictive)
    ours, theirs = after.marginal(fresh.X), belief.marginal(fresh.X)
    np.testing.assert_allclose(ours.mean, theirs.mean, atol=2e-3 * np.sqrt(theirs.variance).max())
    np.testing.assert_allclose(ours.variance, theirs.variance, rtol=2e-3)
    gf.save(after, tmp_path / "m")
    assert bits(gf.load(tmp_path / "m")) == bits(after)


@each
def test_shards_together_know_what_one_pass_knows_nearly(make):
    belief, fresh = begun(make, 3000), rows(3000, 3)
    one = belief.apart(3)
    after = joined(belief, [shard(one, k, 3, 600)[0] for k in range(3)])
    for k in range(3):
        data = rows(600, 10 + k)
        gf.fold(belief, LOGIT, data.X, data.y, rule="newton", sample_weight=data.weight)

    def loss(of):
        told = fresh.part(~np.isnan(fresh.y))
        scores = LOGIT.log_predictive(told.y[:, None], of.marginals(told.X))
        return -np.logaddexp.reduce(of.log_weights + scores, axis=1).mean()

    assert loss(after) < loss(belief) * 1.01


def test_a_stack_counts_what_its_shards_have_counted():
    belief = begun(MAKERS["stack"])
    deltas = [shard(belief.apart(3), k, 3)[0] for k in range(3)]
    after = joined(belief, deltas)
    data = [rows(400, 10 + k) for k in range(3)]
    learned = sum(int(part.learned.sum()) for part in data)
    assert sum(delta.learned for delta in deltas) == learned
    assert after.state()["stack.learned"] == belief.state()["stack.learned"] + learned
    np.testing.assert_allclose(
        after.state()["moving.clock"] - belief.state()["moving.clock"], -learned * np.log(0.99), rtol=1e-9
    )
    last = begun(MAKERS["stack"]).apart(3)  # who forgets remembers the last shard alone
    again, _ = shard(last, 2, 3)
    np.testing.assert_array_equal(deltas[2].tail.recent, again.tail.recent)
    assert deltas[0].tail is None
    with pytest.raises(ValueError, match="came last"):
        deltas[2].merge(again)
    # P(weights) after: prior shares handed out anew, then evidence, then the last row's share
    prior = np.append(np.full(5, 0.1), 0.5)
    t = float(belief.state()["stack.learned"][0]) + 1.0
    kept = (t / (t + learned)) ** 0.1
    evidence = sum(delta.evidence for delta in deltas) / 2**20
    w = (kept * belief.weights + (1 - kept) * prior) * np.exp(evidence - evidence.max())
    expected = (1 - 0.1 / (t + learned)) * w / w.sum() + 0.1 / (t + learned) * prior
    np.testing.assert_allclose(after.weights, expected, rtol=1e-9)


@each
def test_rows_before_one_that_cannot_be_learned_stay_learned(make):
    belief = begun(make)
    data = rows(100, 4)
    X = data.X.matrix().copy() if hasattr(data.X, "matrix") else data.X
    row = int(np.flatnonzero(data.learned & (np.diff(X.indptr) > 0))[40])
    X.data[X.indptr[row]] = 1e300
    apart = belief.apart(2)
    apart.begin(1)
    with pytest.raises(RowError) as failed:
        apart.learn(check(LOGIT, X, data.y, D, data.weight), PROGRAM)
    assert failed.value.row == row
    delta = apart.delta(last=True)
    other = belief.apart(2)
    other.begin(1)
    trace = other.learn(data.part(slice(row)), PROGRAM)
    np.testing.assert_array_equal(failed.value.trace.log_predictive, trace.log_predictive)
    assert bits(joined(belief, [delta])) == bits(joined(belief, [other.delta(last=True)]))


@each
def test_nothing_learned_is_no_change(make):
    belief = begun(make)
    apart = belief.apart(2)
    apart.begin(0)
    data = rows(50, 4)
    apart.learn(data._replace(y=np.full(50, np.nan)), PROGRAM)
    first = apart.delta(last=False)
    apart.begin(1)
    after = joined(belief, [first, apart.delta(last=True)])
    np.testing.assert_array_equal(after.mean, belief.mean)
    assert after.marginal(data.X).mean == pytest.approx(belief.marginal(data.X).mean, abs=1e-9)


def test_what_does_not_go_together_is_refused():
    stack, gaussian = begun(MAKERS["stack"]), begun(MAKERS["gaussian"])
    delta, _ = shard(stack.apart(1), 0, 1)
    with pytest.raises(ValueError, match="a DiagonalGaussian takes a CellDelta"):
        gaussian.apply(delta)
    with pytest.raises(ValueError, match="a DiagonalStack takes what its own shards"):
        stack.apply(shard(gaussian.apart(1), 0, 1)[0])
    with pytest.raises(ValueError, match="apart"):
        stack.tempered(2)
    with pytest.raises(ValueError, match="shards"):
        gaussian.apart(0)
