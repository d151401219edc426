"""Narrow Gaussians by polynomials through a few places: against sums over a thousand nodes and the slow integrals."""

import numpy as np
import pytest
from scipy.special import logsumexp

import gaussfold as gf
from gaussfold import likelihoods as lk
from gaussfold.engine.scalar import jet_tables as jets

Z = np.linspace(-11.0, 11.0, 1401)
LOG_WEIGHTS = -0.5 * Z**2 - logsumexp(-0.5 * Z**2)
CASES = [
    (lk.Beta(scale=4.3), 3.0, lambda rng, n: rng.beta(2.0, 1.4, n)),
    (lk.Beta(scale=0.4, link="probit"), 2.0, lambda rng, n: rng.beta(0.8, 1.4, n)),
    (lk.Ordinal([-1.1, 0.2, 1.4], scale=0.7), 2.1, lambda rng, n: rng.integers(0, 4, n)),
    (lk.Ordinal([-1.1, 0.2], scale=1.6, link="probit"), 3.2, lambda rng, n: rng.integers(0, 3, n)),
    (lk.StudentT(3.5, 0.4), 0.75, lambda rng, n: rng.standard_t(3.5, n)),
    (lk.NegativeBinomial(1.7), 2.0, lambda rng, n: rng.integers(0, 9, n)),
    (lk.Bernoulli(), 2.0, lambda rng, n: rng.choice([0.0, 1.0, 0.3], n)),
    (lk.Bernoulli("probit"), 2.0, lambda rng, n: rng.integers(0, 2, n)),
]


def marginals(length, rng, n):
    """Means and standard deviations to both sides of each reach."""
    return rng.normal(size=n), length * np.exp(rng.uniform(np.log(1e-4), np.log(0.3), n))


@pytest.mark.parametrize(("likelihood", "length", "labels"), CASES, ids=lambda case: str(case)[:24])
def test_the_site_is_the_root_and_the_score_the_integral(likelihood, length, labels):
    """One row of one feature, at weights that are not one."""
    rng = np.random.default_rng(11)
    n = 160
    means, stds = marginals(length, rng, n)
    y, weight = np.asarray(labels(rng, n), float), rng.uniform(0.2, 2.5, n)
    for m0, s, label, w in zip(means, stds, y, weight, strict=True):
        belief = gf.DenseGaussian(np.array([m0]), np.array([[s * s]]))
        score = gf.fold(belief, likelihood, [[1.0]], [label], sample_weight=[w]).log_predictive[0]
        m, v = belief.mean[0], belief.cov[0, 0]
        first, second = likelihood.derivatives(label, m + np.sqrt(v) * Z)
        weights = np.exp(LOG_WEIGHTS)
        assert (m - m0) / s == pytest.approx(w * s * (weights @ first), abs=1e-10)
        assert s * s / v == pytest.approx(1.0 - w * s * s * (weights @ second), rel=1e-11)
        if not 0.0 < label < 1.0 or isinstance(likelihood, lk.Beta):  # a soft label has no density to average
            assert score == pytest.approx(logsumexp(LOG_WEIGHTS + likelihood.log_prob(label, m0 + s * Z)), abs=1e-11)


def test_weights_are_exact_for_polynomials():
    """Averages of z^p and its derivatives: all degrees that the places know, and for two of them those beyond."""
    for start, stop in zip(jets.STARTS[:-1], jets.STARTS[1:], strict=True):
        nodes = jets.NODES[start:stop]
        n = stop - start
        for p in range(4 * n):
            monomial = np.polynomial.Polynomial.basis(p)
            data = np.stack([monomial.deriv(d)(nodes) if d else monomial(nodes) for d in range(4)], axis=1)
            for k in range(jets.AVERAGES):
                if k == 1 and p > 3 * n:
                    continue  # the second takes three derivatives only
                derivative = monomial.deriv(k) if k else monomial
                moments = [0.0 if q % 2 else float(np.prod(np.arange(1.0, q, 2.0))) for q in range(p + 1)]
                want = float(derivative.coef @ np.array(moments[: derivative.coef.size]))
                terms = jets.AVERAGE_WEIGHTS[start:stop, k] * data
                assert terms.sum() == pytest.approx(want, rel=1e-12, abs=1e-14 * np.abs(terms).sum())
            terms = jets.VALUE_WEIGHTS[start:stop] * data[:, None]
            np.testing.assert_allclose(
                terms.sum((0, 2)), jets.SUM_NODES ** (p + 1) / (p + 1), rtol=1e-9, atol=1e-13 * np.abs(terms).sum()
            )


def test_a_label_that_surprises_a_wide_belief_has_a_score():
    """log p of proportions is not concave: the mode lies further away than the slope at the mean says."""
    z = np.linspace(-40.0, 40.0, 16001)
    for y, m, s, size in ((0.293, 5.103, 1.597, 5.0), (0.865, -4.449, 1.512, 5.0), (0.5, -2.9, 0.63, 60.0)):
        likelihood = lk.Beta(size)
        belief = gf.DenseGaussian(np.array([m]), np.array([[s * s]]))
        found = gf.fold(belief, likelihood, [[1.0]], [y]).log_predictive[0]
        want = logsumexp(likelihood.log_prob(y, m + s * z) - 0.5 * z**2) - 0.5 * np.log(2.0 * np.pi) + np.log(0.005)
        assert found == pytest.approx(want, rel=1e-5)
