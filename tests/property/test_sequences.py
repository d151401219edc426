"""Hypothesis chooses the calls: whatever is done to a model in between, it knows what its plain twin knows."""

from __future__ import annotations

import tempfile
from pathlib import Path

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from tests.property.sequences import FORMS, REFUSED, SETTINGS, WAYS, Walk

SEEDS, SIZES, SHAPES = st.integers(0, 2**32 - 1), st.integers(1, 24), st.sampled_from(sorted(FORMS))


class Sequences(RuleBasedStateMachine):
    """A walk of `tests.property.sequences`, one call after the other."""

    def __init__(self) -> None:
        super().__init__()
        self._folder = tempfile.TemporaryDirectory(prefix="sequences-")
        self.walk: Walk | None = None

    @initialize(setting=st.sampled_from(sorted(SETTINGS)), dim=st.integers(1, 6), seed=SEEDS, n=SIZES, form=SHAPES)
    def begin(self, setting, dim, seed, n, form):
        self.walk = Walk(setting, dim, Path(self._folder.name))
        self.walk.learn(seed, n, form, n)

    @rule(seed=SEEDS, n=SIZES, form=SHAPES, cut=SIZES)
    def learn(self, seed, n, form, cut):
        self.walk.learn(seed, n, form, cut)

    @rule(way=st.sampled_from(WAYS))
    def through(self, way):
        self.walk.through(way)

    @rule(seed=SEEDS, n=SIZES, missing=st.booleans())
    def say_nothing(self, seed, n, missing):
        self.walk.say_nothing(seed, n, missing=missing)

    @rule(seed=SEEDS, n=SIZES, how=st.sampled_from(REFUSED))
    def refuse(self, seed, n, how):
        self.walk.refuse(seed, n, how)

    @rule(ticks=st.sampled_from([0.5, 1.0, 30.0, 1e6]))
    def forget(self, ticks):
        self.walk.forget(ticks)

    @rule()
    def combine(self):
        self.walk.combine()

    @rule(seed=SEEDS, n=SIZES, form=SHAPES)
    def look(self, seed, n, form):
        self.walk.look(seed, n, form)

    @precondition(lambda self: self.walk is not None)
    @invariant()
    def twins_agree(self):
        self.walk.check()

    def teardown(self):
        self._folder.cleanup()


TestSequences = Sequences.TestCase
TestSequences.settings = settings(
    max_examples=60, stateful_step_count=8, deadline=None, suppress_health_check=list(HealthCheck)
)
