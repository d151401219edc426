"""Lanes of several priors and memories, side by side and stacked: what ``prior_std="auto"`` is for sparse features."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self, final

import numpy as np
from numpy.typing import DTypeLike

from gaussfold import schema
from gaussfold.beliefs.diagonal import exchange, passes, storage
from gaussfold.beliefs.diagonal.apart import AnyDelta
from gaussfold.beliefs.diagonal.base import DiagonalBelief, check_dim, sum_draws
from gaussfold.beliefs.diagonal.belief import DiagonalGaussian
from gaussfold.beliefs.diagonal.coupling import Coupling
from gaussfold.beliefs.diagonal.delta import CellDelta
from gaussfold.beliefs.diagonal.mixture import DiagonalMixture
from gaussfold.beliefs.diagonal.stack_apart import Known, StackCells, applied, remember
from gaussfold.beliefs.diagonal.stack_delta import StackDelta
from gaussfold.beliefs.diagonal.stack_lanes import Lane, away, check_pass, log_density, visit, without_predictions
from gaussfold.beliefs.diagonal.stack_numbers import StackNumbers
from gaussfold.beliefs.diagonal.state import State, mix_moments
from gaussfold.checks import between, not_negative, whole
from gaussfold.dynamics import Forgetting
from gaussfold.observations import Observations, admit
from gaussfold.protocols import Belief
from gaussfold.rows import sparse_rows
from gaussfold.trace import ONCE, Pass, RowError, Trace, check_moments
from gaussfold.types import Array, ArrayLike, Moments, Program

LANE_STDS = (0.06, 0.4, 2.7, 18.0)
"""Prior standard deviations of the lanes that stand still."""
MOVING_STD, MEMORY = 1.0, 0.99
"""Of the lane that forgets: it remembers about 100 rows."""
TAME = 1e6
"""Values and weights up to here can drive no number out of the range of what is stored."""
APART = "belief: what a DiagonalStack has learned is told by a shard of a round; use belief.apart(shards)"


@final
class DiagonalStack(DiagonalBelief):
    """Diagonal Gaussians that differ in prior and memory see the same rows; a small Gaussian learns what each counts.

    The lanes are those of a :class:`DiagonalMixture` and one that forgets. Their predictions, how labels have been of
    late, and by how much the lanes were off, are the inputs of a *stack*: a dense Gaussian belief over how much each
    counts, conditioned on every row.
    Lanes and stack are mixed by how well they have predicted, and a little of the weight is handed out anew all the
    time. So the total log loss stays within log(2K) + 0.1 log n nats of that of the best of the K lanes in hindsight,
    and within a few nats a lane of the best linear combination of them: neither the width of the prior nor how fast the
    world changes need be known, and predictions that are too timid or too bold are put right.

    Parameters
    ----------
    components
        Diagonal Gaussians of one dimension, dtype and coupling that stand still, with different priors.
    forgetting
        A further one, which returns to what it is now.
    memory
        Its factor of forgetting a row, in (0, 1).

    Examples
    --------
    >>> import numpy as np
    >>> import gaussfold as gf
    >>> belief = DiagonalStack.isotropic(3)
    >>> X = np.eye(3)[[0, 1, 2] * 20]
    >>> result = gf.fold(belief, gf.likelihoods.Bernoulli("logit"), X, [1, 0, 1] * 20, rule="newton")
    >>> print(belief.marginal(np.eye(3)).mean.round(1))
    [ 14.6 -14.7  14.6]
    """

    known: Known | None = None
    """Of a shard's: what it predicts with."""

    def __init__(
        self, components: Sequence[DiagonalGaussian], forgetting: DiagonalGaussian, memory: float = MEMORY
    ) -> None:
        together = DiagonalMixture([*components, forgetting])  # which checks that they are alike
        self._state = DiagonalMixture(components).parts()
        self._moving, self._return_to = forgetting.copy(), forgetting.copy()
        self._memory = between("memory", memory, 0, 1, "()")
        self._stack = StackNumbers.start(len(together.weights))

    @classmethod
    def isotropic(
        cls,
        dim: int,
        stds: Sequence[float] = LANE_STDS,
        mean: ArrayLike = 0.0,
        coupling: str | Coupling = "marginal",
        dtype: DTypeLike = np.float64,
    ) -> Self:
        """One lane N(mean, std² I) per std, and one that forgets."""
        size = check_dim(dim)
        lanes = [DiagonalGaussian.isotropic(size, std, mean, coupling, dtype) for std in (*stds, MOVING_STD)]
        return cls(lanes[:-1], lanes[-1])

    @property
    def log_weights(self) -> Array:
        """Logarithms of how much each lane, and last the stack, is believed."""
        return np.log(self._stack.weights)

    @property
    def weights(self) -> Array:
        """How much each lane (the one that forgets after the others), and last the stack, is believed."""
        return self._stack.weights.copy()

    @property
    def shares(self) -> Array:
        """How much each lane counts in the stack, on average; then those who follow the last rows, and a constant."""
        return self._stack.mean.copy()

    # Reading off.

    def _lanes(self, X: ArrayLike) -> Moments:
        rows = sparse_rows(X, self._state.dim)
        parts = passes.look_at(self._state, rows), self._moving.marginals(rows)
        return Moments(*(np.concatenate(column, axis=1) for column in zip(*parts, strict=True)))

    def readings(self, X: ArrayLike) -> tuple[Moments, Moments]:
        """What each lane, and last the stack, predicts with, (n, K + 1); and mean and variance of x'θ.

        The stack predicts with the lanes' uncertainty averaged away: that is not in its variance, but in x'θ's.
        """
        mean, variance = self._look(X)
        told = without_predictions(mean, variance)
        return Moments(mean[:, :-1], variance[:, :-1]), mix_moments(self.log_weights, *told)

    def _look(self, X: ArrayLike) -> Moments:
        return check_moments(self._stack.look(check_moments(self._lanes(X))))

    def reports(self, X: ArrayLike) -> Moments:
        """Mean and variance of x'θ as each lane, and last the stack, reports them, (n, K + 1)."""
        return without_predictions(*self._look(X))

    def marginals(self, X: ArrayLike) -> Moments:
        """What each lane, and last the stack, predicts with: shape (n, K + 1)."""
        return self.readings(X)[0]

    def marginal(self, X: ArrayLike) -> Moments:
        """Mean and variance of x'θ for each row x of X, within lanes and stack and between them."""
        return self.readings(X)[1]

    def cells(self, columns: np.ndarray | None = None) -> Array:
        """Means and variances per feature of each lane, and last as the stack sees them, shape (d, 2, K + 1)."""
        lanes = np.concatenate([super().cells(columns), self._moving.cells(columns)], axis=2)
        return np.concatenate([lanes, self._stack.implied(lanes)], axis=2)

    def moments(self, columns: ArrayLike) -> Moments:
        """Mean and variance of some parameters, without touching the others."""
        cells = self.cells(np.asarray(columns))
        return mix_moments(self.log_weights, cells[:, 0], cells[:, 1])

    @property
    def mean(self) -> Array:
        """Mean of the mixture."""
        return np.asarray(self.cells()[:, 0] @ self.weights)

    def variance(self) -> Array:
        """Variance of each parameter under the mixture: within the parts and between them."""
        cells = self.cells()
        return mix_moments(self.log_weights, cells[:, 0], cells[:, 1]).variance

    def sample(self, n: int, rng: np.random.Generator) -> Array:
        """Draw n parameter vectors, each from a lane, or as the stack sees them, drawn by weight."""
        cells = self.cells()
        return np.stack([cells[:, 0, k] + away(cells, k, rng) for k in self._choose(n, rng)])

    def sample_latent(self, X: ArrayLike, n: int, rng: np.random.Generator) -> Array:
        """Draw x'θ at all rows jointly, n times: only the parameters that the rows see are drawn."""
        rows = sparse_rows(X, self.dim)
        columns, place = np.unique(rows.indices, return_inverse=True)
        cells, lanes = self.cells(columns), self._lanes(rows)
        means = without_predictions(*self._stack.look(lanes)).mean
        chosen = self._choose(n, rng)
        draws = sum_draws(rows, place, [away(cells, k, rng) for k in chosen]) + means.T[chosen]
        stacked = chosen == lanes.mean.shape[1]
        draws[stacked] += self._stack.wander(lanes, int(stacked.sum()), rng)
        return np.asarray(draws)

    def _choose(self, n: int, rng: np.random.Generator) -> np.ndarray:
        return rng.choice(self._stack.weights.size, size=n, p=self.weights / self.weights.sum())

    def log_prob(self, theta: ArrayLike) -> Array:
        """Log density at each row of theta (or at one vector)."""
        return log_density(self.cells(), self.log_weights, self.coupling, theta)

    # Learning.

    def absorb(self, x: Array, precision: float, shift: float) -> None:
        """Refuse: lanes are weighed by what they predicted, which one site for all of them does not tell."""
        del x, precision, shift
        msg = "belief: a DiagonalStack takes the built-in likelihoods only; use DiagonalGaussian, coupling='joint'"
        raise ValueError(msg)

    def absorb_stream(self, data: Observations, program: Program, how: Pass = ONCE, *loose: object) -> Trace:
        """Visit rows in order, each once, by every lane; then learn what each counts, row by row."""
        data = admit(data, self.dim, *loose)
        check_pass(self._state, program, how)
        if data.y.size == 0:
            return Trace.empty(0)
        rows = sparse_rows(data.X, self.dim)
        sparse = passes.Sparse(rows, data.y, data.weight)
        largest = max(np.abs(rows.data).max(initial=0.0), data.weight.max(initial=0.0))
        outcome = self._learn(sparse, program, logged=how.whole or not largest <= TAME)
        if isinstance(outcome, Trace):
            return outcome
        raise RowError(outcome, None if how.whole else self.absorb_stream(data.part(slice(outcome)), program, how))

    def _learn(self, data: passes.Sparse, program: Program, *, logged: bool) -> Trace | int:
        """Learn all rows; or none, and say which failed. An error leaves everything as it was, if a log is kept."""
        still, follower, numbers = self._state, self._moving.parts(), self._stack.copied()
        before = dict(vars(still)), dict(vars(follower))
        learned: list[tuple[State, passes.Learned]] = []
        try:
            still.widen(data.rows.indices)
            follower.widen(data.rows.indices)
            rate = self._moving.ticks(Forgetting(self._memory, self._return_to))
            lanes = [Lane(still, 0.0, self.known and self.known.lanes), Lane(follower, rate)]
            evidence = self.known and self.known.evidence
            outcome = visit(lanes, self._stack, data, program, learned, logged=logged, evidence=evidence)
            if isinstance(outcome, Trace):
                return outcome
        except BaseException:
            if logged:
                self._take_back(learned, before, numbers)
            raise
        if not logged:
            msg = f"row {outcome}: tame values have driven a number out of range, which they cannot"
            raise RuntimeError(msg)
        self._take_back(learned, before, numbers)
        return outcome

    def _take_back(
        self,
        learned: list[tuple[State, passes.Learned]],
        before: tuple[dict[str, object], dict[str, object]],
        numbers: StackNumbers,
    ) -> None:
        for state, done in learned:
            done.take_back(state)
        vars(self._state).update(before[0])
        vars(self._moving.parts()).update(before[1])
        self._stack.put_back(numbers)

    # Several workers: see `stack_apart`.

    def apart(self, shards: int, least: float = 16.0) -> StackCells:
        """What the shards of a round, so many, are learned by, one after the other."""
        return StackCells(self, whole("shards", shards), not_negative("least", least))

    def shard(self, still: State, moving: DiagonalGaussian, known: Known) -> Self:
        """A stack of these lanes, which are taken over, that knows how much each counts; see `stack_apart`."""
        made = self._of(still)
        vars(made).update(
            _memory=self._memory, _return_to=self._return_to, _moving=moving, _stack=self._stack.copied(), known=known
        )
        return made

    def apply(self, delta: AnyDelta) -> None:
        """Multiply in what was learned elsewhere, whole or not at all; in place."""
        if isinstance(delta, StackDelta):
            numbers = applied(self._stack, delta)
            exchange.apply(self._state, delta.lanes)
            remember(self._moving, delta.tail, delta.learned * self._moving.ticks(self._forgetting()))
            self._stack.put_back(numbers)
            return
        msg = f"delta: a {type(delta).__name__}; a DiagonalStack takes what its own shards (apart) have learned"
        raise ValueError(msg)

    def tempered(self, shards: int, least: float = 16.0) -> Self:
        """Refuse: what is tempered of a stack does not predict."""
        del shards, least
        raise ValueError(APART)

    def delta(self, base: Self) -> CellDelta:
        """Refuse: what lanes and stack have predicted is known to a shard only."""
        del base
        raise ValueError(APART)

    @property
    def numbers(self) -> StackNumbers:
        """How much each lane counts: not to be written to."""
        return self._stack

    @property
    def follower(self) -> DiagonalGaussian:
        """The lane that forgets: not to be written to."""
        return self._moving

    def _forgetting(self) -> Forgetting:
        return Forgetting(self._memory, self._return_to)

    def change_units(self, ratio: float, shift: float = 0.0, constant: int | None = None) -> None:
        """Measure x'θ in another unit, then shift the constant; the stack follows its lanes."""
        super().change_units(ratio, shift, constant)
        self._moving.change_units(ratio, shift, constant)
        self._stack.change_units(ratio, shift)

    # Time.

    def relax(self, factor: float, prior: Belief) -> None:
        """Every lane relaxes towards that of the prior."""
        if type(prior) is not DiagonalStack:
            msg = f"prior: a {type(prior).__name__}; a DiagonalStack forgets towards one of its own kind"
            raise ValueError(msg)
        super().relax(factor, prior)
        self._moving.relax(factor, prior.returns_to)

    @property
    def returns_to(self) -> DiagonalGaussian:
        """What the lane that forgets returns to, not to be changed."""
        return self._return_to

    def diffuse(self, variance: float | Array) -> None:
        """Every lane's variances grow."""
        super().diffuse(variance)
        self._moving.diffuse(variance)

    # Copies and arrays.

    def copy(self) -> Self:
        """An independent copy."""
        return self.from_state(self.state(copy=False))

    def set_start(self, prior: Self) -> None:
        """Nothing to say: files of this kind have it."""
        del prior

    def state(self, *, copy: bool = True) -> dict[str, np.ndarray]:
        """Named arrays that hold everything: of the cells only those that were touched, if that is less."""
        arrays = storage.to_arrays(self._state, copy=copy) | {"memory": np.array([self._memory])}
        for prefix, part in (("moving.", self._moving), ("return_to.", self._return_to)):
            arrays |= {prefix + name: array for name, array in part.state(copy=copy).items()}
        return arrays | (self._stack.copied() if copy else self._stack).arrays()

    @classmethod
    def from_state(cls, state: dict[str, np.ndarray], *, copy: bool = True) -> Self:
        """The belief of :meth:`state`, bit for bit; ``copy=False`` takes the arrays over."""
        storage.check(state)
        schema.check(state, (schema.Part("memory", (1,), "double", high=1.0, positive=True),))
        self = cls._of(storage.from_arrays(state, copy=copy))
        self._memory = float(state["memory"][0])
        self._moving, self._return_to = (
            DiagonalGaussian.from_state(schema.part_of(state, prefix), copy=copy)
            for prefix in ("moving.", "return_to.")
        )
        for name, part in (("moving", self._moving), ("return_to", self._return_to)):
            schema.equal(f"{name}.dim", part.dim, self.dim, "that of the other lanes")
            schema.equal(f"{name}.coupling", part.coupling.form, self.coupling.form, "that of the other lanes")
            schema.equal(f"{name}.cells", part.dtype, self.dtype, "as the other lanes are stored")
        self._stack = StackNumbers.from_arrays(state, self._state.cells.shape[2] + 1)
        return self
