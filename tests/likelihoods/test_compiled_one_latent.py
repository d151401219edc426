"""Gamma, beta and ordinal in the engine: the same answers as their NumPy definitions give, row by row in Python."""

import contextlib
import warnings

import numpy as np
import pytest
from scipy.integrate import quad

import gaussfold as gf
from gaussfold import likelihoods as lk
from gaussfold.trace import RowError
from gaussfold.types import Moments

CASES = [
    (lk.Gamma(shape=2.5), [0.2, 1.3, 40.0]),
    (lk.Beta(scale=4.0), [0.1, 0.55, 0.97]),
    (lk.Beta(scale=0.7, link="probit"), [0.1, 0.97]),
    (lk.Ordinal([-1.0, 0.2, 1.4], scale=0.8), [0.0, 1.0, 3.0]),
    (lk.Ordinal([-1.0, 0.2], scale=0.6, link="probit"), [0.0, 1.0, 2.0]),
]
MARGINALS = [(0.3, 1e-6), (-0.8, 4e-4), (0.9, 0.02), (-0.2, 0.3), (0.4, 2.0)]


def name(value):
    return f"{value}-{getattr(value, 'link', '')}" if isinstance(value, lk.ScalarLikelihood) else None


def in_python(likelihood):
    """The same likelihood, unknown to the engine."""
    kind = type(likelihood)
    slow = type(kind.__name__, (kind,), {"record": None, "order": 60})
    twin = slow.__new__(slow)
    vars(twin).update(vars(likelihood))
    return twin


def average(function, m, v):
    s = np.sqrt(v)
    return quad(lambda z: function(m + s * z) * np.exp(-0.5 * z * z) / np.sqrt(2 * np.pi), -12, 12, epsabs=1e-13)[0]


@pytest.mark.parametrize(("likelihood", "labels"), CASES, ids=name)
def test_integrals_narrow_and_wide(likelihood, labels):
    for y in labels:
        for m, v in MARGINALS:
            moments = Moments(np.array([m]), np.array([v]))
            found = likelihood.expected_derivatives(y, moments)
            for order in (0, 1):
                want = average(lambda f, y=y, order=order: likelihood.derivatives(y, f)[order], m, v)
                assert found[order][0] == pytest.approx(want, rel=1e-9, abs=1e-11)
            mean = average(lambda f, y=y: np.exp(likelihood.log_prob(y, f)), m, v)
            assert likelihood.log_predictive(y, moments)[0] == pytest.approx(np.log(mean), rel=1e-9, abs=1e-11)


@pytest.mark.parametrize(("likelihood", "labels"), CASES, ids=name)
@pytest.mark.parametrize("rule", ["vi", "newton", "ep"])
def test_the_fold_is_that_of_python(likelihood, labels, rule):
    rng = np.random.default_rng(3)
    X, y = 0.5 * rng.standard_normal((12, 3)), rng.choice(labels, 12)
    weight = rng.choice([1.0, 2.5, 0.3], 12)
    fast, slow = (gf.DenseGaussian.isotropic(3, std=0.7, mean=0.1) for _ in range(2))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        gf.fold(fast, likelihood, X, y, rule, sample_weight=weight)
    gf.fold(slow, in_python(likelihood), X, y, rule, sample_weight=weight)
    np.testing.assert_allclose(fast.mean, slow.mean, rtol=1e-7, atol=1e-8)
    np.testing.assert_allclose(fast.cov, slow.cov, rtol=1e-7, atol=1e-9)


def test_far_out_nothing_overflows_in_silence():
    """Marginals of standard deviation 300, labels at the edge: learned, or refused whole with a sentence."""
    rng = np.random.default_rng(4)
    X = 10.0 * rng.standard_normal((20, 3))
    for likelihood, label in ((lk.Gamma(2.0), 1e140), (lk.Beta(4.0), 1e-300), (lk.Beta(4.0), 0.4)):
        for rule in ("ep", "vi", "newton"):
            belief = gf.DenseGaussian.isotropic(3, std=30.0)
            before = belief.mean
            with warnings.catch_warnings(), contextlib.suppress(RowError):
                warnings.simplefilter("error")
                gf.fold(belief, likelihood, X, np.full(20, label), rule)
            # learned, or as it was
            assert np.isfinite(belief.mean).all()
            assert (belief.mean == before).all() or (belief.variance() < 900.0).any()


def test_more_borders_than_the_engine_has_room_for():
    many = lk.Ordinal(np.linspace(-3.0, 3.0, 20))
    assert many.record is None
    belief = gf.DenseGaussian.isotropic(1, std=0.7)
    gf.fold(belief, many, [[1.0], [0.5]], [3, 17])
    assert np.isfinite(belief.mean).all()
