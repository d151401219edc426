"""How much each lane of a stack counts: the numbers, how they start, and what they must be like in a file."""

from __future__ import annotations

import math
from typing import NamedTuple, Self

import numpy as np

from gaussfold import schema
from gaussfold.beliefs.diagonal.passes import Sparse
from gaussfold.engine.programs import averaging, makes_logit_modes, score_rows
from gaussfold.engine.sparse.stacking import LEFT_OVER, PRIOR_VARIANCE, SHARE, look_stacked, stack_rows, weigh_rows
from gaussfold.trace import Trace
from gaussfold.types import Array, Moments, Program

WEIGHT_STD, CONSTANT_STD = 1.0, 0.3
"""Of what a lane counts, before any data, and of what is added; lanes count 1/K each on average."""
FOLLOWERS = np.array([[0.0, -math.log(0.9), 1.0], [0.0, -math.log(0.3), 1.0], [1.0, -math.log(0.5), 1.0]])
"""Those who follow: labels of ten rows, labels of one or two, and by how much the lanes were off in the last two.

Of each: whether it is what is left over, -log of its factor of forgetting, and its variance before any row.
"""
STACK_WEIGHT = 0.5
"""Prior probability that the stack predicts best; the lanes share the rest alike."""
PARTS = (
    schema.Part("stack.mean", ("inputs",), "double"),
    schema.Part("stack.cov", ("inputs", "inputs"), "double", symmetric=True),
    schema.Part("stack.recent", ("following", 2), "double"),
    schema.Part("stack.weights", ("experts",), "double", low=0.0, high=1.0, positive=True),
    schema.Part("stack.averaging", (2,), "double", low=0.0),
    schema.Part("stack.learned", (1,), "double", low=0.0),
)


class StackNumbers(NamedTuple):
    """K lanes, R that follow, K + R + 1 inputs (the last is a constant), K + 1 experts: ``engine.sparse.stacking``."""

    mean: Array
    cov: Array
    recent: Array
    """Mean and variance of each that follows, (R, 2): the first R of `FOLLOWERS`, in older files only one."""
    weights: Array
    """Of the lanes, then of the stack; they add up to 1."""
    averaging: Array
    """How the likelihood averages over a Gaussian (``programs.averaging``): known once a row has been learned."""
    learned: Array
    """Rows learned."""

    @classmethod
    def start(cls, lanes: int) -> Self:
        """Before any row: the mean of the lanes."""
        following = len(FOLLOWERS)
        spread = np.append(np.full(lanes + following, WEIGHT_STD), CONSTANT_STD)
        mean = np.append(np.full(lanes, 1.0 / lanes), np.zeros(following + 1))
        recent = np.stack([np.zeros(following), FOLLOWERS[:, PRIOR_VARIANCE]], axis=1)
        return cls(mean, np.diag(spread**2), recent, _prior_weights(lanes), np.zeros(2), np.zeros(1))

    def copied(self) -> Self:
        """In memory of their own."""
        return type(self)(*(array.copy() for array in self))

    def put_back(self, other: Self) -> None:
        """Take over another's numbers."""
        for mine, theirs in zip(self, other, strict=True):
            mine[:] = theirs

    def change_units(self, ratio: float, shift: float) -> None:
        """The lanes' predictions were divided by ``ratio`` and shifted: so is the stack's."""
        follows = 1.0 - self._followers()[:, LEFT_OVER]  # what is left over has no place that could shift
        self.recent[:, 0] = self.recent[:, 0] / ratio + follows * shift
        lanes = self.mean.size - 1 - follows.size
        shifted = self.mean[:lanes].sum() + self.mean[lanes:-1] @ follows
        self.mean[-1] = self.mean[-1] / ratio + (1.0 - shifted) * shift

    def _followers(self) -> Array:
        return FOLLOWERS[: len(self.recent)]

    def look(self, lanes: Moments) -> Moments:
        """Marginals of the lanes, (n, K), then what the stack predicts with and what it reports, (n, K + 2)."""
        with_stack = _with_room(lanes)
        c, s = self.averaging.tolist()
        look_stacked((c, s), with_stack.mean, with_stack.variance, self.recent, self.mean, self.cov)
        return with_stack

    def learn(
        self, lanes: Moments, data: Sparse, rows: slice, program: Program, evidence: Array | None = None
    ) -> Trace | int:
        """What was predicted of these rows before they were learned; or the row at which a number is no longer finite.

        ``lanes`` are their marginals. ``evidence``: logarithms of what every lane, and last the stack, said of the
        labels, which is added to.
        """
        y, weight = data.y[rows], data.weight[rows]
        self.averaging[:] = averaging(program)
        met = _with_room(lanes)
        c, s = self.averaging.tolist()
        failed = stack_rows(
            program, (c, s), makes_logit_modes(program), y, weight, (met.mean, met.variance), self.recent,
            self._followers(), self.mean, self.cov,
        )  # fmt: skip
        if failed >= 0:
            return int(failed)
        means, variances = (np.ascontiguousarray(column[:, :-1]) for column in met)
        scores = np.empty_like(means)
        score_rows(program, y, means, variances, scores)
        mixed = np.empty((3, y.size))
        if evidence is not None:
            told = ~np.isnan(y) & (weight > 0.0) & np.isfinite(scores.max(axis=1))
            evidence += weight[told] @ scores[told]
        prior = _prior_weights(self.weights.size - 1)
        weigh_rows(
            program.family, y, weight, (met.mean, met.variance), scores, prior, self.weights, self.learned, mixed
        )
        nothing = np.full(y.size, math.nan)
        return Trace(mixed[0], mixed[1], mixed[2], nothing, nothing)

    def weights_after(self, evidence: Array, rows: int) -> Array:
        """Of lanes and stack when so many rows more were learned apart, of which each said so much.

        The share that rows hand out anew is handed out before them, all at once, and that of the last one after.
        """
        likely = np.log(self._handed_out(rows)) + evidence
        weights = np.exp(likely - likely.max())
        last = SHARE / (float(self.learned[0]) + 1.0 + rows)
        return np.asarray((1.0 - last) * (weights / weights.sum()) + last * self._prior())

    def evidence_for(self, after: StackNumbers) -> Array:
        """What :meth:`weights_after` needs to be told for the weights of one who has learned more rows in order."""
        rows = float(after.learned[0] - self.learned[0])
        last = SHARE / (float(self.learned[0]) + 1.0 + rows)
        weights = (after.weights - last * self._prior()) / (1.0 - last)
        return np.asarray(np.log(np.maximum(weights, np.finfo(float).tiny)) - np.log(self._handed_out(rows)))

    def _prior(self) -> Array:
        return _prior_weights(self.weights.size - 1)

    def _handed_out(self, rows: float) -> Array:
        """Weights when the share of so many rows was handed out anew."""
        now = float(self.learned[0]) + 1.0
        kept = (now / (now + rows)) ** SHARE
        return np.asarray(kept * self.weights + (1.0 - kept) * self._prior())

    def implied(self, cells: Array) -> Array:
        """Means and variances of the parameters as the stack sees them, (n, 2, 1), from the lanes' (n, 2, K)."""
        shares = self.mean[: cells.shape[2]]
        spread = np.sqrt(cells[:, 1]) @ shares
        least = np.finfo(float).tiny
        return np.stack([cells[:, 0] @ shares, np.maximum(spread**2, least)], axis=1)[:, :, None]

    def wander(self, lanes: Moments, n: int, rng: np.random.Generator) -> Array:
        """How far the latent of each row is from its mean for shares that are drawn, n times: shape (n, rows)."""
        away = rng.multivariate_normal(np.zeros_like(self.mean), self.cov, n, method="eigh")
        (c, s), k = self.averaging, lanes.mean.shape[1]
        inputs = (lanes.mean + s * lanes.variance) / np.sqrt(1.0 + c * lanes.variance)
        late = (self.recent[:, 0] + s * self.recent[:, 1]) / np.sqrt(1.0 + c * self.recent[:, 1])
        return np.asarray(away[:, :k] @ inputs.T + (away[:, k:] @ np.append(late, 1.0))[:, None])

    def arrays(self) -> dict[str, np.ndarray]:
        """For a file."""
        return {f"stack.{name}": array for name, array in self._asdict().items()}

    @classmethod
    def from_arrays(cls, arrays: dict[str, np.ndarray], lanes: int) -> Self:
        """Undo :meth:`arrays`, bit for bit, for so many lanes."""
        recent = arrays.get("stack.recent")
        if recent is not None and recent.shape == (2,):  # files from before there were several
            arrays = arrays | {"stack.recent": recent.reshape(1, 2)}
        sizes = schema.check(arrays, PARTS)
        if not 1 <= sizes["following"] <= len(FOLLOWERS):
            schema.refuse("stack.recent", f"{sizes['following']} rows", f"1 to {len(FOLLOWERS)} are needed")
        inputs = lanes + sizes["following"] + 1
        schema.equal("stack.mean", sizes["inputs"], inputs, "the lanes, those who follow, a constant")
        schema.equal("stack.weights", sizes["experts"], lanes + 1, "the lanes and the stack")
        total = float(arrays["stack.weights"].sum())
        if not abs(total - 1.0) <= schema.ROUNDING:
            schema.refuse("stack.weights", f"weights that add up to {total!r}", "1 is needed")
        least = float(arrays["stack.recent"][:, 1].min())
        if not least > 0.0:
            schema.refuse("stack.recent", f"a variance of {least!r}", "> 0 is needed")
        return cls(*(np.array(arrays[f"stack.{name}"]) for name in cls._fields))


def _prior_weights(lanes: int) -> Array:
    return np.append(np.full(lanes, (1.0 - STACK_WEIGHT) / lanes), STACK_WEIGHT)


def _with_room(lanes: Moments) -> Moments:
    """The lanes' marginals and two columns more."""
    n, k = lanes.mean.shape
    room = np.zeros((2, n, k + 2))
    room[0, :, :k], room[1, :, :k] = lanes
    return Moments(room[0], room[1])
