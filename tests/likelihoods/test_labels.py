"""Bad labels and bad parameters: refused by name, with the first offender and the remedy."""

import numpy as np
import pytest

from gaussfold import likelihoods as lk
from tests.likelihoods.families import COUNTS, FAMILIES, name


@pytest.mark.parametrize(("likelihood", "labels"), FAMILIES, ids=name)
def test_good_labels_and_nan_pass(likelihood, labels):
    likelihood.check_labels([*labels, np.nan])
    likelihood.check_labels(np.array([], dtype=float))


@pytest.mark.parametrize(("likelihood", "labels"), FAMILIES, ids=name)
@pytest.mark.parametrize("infinity", [np.inf, -np.inf])
def test_infinity_never(likelihood, labels, infinity):
    y = np.array([*labels, np.nan, infinity, infinity])
    with pytest.raises(ValueError, match=rf"target\[{len(labels) + 1}\] = {infinity}.*NaN to predict"):
        likelihood.check_labels(y, name="target")


@pytest.mark.parametrize("likelihood", COUNTS, ids=name)
@pytest.mark.parametrize("bad", [-1.0, 2.5, -0.5, 1e-9])
def test_counts_are_whole_and_not_negative(likelihood, bad):
    with pytest.raises(ValueError, match=rf"y\[2\] = {bad!r}: .*whole numbers >= 0.*give counts"):
        likelihood.check_labels([0, 7, bad, -3])


@pytest.mark.parametrize("link", ["logit", "probit"])
@pytest.mark.parametrize("bad", [-1.0, 2.0, 1.0000001, -1e-300])
def test_bernoulli_stays_between_zero_and_one(link, bad):
    with pytest.raises(ValueError, match=rf"y\[3\] = {bad!r}: Bernoulli labels must be in \[0, 1\].*0 and 1"):
        lk.Bernoulli(link).check_labels([0, 0.25, np.nan, bad, 1])


def test_labels_that_are_no_numbers():
    with pytest.raises(ValueError, match=r"y is not numeric .*'spam'.*in \[0, 1\]"):
        lk.Bernoulli().check_labels(["spam", "ham"])


def test_booleans_are_labels():
    lk.Bernoulli().check_labels(np.array([True, False]))


@pytest.mark.parametrize("bad", [0.0, -0.7, np.nan, np.inf, "wide", None])
@pytest.mark.parametrize(
    ("family", "good", "argument"),
    [
        (lk.Gaussian, {"std": 0.7}, "std"),
        (lk.StudentT, {"df": 3.5, "scale": 0.8}, "df"),
        (lk.StudentT, {"df": 3.5, "scale": 0.8}, "scale"),
        (lk.NegativeBinomial, {"dispersion": 2.5}, "dispersion"),
    ],
)
def test_parameters_must_be_positive(family, good, argument, bad):
    with pytest.raises(ValueError, match=rf"^{argument}={bad!r}: {family.__name__} .*> 0.*{argument}=1.0"):
        family(**{**good, argument: bad})


def test_unknown_options():
    with pytest.raises(ValueError, match=r"link='cauchit'.*'logit', 'probit'"):
        lk.Bernoulli(link="cauchit")
    with pytest.raises(ValueError, match=r"expectation='exact'.*'quadrature', 'probit'"):
        lk.Bernoulli(expectation="exact")
    with pytest.raises(ValueError, match=r"expectation='probit' with link='probit'.*'quadrature'"):
        lk.Bernoulli("probit", "probit")
