"""The visit in plain Python and the compiled one are the same visit."""

import numpy as np
import pytest

import gaussfold as gf
from gaussfold.likelihoods import Bernoulli, Gaussian, NegativeBinomial, Poisson, ScalarLikelihood, StudentT
from gaussfold.rules import EP, PL, VI, Extragradient, Newton, Posterior, Prior, Quadratic, Taylor, check_defined
from gaussfold.rules.python_sites import make_site
from tests.machine_code import compiled

FAMILIES = [
    (Gaussian(0.8), [-1.3, 0.4]),
    (Bernoulli(), [0.0, 1.0, 0.3]),
    (Bernoulli("probit"), [0.0, 1.0]),
    (Poisson(), [0.0, 3.0]),
    (NegativeBinomial(2.5), [0.0, 4.0]),
    (StudentT(4.5, 0.7), [-0.6, 1.9]),
]
RULES = [Newton(), Taylor(), VI(), EP(), EP(0.4), PL(), Quadratic()]
ATS = [Prior(), Posterior(), Extragradient(), Extragradient("printed"), Extragradient("mean-only")]


def _cells():
    for likelihood, labels in FAMILIES:
        for rule in RULES:
            for at in ATS:
                try:
                    check_defined(rule, at, likelihood)
                except ValueError:
                    continue
                yield pytest.param(likelihood, labels, rule, at, id=f"{likelihood}-{rule}-{at}")


@pytest.mark.parametrize(("likelihood", "labels", "rule", "at"), list(_cells()))
def test_python_and_engine_agree(likelihood, labels, rule, at):
    from gaussfold.engine.scalar import sites

    for y in labels:
        for m0, v0, w in [(0.3, 0.5, 1.0), (-1.1, 1.3, 2.5), (0.9, 0.04, 0.3)]:
            precision, shift = make_site(rule, at, likelihood, y, w, m0, v0)
            _, h, m, v, _ = compiled(sites.make_site)(likelihood.record, rule.record, at.code, y, w, m0, v0)
            after = 1.0 / (1.0 / v0 + precision)
            np.testing.assert_allclose(-h, precision, rtol=2e-7, atol=1e-9)
            np.testing.assert_allclose(v, after, rtol=1e-7)
            np.testing.assert_allclose(m, after * (m0 / v0 + shift), rtol=1e-7, atol=1e-8)


class _Home(ScalarLikelihood):
    """The logistic likelihood as a stranger would write it."""

    log_concave = True

    def log_prob(self, y, f):
        return y * f - np.logaddexp(0.0, f)

    def derivatives(self, y, f):
        p = 1.0 / (1.0 + np.exp(-f))
        return y - p, -p * (1.0 - p)


def test_a_likelihood_of_ones_own_folds_like_the_built_in_one():
    rng = np.random.default_rng(3)
    X = rng.standard_normal((40, 3))
    y = (rng.random(40) < 0.4).astype(float)
    y[7] = np.nan
    weight = np.where(np.arange(40) == 11, 0.0, 1.3)
    dynamics = gf.dynamics.Forgetting(0.97, gf.DenseGaussian.isotropic(3, 0.7))
    for options in ({}, {"dynamics": dynamics}):
        ours, theirs = (gf.DenseGaussian.isotropic(3, 0.7) for _ in range(2))
        expected = gf.fold(ours, Bernoulli(), X, y, sample_weight=weight, **options)
        result = gf.fold(theirs, _Home(), X, y, sample_weight=weight, **options)
        np.testing.assert_allclose(theirs.mean, ours.mean, rtol=1e-8)
        np.testing.assert_allclose(theirs.cov, ours.cov, rtol=1e-8)
        np.testing.assert_allclose(result.log_predictive, expected.log_predictive, rtol=1e-8)
