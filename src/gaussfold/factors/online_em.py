"""Online expectation maximisation for factor analysis: running averages of the E-step's statistics.

Two step sizes. ``"average"`` (γ = 1/t) is the thesis's Algorithm 2: nothing is ever forgotten, and the factors'
covariance Σ enters H as it is now. ``"power"`` (γ = t^-0.6) is Cappé and Moulines's, lrvga (108)-(112), where Σ is
averaged too; averages of its iterates over the later part of the stream (Polyak and Ruppert) are what it returns.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gaussfold.factors.model import FactorStream, posterior
from gaussfold.types import Array

EXPONENT = 0.6
"""Cappé and Moulines's γ_t = t^-0.6."""


class OnlineEM(FactorStream):
    """Thesis Algorithm 2 (``step="average"``) or lrvga App. C (``step="power"``).

    Parameters
    ----------
    step
        "average" or "power".
    warm_up
        Rows during which the statistics move and the parameters do not.
    averaging
        Return averages over the later half of the iterates: the window restarts at every power of two, and what
        is returned covers at least the latest half and at most three quarters.
    average_from
        Average from this row on instead; half the rows to come, if that is known, is lrvga (113)-(114).
    prior_count
        How many rows the start is worth; 0 trusts the first row alone (and loses the start).
    """

    def __init__(
        self,
        dim: int,
        rank: int,
        *,
        step: str = "average",
        warm_up: int = 100,
        averaging: bool = False,
        average_from: int | None = None,
        prior_count: int = 0,
        start_psi: Array | None = None,
        **options: Any,
    ) -> None:
        super().__init__(dim, rank, **options)
        if start_psi is not None:
            self.psi = start_psi.copy()
        self.step, self.warm_up, self.prior_count = step, warm_up, prior_count
        self.averaging, self.average_from = averaging, average_from
        known = float(prior_count > 0)
        self.A = known * self.F  # E[x z'], lrvga's S₂'
        self.B = known * np.eye(rank)  # E[z z'], S₃ (power) or its part E[z]E[z]' (average)
        self.squares = known * (np.einsum("ij,ij->i", self.F, self.F) + self.psi)  # diag E[x x'], S₁
        self.window = np.zeros((0, dim, rank + 1))  # sums of [F, psi] over two windows, once there are any
        self.window_counts = np.zeros(2)

    def learn(self, X: Array) -> None:
        """Learn from rows, in order."""
        for x in X:
            self._row(self._centre(x))

    def _row(self, x: Array) -> None:
        sigma, gain = posterior(self.F, self.psi)
        z = gain @ x
        t = self.count + self.prior_count
        rate = 1.0 / t if self.step == "average" else t**-EXPONENT
        second = np.outer(z, z)
        if self.step == "power":
            second += sigma
        self.B += rate * (second - self.B)
        self.A += rate * (np.outer(x, z) - self.A)
        self.squares += rate * (x * x - self.squares)
        if self.count <= self.warm_up:
            return
        H = self.B + sigma if self.step == "average" else self.B
        self.F = np.linalg.solve(H, self.A.T).T  # H is symmetric
        # with F = AH⁻¹ the thesis's FHF' - 2FA' is -FA'
        psi = self.squares - np.einsum("ij,ij->i", self.F, self.A)
        if not (psi > 0.0).all():
            bad = int(np.argmin(psi))
            raise ValueError(
                f"X: after row {self.count} feature {bad} has no noise left (variance {psi[bad]:.3g}); it is constant, or "
                "the factors explain it fully: drop it, lengthen warm_up, or use method='recursive-em'"
            )
        self.psi = psi
        self._share_noise()
        self._average()

    def _average(self) -> None:
        if self.average_from is not None:
            if self.count <= self.average_from:
                return
        elif not self.averaging:
            return
        elif self.window.shape[0] and (self.count & (self.count - 1)) == 0:  # a power of two: shift the windows
            self.window[0], self.window_counts[0] = self.window[1], self.window_counts[1]
            self.window[1], self.window_counts[1] = 0.0, 0.0
        if not self.window.shape[0]:
            self.window = np.zeros((2, self.psi.size, self.F.shape[1] + 1))
        self.window[1, :, :-1] += self.F
        self.window[1, :, -1] += self.psi
        self.window_counts[1] += 1.0

    def settled(self) -> FactorStream:
        """The averaged model, if there is one yet."""
        if not self.window.shape[0]:
            return self
        whole = FactorStream(
            self.psi.size, self.F.shape[1], center=self.center, isotropic=self.isotropic, start=self.F,
            rng=np.random.default_rng(0),
        )  # fmt: skip
        whole.mean, whole.count = self.mean, self.count
        average = self.window.sum(axis=0) / self.window_counts.sum()
        whole.F, whole.psi = average[:, :-1].copy(), average[:, -1].copy()
        return whole

    def _parts(self) -> dict[str, Any]:
        more = {"A": self.A, "B": self.B, "squares": self.squares}
        return super()._parts() | more | {"window": self.window, "window_counts": self.window_counts}
