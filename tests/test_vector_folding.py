"""Rows of several latents: the Kalman filter, classes, any log_prob; names; bad input; promises."""

import numpy as np
import pytest
from scipy.optimize import minimize

import gaussfold as gf
from gaussfold.dynamics import Forgetting, RandomWalk
from gaussfold.expectations.classes import class_log_probabilities
from gaussfold.likelihoods import Bernoulli, Gaussian, Softmax, VectorGaussian, VectorLikelihood
from tests.reference import softmax as reference


def measurements(rng, n=30, q=3, d=4):
    H = rng.normal(size=(n, q, d))
    A = rng.normal(size=(n, q, q))
    R = A @ np.swapaxes(A, 1, 2) + 0.1 * np.eye(q)
    Y = rng.normal(size=(n, q))
    return H, Y, R


@pytest.mark.parametrize("gaps", [False, True], ids=["whole", "partly missing"])
@pytest.mark.parametrize("rule", ["vi", "newton", "ep", "pl", "taylor"])
def test_the_kalman_filter(gaps, rule):
    """rvga (40)-(42): all rules agree with the textbook, missing outputs left out one by one."""
    rng = np.random.default_rng(3)
    H, Y, R = measurements(rng)
    if gaps:
        Y[rng.random(Y.shape) < 0.3] = np.nan
        Y[5] = np.nan
    A = rng.normal(size=(4, 4))
    mean, cov = rng.normal(size=4), A @ A.T + 0.3 * np.eye(4)
    belief = gf.DenseGaussian(mean, cov)
    result = gf.fold(belief, VectorGaussian(R), H, Y, rule=rule)
    m, P, scores = reference.kalman(mean, cov, H, Y, R)
    tight = 1e-10 if rule != "pl" else 1e-7  # pl by nodes
    np.testing.assert_allclose(belief.mean, m, atol=tight)
    np.testing.assert_allclose(belief.cov, P, atol=tight)
    np.testing.assert_allclose(result.log_predictive, scores, rtol=1e-9)


def test_one_covariance_serves_all_rows_and_each_row_may_have_its_own():
    rng = np.random.default_rng(0)
    H, Y, R = measurements(rng, n=8)
    shared, each = (gf.DenseGaussian.isotropic(4, 0.7) for _ in range(2))
    gf.fold(shared, VectorGaussian(R[0]), H, Y, at="prior")
    gf.fold(each, VectorGaussian(np.repeat(R[:1], 8, axis=0)), H, Y, at="extragradient")
    np.testing.assert_allclose(shared.mean, each.mean, atol=1e-12)
    np.testing.assert_allclose(shared.cov, each.cov, atol=1e-12)


def test_independent_outputs_are_rows_of_their_own():
    rng = np.random.default_rng(1)
    H, Y, _ = measurements(rng, n=10)
    vector, rows = gf.DenseGaussian.isotropic(4, 0.7), gf.DenseGaussian.isotropic(4, 0.7)
    gf.fold(vector, VectorGaussian(0.25 * np.eye(3)), H, Y, sample_weight=np.full(10, 2.5))
    gf.fold(rows, Gaussian(0.5), H.reshape(-1, 4), Y.ravel(), sample_weight=np.full(30, 2.5))
    np.testing.assert_allclose(vector.mean, rows.mean, atol=1e-12)
    np.testing.assert_allclose(vector.cov, rows.cov, atol=1e-12)


@pytest.mark.parametrize("make", [
    lambda: gf.LowRankGaussian.isotropic(4, 4, std=0.7, rng=np.random.default_rng(1)),
    lambda: gf.DiagonalGaussian.isotropic(4, std=0.7, coupling="joint"),
], ids=["lowrank", "diagonal"])  # fmt: skip
def test_other_beliefs_take_vectors_too(make):
    """One row whose outputs see one parameter each: every belief has the exact answer."""
    belief = make()
    before, H, Y = belief.to_dense(), np.eye(4)[None, :2], np.array([[0.8, -0.3]])
    gf.fold(belief, VectorGaussian([[0.5, 0.0], [0.0, 2.0]]), H, Y)
    m, P, _ = reference.kalman(before.mean, before.cov, H, Y, np.array([[[0.5, 0.0], [0.0, 2.0]]]))
    np.testing.assert_allclose(belief.mean, m, atol=1e-6)
    np.testing.assert_allclose(belief.variance(), np.diag(P), rtol=1e-6)


def classes(rng, n=40, K=3, d=4):
    W, X = rng.normal(size=(K, d)), rng.normal(size=(n, d))
    y = (X @ W.T + rng.gumbel(size=(n, K))).argmax(axis=1).astype(float)
    return X, y


def start(kind, K=3, d=4, std=0.7):
    if kind == "joint":
        return gf.DenseGaussian.isotropic(K * d, std)
    if kind == "diagonal":
        return gf.DiagonalBlocks.isotropic(K, d, std)
    if kind == "lowrank":
        return gf.BlockGaussian(
            [gf.LowRankGaussian.isotropic(d, 2, std, rng=np.random.default_rng(k)) for k in range(K)]
        )
    return gf.BlockGaussian.isotropic(K, d, std)


KINDS = ["joint", "block", "diagonal", "lowrank"]


def test_block_classes_are_their_twin():
    rng = np.random.default_rng(2)
    X, y = classes(rng)
    y[[4, 9]] = np.nan
    weight = rng.choice([0.0, 1.0, 2.5], size=40)
    belief, nodes = start("block"), Softmax(3).class_nodes
    result = gf.fold(belief, Softmax(3), X, y, sample_weight=weight)
    covs = np.stack([0.49 * np.eye(4)] * 3)
    means, covs, scores = reference.block_fold(np.zeros((3, 4)), covs, X, y, weight, nodes)
    np.testing.assert_allclose(np.stack([b.mean for b in belief.blocks]), means, atol=2e-5)
    np.testing.assert_allclose(np.stack([b.cov for b in belief.blocks]), covs, atol=2e-5)
    np.testing.assert_allclose(result.log_predictive, scores, atol=1e-5)


@pytest.mark.parametrize("kind", KINDS)
def test_scores_of_classes_are_what_predictions_say(kind):
    """Also of a class that was next to impossible, whose probability no double holds."""
    rng = np.random.default_rng(6)
    X, y = classes(rng)
    belief = start(kind)
    gf.fold(belief, Softmax(3), X, y, sample_weight=np.full(len(y), 300.0))
    X = np.vstack([X[:6], 400.0 * belief.mean[None, :4]])
    log_p = class_log_probabilities(*belief.class_marginals(X, 3))
    for label in range(3):
        scores = [
            gf.fold(belief.copy(), Softmax(3), x[None], [label], sample_weight=[0.0]).log_predictive[0] for x in X
        ]
        np.testing.assert_allclose(scores, log_p[:, label], rtol=1e-11, atol=1e-15)
    assert log_p.min() < -30.0


def test_diagonal_classes_are_their_twin():
    rng = np.random.default_rng(4)
    X, y = classes(rng)
    X[rng.random(X.shape) < 0.4] = 0.0
    X[:, 0] += X.any(axis=1) == 0
    belief = start("diagonal")
    gf.fold(belief, Softmax(3), X, y)
    means, variances = reference.diagonal_fold(np.zeros((3, 4)), np.full((3, 4), 0.49), X, y, Softmax(3).class_nodes)
    np.testing.assert_allclose(belief.weights().mean, means, atol=2e-5)
    np.testing.assert_allclose(belief.weights().variance, variances, atol=2e-5)


def test_joint_classes_are_near_the_optimum_of_every_row():
    """Curvature is averaged at the nodes where the twin differentiates them: they differ by what nodes are worth."""
    rng = np.random.default_rng(5)
    X, y = classes(rng, n=15)
    belief, nodes = start("joint"), Softmax(3).class_nodes
    mean, cov = np.zeros(12), 0.49 * np.eye(12)
    for x, label in zip(X, y, strict=True):
        H = np.kron(np.eye(3), x)
        m, V = H @ mean, H @ cov @ H.T
        new_m, new_V = reference.joint_optimum(m, V, int(label), 2.5, nodes)
        gain = cov @ H.T @ np.linalg.inv(V)
        mean = mean + gain @ (new_m - m)
        cov = cov - gain @ (V - new_V) @ gain.T
    gf.fold(belief, Softmax(3), X, y, sample_weight=np.full(15, 2.5))
    std = np.sqrt(np.diag(cov))
    assert np.abs((belief.mean - mean) / std).max() < 0.02
    assert np.abs(np.sqrt(belief.variance()) / std - 1).max() < 0.01


def test_compiled_and_python_classes_agree():
    """The same rows as matrices H go through the Python path, on Gauss-Hermite nodes."""
    rng = np.random.default_rng(6)
    X, y = classes(rng, n=25)
    H = np.stack([np.kron(np.eye(3), x) for x in X])
    compiled, python = start("joint"), start("joint")
    gf.fold(compiled, Softmax(3), X, y)
    gf.fold(python, Softmax(3), H, y)
    std = np.sqrt(python.variance())
    assert np.abs((compiled.mean - python.mean) / std).max() < 0.02
    assert np.abs(np.sqrt(compiled.variance()) / std - 1).max() < 0.01


@pytest.mark.parametrize("kind", ["joint", "block"])
def test_sweeps_settle_where_the_order_no_longer_matters(kind):
    rng = np.random.default_rng(7)
    X, y = classes(rng)
    found = []
    for order in (np.arange(40), np.arange(40)[::-1]):
        belief = start(kind)
        sites = gf.fold(belief, Softmax(3), X[order], y[order])
        gf.sweep(belief, Softmax(3), X[order], y[order], sites, n_sweeps=60)
        found.append((belief.mean, belief.variance()))
    np.testing.assert_allclose(found[0][0], found[1][0], atol=2e-4)
    np.testing.assert_allclose(found[0][1], found[1][1], atol=2e-4)
    if kind == "joint":  # and near the batch optimum, whose mean the mode is close to

        def loss(theta):
            F = X @ theta.reshape(3, 4).T
            return 0.5 * theta @ theta / 0.49 - Softmax(3).log_prob(y[:, None], F).sum()

        mode = minimize(loss, np.zeros(12)).x
        assert np.abs(found[0][0] - mode).max() < 0.3 * np.sqrt(found[0][1]).min()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("dynamics", [None, "forgetting", "walk"])
def test_promises(kind, dynamics):
    """Chunking, save and resume, weight 0 and NaN, whole or nothing: bit for bit."""
    rng = np.random.default_rng(8)
    X, y = classes(rng, n=12)
    how = {None: None, "forgetting": Forgetting(0.97, start(kind)), "walk": RandomWalk(0.1)}[dynamics]
    if kind == "lowrank" and dynamics == "walk":
        pytest.skip("a low-rank belief drifts in blocks of its own")
    once, parts, gaps = start(kind), start(kind), start(kind)
    gf.fold(once, Softmax(3), X, y, dynamics=how)
    for rows in (slice(0, 1), slice(1, 7), slice(7, 12)):
        gf.fold(parts, Softmax(3), X[rows], y[rows], dynamics=how)
        parts = type(parts).from_state(parts.state())
    extra = np.insert(np.arange(12), 5, [0, 3])
    labels, weight = y[extra], np.ones(14)
    labels[5], weight[6] = np.nan, 0.0
    gf.fold(gaps, Softmax(3), X[extra], labels, dynamics=how, sample_weight=weight)
    for name, array in once.state().items():
        np.testing.assert_array_equal(parts.state()[name], array, err_msg=name)
        np.testing.assert_array_equal(gaps.state()[name], array, err_msg=name)
    before = once.state()
    huge = X.copy()
    huge[7] = 1e200
    with pytest.raises(ValueError, match="row 7"):
        gf.fold(once, Softmax(3), huge, y, dynamics=how)
    for name, array in before.items():
        np.testing.assert_array_equal(once.state()[name], array, err_msg=name)


@pytest.mark.parametrize("kind", KINDS)
def test_rows_before_a_bad_one_stay_learned_if_asked(kind):
    X, y = classes(np.random.default_rng(9), n=6)
    bad = X.copy()
    bad[4] = 1e200
    belief, expected = start(kind), start(kind)
    gf.fold(expected, Softmax(3), X[:4], y[:4])
    with pytest.raises(ValueError, match="nothing from it on") as error:
        gf.fold(belief, Softmax(3), bad, y, whole=False)
    assert error.value.trace.mean.shape == (4, 3)
    np.testing.assert_array_equal(belief.mean, expected.mean)


def test_rvga_theorem_4():
    """(97): the natural parameters move by the gradient in the mean parameters, at the belief they lead to."""
    X, y = classes(np.random.default_rng(10), n=1)
    belief = start("joint")
    H = np.kron(np.eye(3), X[0])
    gf.fold(belief, Softmax(3), H[None], y)
    (before, before_mean), (after, after_mean) = start("joint").natural(), belief.natural()

    def expected(mean, cov):  # E log p as a function of the mean parameters' moments
        return float(Softmax(3).expected_log_prob(y[:, None], (H @ mean)[None], (H @ cov @ H.T)[None])[0])

    m, P = belief.mean, belief.cov
    step, eye = 1e-5, np.eye(12)
    by_mean = np.array([(expected(m + step * e, P) - expected(m - step * e, P)) / (2 * step) for e in eye])

    def both(a, b):
        change = step * (np.outer(a, b) + np.outer(b, a))
        return (expected(m, P + change) - expected(m, P - change)) / (4 * step)

    by_cov = np.array([[both(a, b) for a in eye] for b in eye])
    # with mean parameters (m, P + mm'): ∂/∂m at fixed second moments is by_mean - 2 by_cov m, and ∂/∂(P + mm') by_cov
    np.testing.assert_allclose(after_mean - before_mean, by_mean - 2 * by_cov @ m, atol=1e-5)
    np.testing.assert_allclose(-0.5 * (after - before), by_cov, atol=1e-5)


@pytest.mark.parametrize("derivatives", [1, 0])
def test_averages_without_derivatives(derivatives):
    """rvga (16)-(19): the same numbers, as far as nodes go."""
    X, y = classes(np.random.default_rng(11), n=10)
    H = np.stack([np.kron(np.eye(3), x) for x in X])
    exact, free = start("joint"), start("joint")
    gf.fold(exact, Softmax(3), H, y, cubature=gf.likelihoods.chained.resolve_cubature("gauss-hermite", 3))
    gf.fold(free, Softmax(3), H, y, rule=gf.rules.VI(derivatives=derivatives), cubature="gauss-hermite")
    np.testing.assert_allclose(free.mean, exact.mean, atol=1e-6)
    np.testing.assert_allclose(free.cov, exact.cov, atol=1e-6)
    scalar, again = gf.DenseGaussian.isotropic(4, 0.7), gf.DenseGaussian.isotropic(4, 0.7)
    gf.fold(scalar, Bernoulli(), X, y == 1)
    gf.fold(again, "bernoulli", X, y == 1, rule=gf.rules.VI(derivatives=derivatives))
    np.testing.assert_allclose(again.mean, scalar.mean, atol=1e-6)
    np.testing.assert_allclose(again.cov, scalar.cov, atol=1e-6)


class Tied(VectorLikelihood):
    """A likelihood of which nothing is known but log p: |y - f₁ f₂| decays."""

    latents, outputs = 2, 1

    def log_prob(self, Y, F):
        Y, F = np.asarray(Y), np.asarray(F)
        return -np.log(np.cosh(Y[..., 0] - F[..., 0] - 0.3 * F[..., 1]))

    def derivatives(self, Y, F):
        raise NotImplementedError


def test_a_log_prob_is_enough():
    rng = np.random.default_rng(12)
    H = rng.normal(size=(20, 2, 3))
    theta = np.array([1.0, -0.5, 0.3])
    y = (H @ theta) @ [1.0, 0.3] + 0.1 * rng.normal(size=20)
    belief = gf.DenseGaussian.isotropic(3)
    gf.fold(belief, Tied(), H, y, rule=gf.rules.VI(derivatives=0))
    assert np.abs(belief.mean - theta).max() < 0.5
    assert np.abs((belief.mean - theta) / np.sqrt(belief.variance())).max() < 3


def test_names_are_those_of_gaussian_processes():
    X, y = classes(np.random.default_rng(13), n=10)
    by_name, by_object = (gf.DenseGaussian.isotropic(4, 0.7) for _ in range(2))
    gf.fold(by_name, "bernoulli", X, y == 1)
    gf.fold(by_object, Bernoulli(), X, y == 1)
    np.testing.assert_array_equal(by_name.mean, by_object.mean)
    for rule, options in (
        ("pl2", {"at": "prior"}),
        ("vi", {"curvature": "gauss-newton"}),
        ("ep", {"curvature": "heuristic"}),
    ):
        belief = gf.DenseGaussian.isotropic(4, 0.7)
        found = gf.fold(belief, "bernoulli", X, y == 1, rule=rule, **options)
        assert found.mean.shape == (10,)
        assert np.abs(belief.mean - by_name.mean).max() < 0.6 * np.sqrt(by_name.variance()).max()


def test_custom_likelihoods():
    jnp = pytest.importorskip("jax.numpy")
    X, y = classes(np.random.default_rng(14), n=6)
    H = np.stack([np.kron(np.eye(3), x) for x in X])

    def log_prob(label, f):
        return jnp.sum(jnp.where(jnp.arange(3) == label[0], f, 0.0)) - jnp.log(jnp.sum(jnp.exp(f)))

    custom = gf.likelihoods.CustomLikelihood(log_prob, latents=3, labels=[0, 1, 2])
    ours, theirs = start("joint"), start("joint")
    gf.fold(ours, Softmax(3), H, y, cubature="gauss-hermite")
    gf.fold(theirs, custom, X, y, cubature="gauss-hermite")
    np.testing.assert_allclose(theirs.mean, ours.mean, atol=1e-8)


@pytest.mark.parametrize(("call", "words"), [
    (lambda b: gf.fold(b, VectorGaussian(np.eye(2)), np.zeros((5, 3, 4)), np.zeros((5, 2))), r"\(5, 3, 4\).*2, 4"),
    (lambda b: gf.fold(b, VectorGaussian(np.eye(2)), np.zeros((5, 2, 3)), np.zeros((5, 2))), "4 parameters"),
    (lambda b: gf.fold(b, VectorGaussian(np.eye(2)), np.zeros((5, 2, 4)), np.zeros(5)), r"y: shape \(5,\); \(5, 2\)"),
    (lambda b: gf.fold(b, VectorGaussian(np.eye(2)), np.full((5, 2, 4), np.nan), np.zeros((5, 2))), "entry 0 is nan"),
    (lambda b: VectorGaussian([[1.0, 2.0], [2.0, 1.0]]), "cov is not positive definite .smallest eigenvalue -1"),
    (lambda b: VectorGaussian([[1.0, 0.5], [0.0, 1.0]]), "not symmetric"),
    (lambda b: VectorGaussian([1.0, 2.0]), r"cov: shape \(2,\)"),
    (lambda b: gf.fold(b, VectorGaussian([np.eye(2)] * 3), np.zeros((5, 2, 4)), np.zeros((5, 2))), "3 matrices for 5"),
    (lambda b: gf.fold(b, Softmax(3), np.zeros((5, 4)), np.zeros(5)), "3 latents and a belief over 4"),
    (lambda b: gf.fold(b, Softmax(2), np.zeros((5, 2)), [0, 1, 2, 0, 1]), r"y\[2, 0\] = 2.0: Softmax labels"),
    (lambda b: gf.fold(b, "softmax", np.zeros((5, 4)), np.zeros(5)), "likelihood='softmax': allowed are 'bernoulli'"),
    (lambda b: gf.fold(b, "bernoulli", np.zeros((5, 4)), np.zeros(5), rule="pl2"), "at='prior'"),
    (lambda b: gf.fold(b, Softmax(2), np.zeros((5, 2)), np.zeros(5), curvature="quasi-newton"), "'heuristic'"),
    (lambda b: Softmax(1), "classes=1: Softmax needs a whole number >= 2"),
    (lambda b: gf.BlockGaussian([b]), "len.blocks.=1"),
    (lambda b: gf.fold(gf.BlockGaussian([b, b.copy()]), "bernoulli", np.zeros((5, 8)), np.zeros(5)), "fold Softmax"),
    (lambda b: gf.fold(gf.BlockGaussian([b, b.copy()]), Softmax(4), np.zeros((5, 2)), np.zeros(5)), "4 parameters|2"),
], ids=range(17))  # fmt: skip
def test_bad_input(call, words):
    belief = gf.DenseGaussian.isotropic(4, 0.7)
    with pytest.raises(ValueError, match=words):
        call(belief)
    np.testing.assert_array_equal(belief.mean, np.zeros(4))
    np.testing.assert_array_equal(belief.cov, 0.7**2 * np.eye(4))


def test_one_matrix_for_all_rows_is_refused_with_both_forms():
    belief = gf.DenseGaussian.isotropic(4)
    with pytest.raises(ValueError, match=r"shape \(2, 4\).*\(n, 2, 4\), or rows of m features.* 2 blocks of m weights"):
        gf.fold(belief, VectorGaussian(np.eye(2)), np.ones((2, 4)), np.zeros((2, 2)))
    np.testing.assert_array_equal(belief.cov, np.eye(4))
