"""The applied Gaussian-process experiments: what is simulated has its law, quick runs say what they should."""

import numpy as np
from experiments.gp import banana, series

from tests.shared import needs_data
from tests.test_experiments import run


def test_the_simulated_series_is_the_process_it_claims():
    f = series.simulated(400_000, np.random.default_rng(3))
    for lag in (0, 30, 60, 150):
        s = np.sqrt(3.0) * lag / series.LENGTHSCALE
        expected = series.VARIANCE * (1.0 + s) * np.exp(-s)
        found = np.mean(f[: f.size - lag] * f[lag:])
        np.testing.assert_allclose(found, expected, atol=0.12)  # four standard errors of 400,000/60/2 looks
    np.testing.assert_allclose(np.mean(f[:2000] ** 2), series.VARIANCE, atol=2.5)  # no transient at the start


@needs_data
def test_coal_rates_fall_and_beat_a_constant_rate(tmp_path):
    numbers = run("gp-coal", tmp_path)
    assert numbers["disasters"] == 191
    for found in numbers["rules"].values():
        assert 2.0 < found["rate_1860"] / found["rate_1930"] < 4.0
        assert found["nlpd"] < numbers["nlpd_constant_rate"] - 0.05
        assert 10.0 < found["lengthscale_years"] < 40.0
    energies = {rule: found["energy"] for rule, found in numbers["rules"].items()}
    assert energies["vi"] > energies["ep"] - 1e-4, "VI bounds the evidence from below, and EP is closer to it"
    assert abs(energies["vi"] - energies["ep"]) < 0.01


@needs_data
def test_banana_is_read_with_both_classes():
    X, y = banana.load()
    assert X.shape == (5300, 2)
    assert 0.4 < y.mean() < 0.5
