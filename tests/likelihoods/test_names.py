"""Names and configurations."""

import dataclasses
import json

import numpy as np
import pytest

from gaussfold import likelihoods as lk
from gaussfold.protocols import Likelihood
from tests.likelihoods.families import APPROXIMATE, FAMILIES, name

ALL = [likelihood for likelihood, _ in FAMILIES] + [APPROXIMATE]


@pytest.mark.parametrize("likelihood", ALL, ids=name)
def test_config_survives_json(likelihood):
    again = lk.from_config(json.loads(json.dumps(likelihood.config())))
    assert again == likelihood
    assert type(again) is type(likelihood)


def test_parameters_are_plain_floats():
    assert json.dumps(lk.Gaussian(np.float32(0.5)).config()) == '{"name": "Gaussian", "std": 0.5}'


@pytest.mark.parametrize("likelihood", ALL, ids=name)
def test_immutable_and_hashable(likelihood):
    assert hash(likelihood) == hash(lk.from_config(likelihood.config()))
    with pytest.raises(dataclasses.FrozenInstanceError):
        likelihood.std = 2.0


@pytest.mark.parametrize("likelihood", ALL, ids=name)
def test_keeps_the_protocol(likelihood):
    assert isinstance(likelihood, Likelihood)
    assert lk.resolve(likelihood) is likelihood


def test_resolve_by_name():
    assert lk.resolve("bernoulli") == lk.Bernoulli(link="logit", expectation="quadrature")
    assert lk.resolve("poisson") == lk.Poisson()


@pytest.mark.parametrize("bad", ["gauss", 3, None, lk.Poisson])
def test_resolve_refuses(bad):
    with pytest.raises(ValueError, match=r"likelihood=.*'bernoulli', 'poisson'.*Gaussian\(std=1.0\)"):
        lk.resolve(bad)


def test_from_config_refuses():
    with pytest.raises(ValueError, match=r"name='Cauchy'.*'Gaussian'.*'StudentT'"):
        lk.from_config({"name": "Cauchy"})
    with pytest.raises(ValueError, match=r"likelihood Gaussian .*'sigma'"):
        lk.from_config({"name": "Gaussian", "sigma": 0.7})
    with pytest.raises(ValueError, match=r"std=-0\.7"):
        lk.from_config({"name": "Gaussian", "std": -0.7})
