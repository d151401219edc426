"""Rules and places by name or as objects; what has no meaning is refused, and the message says what has."""

import re

import numpy as np
import pytest

import gaussfold as gf
from gaussfold import likelihoods as lk
from gaussfold import rules

NAMES = {
    "newton": rules.Newton, "taylor": rules.Taylor, "vi": rules.VI, "ep": rules.EP, "pl": rules.PL,
    "quadratic": rules.Quadratic,
}  # fmt: skip


@pytest.mark.parametrize("name", NAMES)
def test_rule_by_name_or_as_an_object(name):
    rule = rules.resolve(name)
    assert rule == NAMES[name]()
    assert rule.name == name
    assert rules.resolve(rule) is rule


@pytest.mark.parametrize(
    ("name", "kind"),
    [("prior", rules.Prior), ("posterior", rules.Posterior), ("extragradient", rules.Extragradient)],
)
def test_at_by_name_or_as_an_object(name, kind):
    at = rules.resolve_at(name)
    assert at == kind()
    assert at.name == name
    assert rules.resolve_at(at) is at


def test_names_and_objects_fold_alike():
    X, y = np.array([[0.7, -1.2], [0.3, 0.4]]), np.array([1.0, 0.0])
    beliefs = [gf.DenseGaussian.isotropic(2, std=0.7) for _ in range(2)]
    gf.fold(beliefs[0], lk.Bernoulli(), X, y, rule="ep", at="extragradient")
    gf.fold(beliefs[1], lk.Bernoulli(), X, y, rule=rules.EP(alpha=1.0), at=rules.Extragradient("natural"))
    np.testing.assert_array_equal(beliefs[0].mean, beliefs[1].mean)
    np.testing.assert_array_equal(beliefs[0].cov, beliefs[1].cov)


def test_rules_are_values():
    assert rules.EP(alpha=0.5) == rules.EP(0.5) != rules.EP()
    assert hash(rules.EP(0.5)) == hash(rules.EP(0.5))
    with pytest.raises(AttributeError):
        rules.EP().alpha = 0.3  # type: ignore[misc]


@pytest.mark.parametrize("bad", ["laplace", "VI", "", None, 3, rules.VI, rules.Prior()])
def test_unknown_rule(bad):
    allowed = "'newton', 'taylor', 'vi', 'ep', 'pl', 'quadratic'"
    with pytest.raises(ValueError, match=re.escape(f"rule={bad!r}: allowed are {allowed}")):
        rules.resolve(bad)


@pytest.mark.parametrize("bad", ["before", "Posterior", "", None, 1, rules.Posterior, rules.VI()])
def test_unknown_at(bad):
    with pytest.raises(ValueError, match=re.escape(f"at={bad!r}: allowed are 'prior', 'posterior', 'extragradient'")):
        rules.resolve_at(bad)


def test_unknown_form():
    with pytest.raises(ValueError, match="form='exact': allowed are 'natural', 'printed', 'mean-only'"):
        rules.Extragradient("exact")


@pytest.mark.parametrize("alpha", [0.0, -0.5, 1.0001, float("nan"), float("inf")])
def test_power_out_of_range(alpha):
    with pytest.raises(ValueError, match=re.escape(f"alpha={alpha!r}: a number in (0, 1] is needed")):
        rules.EP(alpha=alpha)


UNDEFINED = [
    (lk.Poisson(), "quadratic", "posterior", r"rule='quadratic' needs a quadratic bound, and Poisson\(\) has none"),
    (lk.StudentT(4.5, 0.7), "vi", "prior", "rule='vi' at='prior': .* is not log-concave"),
    (lk.StudentT(4.5, 0.7), "newton", "extragradient", "rule='newton' at='extragradient': .* use at='posterior'"),
    (lk.StudentT(2.0, 0.7), "taylor", "posterior", r"rule='taylor': .* has no finite variance \(df > 2 is needed\)"),
    (lk.StudentT(1.3, 0.7), "pl", "prior", "rule='pl': .* has no finite variance"),
]


@pytest.mark.parametrize(("likelihood", "rule", "at", "message"), UNDEFINED)
def test_combination_without_meaning(likelihood, rule, at, message):
    """Refused before any data are looked at, and the belief is as it was."""
    belief = gf.DenseGaussian.isotropic(2, std=0.7, mean=0.3)
    before = belief.state()
    with pytest.raises(ValueError, match=message):
        gf.fold(belief, likelihood, np.array([[0.7, -1.2]]), np.array([1.0]), rule=rule, at=at)
    for key, value in belief.state().items():
        np.testing.assert_array_equal(value, before[key])


@pytest.mark.parametrize(
    ("likelihood", "rule", "at"),
    [
        (lk.StudentT(2.0, 0.7), "vi", "posterior"),
        (lk.StudentT(2.0, 0.7), "ep", "prior"),
        (lk.StudentT(2.0, 0.7), "quadratic", "prior"),
        (lk.StudentT(2.1, 0.7), "taylor", "prior"),
        (lk.NegativeBinomial(0.4), "quadratic", "extragradient"),
        (lk.Bernoulli("probit"), "quadratic", "posterior"),
    ],
)
def test_what_the_messages_recommend_works(likelihood, rule, at):
    belief = gf.DenseGaussian.isotropic(2, std=0.7)
    gf.fold(belief, likelihood, np.array([[0.7, -1.2]]), np.array([1.0]), rule=rule, at=at)
    assert np.isfinite(belief.mean).all()
    assert not np.array_equal(belief.mean, np.zeros(2))


def test_quadratic_site_without_a_bound():
    with pytest.raises(ValueError, match=r"Poisson\(\) has no quadratic bound; use rule='vi'"):
        rules.Quadratic().site(lk.Poisson(), 3.0, gf.types.Moments(np.array(0.2), np.array(0.4)))
