"""What must hold for every stream: hypothesis draws the problem, the cell, and the way it is cut."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.linalg import solve_triangular

import gaussfold as gf
from gaussfold.beliefs.dense import passes as blocks
from gaussfold.dynamics import Forgetting, RandomWalk
from gaussfold.likelihoods import Bernoulli, Gaussian, Poisson
from tests import problems

SETTINGS = settings(max_examples=60, deadline=None, derandomize=True, database=None)
FEW = settings(SETTINGS, max_examples=15)
SAME = 1e-9

seeds = st.integers(0, 2**32 - 1)
cells = st.sampled_from(problems.CELLS)


def _stream(likelihood, n, d, seed):
    """Rows, labels and weights; some labels missing, some weights zero, one row repeated, one row zero."""
    rng = np.random.default_rng(seed)
    X, y = problems.data(likelihood, n, d, seed)
    weight = rng.choice([1.0, 2.5, 0.3], n)
    y[rng.random(n) < 0.1] = np.nan
    weight[rng.random(n) < 0.1] = 0.0
    X[rng.integers(n)] = X[rng.integers(n)]
    X[rng.integers(n)] = 0.0
    return X * min(1.0, np.sqrt(6.0 / d)), y, weight  # latents of the same size whatever d: e^f stays a rate


def _prior(d, seed=5):
    return gf.DenseGaussian(*problems.prior(d, seed))


def _distance(belief, other):
    """The larger of two: entries relative to the largest, and differences in units of the belief's own spread."""
    lower = np.linalg.cholesky(other.cov)
    shift = solve_triangular(lower, belief.mean - other.mean, lower=True)
    whitened = solve_triangular(lower, solve_triangular(lower, belief.cov, lower=True).T, lower=True)
    return max(
        problems.relative(belief.mean, other.mean),
        problems.relative(belief.cov, other.cov),
        float(np.abs(shift).max()),
        float(np.abs(whitened - np.eye(belief.dim)).max()),
    )


def _in_chunks(belief, cuts, likelihood, X, y, weight, *args, **options):
    edges = [0, *sorted(cuts), len(y)]
    parts = [
        gf.fold(belief, likelihood, X[a:b], y[a:b], *args, sample_weight=weight[a:b], **options)
        for a, b in pairwise(edges)
    ]
    return [np.concatenate(column) for column in zip(*parts, strict=True)]


def _assert_same_trace(got, want):
    for column, expected in zip(got, want, strict=True):
        np.testing.assert_array_equal(np.isnan(column), np.isnan(expected))
        scale = np.nanmax(np.abs(expected), initial=0.0)
        np.testing.assert_allclose(column, expected, rtol=SAME, atol=SAME * scale)


# --------------------------------------------------------------------------------- the cutting


def _assert_chunks_do_not_matter(cell, X, y, weight, cuts):
    """The whole stream at once, in pieces cut at ``cuts``, and row by row: the same trace and the same belief."""
    likelihood, rule, at = cell
    n, d = X.shape
    whole, parts, rows = _prior(d), _prior(d), _prior(d)
    expected = gf.fold(whole, likelihood, X, y, rule, at, sample_weight=weight)
    _assert_same_trace(_in_chunks(parts, cuts, likelihood, X, y, weight, rule, at), expected)
    _assert_same_trace(_in_chunks(rows, range(1, n), likelihood, X, y, weight, rule, at), expected)
    assert _distance(parts, whole) < SAME
    assert _distance(rows, whole) < SAME


@SETTINGS
@given(cell=cells, seed=seeds, n=st.integers(2, 30), d=st.integers(1, 8), data=st.data())
def test_chunks_do_not_matter(cell, seed, n, d, data):
    X, y, weight = _stream(cell[0], n, d, seed)
    cuts = data.draw(st.lists(st.integers(0, n)))  # empty chunks included
    _assert_chunks_do_not_matter(cell, X, y, weight, cuts)


@FEW
@given(likelihood=st.sampled_from(problems.FAMILIES), seed=seeds, n=st.integers(1, 25), d=st.integers(1, 8))
def test_unweighted_rows_take_the_quick_way_to_the_same_place(likelihood, seed, n, d):
    X, y, _ = _stream(likelihood, n, d, seed)
    whole, rows = _prior(d), _prior(d)
    expected = gf.fold(whole, likelihood, X, y)
    parts = [gf.fold(rows, likelihood, X[i : i + 1], y[i : i + 1]) for i in range(n)]
    _assert_same_trace([np.concatenate(column) for column in zip(*parts, strict=True)], expected)
    assert _distance(rows, whole) < SAME


@FEW
@given(
    cell=cells,
    seed=seeds,
    d=st.integers(blocks.DIRECT_DIM + 1, blocks.DIRECT_DIM + 16),
    multiple=st.floats(0.2, 5.0),
    data=st.data(),
)
def test_chunks_do_not_matter_above_the_direct_size(cell, seed, d, multiple, data):
    n = int(multiple * d)
    X, y, weight = _stream(cell[0], n, d, seed)
    cuts = data.draw(st.lists(st.integers(0, n), max_size=4))
    _assert_chunks_do_not_matter(cell, X, y, weight, cuts)


@SETTINGS
@given(
    cell=cells,
    seed=seeds,
    n=st.integers(1, 60),
    d=st.one_of(st.integers(1, 12), st.integers(blocks.DIRECT_DIM - 1, blocks.DIRECT_DIM + 6)),
    block_size=st.integers(1, 80),
)
def test_blocks_do_not_matter(cell, seed, n, d, block_size):
    likelihood, rule, at = cell
    X, y, weight = _stream(likelihood, n, d, seed)
    usual, asked = _prior(d), _prior(d)
    expected = gf.fold(usual, likelihood, X, y, rule, at, sample_weight=weight)
    got = gf.fold(asked, likelihood, X, y, rule, at, sample_weight=weight, block_size=block_size)
    _assert_same_trace(got, expected)
    assert _distance(asked, usual) < SAME


@pytest.fixture
def segments(monkeypatch):
    """How each segment of a pass went: True through the covariance, False back to the factor."""
    taken = []
    absorb = blocks._absorb_segment

    def watched(*args):
        after = absorb(*args)
        taken.append(after is not None)
        return after

    monkeypatch.setattr(blocks, "_absorb_segment", watched)
    return taken


@pytest.mark.parametrize("multiple", [2.5, 4.5, 5, 7, 9])  # one segment; with few rows left, with enough; two; ...
@pytest.mark.parametrize("likelihood", problems.FAMILIES, ids=problems.name)
def test_segments_through_the_covariance_are_the_row_loop(likelihood, multiple, segments):
    d = 66
    n = int(multiple * d)
    X, y = problems.data(likelihood, n, d, n)
    X *= np.sqrt(6.0 / d)
    weight = np.random.default_rng(n).choice([1.0, 2.5, 0.3], n)
    y[3::17] = np.nan
    weight[5::29] = 0.0
    many, single = _prior(d), _prior(d)
    result = gf.fold(many, likelihood, X, y, sample_weight=weight)
    assert segments
    if likelihood.log_concave:
        assert all(segments)
    expected = gf.fold(single, likelihood, X, y, sample_weight=weight, block_size=1)
    _assert_same_trace(result, expected)
    assert _distance(many, single) < SAME


@pytest.mark.parametrize("hard", ["flat prior", "repeated rows", "zero row"])
def test_segments_that_are_refused_leave_no_trace(hard, segments):
    d = 66
    likelihood = Gaussian(0.05)
    X, y = problems.data(likelihood, 5 * d, d, 1)
    prior = gf.DenseGaussian.isotropic(d, 1e3 if hard == "flat prior" else 0.7, 0.4)
    if hard == "repeated rows":
        X[200] = X[201]
    if hard == "zero row":
        X[200] = 0.0
    many, single = prior.copy(), prior.copy()
    result = gf.fold(many, likelihood, X, y)
    assert False in segments
    expected = gf.fold(single, likelihood, X, y, block_size=1)
    # the flat prior starts 1e4 posterior deviations away, and a Kalman recursion loses as many units of rounding
    tolerance = 1e-6 if hard == "flat prior" else SAME
    assert _distance(many, single) < tolerance
    np.testing.assert_allclose(result.site_precision, expected.site_precision, rtol=1e-12)
    np.testing.assert_allclose(result.site_shift, expected.site_shift, rtol=1e-9)


def test_a_thousand_random_splits_of_a_stream():
    """1000 random splits of one stream, with weights and missing labels, give one posterior to 1e-9 relative."""
    n, d = 60, 4
    X, y, weight = _stream(Bernoulli(), n, d, 17)
    assert np.isnan(y).any()
    assert (weight == 0.0).any()
    whole = _prior(d)
    expected = gf.fold(whole, Bernoulli(), X, y, sample_weight=weight)
    rng = np.random.default_rng(2026)
    worst = 0.0
    for _ in range(1000):
        cuts = np.flatnonzero(rng.random(n - 1) < rng.random() ** 2) + 1
        parts = _prior(d)
        _assert_same_trace(_in_chunks(parts, cuts, Bernoulli(), X, y, weight), expected)
        worst = max(worst, _distance(parts, whole))
    assert worst < SAME


# ------------------------------------------------------------------------------- the geometry


@SETTINGS
@given(seed=seeds, n=st.integers(1, 40), d=st.integers(1, 8), std=st.floats(0.05, 20.0))
def test_the_order_of_gaussian_data_does_not_matter(seed, n, d, std):
    X, y, weight = _stream(Gaussian(std), n, d, seed)
    order = np.random.default_rng(seed).permutation(n)
    one, other = _prior(d), _prior(d)
    gf.fold(one, Gaussian(std), X, y, sample_weight=weight)
    gf.fold(other, Gaussian(std), X[order], y[order], sample_weight=weight[order])
    assert _distance(other, one) < SAME


@SETTINGS
@given(cell=cells, seed=seeds, n=st.integers(1, 25), d=st.integers(1, 6), data=st.data())
def test_units_do_not_matter(cell, seed, n, d, data):
    """X → Xc, prior std → std/c, feature by feature: the latents and hence the sites stay, θ → θ/c."""
    likelihood, rule, at = cell
    X, y, weight = _stream(likelihood, n, d, seed)
    c = np.array(data.draw(st.lists(st.floats(1e-3, 1e3), min_size=d, max_size=d)))
    mean, cov = problems.prior(d)
    one, other = gf.DenseGaussian(mean, cov), gf.DenseGaussian(mean / c, cov / np.outer(c, c))
    expected = gf.fold(one, likelihood, X, y, rule, at, sample_weight=weight)
    got = gf.fold(other, likelihood, X * c, y, rule, at, sample_weight=weight)
    _assert_same_trace(got, expected)
    assert _distance(gf.DenseGaussian(other.mean * c, other.cov * np.outer(c, c)), one) < SAME


@SETTINGS
@given(cell=cells, seed=seeds, n=st.integers(1, 40), d=st.integers(1, 8), std=st.sampled_from([0.01, 0.7, 30.0, 1e3]))
def test_the_posterior_is_positive_definite_and_has_the_right_size(cell, seed, n, d, std):
    """Its singular values are one over those of the rows that make up the precision: prior and sites, stacked."""
    likelihood, rule, at = cell
    X, y, weight = _stream(likelihood, n, d, seed)
    if isinstance(likelihood, Poisson | gf.likelihoods.NegativeBinomial) and std > 1.0:
        X = X / std  # rates of e^1000 are no rates
    belief = gf.DenseGaussian.isotropic(d, std, 0.1)
    sites = gf.fold(belief, likelihood, X, y, rule, at, sample_weight=weight)
    singular = np.linalg.svd(belief.factor, compute_uv=False)
    assert np.isfinite(belief.mean).all()
    assert (singular > 0.0).all()
    if (sites.site_precision >= 0.0).all():
        rows = np.vstack([np.eye(d) / std, np.sqrt(sites.site_precision)[:, None] * X])
        spectrum = np.linalg.svd(rows, compute_uv=False)
        np.testing.assert_allclose(singular * spectrum[::-1], 1.0, rtol=1e-7)


@SETTINGS
@given(
    cell=st.sampled_from([cell for cell in problems.CELLS if cell[0].log_concave]),
    seed=seeds,
    n=st.integers(1, 15),
    d=st.integers(1, 6),
)
def test_log_concave_data_never_raise_a_variance(cell, seed, n, d):
    likelihood, rule, at = cell
    X, y, weight = _stream(likelihood, n, d, seed)
    belief = _prior(d)
    for i in range(n):
        before = belief.cov
        row = slice(i, i + 1)
        result = gf.fold(belief, likelihood, X[row], y[row], rule, at, sample_weight=weight[row])
        assert result.site_precision[0] >= 0.0
        size = np.abs(before).max()
        assert np.linalg.eigvalsh(before - belief.cov).min() >= -1e-13 * size
        assert (belief.variance() <= np.diag(before) + 1e-14 * size).all()


# ---------------------------------------------------------------------------- all or nothing


def _spoil_label(X, y, weight, i):
    y[i] = -1.0


def _spoil_infinite_label(X, y, weight, i):
    y[i] = np.inf


def _spoil_row(X, y, weight, i):
    X[i, 0] = np.nan


def _spoil_infinite_row(X, y, weight, i):
    X[i, -1] = -np.inf


def _spoil_weight(X, y, weight, i):
    weight[i] = -0.5


def _spoil_scale(X, y, weight, i):
    X[i], y[i], weight[i] = 1e200, 1.0, 1.0


SPOILERS = [
    (_spoil_label, "y"),
    (_spoil_infinite_label, "y"),
    (_spoil_row, "X: row"),
    (_spoil_infinite_row, "X: row"),
    (_spoil_weight, "sample_weight: row"),
]
OVERFLOW = (_spoil_scale, "X: row")


def _assert_refused(belief, message, *args, **options):
    before = belief.state()
    with pytest.raises(ValueError, match=message):
        gf.fold(belief, *args, **options)
    for key, value in belief.state().items():
        np.testing.assert_array_equal(value, before[key])


@SETTINGS
@given(
    spoiler=st.sampled_from(SPOILERS),
    likelihood=st.sampled_from([Bernoulli(), Bernoulli("probit"), Poisson()]),
    kind=st.sampled_from(["static", "forgetting", "walk"]),
    size=st.sampled_from([(1, 3), (12, 3), (3, 70), (50, 70), (200, 70)]),
    block_size=st.sampled_from([None, 1, 5]),
    seed=seeds,
    data=st.data(),
)
def test_all_or_nothing(spoiler, likelihood, kind, size, block_size, seed, data):
    spoil, message = spoiler
    n, d = size
    X, y, weight = _stream(likelihood, n, d, seed)
    belief = _prior(d)
    gf.fold(belief, likelihood, X, y)
    i = data.draw(st.integers(0, n - 1))
    spoil(X, y, weight, i)
    dynamics = {"static": None, "forgetting": Forgetting(0.97, _prior(d)), "walk": RandomWalk(0.1)}[kind]
    options = {"sample_weight": weight, "dynamics": dynamics, "block_size": block_size}
    _assert_refused(belief, rf"{message}.*\b{i}\b", likelihood, X, y, **options)


@pytest.mark.parametrize("kind", ["static", "forgetting", "walk"])
@pytest.mark.parametrize("block_size", [None, 1, 5])
@pytest.mark.parametrize(("n", "d"), [(1, 3), (12, 3), (3, 70), (50, 70), (400, 70)])
def test_all_or_nothing_when_a_row_overflows_midway(n, d, block_size, kind):
    """Rows before it were learned by then, some of them in earlier blocks and segments."""
    X, y, weight = _stream(Bernoulli(), n, d, 7)
    belief = _prior(d)
    i = 4 * n // 5
    _spoil_scale(X, y, weight, i)
    dynamics = {"static": None, "forgetting": Forgetting(0.97, _prior(d)), "walk": RandomWalk(0.1)}[kind]
    options = {"sample_weight": weight, "dynamics": dynamics, "block_size": block_size}
    _assert_refused(belief, rf"X: row {i}\b", Bernoulli(), X, y, **options)


@pytest.mark.parametrize("spoiler", [*SPOILERS[:4], OVERFLOW], ids=lambda s: s[0].__name__)
def test_all_or_nothing_the_quick_way(spoiler):
    spoil, message = spoiler
    X, y, weight = _stream(Bernoulli(), 9, 3, 4)
    belief = _prior(3)
    gf.fold(belief, Bernoulli(), X, y)
    spoil(X, y, weight, 2)
    _assert_refused(belief, message, Bernoulli(), X[2:3], y[2:3])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"X": np.ones((4, 2))}, r"X: shape \(4, 2\)"),
        ({"X": np.ones(3)}, r"X: shape \(3,\)"),
        ({"y": np.ones(3)}, r"y: shape \(3,\)"),
        ({"sample_weight": np.ones(5)}, r"sample_weight: shape \(5,\)"),
        ({"rule": "cavi"}, "rule='cavi'"),
        ({"at": "present"}, "at='present'"),
        ({"block_size": 0}, "block_size=0"),
    ],
)
def test_wrong_calls_change_nothing(change, message):
    _assert_refused(_prior(3), message, Bernoulli(), **({"X": np.ones((4, 3)), "y": np.ones(4)} | change))
