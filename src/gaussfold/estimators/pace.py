"""Drift that finds itself: what ``drift_std="auto"`` and ``forgetting="auto"`` stand for."""

from __future__ import annotations

from dataclasses import dataclass

from gaussfold.beliefs.bank.belief import Bank
from gaussfold.protocols import Belief
from gaussfold.types import Array


@dataclass(frozen=True, eq=False)
class OwnPace:
    """A bank of copies of a belief, each moving at a speed of its own; the dynamics of an estimator that has one."""

    parameter: str
    """Which was "auto": "drift_std" or "forgetting"."""
    per_row: bool
    """Whether time passes before each learned row, or by the clock."""
    scale: Array | None = None
    """Units of the weights, for drift: see ``dynamics.RandomWalk``."""

    def bank(self, prior: Belief) -> Bank:
        """The bank before any data."""
        if self.parameter == "forgetting":
            return Bank.forgetting(prior, per_row=self.per_row)
        return Bank.walking(prior, scale=self.scale, per_row=self.per_row)

    @staticmethod
    def tick(belief: Belief, ticks: float = 1.0) -> None:
        """Let time pass for every member of a bank."""
        if isinstance(belief, Bank):
            belief.pass_time(ticks)
