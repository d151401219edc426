"""The scalar solver: every rule, family and ``at``, all over |m0| ≤ 1e3, 1e-8 ≤ v0 ≤ 1e6, weights and soft labels."""

import numpy as np
import pytest

from gaussfold import likelihoods as lk
from gaussfold import rules
from gaussfold.engine.arrays import over_arrays as maps
from gaussfold.engine.scalar import sites
from tests.machine_code import compiled
from tests.problems import FAMILIES, RULES, extreme_marginals, is_defined, labels, name
from tests.reference import likelihoods as reference
from tests.reference import sites as twin

CELLS = [(family, rule) for family in FAMILIES for rule in RULES if is_defined(rule, "posterior", family)]
EXPLICIT = [
    (family, rule, at)
    for family in FAMILIES
    for rule in RULES
    for at in ("prior", "extragradient")
    if is_defined(rule, at, family)
]
STEEP = [  # steeper cliffs, narrower lumps, smaller powers
    (lk.StudentT(df=1.3, scale=0.05), rules.EP(alpha=0.5)),
    (lk.NegativeBinomial(dispersion=80.0), rules.EP(alpha=0.5)),
    (lk.NegativeBinomial(dispersion=0.1), rules.VI()),
    (lk.Poisson(), rules.EP(alpha=0.1)),
]
# The closed form of rvga (58) is stationary for no objective.
EXACT_EXPECTATIONS = [f for f in FAMILIES if f.log_concave and f != lk.Bernoulli(expectation="probit")]
STUDENT = lk.StudentT(df=3.5, scale=0.8)


def run(likelihood, rule, at, y, w, m0, v0):
    return maps.sites(likelihood.record, rule.record, rules.resolve_at(at).code, y, w, m0, v0)


@pytest.mark.parametrize(("likelihood", "rule"), [*CELLS, *STEEP], ids=name)
def test_posterior_form_solves_its_equations_everywhere(likelihood, rule):
    """m = m0 + v0 J(m, v), v = v0/(1 - v0 H(m, v)) to 1e-10, with J and H from the slow twin."""
    y, w, m0, v0 = extreme_marginals(likelihood, 120, seed=7)
    gradient, curvature, m, v, _ = run(likelihood, rule, "posterior", y, w, m0, v0)
    with np.errstate(all="ignore"):
        off = np.array(
            [
                twin.distance_to_root(likelihood.config(), rule.name, rule.alpha, *map(float, row))
                for row in zip(y, w, m0, v0, m, v, strict=True)
            ]
        )
    worst = int(np.argmax(np.where(np.isnan(off), np.inf, off).max(axis=1)))
    assert off.max() <= 1e-10, f"y={y[worst]} w={w[worst]} m0={m0[worst]} v0={v0[worst]}: off by {off[worst]}"
    # What the belief is updated with leads to the same marginal.
    assert (np.abs(m - m0 - v0 * gradient) <= 1e-12 * (np.abs(m) + np.abs(m0) + np.sqrt(v))).all()
    np.testing.assert_allclose(v, v0 / (1.0 - v0 * curvature), rtol=1e-10)


@pytest.mark.parametrize(("likelihood", "rule"), CELLS, ids=name)
def test_a_handful_of_iterations(likelihood, rule):
    """On average over the whole extreme range; posterior linearisation, which has no objective, needs a few more."""
    *_, iterations = run(likelihood, rule, "posterior", *extreme_marginals(likelihood, 500, seed=11))
    assert np.mean(iterations) <= (16.0 if rule.name == "pl" else 8.0)
    assert np.median(iterations) <= 4


@pytest.mark.parametrize("likelihood", EXACT_EXPECTATIONS, ids=name)
def test_vi_at_posterior_is_the_nearest_gaussian(likelihood):
    """rvga (2): no Gaussian has a smaller KL divergence to prior times likelihood."""
    rng = np.random.default_rng(9)
    y, w = labels(likelihood, rng, 4), np.array([1.0, 0.3, 2.5, 1.0])
    m0, v0 = np.array([0.4, -1.3, 2.2, -0.3]), np.array([0.7, 3.0, 0.2, 11.0])
    *_, m, v, _ = run(likelihood, rules.VI(), "posterior", y, w, m0, v0)
    for row in zip(y, w, m0, v0, m, v, strict=True):
        label, power, mean, variance, *mine = map(float, row)
        m_best, v_best, smallest = twin.nearest_gaussian(likelihood.config(), label, power, mean, variance)
        assert twin.kl_objective(likelihood.config(), label, power, mean, variance, *mine) <= smallest + 1e-12
        np.testing.assert_allclose(mine, (m_best, v_best), rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("rule", [rules.Newton(), rules.VI()], ids=name)
def test_student_t_takes_the_better_of_two_lumps(rule):
    """The objective at the answer is no worse than anywhere on a fine grid between m0 and y."""
    rng = np.random.default_rng(12)
    for _ in range(10):
        m0, v0 = rng.normal(0.0, 3.0), 10.0 ** rng.uniform(-1.0, 4.0)
        y = m0 + rng.choice([-1.0, 1.0]) * np.sqrt(v0) * rng.uniform(0.0, 6.0)
        w = float(rng.choice([0.3, 1.0, 2.5]))
        *_, m, v, _ = run(STUDENT, rule, "posterior", *(np.array([x]) for x in (y, w, m0, v0)))
        grid = np.unique(np.concatenate([np.linspace(m0, y, 40), y - (y - m0) * np.geomspace(1e-6, 1.0, 40)]))

        def objective(mean, variance=None, y=y, w=w, m0=m0, v0=v0):
            if rule == rules.Newton():
                fit = reference.log_density(STUDENT.config(), y, np.array([mean]))[0]
                return 0.5 * (mean - m0) ** 2 / v0 - w * fit
            return twin.kl_objective(STUDENT.config(), y, w, m0, v0, mean, variance)

        if rule == rules.Newton():
            best = min(objective(x) for x in grid)
            assert objective(m[0]) <= best + 1e-9
        else:
            widths = v0 * np.geomspace(min(1.0, 0.05 / v0), 1.0, 12)
            best = min(objective(x, s) for x in grid[::4] for s in widths)
            assert objective(m[0], v[0]) <= best + 1e-9


@pytest.mark.parametrize(("likelihood", "rule", "at"), EXPLICIT, ids=name)
def test_explicit_forms(likelihood, rule, at):
    """One or two looks, at moderate inputs, against the textbook visit: precision and shift of the site."""
    rng = np.random.default_rng(13)
    n = 12
    y, w = labels(likelihood, rng, n), rng.choice([1.0, 0.3, 2.5], n)
    m0, v0 = rng.normal(0.0, 1.0, n), 10.0 ** rng.uniform(-2.0, 0.5, n)
    gradient, curvature, m, v, _ = run(likelihood, rule, at, y, w, m0, v0)
    for i in range(n):
        precision, shift = twin.visit(
            likelihood.config(), rule.name, rule.alpha, at, *(float(a[i]) for a in (y, w, m0, v0))
        )
        variance = 1.0 / (1.0 / v0[i] + precision)
        assert -curvature[i] == pytest.approx(precision, rel=1e-10, abs=1e-13)
        assert gradient[i] - curvature[i] * m[i] == pytest.approx(shift, rel=1e-9, abs=1e-10)
        assert v[i] == pytest.approx(variance, rel=1e-11)
        assert m[i] == pytest.approx(variance * (m0[i] / v0[i] + shift), rel=1e-9, abs=1e-10)


@pytest.mark.parametrize("form", ["printed", "mean-only"])
def test_mirror_prox_as_printed(form):
    """lrvga (137)-(140), and (141)-(143) which keeps the first covariance."""
    likelihood, y, w, m0, v0 = lk.Bernoulli(), 1.0, 2.5, -0.8, 1.7
    J, H = (w * d for d in twin.vi(likelihood.config(), y, m0, v0))
    trial_v = 1.0 / (1.0 / v0 - H)
    J1, H1 = (w * d for d in twin.vi(likelihood.config(), y, m0 + trial_v * J, trial_v))
    want_v = 1.0 / (1.0 / v0 - (H1 if form == "printed" else H))
    *_, m, v, _ = run(likelihood, rules.VI(), rules.Extragradient(form), *(np.array([x]) for x in (y, w, m0, v0)))
    np.testing.assert_allclose((m[0], v[0]), (m0 + want_v * J1, want_v), rtol=1e-12, atol=1e-13)


def test_assumed_density_filtering_is_its_own_posterior_form():
    """ep with alpha = 1 looks at the cavity, which is the belief before: prior and posterior are one."""
    y, w, m0, v0 = extreme_marginals(lk.Bernoulli(), 50, seed=1)
    for a, b in zip(
        run(lk.Bernoulli(), rules.EP(), "prior", y, w, m0, v0),
        run(lk.Bernoulli(), rules.EP(), "posterior", y, w, m0, v0),
        strict=True,
    ):
        np.testing.assert_array_equal(a, b)


def test_nothing_uncertain_nothing_learned():
    assert compiled(sites.make_site)(lk.Poisson().record, rules.VI().record, 1, 3.0, 1.0, 0.4, 0.0) == (
        0.0,
        0.0,
        0.4,
        0.0,
        0,
    )
