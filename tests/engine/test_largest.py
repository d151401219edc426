"""Probabilities of classes as integrals over the largest of them, against sums over all latents."""

import numpy as np
import pytest

from gaussfold.expectations.classes import class_log_probabilities
from tests.reference.largest import by_largest, by_latents


def ours(mean, std):
    return class_log_probabilities(np.array([mean], float), np.array([std], float) ** 2)[0]


@pytest.mark.parametrize(
    ("mean", "std"),
    [
        ([0.0, 0.0, 0.0], [0.7, 0.7, 0.7]),
        ([0.3, -1.2, 0.9], [0.2, 1.7, 0.6]),
        ([2.5, -0.4], [1.3, 0.8]),
        ([4.0, -3.0, 0.2], [0.9, 0.4, 0.0]),
    ],
)
def test_few_classes_are_sums_over_all_latents(mean, std):
    np.testing.assert_allclose(ours(mean, std), by_latents(mean, std, points=81), atol=1e-6)


@pytest.mark.parametrize(("classes", "width", "spread"), [(4, 3.0, 9.0), (12, 1.0, 0.4), (35, 2.0, 3.0)])
def test_many_classes_are_integrals_over_the_largest(classes, width, spread):
    rng = np.random.default_rng(classes)
    mean, std = width * rng.normal(size=classes), spread * rng.random(classes)
    np.testing.assert_allclose(ours(mean, std), by_largest(mean, std), atol=1e-6)


def test_nothing_known_is_one_in_k():
    """Whatever the width: the lattice of nodes that was here before said -1.0949 of three classes."""
    for classes in (2, 3, 7, 100):
        for std in (0.0, 0.3, 2.0, 70.0, 1e5):
            np.testing.assert_allclose(ours([0.7] * classes, [std] * classes), -np.log(classes), atol=1e-9)


def test_what_is_next_to_impossible_keeps_its_digits():
    """A sure class far below: log p is about the mean of what it lacks, and a wide one may come from far."""
    np.testing.assert_allclose(ours([0.0, -200.0], [0.0, 0.0]), [0.0, -200.0], atol=1e-8)
    np.testing.assert_allclose(
        ours([0.0, -60.0, -1.0], [0.5, 1.5, 0.7])[1], by_largest([0, -60, -1], [0.5, 1.5, 0.7])[1], rtol=1e-4
    )
    np.testing.assert_allclose(ours([0.0, -90.0], [1.0, 11.0])[1], by_largest([0, -90], [1, 11])[1], rtol=1e-4)
    assert ours([0.0, -1e4], [0.0, 0.0])[1] == pytest.approx(-1e4)
    assert np.isfinite(ours([1e12, -1e12, 0.0], [1e3, 1e9, 0.0])).all()


def test_latents_that_are_no_numbers_have_no_probability():
    assert np.isnan(ours([0.0, np.nan], [1.0, 1.0])).all()
    assert np.isnan(ours([0.0, 1.0], [1.0, np.inf])).all()
