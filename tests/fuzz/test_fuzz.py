"""The gate's share of the fuzzing: every case that ever failed, and a few from the start of each target."""

from __future__ import annotations

import pytest

from tests.fuzz import cases

FEW = 40


@pytest.mark.parametrize("name", cases.names())
def test_first_cases(name):
    for number in range(FEW):
        cases.run(name, number)


@pytest.mark.parametrize(("name", "number"), cases.failed_once())
def test_what_failed_once(name, number):
    cases.run(name, number)
