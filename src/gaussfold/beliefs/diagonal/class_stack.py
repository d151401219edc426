"""Classes by lanes of several priors, side by side and stacked: ``prior_std="auto"`` for classes of sparse rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Self, final

import numpy as np
from numpy.typing import DTypeLike

from gaussfold import checks, schema
from gaussfold.beliefs.diagonal.base import NO_SECOND_VISIT
from gaussfold.beliefs.diagonal.blocks import DiagonalBlocks, LearnedClasses
from gaussfold.beliefs.diagonal.class_weights import ClassWeights
from gaussfold.dynamics import Dynamics, Forgetting
from gaussfold.engine.softmax.stacking import look_classes, stack_classes
from gaussfold.observations import Observations, admit
from gaussfold.protocols import Belief
from gaussfold.rows import sparse_rows
from gaussfold.trace import ONCE, Pass, RowError, Trace, check_moments
from gaussfold.types import Array, ArrayLike, ClassProgram, Moments, Program

CLASS_LANE_STDS = (0.3, 2.0, 12.0)
"""Prior standard deviations of the lanes."""
SHARE_STD = 1.0
"""Of what a lane counts, before any data; lanes count 1/L each on average."""
PARTS = (
    schema.Part("class_lanes", (1,), "whole", low=2, high=1000),
    schema.Part("stack.mean", ("lanes",), "double"),
    schema.Part("stack.precision", ("lanes", "lanes"), "double", symmetric=True),
)
"""What a model file holds besides the lanes."""


class _Look(NamedTuple):
    """What is said of rows, (n, K) each."""

    predicting: Array
    """Latents whose softmax is the prediction."""
    mean: Array
    variance: Array


@final
class DiagonalClassStack(ClassWeights):
    """Lanes of :class:`DiagonalBlocks` that differ in their prior see the same rows; what each counts is learned.

    Their latents are the inputs of a *stack*: a small dense Gaussian over how much each lane counts, conditioned on
    every row. So the width of the prior need not be known, and predictions that are too timid or too bold are put
    right; see ``engine.softmax.stacking``. As :class:`DiagonalStack` for two classes or numbers.

    Parameters
    ----------
    lanes
        Two or more beliefs of the same classes and features, with different priors.

    Examples
    --------
    >>> import numpy as np
    >>> import gaussfold as gf
    >>> belief = DiagonalClassStack.isotropic(3, 4)
    >>> X = np.eye(4)[[0, 1, 2] * 20]
    >>> result = gf.fold(belief, gf.likelihoods.Softmax(3), X, [0, 1, 2] * 20)
    >>> result.log_predictive[:3].mean() < 10.0 * result.log_predictive[-3:].mean()
    np.True_
    """

    def __init__(self, lanes: Sequence[DiagonalBlocks]) -> None:
        checks.whole("len(lanes)", len(lanes), least=2, remedy="one lane is a DiagonalBlocks")
        for lane in lanes:
            if (lane.classes, lane.features, lane.dtype) != (lanes[0].classes, lanes[0].features, lanes[0].dtype):
                msg = "lanes: classes, features and dtype must be the same for all"
                raise ValueError(msg)
        self._lanes = [lane.copy() for lane in lanes]
        self._share = np.full(len(lanes), 1.0 / len(lanes))
        self._precision = np.eye(len(lanes)) / SHARE_STD**2

    @classmethod
    def isotropic(
        cls,
        classes: int,
        features: int,
        stds: Sequence[float] = CLASS_LANE_STDS,
        mean: float = 0.0,
        dtype: DTypeLike = np.float64,
    ) -> Self:
        """One lane N(mean, std² I) per std. Takes no memory before the first row."""
        return cls([DiagonalBlocks.isotropic(classes, features, std, mean, dtype) for std in stds])

    @property
    def lanes(self) -> list[DiagonalBlocks]:
        """The lanes: not copies."""
        return list(self._lanes)

    @property
    def shares(self) -> Array:
        """How much each lane counts, on average."""
        return self._share.copy()

    @property
    def dim(self) -> int:
        """Number of weights, as many for each class as there are features."""
        return self._lanes[0].dim

    @property
    def features(self) -> int:
        """Number of features d."""
        return self._lanes[0].features

    @property
    def classes(self) -> int:
        """Number of classes K."""
        return self._lanes[0].classes

    @property
    def dtype(self) -> np.dtype[np.float64]:
        """How numbers are stored."""
        return self._lanes[0].dtype

    def touched(self) -> np.ndarray:
        """Features that a row has met, see :meth:`DiagonalBlocks.touched`."""
        return self._lanes[0].touched()

    # Reading off.

    def weights(self, columns: ArrayLike | None = None) -> Moments:
        """Mean and variance (K, d) of the weights as the stack sees them: of all, or of those of some features."""
        parts = [lane.weights(columns) for lane in self._lanes]
        mean = np.tensordot(self._share, np.stack([part.mean for part in parts]), axes=1)
        spread = np.tensordot(self._share, np.sqrt(np.stack([part.variance for part in parts])), axes=1)
        return Moments(mean, np.maximum(spread**2, np.finfo(float).tiny))

    def class_marginals(self, X: ArrayLike, classes: int) -> Moments:
        """Mean and variance (n, K) of each class's latent, for each row."""
        checks.same_dim("classes", classes, self.classes)
        return Moments(*self._look(X)[1:])

    def class_predictions(self, X: ArrayLike) -> Array:
        """Latents (n, K) whose softmax is the prediction: what is not known is averaged away in them."""
        return self._look(X).predicting

    def _look(self, X: ArrayLike) -> _Look:
        rows = sparse_rows(X, self.features)
        parts = [lane.marginals(rows) for lane in self._lanes]
        told = _Look(*np.empty((3, rows.shape[0], self.classes)))
        means, variances = (np.stack(column, axis=1) for column in zip(*parts, strict=True))
        look_classes(means, variances, self._share, self._precision, *told)
        check_moments(Moments(told.mean, told.variance))
        return told

    def sample_latent(self, X: ArrayLike, n: int, rng: np.random.Generator) -> Array:
        """Draw x'θ_k at all rows jointly, n times, shape (n, rows, K), about what :meth:`class_marginals` says."""
        rows = sparse_rows(X, self.features)
        columns, place = np.unique(rows.indices, return_inverse=True)
        std = np.sqrt(self.weights(columns).variance.T)
        away = std * rng.standard_normal((n, *std.shape))
        row = np.repeat(np.arange(rows.shape[0]), np.diff(rows.indptr))
        out = np.broadcast_to(self._look(rows).mean, (n, rows.shape[0], self.classes)).copy()
        for draw, path in zip(away, out, strict=True):
            np.add.at(path, row, rows.data[:, None] * draw[place])
        return out

    # Learning.

    def absorb(self, x: Array, precision: float, shift: float) -> None:
        """Refuse: what lanes count is learned from labels, which a site does not tell."""
        del x, precision, shift
        msg = "belief: a DiagonalClassStack takes Softmax(K) with rule='vi', at='posterior'; use BlockGaussian"
        raise ValueError(msg)

    def absorb_row(self, row: Array, y: float, program: Program) -> Trace | None:
        """None: there is no quicker way than a stream of one."""
        del row, y, program
        return None

    def absorb_stream(self, data: Observations, program: Program, how: Pass = ONCE, *loose: object) -> Trace:
        """Refuse: a likelihood of one latent has no classes."""
        del data, program, how, loose
        msg = "belief: a DiagonalClassStack has weights for each class; fold Softmax(K) into it"
        raise ValueError(msg)

    def absorb_classes(self, data: Observations, program: ClassProgram, how: Pass = ONCE) -> Trace:
        """Visit rows with classes in order, each once, by every lane; then learn what each counts, row by row."""
        if how.sites is not None:
            raise ValueError(NO_SECOND_VISIT)
        checks.same_dim("likelihood's classes", program.nodes.shape[0], self.classes)
        data = admit(data, self.features)
        if data.y.size == 0:
            return Trace.several(0, self.classes, independent=True)
        outcome = self._learn(data, program, how)
        if isinstance(outcome, Trace):
            return outcome
        raise RowError(outcome, None if how.whole else self.absorb_classes(data.part(slice(outcome)), program, how))

    def _learn(self, data: Observations, program: ClassProgram, how: Pass) -> Trace | int:
        """Learn all rows; or none, and say which failed. An error leaves everything as it was."""
        done: list[LearnedClasses] = []
        outcome: Trace | int = 0
        try:
            for i, lane in enumerate(self._lanes):
                done.append(
                    lane.learn_classes(data, program, self._dynamics_of(i, how.dynamics), logged=True, scored=False)
                )
            failed = [learned.failed for learned in done if learned.failed >= 0]
            outcome = min(failed) if failed else self._join([learned.trace for learned in done], data)
        finally:
            if not isinstance(outcome, Trace):
                for lane, learned in zip(self._lanes, done, strict=False):  # as many as have learned
                    lane.take_back(learned)
        return outcome

    def _join(self, met: list[Trace], data: Observations) -> Trace | int:
        """From what the lanes met to what the stack predicted, and learned; or the row that failed."""
        shape = data.y.size, self.classes
        trace = Trace(np.empty(shape), np.empty(shape), np.empty(shape[0]), *np.full((2, *shape), np.nan))
        means, variances = (np.stack(column, axis=1) for column in zip(*(part[:2] for part in met), strict=True))
        share, precision = self._share.copy(), self._precision.copy()
        failed = int(stack_classes(means, variances, data.y, data.weight, share, precision, *trace[:3]))
        if failed >= 0:
            return failed
        self._share, self._precision = share, precision
        return trace

    def _dynamics_of(self, lane: int, dynamics: Dynamics | None) -> Dynamics | None:
        """A lane forgets towards that of the prior."""
        if not isinstance(dynamics, Forgetting):
            return dynamics
        return Forgetting(dynamics.factor, self._like(dynamics.prior)[lane])

    # Time.

    def relax(self, factor: float, prior: Belief) -> None:
        """Every lane relaxes towards that of the prior."""
        for lane, towards in zip(self._lanes, self._like(prior), strict=True):
            lane.relax(factor, towards)

    def diffuse(self, variance: float | Array) -> None:
        """Every lane's variances grow."""
        for lane in self._lanes:
            lane.diffuse(variance)

    def _like(self, prior: object) -> list[DiagonalBlocks]:
        if isinstance(prior, DiagonalClassStack):
            checks.same_dim("prior's lanes", len(prior.lanes), len(self._lanes))
            return prior.lanes
        msg = f"prior: a {type(prior).__name__}; a DiagonalClassStack forgets towards one of its own kind"
        raise ValueError(msg)

    # Copies and arrays.

    def copy(self) -> Self:
        """An independent copy."""
        return self.from_state(self.state())

    def become(self, other: Self) -> None:
        """Take over another belief's numbers; the other must not be used any more."""
        vars(self).update(vars(other))

    def state(self, *, copy: bool = True) -> dict[str, np.ndarray]:
        """Named arrays that hold everything."""
        arrays = {"class_lanes": np.array([len(self._lanes)])}
        arrays |= {"stack.mean": self._share.copy(), "stack.precision": self._precision.copy()}
        for i, lane in enumerate(self._lanes):
            arrays |= {f"lane{i}.{name}": array for name, array in lane.state(copy=copy).items()}
        return arrays

    @classmethod
    def from_state(cls, state: dict[str, np.ndarray], *, copy: bool = True) -> Self:
        """The belief of :meth:`state`, bit for bit; ``copy=False`` takes the arrays over."""
        sizes = schema.check(state, PARTS)
        count = int(state["class_lanes"][0])
        schema.equal("stack.mean", sizes["lanes"], count, "one for each lane")
        if not np.linalg.eigvalsh(state["stack.precision"]).min() > 0.0:
            schema.refuse("stack.precision", "not positive definite", "a precision is")
        self = cls.__new__(cls)
        self._lanes = [DiagonalBlocks.from_state(schema.part_of(state, f"lane{i}."), copy=copy) for i in range(count)]
        for lane in self._lanes:
            schema.equal("lane.dim", (lane.dim, lane.classes), (self.dim, self.classes), "that of the other lanes")
        self._share, self._precision = np.array(state["stack.mean"]), np.array(state["stack.precision"])
        return self
