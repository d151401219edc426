"""The fast references against mpmath: who checks the checkers."""

import mpmath as mp
import numpy as np
import pytest
from scipy import stats

from tests.reference import likelihoods as reference

POISSON = {"name": "Poisson"}  # E log p is closed form; as an integral it is beyond reach at large v
CELLS = [
    ({"name": "Gaussian", "std": 0.7}, 1.3, 0.4, 7.0),
    ({"name": "Bernoulli", "link": "logit"}, 1.0, -3.0, 1e6),
    ({"name": "Bernoulli", "link": "logit"}, 0.3, 12.0, 7.0),
    ({"name": "Bernoulli", "link": "logit"}, 0.0, -300.0, 1e4),
    ({"name": "Bernoulli", "link": "probit"}, 1.0, -1000.0, 1e4),
    ({"name": "Bernoulli", "link": "probit"}, 1.0, -1000.0, 1e-8),
    ({"name": "Bernoulli", "link": "probit"}, 0.3, 2.0, 100.0),
    (POISSON, 3.0, 0.4, 0.1),
    (POISSON, 0.0, 1000.0, 100.0),
    (POISSON, 2500.0, -40.0, 1e6),
    ({"name": "StudentT", "df": 3.5, "scale": 0.8}, 1.3, 0.4, 1e6),
    ({"name": "StudentT", "df": 3.5, "scale": 0.8}, -40.0, 7.0, 0.1),
    ({"name": "NegativeBinomial", "dispersion": 2.5}, 4.0, 2.0, 7.0),
    ({"name": "NegativeBinomial", "dispersion": 2.5}, 0.0, 30.0, 1e4),
    ({"name": "NegativeBinomial", "dispersion": 0.3}, 250.0, -20.0, 1e6),
]


def close(got, want):
    assert float(abs(got - want)) <= 1e-12 * max(1e-3, float(abs(want))), (got, want)


@pytest.mark.slow
@pytest.mark.parametrize(("config", "y", "m", "v"), [cell for cell in CELLS if cell[0] != POISSON or cell[3] < 100])
def test_panels_agree_with_mpmath(config, y, m, v):
    cell = reference.expectations(config, y, m, v)
    wanted = reference.exact_expectations(config, y, m, v)
    for got, want in zip((cell.log_prob, cell.first, cell.second), wanted, strict=True):
        close(got, want)


@pytest.mark.slow
@pytest.mark.parametrize(("config", "y", "m", "v"), [cell for cell in CELLS if cell[1] != 0.3])
def test_evidence_agrees_with_mpmath(config, y, m, v):
    close(reference.expectations(config, y, m, v).log_predictive, reference.exact_log_evidence(config, y, m, v))


@pytest.mark.parametrize("f", [-3.1, 0.4, 2.2])
def test_definitions_agree_with_scipy(f):
    pairs = [
        ({"name": "Gaussian", "std": 0.7}, 1.3, stats.norm.logpdf(1.3, f, 0.7)),
        ({"name": "Bernoulli", "link": "logit"}, 1.0, stats.bernoulli.logpmf(1, 1 / (1 + np.exp(-f)))),
        ({"name": "Bernoulli", "link": "probit"}, 0.0, stats.bernoulli.logpmf(0, stats.norm.cdf(f))),
        (POISSON, 3.0, stats.poisson.logpmf(3, np.exp(f))),
        ({"name": "StudentT", "df": 3.5, "scale": 0.8}, 1.3, stats.t.logpdf(1.3, 3.5, loc=f, scale=0.8)),
        (
            {"name": "NegativeBinomial", "dispersion": 2.5},
            4.0,
            stats.nbinom.logpmf(4, 2.5, 2.5 / (2.5 + np.exp(f))),
        ),
    ]
    for config, y, want in pairs:
        assert float(reference.exact_log_density(config, y, mp.mpf(f))) == pytest.approx(want, rel=1e-12)
