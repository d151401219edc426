"""The compiled rules say what the readable ones in ``gaussfold.rules`` say."""

import numpy as np
import pytest

from gaussfold import likelihoods as lk
from gaussfold import rules
from gaussfold.engine import rules as engine_rules
from gaussfold.engine.arrays import over_arrays as maps
from gaussfold.engine.seam import BuiltInRule, built_in_rules
from gaussfold.rules.vi import VIRecord
from gaussfold.types import Moments
from tests.machine_code import compiled
from tests.problems import FAMILIES, RULES, is_defined, labels, name
from tests.reference import sites as twin

CELLS = [(family, rule) for family in FAMILIES for rule in RULES if is_defined(rule, "posterior", family)]


@pytest.mark.parametrize(("likelihood", "rule"), CELLS, ids=name)
def test_surrogates_agree_with_the_python_rules(likelihood, rule):
    """Taylor and pl take their slopes by differences there, ep its integrals by 1e-9: hence the tolerances."""
    rng = np.random.default_rng(21)
    n = 60
    y, m, v = labels(likelihood, rng, n), rng.normal(0.0, 1.2, n), 10.0 ** rng.uniform(-2.0, 0.0, n)
    y = np.clip(y, -4.0, 7.0)
    w = np.full(n, 1.0 if rule.name == "ep" else 2.5)
    got = maps.surrogates(likelihood.record, rule.record, y, w, m, v)
    want = rule.site(likelihood, y, Moments(m, v))
    rtol = {"taylor": 1e-8, "pl": 1e-8, "ep": 1e-7}.get(rule.name, 1e-12)
    np.testing.assert_allclose(got[0], w * want.gradient, rtol=rtol, atol=rtol)
    np.testing.assert_allclose(got[1], w * want.curvature, rtol=rtol, atol=rtol)


@pytest.mark.parametrize(("likelihood", "rule"), CELLS, ids=name)
def test_surrogates_agree_with_the_slow_twin(likelihood, rule):
    """Tighter, wider, with weights: panels of Gauss-Legendre."""
    rng = np.random.default_rng(22)
    n = 25
    y, w = labels(likelihood, rng, n), rng.choice([1.0, 0.3, 2.5], n)
    m, v = rng.normal(0.0, 3.0, n), 10.0 ** rng.uniform(-6.0, 2.0, n)
    if rule.name in ("newton", "taylor", "quadratic") or not isinstance(likelihood, lk.Poisson):
        m[0], v[0] = 9.0, 1e3
    got = maps.surrogates(likelihood.record, rule.record, y, w, m, v)
    for i in range(n):
        row = (float(a[i]) for a in (y, w, m, v, m, v))
        J, H = twin.surrogate(likelihood.config(), rule.name, rule.alpha, *row)
        assert got[0][i] == pytest.approx(J, rel=1e-9, abs=1e-11), (y[i], w[i], m[i], v[i])
        assert got[1][i] == pytest.approx(H, rel=1e-9, abs=1e-12), (y[i], w[i], m[i], v[i])


def test_rules_are_known_by_their_records():
    assert rules.VI().record == VIRecord()
    for number, rule in enumerate(built_in_rules()):
        assert rule().record == BuiltInRule(number, 1.0)
    assert rules.EP(alpha=0.5).record.alpha == 0.5
    assert {*built_in_rules(), rules.VI} == {type(rule) for rule in RULES}
    assert [rules.resolve_at(at).code for at in ("prior", "posterior", "extragradient")] == [0, 1, 2]
    assert rules.Extragradient("printed").code == 3
    assert rules.Extragradient("mean-only").code == 4


@pytest.mark.parametrize("number", [-1, 5, 77])
def test_a_number_that_no_rule_has_fails(number):
    """It used to mean quadratic."""
    row = (lk.Poisson().record, BuiltInRule(number, 1.0), 3.0, 1.0, 0.2, 0.7, 0.2, 0.7)
    with pytest.raises(ValueError, match="a rule of that number does not exist"):
        compiled(engine_rules.rule_site)(*row)


@pytest.mark.parametrize("at", [-1, 5])
def test_a_number_that_no_at_has_fails(at):
    with pytest.raises(ValueError, match="an at of that number does not exist"):
        maps.sites(lk.Poisson().record, rules.VI().record, at, *np.ones((4, 1)))


def test_missing_labels_give_missing_expectations():
    y, m, v = np.array([1.0, np.nan]), np.array([0.3, 0.3]), np.array([0.6, 0.6])
    for column in (
        lk.Bernoulli().row_functions().expected_log_prob(y, m, v),
        *lk.Bernoulli().row_functions().expected_derivatives(y, m, v),
        lk.Poisson().row_functions().expected_log_prob(y, m, v),
        *lk.Poisson().row_functions().expected_derivatives(y, m, v),
        *maps.tilted(lk.Poisson().record, 0.5, y, m, v),
        maps.log_predictive(lk.Poisson().record, y, m, v),
    ):
        assert np.isfinite(column[0])
        assert np.isnan(column[1])
