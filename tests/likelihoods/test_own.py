"""A likelihood of one's own: log_prob and derivatives in, everything else out."""

import numpy as np
import pytest

from gaussfold import likelihoods as lk
from gaussfold.protocols import Likelihood
from gaussfold.types import Moments
from tests.reference import likelihoods as reference


class MyLogit(lk.ScalarLikelihood):
    """The logit Bernoulli, as a user would write it down."""

    log_concave = True
    record = None
    labels = "0 or 1"
    remedy = "see the manual"

    def explains(self, y):
        return (y == 0) | (y == 1)

    def log_prob(self, y, f):
        return y * f - np.logaddexp(0.0, f)

    def derivatives(self, y, f):
        p = 1.0 / (1.0 + np.exp(-f))
        return y - p, -p * (1.0 - p)

    def conditional(self, f):
        p = 1.0 / (1.0 + np.exp(-f))
        return Moments(p, p * (1.0 - p))


class MyNoise(lk.ScalarLikelihood):
    """Gaussian noise of std 0.7, with a curvature that is a plain number."""

    record = None

    def log_prob(self, y, f):
        return -0.5 * ((y - f) / 0.7) ** 2 - np.log(0.7 * np.sqrt(2 * np.pi))

    def derivatives(self, y, f):
        return (y - f) / 0.49, -1 / 0.49

    def conditional(self, f):
        return Moments(f, 0.49)


MEANS = np.array([-2.3, 0.4, 1.7])


@pytest.mark.parametrize("v", [1e-8, 0.1, 0.9, 2.5])
def test_expectations_by_gauss_hermite(v):
    mine, config = MyLogit(), {"name": "Bernoulli", "link": "logit"}
    y = np.array([[0.0], [1.0]])
    moments = Moments(MEANS, np.full(3, v))
    log_prob = mine.expected_log_prob(y, moments)
    first, second = mine.expected_derivatives(y, moments)
    log_predictive = mine.log_predictive(y, moments)
    mean, total = mine.predictive(moments)
    _, epistemic = mine.conditional_mean(moments)
    assert log_prob.shape == first.shape == second.shape == log_predictive.shape == (2, 3)
    for i, label in enumerate((0.0, 1.0)):
        for j, m in enumerate(MEANS):
            want = reference.expectations(config, label, m, v)
            got = (log_prob[i, j], first[i, j], second[i, j], log_predictive[i, j], mean[j], total[j])
            np.testing.assert_allclose(got, [value for _, value in want.items()][:-1], rtol=1e-10)
            # σ(f) - E σ is known to 1e-16, and it is as small as √v
            assert epistemic[j] == pytest.approx(want.epistemic_variance, rel=1e-10 + 1e-15 / np.sqrt(v))


def test_gaussian_noise_is_exact_at_any_variance():
    mine, y = MyNoise(), 1.3
    for v in (1e-8, 1.0, 1e6):
        moments = Moments(0.4, v)
        want = reference.expectations({"name": "Gaussian", "std": 0.7}, y, 0.4, v)
        assert mine.expected_log_prob(y, moments) == pytest.approx(want.log_prob, rel=1e-10)
        np.testing.assert_allclose(mine.expected_derivatives(y, moments), (0.9 / 0.49, -1 / 0.49), rtol=1e-9)
        np.testing.assert_allclose(mine.predictive(moments), (0.4, v + 0.49), rtol=1e-8)
        np.testing.assert_allclose(mine.conditional_mean(moments), (0.4, v), rtol=1e-8)


def test_order_can_be_raised():
    """Of Gauss-Hermite, for who asks for it; evenly spaced nodes are the default and better than either."""

    class Coarse(MyLogit):
        order = 64

    class Finer(MyLogit):
        order = 200

    want = reference.expectations({"name": "Bernoulli", "link": "logit"}, 1.0, 0.4, 40.0).log_prob
    coarse, fine, usual = (abs(c().expected_log_prob(1.0, Moments(0.4, 40.0)) - want) for c in (Coarse, Finer, MyLogit))
    assert fine < 0.1 * coarse < 1e-3
    assert usual < 1e-12


def test_is_a_likelihood_and_says_what_it_lacks():
    class Half(lk.ScalarLikelihood):
        def log_prob(self, y, f):
            return -np.abs(y - f)

    assert isinstance(Half(), Likelihood)
    assert lk.resolve(Half()).record is None
    with pytest.raises(NotImplementedError, match=r"Half does not say derivatives\(y, f\)"):
        Half().expected_derivatives(0.3, Moments(0.0, 1.0))
    with pytest.raises(NotImplementedError, match=r"Half does not say conditional\(f\)"):
        Half().predictive(Moments(0.0, 1.0))
    with pytest.raises(ValueError, match="Half has no name that a model file could hold"):
        Half().config()


def test_own_label_rule():
    MyLogit().check_labels([0, 1, np.nan])
    with pytest.raises(ValueError, match=r"y\[1\] = 0.5: MyLogit labels must be 0 or 1, .*see the manual"):
        MyLogit().check_labels([0, 0.5])
