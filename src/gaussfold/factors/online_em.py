"""Online expectation maximisation for factor analysis: running averages of the E-step's statistics.

Two step sizes. ``"average"`` (γ = 1/t) is the thesis's Algorithm 2: nothing is ever forgotten, and the factors'
covariance Σ enters H as it is now. ``"power"`` (γ = t^-0.6) is Cappé and Moulines's, lrvga (108)-(112), where Σ is
averaged too; averages of its iterates over the later part of the stream (Polyak and Ruppert) are what it returns.

Steps of t^-0.6 on single rows diverge when there are many features: a step's noise adds about γd to the strength
F'Ψ⁻¹F of every factor. So the power step moves by the mean over a block of rows (γ counts blocks), and starts from
the recursive projection of the first block.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gaussfold import schema
from gaussfold.factors.model import FactorStream, Part, posterior
from gaussfold.factors.recursive import RecursiveFactors
from gaussfold.types import Array

AVERAGED = (
    schema.Part("noise", ("d",), "double", positive=True),
    schema.Part("counts", (1,), "double", positive=True),
)
"""What must come of the averages in a model file."""
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
        How many steps the start is worth; 0 trusts the first row alone (and loses the start).
    block_size
        Rows per step. Blocks of several rows start from the projection of the first one, whatever ``start``.
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
        block_size: int = 1,
        start_psi: Array | None = None,
        **options: Any,
    ) -> None:
        super().__init__(dim, rank, **options)
        if start_psi is not None:
            self.psi = start_psi.copy()
        self.step, self.warm_up, self.prior_count = step, warm_up, prior_count
        self.averaging, self.average_from, self.block_size = averaging, average_from, block_size
        self.steps = 0
        self.waiting: Array | None = None
        self._start_statistics(float(prior_count > 0))
        self.window = np.zeros((0, dim, rank + 1))  # sums of [F, psi] over two windows, once there are any
        self.window_counts = np.zeros(2)

    def _start_statistics(self, known: float) -> None:
        self.A = known * self.F  # E[x z'], lrvga's S₂'
        self.B = known * np.eye(self.F.shape[1])  # E[z z'], S₃ (power) or its part E[z]E[z]' (average)
        self.squares = known * (np.einsum("ij,ij->i", self.F, self.F) + self.psi)  # diag E[x x'], S₁

    def learn(self, X: Array) -> None:
        """Learn from rows, in order; a block that is not full waits."""
        rows = X if self.waiting is None else np.vstack([self.waiting, X])
        full = len(rows) - len(rows) % self.block_size
        for begin in range(0, full, self.block_size):
            block = rows[begin : begin + self.block_size]
            if self.block_size == 1:
                self._step(self._centre(block[0])[None])
            elif self.steps == 0:
                self._first(block)
            else:
                self.count += len(block)
                if self.center:
                    self.mean = self.mean + (len(block) / self.count) * (block.mean(axis=0) - self.mean)
                self._step(block - self.mean)
        self.waiting = rows[full:].copy() if full < len(rows) else None

    def _first(self, rows: Array) -> None:
        """Start from the projection of the first block, worth one step."""
        d, p = self.F.shape
        start = RecursiveFactors(
            d, p, inner_loops=3, block_size=len(rows), warm_up=len(rows), center=self.center,
            isotropic=self.isotropic, start=self.F, rng=np.random.default_rng(0),
        )  # fmt: skip
        start.learn(rows)
        self.F, self.psi, self.mean, self.count = start.F, start.psi, start.mean, start.count
        self._start_statistics(1.0)
        self.steps = 1

    def _step(self, X: Array) -> None:
        sigma, gain = posterior(self.F, self.psi)
        Z = X @ gain.T
        self.steps += 1
        t = self.steps + self.prior_count
        rate = 1.0 / t if self.step == "average" else t**-EXPONENT
        second = Z.T @ Z / len(X)
        if self.step == "power":
            second += sigma
        self.B += rate * (second - self.B)
        self.A += rate * (X.T @ Z / len(X) - self.A)
        self.squares += rate * (np.square(X).mean(axis=0) - self.squares)
        if self.count <= self.warm_up:
            return
        H = self.B + sigma if self.step == "average" else self.B
        self.F = np.linalg.solve(H, self.A.T).T  # H is symmetric
        # with F = AH⁻¹ the thesis's FHF' - 2FA' is -FA'
        psi = self.squares - np.einsum("ij,ij->i", self.F, self.A)
        if not (psi > 0.0).all():
            bad = int(np.argmin(psi))
            msg = (
                f"X: after row {self.count} feature {bad} has no noise left ({psi[bad]:.3g}); it is constant, or "
                "the factors explain it fully: drop it, lengthen warm_up, or use method='recursive-em'"
            )
            raise ValueError(msg)
        self.psi = psi
        self._share_noise()
        self._average()

    def _average(self) -> None:
        if self.average_from is not None:
            if self.count <= self.average_from:
                return
        elif not self.averaging:
            return
        elif self.window.shape[0] and (self.steps & (self.steps - 1)) == 0:  # a power of two: shift the windows
            self.window[0], self.window_counts[0] = self.window[1], self.window_counts[1]
            self.window[1], self.window_counts[1] = 0.0, 0.0
        if not self.window.shape[0]:
            self.window = np.zeros((2, self.psi.size, self.F.shape[1] + 1))
        self.window[1, :, :-1] += self.F
        self.window[1, :, -1] += self.psi
        self.window_counts[1] += 1.0

    def settled(self) -> FactorStream:
        """The averaged model, if there is one yet; rows that wait are counted in the mean alone."""
        if not self.window.shape[0] and self.waiting is None:
            return self
        whole = FactorStream(
            self.psi.size, self.F.shape[1], center=self.center, isotropic=self.isotropic, start=self.F,
            rng=np.random.default_rng(0),
        )  # fmt: skip
        whole.F, whole.psi, whole.mean, whole.count = self.F, self.psi, self.mean, self.count
        if self.waiting is not None and self.steps == 0:  # not even one block
            twin = RecursiveFactors(
                *self.F.shape, inner_loops=3, block_size=len(self.waiting), warm_up=len(self.waiting),
                center=self.center, isotropic=self.isotropic, start=self.F, rng=np.random.default_rng(0),
            )  # fmt: skip
            twin.learn(self.waiting)
            return twin
        if self.waiting is not None:
            whole.count = self.count + len(self.waiting)
            if self.center:
                whole.mean = self.mean + (self.waiting - self.mean).sum(axis=0) / whole.count
        if self.window.shape[0]:
            average = self.window.sum(axis=0) / self.window_counts.sum()
            whole.F, whole.psi = average[:, :-1].copy(), average[:, -1].copy()
        return whole

    def check(self, state: dict[str, np.ndarray]) -> None:
        """Refuse arrays of a file that do not fit a model of this size."""
        super().check(state)
        if state["window"].shape[0]:
            sums = {"noise": state["window"].sum(axis=0)[:, -1], "counts": state["window_counts"].sum(keepdims=True)}
            schema.check(sums, AVERAGED, {"d": self.psi.size})

    def parts(self) -> dict[str, Part]:
        """Everything that was learned, by name."""
        more = {"A": self.A, "B": self.B, "squares": self.squares}
        return super().parts() | more | {
            "window": self.window, "window_counts": self.window_counts, "steps": self.steps, "waiting": self.waiting,
        }  # fmt: skip
