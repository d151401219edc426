"""A bank of beliefs: the same rows, several speeds of the world, and weights that follow the best one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Self, final

import numpy as np

from gaussfold.beliefs.bank import storage
from gaussfold.beliefs.bank.weights import SHARES, SharedWeights
from gaussfold.dynamics import Dynamics, Forgetting, RandomWalk
from gaussfold.engine.programs import mixed_scores
from gaussfold.observations import Observations, admit
from gaussfold.protocols import Belief
from gaussfold.trace import ONCE, Pass, RowError, Trace, learn_before_failure
from gaussfold.types import Array, ArrayLike, Moments, Program

DRIFTS = (0.0, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0)
"""Standard deviations of a step, for weights of features that are about one."""
MEMORIES = (1.0, 0.9997, 0.999, 0.997, 0.99, 0.97, 0.9)
"""Factors of forgetting: of everything, of 3000 rows and so on down to ten."""
STANDS_STILL = 0.5
"""Prior weight of the member that does not move; the others share the rest alike."""


class BankTrace(Trace):
    """As a :class:`Trace`, of the mixture; sites are NaN, for each member has its own."""

    members: list[Trace]
    weights: Array
    """Of the members before each row, shape (n, K)."""
    start: SharedWeights
    """Before the pass."""


@final
class Bank:
    """Σ wₖ qₖ(θ): K beliefs that see the same rows, each with its own dynamics; wₖ by fixed share.

    Every member is folded for itself. The weights are multiplied by what each predicted of a row and a share of them is
    handed out anew, so that the total log loss stays within a few nats of the best member's in hindsight, and of the
    best *sequence* of members at a few nats a change. With members that differ in how fast they let the parameters
    move, how fast the world moves need not be known.

    Parameters
    ----------
    members
        Beliefs of one kind and dimension: dense, low-rank or diagonal Gaussians. They are taken over.
    dynamics
        What ticks for each of them: None, :class:`gaussfold.dynamics.RandomWalk` (of one scale) or
        :class:`gaussfold.dynamics.Forgetting` (towards one prior).
    prior_weights
        Of the members, > 0, before any row, and in which shares are handed out; None: all alike.
    shares
        How much of the weight is handed out anew after each row: several, themselves weighed by how well they do.
    per_row
        Whether the dynamics tick before each learned row, or only when :meth:`pass_time` is called.

    Examples
    --------
    A coin that changes its mind: the member that forgets takes over.

    >>> import numpy as np
    >>> import gaussfold as gf
    >>> bank = gf.Bank.walking(gf.DenseGaussian.isotropic(1), stds=(0.0, 0.3))
    >>> y = np.repeat([1.0, 0.0], 50)
    >>> result = gf.fold(bank, gf.likelihoods.Bernoulli(), np.ones((100, 1)), y)
    >>> print(bank.weights.round(2))
    [0. 1.]
    """

    def __init__(
        self,
        members: Sequence[Belief],
        dynamics: Sequence[Dynamics | None],
        *,
        prior_weights: ArrayLike = None,
        shares: Sequence[float] = SHARES,
        per_row: bool = True,
    ) -> None:
        storage.check_members(members, dynamics)
        prior = np.ones(len(members)) if prior_weights is None else np.asarray(prior_weights, dtype=np.float64)
        if prior.shape != (len(members),):
            msg = f"prior_weights: shape {prior.shape}; ({len(members)},) is needed, one for each member"
            raise ValueError(msg)
        self._members, self._dynamics, self._per_row = list(members), list(dynamics), per_row
        self._weights = SharedWeights.start(prior, tuple(shares))

    @classmethod
    def walking(
        cls, belief: Belief, stds: Sequence[float] = DRIFTS, scale: Array | None = None, *, per_row: bool = True
    ) -> Self:
        """Copies of a belief that drift by so much a row, 0 not at all; ``scale`` as for ``RandomWalk``."""
        moves = [None if std == 0.0 else RandomWalk(std, scale) for std in stds]
        return cls([belief.copy() for _ in stds], moves, prior_weights=_prior_weights(moves), per_row=per_row)

    @classmethod
    def forgetting(cls, belief: Belief, factors: Sequence[float] = MEMORIES, *, per_row: bool = True) -> Self:
        """Copies of a belief that return to it, each with its factor, 1 not at all."""
        prior = belief.copy()
        moves = [None if factor == 1.0 else Forgetting(factor, prior) for factor in factors]
        return cls([belief.copy() for _ in factors], moves, prior_weights=_prior_weights(moves), per_row=per_row)

    @property
    def dim(self) -> int:
        """Number of parameters."""
        return self._members[0].dim

    @property
    def members(self) -> list[Belief]:
        """The beliefs themselves, not copies."""
        return list(self._members)

    @property
    def dynamics(self) -> list[Dynamics | None]:
        """What ticks for each member."""
        return list(self._dynamics)

    @property
    def weights(self) -> Array:
        """How much each member is believed at present; they add up to 1."""
        return self._weights.members

    @property
    def log_weights(self) -> Array:
        """Their logarithms."""
        return np.log(self.weights)

    # What can be read: the mixture.

    @property
    def mean(self) -> Array:
        """Mean of the mixture."""
        return np.asarray(self.weights @ np.stack([member.mean for member in self._members]))

    def variance(self) -> Array:
        """Variance of each parameter under the mixture: within the members and between them."""
        means = np.stack([member.mean for member in self._members], axis=1)
        within = np.stack([member.variance() for member in self._members], axis=1)
        return mixed(self.weights, means, within).variance

    def marginals(self, X: ArrayLike) -> Moments:
        """Mean and variance of x'θ for each row and member, shape (n, K)."""
        parts = [member.marginal(X) for member in self._members]
        return Moments(*(np.stack(column, axis=1) for column in zip(*parts, strict=True)))

    def marginal(self, X: ArrayLike) -> Moments:
        """Mean and variance of x'θ for each row x of X under the mixture."""
        return mixed(self.weights, *self.marginals(X))

    def sample(self, n: int, rng: np.random.Generator) -> Array:
        """Draw n parameter vectors, each from a member drawn by weight."""
        counts = np.bincount(rng.choice(len(self._members), size=n, p=self.weights), minlength=len(self._members))
        draws = [member.sample(int(count), rng) for member, count in zip(self._members, counts, strict=True) if count]
        return np.asarray(rng.permutation(np.concatenate([np.empty((0, self.dim)), *draws])))

    def log_prob(self, theta: ArrayLike) -> Array:
        """Log density of the mixture at each row of theta (or at one vector)."""
        parts = np.stack([member.log_prob(theta) for member in self._members], axis=-1)
        return np.asarray(np.logaddexp.reduce(self.log_weights + parts, axis=-1))

    # Learning.

    def absorb(self, x: Array, precision: float, shift: float) -> None:
        """Refuse: members are weighed by what they predicted, which one site for all of them does not tell."""
        del x, precision, shift
        msg = "belief: a Bank takes the built-in likelihoods only; fold your own into one of its members"
        raise ValueError(msg)

    def absorb_row(self, row: Array, y: float, program: Program) -> Trace | None:
        """None: a row has nothing quicker than a stream of one."""
        del row, y, program
        return None

    def absorb_stream(self, data: Observations, program: Program, how: Pass = ONCE) -> Trace:
        """Visit rows in order, each once, by every member; then weigh the members, row by row."""
        if how.sites is not None or how.dynamics is not None:
            msg = "refine, sweep, dynamics: the members of a Bank move, each by its own dynamics; leave them out"
            raise ValueError(msg)
        data = admit(data, self.dim)
        if not how.whole:
            again = Pass(block_size=how.block_size)
            return learn_before_failure(lambda part: self.absorb_stream(part, program, again), data)
        worked = [member.copy() for member in self._members]
        traces = self._learn(worked, data, program, how.block_size)
        means, variances, scores = (np.stack(column, axis=1) for column in list(zip(*traces, strict=True))[:3])
        after, before = self._weights.follow(scores, np.where(data.learned, data.weight, 0.0))
        with np.errstate(divide="ignore"):
            log_before = np.log(before)
        score = mixed_scores(program, data.y, log_before, means, variances, scores)
        nothing = np.full(data.y.size, np.nan)
        trace = BankTrace(*mixed(before, means, variances), score, nothing, nothing)
        trace.members, trace.weights, trace.start = traces, before, self._weights
        self._members, self._weights = worked, after  # from here on nothing can fail
        return trace

    def _learn(
        self, members: Sequence[Belief], data: Observations, program: Program, block_size: int | None
    ) -> list[Trace]:
        """Let every member learn; the first row that one of them fails at is the one that failed."""

        def run(member: Belief, moves: Dynamics | None) -> Trace | int:
            try:
                return member.absorb_stream(data, program, Pass(moves, block_size=block_size))
            except RowError as error:
                return error.row

        dynamics = self._dynamics if self._per_row else [None] * len(members)
        results = [run(member, moves) for member, moves in zip(members, dynamics, strict=True)]
        failed = [row for row in results if isinstance(row, int)]
        if failed:
            raise RowError(min(failed))
        return [trace for trace in results if isinstance(trace, Trace)]

    def weigh_again(self, trace: BankTrace, scores: Array, weight: Array) -> Array:
        """Weigh the members of the last pass by other scores (n, K), where the likelihood has an unknown scale.

        Returns the members' weights before each row.
        """
        self._weights, before = trace.start.follow(scores, weight)
        return before

    # Time.

    def pass_time(self, ticks: float = 1.0) -> None:
        """Let so many ticks pass for every member, by its own dynamics; whole or not at all."""
        worked = [member.copy() for member in self._members]
        for member, moves in zip(worked, self._dynamics, strict=True):
            if moves is not None:
                moves.tick(member, ticks)
        self._members = worked

    def relax(self, factor: float, prior: Belief) -> None:
        """Every member relaxes towards the prior, or that of the prior if it is a bank too."""
        others = prior.members if isinstance(prior, Bank) else [prior] * len(self._members)
        self._each(lambda member, other: member.relax(factor, other), others)

    def diffuse(self, variance: float | Array) -> None:
        """Every member's variances grow."""
        self._each(lambda member, _: member.diffuse(variance), self._members)

    def _each(self, move: Callable[[Belief, Belief], None], others: Sequence[Belief]) -> None:
        worked = [member.copy() for member in self._members]
        for member, other in zip(worked, others, strict=True):
            move(member, other)
        self._members = worked

    # Copies and arrays.

    def replace_members(self, members: Sequence[Belief], dynamics: Sequence[Dynamics | None] | None = None) -> None:
        """Put other beliefs in the members' places, for what is done to each of them; the weights stay."""
        moves = self._dynamics if dynamics is None else list(dynamics)
        storage.check_members(members, moves)
        if len(members) != len(self._members):
            msg = f"members: {len(members)} of them, the bank has {len(self._members)}; one for each is needed"
            raise ValueError(msg)
        self._members, self._dynamics = list(members), moves

    def copy(self) -> Self:
        """An independent copy (dynamics, which never change, are shared)."""
        twin = type(self).__new__(type(self))
        vars(twin).update(vars(self))
        vars(twin).update(_members=[member.copy() for member in self._members], _dynamics=list(self._dynamics))
        return twin

    def become(self, other: Bank) -> None:
        """Take over another bank's numbers; the other must not be used any more."""
        vars(self).update(vars(other))

    def state(self) -> dict[str, np.ndarray]:
        """Named arrays that hold everything; see :meth:`from_state`."""
        return storage.to_arrays(storage.Contents(self._members, self._dynamics, self._weights, self._per_row))

    @classmethod
    def from_state(cls, state: dict[str, np.ndarray]) -> Self:
        """The bank of :meth:`state`, bit for bit."""
        self = cls.__new__(cls)
        self._members, self._dynamics, self._weights, self._per_row = storage.from_arrays(state)
        return self


def mixed(weights: Array, means: Array, variances: Array) -> Moments:
    """Moments of mixtures, one a row; ``weights`` one for all rows (K,), or one a row (n, K)."""
    mean = np.asarray((means * weights).sum(axis=1))
    spread = variances + (means - mean[:, None]) ** 2
    return Moments(mean, np.asarray((spread * weights).sum(axis=1)))


def _prior_weights(moves: Sequence[Dynamics | None]) -> Array:
    """One that stands still has more than its share: many streams do."""
    still = np.array([each is None for each in moves])
    if still.all() or not still.any():
        return np.ones(still.size)
    return np.asarray(np.where(still, STANDS_STILL / still.sum(), (1.0 - STANDS_STILL) / (~still).sum()))
