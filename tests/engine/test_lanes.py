"""What runs on several numbers at a time is what runs on one."""

import math

import numpy as np
import pytest

from gaussfold.engine.compiled import compiled
from gaussfold.engine.scalar import expectations
from gaussfold.engine.scalar.exponential import exp_nonpositive, log_one_minus, log_positive
from gaussfold.engine.simd.lane_memory import load4, load8, store
from gaussfold.engine.simd.lanes import bits_of, first_lanes, lanes4, peak, total
from gaussfold.engine.sparse.logit_scores import logit_scores
from gaussfold.likelihoods.bernoulli_logit import LogitRecord
from tests.machine_code import compiled as machine_code


@compiled
def _elementary(t, a, q, out):
    for i in range(0, t.size, 4):
        store(out[0], i, exp_nonpositive(load4(t, i)))
        store(out[1], i, log_positive(load4(a, i)))
        store(out[2], i, log_one_minus(load4(q, i)))
    for i in range(t.size):
        out[3, i] = exp_nonpositive(t[i])
        out[4, i] = log_positive(a[i])
        out[5, i] = log_one_minus(q[i])


def test_exponential_and_logarithm_are_those_of_the_library_to_rounding():
    rng = np.random.default_rng(0)
    t = np.r_[-np.exp(rng.uniform(-30, 6.5, 400)), 0.0, -1.0, -math.log(2), -700.0]
    a = np.exp(rng.uniform(-700, 700, t.size))
    a[:6] = 1.0, math.sqrt(0.5), math.sqrt(2.0), 1 - 1e-16, 1 + 2e-16, 2.0
    q = np.r_[np.exp(rng.uniform(-40, math.log(0.5), t.size - 3)), 0.0, 0.5, 1 - math.sqrt(0.5)]
    out = np.empty((6, t.size))
    _elementary(t, a, q, out)
    for k, wanted in enumerate((np.exp(t), np.log(a), np.log1p(-q))):
        np.testing.assert_allclose(out[k], wanted, rtol=1e-15, atol=0)
        np.testing.assert_allclose(out[3 + k], wanted, rtol=1e-15, atol=0)


@compiled
def _across(a, out):
    lanes = load8(a, 0)
    out[0] = total(lanes)
    out[1] = peak(lanes)
    out[2] = bits_of(lanes > 2.5)
    out[3] = total(first_lanes(3, load4(a, 0)))
    out[4] = total(lanes4(1.5))


def test_across_lanes():
    out = np.empty(5)
    _across(np.array([1.0, 2.0, 3.0, 4.0, -5.0, 6.0, 0.5, 2.5]), out)
    assert out.tolist() == [14.0, 6.0, 0b101100, 6.0, 6.0]


@pytest.mark.parametrize("k", [1, 3, 8])
def test_scores_are_those_of_the_plain_integral(k):
    rng = np.random.default_rng(k)
    n = 203
    means = rng.normal(0, 1, (n, k)) * np.exp(rng.uniform(-3, 6, (n, k)))
    variances = np.exp(rng.uniform(-12, 9, (n, k)))
    means[0], variances[0] = 0.0, 0.0
    means[1], variances[1] = 900.0, 0.3
    y = rng.integers(0, 2, n).astype(float)
    y[[3, 7]] = np.nan, 0.3
    for family in (LogitRecord(False), LogitRecord(True)):
        scores = np.empty((n, k))
        logit_scores(family, y, means, variances, scores)
        for r in range(n):
            for c in range(k):
                wanted = machine_code(expectations.log_predictive)(family, y[r], means[r, c], variances[r, c])
                assert scores[r, c] == pytest.approx(wanted, rel=3e-11, abs=1e-13, nan_ok=True), (r, c)
