"""A likelihood, a rule and a covariance that the package does not know: a file each, a line each, and all of the grid.

The files are those of ``tests/conformance/outside``; the lines are in ``registered`` below. Each is compared with its
own plain Python, which the engine never sees (``record = None``), and the likelihood with mpmath besides.
"""

import os
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import mpmath as mp
import numpy as np
import pytest

import gaussfold as gf
from gaussfold import registry
from gaussfold.engine.arrays import over_arrays
from gaussfold.expectations.cubature import GaussHermite
from gaussfold.gp import Cosine as PlainCosine
from gaussfold.gp import GaussianProcess, Matern12, hyper
from gaussfold.gp.covariances import from_config
from gaussfold.rules import resolve_at
from gaussfold.rules.python_sites import make_site
from gaussfold.types import Moments
from tests import problems
from tests.conformance.outside.damped_cosine import DampedCosine
from tests.conformance.outside.logistic_noise import LogisticNoise
from tests.conformance.outside.three_points import ThreePoints

ROOT = Path(__file__).parents[2]
SAME = 1e-9  # the implicit update in Python settles to 1e-10


@pytest.fixture(autouse=True)
def registered():
    """The one line that each of them takes; undone, so that no other test meets them."""
    registry.register("likelihood", LogisticNoise)
    registry.register("rule", ThreePoints)
    registry.register("covariance", DampedCosine)
    yield
    registry.unregister("likelihood", LogisticNoise)
    registry.unregister("rule", ThreePoints)
    registry.unregister("covariance", DampedCosine)


class PlainLogisticNoise(LogisticNoise):
    """The same in Python alone."""

    record = None
    order = 150


class PlainThreePoints(ThreePoints):
    """The same in Python alone."""

    record = None


NOISE, PLAIN_NOISE = LogisticNoise(0.6), PlainLogisticNoise(0.6)
RULE, PLAIN_RULE = ThreePoints(1.6), PlainThreePoints(1.6)
DIM, ROWS = 3, 6
WEIGHT = np.array([1.0, 2.5, 0.3, 2.5, 1.0, 0.3])
X, Y = problems.data(NOISE, ROWS, DIM, seed=11)


def through_a_file(model, tmp_path):
    gf.save(model, tmp_path / "model")
    return gf.load(tmp_path / "model")


# The likelihood


def exact_log_density(y, f):
    z = (y - f) / mp.mpf(0.6)
    return -z - mp.log(mp.mpf(0.6)) - 2 * mp.log(1 + mp.exp(-z))


@pytest.mark.parametrize(("y", "f"), [(1.3, 0.2), (-4.0, 2.9), (0.7, 0.7), (30.0, 1.1)])
def test_the_likelihood_is_its_definition(y, f):
    with mp.workdps(40):
        want = [float(mp.diff(lambda t: exact_log_density(y, t), mp.mpf(f), k)) for k in range(5)]
    from gaussfold.engine import families

    assert families.log_density(NOISE.record, y, f) == pytest.approx(want[0], rel=1e-13)
    np.testing.assert_allclose(families.derivatives(NOISE.record, y, f), want[1:], rtol=1e-11, atol=1e-14)
    assert NOISE.log_prob(y, f) == pytest.approx(want[0], rel=1e-13)
    np.testing.assert_allclose(NOISE.derivatives(y, f), want[1:3], rtol=1e-11, atol=1e-14)


@pytest.mark.parametrize(("m", "v"), [(0.4, 0.7), (-2.0, 3.1)])
def test_its_integrals_are_right(m, v):
    """E l, E l' and log E p, by the engine's quadrature for a density it has never seen."""
    y = 1.3
    with mp.workdps(25):
        std, edges = mp.sqrt(v), [-12, -4, 0, 4, 12]
        density = lambda u: exact_log_density(y, m + std * u)  # noqa: E731 - as the formula
        expected = mp.quad(lambda u: density(u) * mp.npdf(u), edges)
        gradient = mp.quad(lambda u: u * density(u) * mp.npdf(u), edges) / std  # Stein's identity
        evidence = mp.log(mp.quad(lambda u: mp.exp(density(u)) * mp.npdf(u), edges))
    moments = Moments(m, v)
    assert NOISE.expected_log_prob(y, moments) == pytest.approx(float(expected), rel=1e-12)
    assert NOISE.expected_derivatives(y, moments)[0] == pytest.approx(float(gradient), rel=1e-12)
    assert NOISE.log_predictive(y, moments) == pytest.approx(float(evidence), rel=1e-12)
    np.testing.assert_allclose(NOISE.predictive(moments), (m, v + 0.36 * np.pi**2 / 3), rtol=1e-12)


@pytest.mark.parametrize("at", problems.ATS)
@pytest.mark.parametrize("rule", problems.RULES, ids=problems.name)
def test_the_likelihood_with_every_rule_and_at(rule, at):
    compiled, plain = (gf.DenseGaussian(*problems.prior(DIM)) for _ in range(2))
    got = gf.fold(compiled, NOISE, X, Y, rule, at, sample_weight=WEIGHT)
    want = gf.fold(plain, PLAIN_NOISE, X, Y, rule, at, sample_weight=WEIGHT)
    assert problems.relative(compiled.mean, plain.mean) < SAME
    assert problems.relative(compiled.cov, plain.cov) < SAME
    for ours, theirs in zip(got, want, strict=True):
        assert problems.relative(ours, theirs) < SAME


BELIEFS = {
    "diagonal": lambda: gf.DiagonalGaussian([0.1, -0.2, 0.3], [0.5, 0.7, 0.4], coupling="joint"),
    "lowrank": lambda: gf.LowRankGaussian([0.1, -0.2, 0.3], [[0.4], [0.3], [-0.7]], [1.5, 2.1, 0.9]),
}


@pytest.mark.parametrize("kind", BELIEFS)
def test_the_likelihood_with_the_other_beliefs(kind):
    compiled, plain = BELIEFS[kind](), BELIEFS[kind]()
    got = gf.fold(compiled, NOISE, X, Y, sample_weight=WEIGHT)
    want = gf.fold(plain, PLAIN_NOISE, X, Y, sample_weight=WEIGHT)
    assert problems.relative(got.mean, want.mean) < SAME
    assert problems.relative(got.site_precision, want.site_precision) < SAME
    assert problems.relative(compiled.mean, plain.mean) < SAME


def test_the_likelihood_in_a_process(tmp_path):
    """Markov and dense agree, and the model comes back from its file."""
    x, y = np.linspace(0.0, 3.0, 8), np.sin(np.arange(8.0))
    dense, markov = (
        GaussianProcess(DampedCosine(1.3, 2.0, 1.7), NOISE, structure=structure, tol=1e-10).fit(x, y)
        for structure in ("dense", "markov")
    )
    np.testing.assert_allclose(markov.marginals_.mean, dense.marginals_.mean, atol=1e-7)
    assert markov.energy() == pytest.approx(dense.energy(), abs=1e-8)
    loaded = through_a_file(markov, tmp_path)
    assert (loaded.likelihood, loaded.covariances) == (markov.likelihood, markov.covariances)
    np.testing.assert_array_equal(loaded.predict(x), markov.predict(x))
    np.testing.assert_array_equal(loaded.resume().predict(x), markov.resume().predict(x))


# The rule

CELLS = [
    (family, at)
    for family in [*problems.FAMILIES, NOISE]
    for at in problems.ATS
    if problems.is_defined(RULE, at, family)
]


@pytest.mark.parametrize(("family", "at"), CELLS, ids=problems.name)
def test_the_rule_with_every_family_and_at(family, at):
    """Site by site: the compiled ``rule_site``, solved by the engine, is the Python ``site``, solved in Python."""
    _, y = problems.data(family, 4, 1, seed=3)
    m0, v0, w = np.array([0.3, -0.8, 1.2, 0.1]), np.array([0.5, 0.9, 0.2, 0.6]), np.array([1.0, 2.5, 0.3, 1.0])
    where = resolve_at(at)
    gradient, curvature, m, v, _ = over_arrays.sites(family.record, RULE.record, where.code, y, w, m0, v0)
    for i in range(4):
        precision, shift = make_site(PLAIN_RULE, where, family, y[i], w[i], m0[i], v0[i])
        assert -curvature[i] == pytest.approx(precision, rel=SAME)
        after = 1.0 / (1.0 / v0[i] + precision)
        assert (m[i], v[i]) == pytest.approx((after * (m0[i] / v0[i] + shift), after), rel=SAME)
        assert gradient[i] == pytest.approx((m[i] - m0[i]) / v0[i], rel=1e-7, abs=1e-9)


def test_the_rule_in_a_fold_by_name_and_in_a_file(tmp_path):
    compiled, plain, named = (gf.DenseGaussian(*problems.prior(DIM)) for _ in range(3))
    gf.fold(compiled, NOISE, X, Y, RULE, sample_weight=WEIGHT)
    gf.fold(plain, PLAIN_NOISE, X, Y, PLAIN_RULE, sample_weight=WEIGHT)
    assert problems.relative(compiled.mean, plain.mean) < SAME
    assert problems.relative(compiled.cov, plain.cov) < SAME
    gf.fold(named, NOISE, X, Y, "three-points", sample_weight=WEIGHT)
    assert 1e-9 < problems.relative(named.mean, compiled.mean) < 0.1  # another spread
    model = gf.StreamingRegressor(rule=RULE, noise_std=0.6, prior_std=1.0, scale=False).fit(X, Y)
    loaded = through_a_file(model, tmp_path)
    assert loaded.get_params() == model.get_params()
    for one in (model, loaded):
        one.partial_fit(X, -Y)
    np.testing.assert_array_equal(loaded.coef_, model.coef_)


def test_the_rule_in_a_process(tmp_path):
    """Order 3 by another way: vi with that cubature."""
    x, y = np.linspace(0.0, 3.0, 8), np.array([0.0, 1, 1, 2, 0, 3, 1, 1])
    options = {"covariance": Matern12(0.7, 2.0), "likelihood": "poisson", "damping": 0.5}
    own = GaussianProcess(**options, rule=ThreePoints()).fit(x, y, iterations=5)
    known = GaussianProcess(**options, cubature=GaussHermite(3)).fit(x, y, iterations=5)
    np.testing.assert_allclose(own.sites_.precision, known.sites_.precision, rtol=1e-9)
    np.testing.assert_allclose(own.sites_.shift, known.sites_.shift, rtol=1e-9)
    assert through_a_file(own, tmp_path).rule == own.rule


# The covariance

COVARIANCE = DampedCosine(1.3, 0.8, 2.3)


def test_the_covariance_is_its_state_space():
    """And a product that the package has, whose derivatives are written out."""
    x = np.array([-0.4, 0.1, 0.1, 0.35, 1.7])[:, None]
    twin = Matern12(1.3, 0.8) * PlainCosine(2.3)
    np.testing.assert_allclose(COVARIANCE(x), twin(x), rtol=1e-12, atol=1e-14)
    space, r = COVARIANCE.state_space(), np.linspace(0.0, 2.0, 9)
    line = space.measurement @ space.transition(r) @ space.covariance @ space.measurement
    np.testing.assert_allclose(line, COVARIANCE(np.zeros((1, 1)), r[:, None])[0], rtol=1e-12, atol=1e-14)
    bar = np.random.default_rng(4).normal(size=(5, 5))
    np.testing.assert_allclose(COVARIANCE.vjp(x, None, bar), twin.vjp(x, None, bar), rtol=1e-8, atol=1e-9)


@pytest.mark.parametrize("structure", ["dense", "markov"])
def test_gradients_of_its_energy(structure):
    x, y = np.linspace(0.0, 3.0, 8), (np.sin(2.3 * np.linspace(0.0, 3.0, 8)) > 0.2).astype(float)
    gp = GaussianProcess(COVARIANCE, "bernoulli", structure=structure, damping=0.5).fit(x, y, iterations=2)
    values, h = gp.parameters(), 1e-4

    def energy(changed):
        covariances, _ = hyper.replaced(gp.covariances, gp.likelihood, changed)
        before = gp.marginals_
        gp.marginals_ = gp.prior_.with_covariances(covariances).update(gp.sites_)
        value = gp.energy()
        gp.marginals_ = before
        return value

    for name, slope in gp.energy_gradient().parameters.items():
        up, down = (energy({name: values[name] * np.exp(sign * h)}) for sign in (1.0, -1.0))
        assert slope == pytest.approx((up - down) / (2.0 * h), rel=1e-5, abs=1e-6), name


def test_the_covariance_comes_back():
    total = COVARIANCE + Matern12(0.4) * DampedCosine(0.3, 2.0, 0.9)
    assert from_config(total.config()) == total


# What is not registered


def test_loading_needs_the_line(tmp_path):
    """Each kind says what is missing, where it came from, and what to call."""
    x, y = np.linspace(0.0, 3.0, 5), np.array([0.3, 0.8, -0.2, 0.1, 0.5])
    for kind, model in {
        "likelihood": GaussianProcess(Matern12(), NOISE),
        "rule": GaussianProcess(Matern12(), "bernoulli", RULE),
        "covariance": GaussianProcess(COVARIANCE, "bernoulli"),
    }.items():
        gf.save(model, tmp_path / kind)
    for kind, own in {"likelihood": LogisticNoise, "rule": ThreePoints, "covariance": DampedCosine}.items():
        registry.unregister(kind, own)
        with pytest.raises(ValueError, match=rf"{own.__module__}.*register\('{kind}', {own.__name__}\) before loading"):
            gf.load(tmp_path / kind)
        registry.register(kind, own)
        gf.load(tmp_path / kind).fit(x, y if kind == "likelihood" else (y > 0.2).astype(float), iterations=1)


class UnknownRecord(NamedTuple):
    """A record for which nobody registered a function."""

    scale: float


class Unknown(LogisticNoise):
    """Names it all the same."""

    record = UnknownRecord(0.6)


class UnknownRule(ThreePoints):
    """The same for a rule."""

    record = UnknownRecord(0.6)


@pytest.mark.parametrize(("likelihood", "rule"), [(Unknown(), "vi"), (gf.likelihoods.Poisson(), UnknownRule())])
def test_a_record_without_functions_is_an_error(likelihood, rule):
    belief = gf.DenseGaussian.isotropic(1, 0.7)
    with pytest.raises(TypeError, match=r"UnknownRecord: the engine knows no functions .* or leave record = None"):
        gf.fold(belief, likelihood, [[0.4], [0.2]], [1.0, 0.0], rule)
    np.testing.assert_array_equal(belief.factor, [[0.7]])


# The cache

PROGRAM = """
import sys
import numpy as np
from numba.core import event
from gaussfold.engine.arrays.over_arrays import predictive
from gaussfold.likelihoods import Bernoulli, Poisson

compiled = []
class Listener(event.Listener):
    def on_start(self, occurrence):
        compiled.append(occurrence.data["dispatcher"].py_func.__module__)
    def on_end(self, occurrence):
        pass
event.register("numba:compile", Listener())
records = [Poisson().record]
if "own" in sys.argv:
    from tests.conformance.outside.logistic_noise import LogisticNoise
    records = [LogisticNoise(0.6).record, *records]
for record in records:
    mean, total, _ = predictive(record, np.array([0.4]), np.array([0.7]))
print(sum(predictive.stats.cache_hits.values()), sum(predictive.stats.cache_misses.values()))
print(*sorted(module for module in set(compiled) if "likelihoods" in module or "outside" in module))
"""


def run(folder, *arguments, path=()):
    environment = os.environ | {"NUMBA_CACHE_DIR": str(folder / "cache"), "GAUSSFOLD_QUIET": "1"}
    environment["PYTHONPATH"] = os.pathsep.join([str(ROOT / "src"), *map(str, path)])
    command = [sys.executable, "-W", "error", "-c", PROGRAM, *arguments]
    found = subprocess.run(command, env=environment, cwd=folder, capture_output=True, text=True, check=True)
    counts, modules = found.stdout.split("\n")[:2]
    return counts, modules.split()


def test_a_family_compiles_itself_and_nobody_else_must_know_it(tmp_path):
    """Three processes, one cache: the second has never heard of the family, the third has."""
    own = "tests.conformance.outside.logistic_noise"
    assert run(tmp_path, "own", path=[ROOT]) == ("0 2", ["gaussfold.likelihoods.poisson", own])
    assert run(tmp_path) == ("1 0", [])
    assert run(tmp_path, "own", path=[ROOT]) == ("2 0", [])
