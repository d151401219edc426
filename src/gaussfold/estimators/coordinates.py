"""What an estimator learns beside its beliefs: the scales of the features, and the prior that fits them.

A belief lives in standardised coordinates (`gaussfold.estimators.scaling`) and holds a prior of independent weights
there. At fixed counts of learned rows, and before a row that lies far outside of what was known, the coordinates are
looked at again, the old prior is exchanged for one in the new coordinates, and with ``prior_std="auto"`` its width is
the one of most evidence (`gaussfold.beliefs.dense.exchange`). The row that is about to be learned counts for the
scales, its label does not.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from gaussfold import schema
from gaussfold.beliefs.bank.belief import Bank
from gaussfold.beliefs.blocks import BlockGaussian
from gaussfold.beliefs.dense.belief import DenseGaussian
from gaussfold.beliefs.dense.exchange import Independent, Noise, SiteSum
from gaussfold.dynamics import Forgetting
from gaussfold.estimators.noise import NoiseBelief
from gaussfold.estimators.priors import AnyBelief
from gaussfold.estimators.scaling import Reference, Spread
from gaussfold.protocols import Belief
from gaussfold.rows import Block
from gaussfold.types import Array

PRIOR = (schema.Part("mean", ("d",), "double"), schema.Part("std", ("d",), "double", positive=True))
"""What a model file holds of a prior."""
SEVERAL = 32
"""Weights from which on an exchange takes as long as some tens of rows."""
DEAR = 128
"""Weights from which on an exchange is worth saving: they take d³ operations, as d rows do."""
SURPRISE = 8.0
"""How many standard deviations are nothing special among the first rows."""


class Ways(NamedTuple):
    """How an estimator adapts: fixed when learning begins."""

    scale: bool
    """Whether features are standardised."""
    learns_width: bool
    """Whether the width of the prior is."""
    intercept: bool
    relative: Array
    """Standard deviations of the weights, up to the width that is learned."""
    mean: Array
    """Prior means."""
    last_std: float
    """Of the intercept, in units of `unit`."""
    targets: bool
    """Whether labels are numbers whose mean and spread say where an intercept lies."""
    noise_std: float
    """Smallest unit of the labels: their noise, where it is known; 0: everything is in units of the noise."""
    reach: float
    """Standard deviation of log width before the data speak."""
    classes: int = 1
    """How many classes have their weights in one Gaussian, one after the other."""

    @property
    def dim(self) -> int:
        """Parameters of a Gaussian."""
        return self.mean.size * self.classes

    @property
    def apart(self) -> range:
        """Places of the intercepts in a Gaussian."""
        size = self.mean.size
        return range(size - 1, self.dim, size) if self.intercept else range(0)

    def due(self, count: int) -> bool:
        """Whether the coordinates are looked at before learned row number ``count``, from 1: 1, 2, 4, 8, ...

        From `SEVERAL` weights on 8, 32, 128, ..., from `DEAR` on not before there are some rows for these.
        """
        dim = self.dim
        if count & (count - 1) or (count > 8 and dim > DEAR and count < dim // 4):
            return False
        return count <= 8 or dim <= SEVERAL or count.bit_length() % 2 == 0

    def next_due(self, count: int) -> int:
        """The next such number from ``count`` on."""
        power = 1 << max(count - 1, 0).bit_length()
        while not self.due(power):
            power *= 2
        return power


@dataclass(frozen=True)
class Coordinates:
    """Moments so far, the reference in use, and the prior of each belief in these coordinates."""

    features: Spread
    target: Spread
    reference: Reference
    priors: tuple[Independent, ...]

    @classmethod
    def start(cls, ways: Ways, width: int, n_beliefs: int) -> Coordinates:
        """Before any row."""
        blank = cls(Spread.nothing(width), Spread.nothing(1), Reference.unknown(width), ())
        return replace(blank, priors=(blank.prior(ways),) * n_beliefs)

    def prior(self, ways: Ways) -> Independent:
        """The prior of width 1, as the labels' level and spread so far suggest."""
        mean, unit = ways.mean.copy(), self.unit(ways)
        std = ways.relative * unit
        if ways.intercept:
            if ways.targets and ways.scale and self.target.weight > 0.0:
                mean[-1] += float(self.target.mean[0])
            std[-1] = ways.last_std * unit
        return Independent(np.tile(mean, ways.classes), np.tile(std, ways.classes))

    def width(self, ways: Ways) -> float:
        """Of the first prior, where its width is learned."""
        return float(self.priors[0].std[0] / self.prior(ways).std[0])

    def of_width(self, ways: Ways, width: float) -> Coordinates:
        """The same with priors of this width that know nothing."""
        mean, std = self.prior(ways)
        std = np.where(np.isin(np.arange(std.size), list(ways.apart)), std, width * std)
        return replace(self, priors=(Independent(mean, std),) * len(self.priors))

    def unit(self, ways: Ways) -> float:
        """What a weight of 1 is measured in: the spread of the labels where they have one, else 1."""
        if not (ways.targets and ways.noise_std):
            return 1.0
        return max(float(self.target.std[0]), ways.noise_std) if ways.scale else ways.noise_std

    def guess(self, ways: Ways, noise_guess: float) -> float:
        """What the noise's standard deviation might be: a guess in units of the labels' spread, once that is known."""
        spread = float(self.target.std[0]) if ways.scale else 0.0
        return noise_guess * (spread if spread > 0.0 else 1.0)

    def design(self, X: Array, *, intercept: bool) -> Block:
        """Standardised rows, with a column of ones for the intercept."""
        n, d = X.shape
        design = np.empty((n, d + intercept))
        with np.errstate(over="ignore"):  # what has no number any more is refused by whoever folds or looks
            np.subtract(X, self.reference.centre, out=design[:, :d])
            design[:, :d] /= self.reference.scale
        if intercept:
            design[:, d] = 1.0
        return Block(design)

    def with_rows(self, ways: Ways, X: Array, target: Array, weight: Array | None, looked: bool = False) -> Coordinates:
        """Learned rows added to the moments; ``looked``: the first one's features are in them already."""
        rest = None if weight is None else weight[int(looked) :]
        features = self.features.add(X[int(looked) :], rest) if ways.scale else self.features
        labels = self.target.add(target[:, None], weight) if ways.targets and ways.scale else self.target
        return replace(self, features=features, target=labels)

    def surprised(self, ways: Ways, design: Array, places: np.ndarray, count: int) -> int | None:
        """The first of some standardised rows that lies far outside, if scales are learned; ``count`` were before them.

        Far: the row alone would double some feature's variance. That can happen only so often. ``places`` are those of
        the rows to be learned.
        """
        width = self.features.mean.size
        if not ways.scale or width > DEAR or places.size == 0:
            return None
        design = design if places.size == len(design) else design[places]
        size = np.abs(design[:, :width])
        if size.max() <= max(SURPRISE, math.sqrt(count)):
            return None
        limit = np.maximum(SURPRISE, np.sqrt(count + np.arange(len(design))))
        far = (size > limit[:, None]).any(axis=1)
        return int(np.argmax(far)) if far.any() else None

    def moved(self, ways: Ways) -> Reference:
        """The reference that the moments so far suggest."""
        new = Reference.of(self.features, centred=ways.intercept) if ways.scale else self.reference
        return self.reference if new.same(self.reference) else new

    @np.errstate(over="ignore", invalid="ignore")  # numbers without a square: looked for at the end
    def exchanged(
        self,
        ways: Ways,
        beliefs: Sequence[DenseGaussian],
        noises: Sequence[NoiseBelief],
        groups: Sequence[tuple[int, ...]],
        guess: float,
        width: float | None = None,
    ) -> tuple[Coordinates, list[DenseGaussian], list[NoiseBelief], Array]:
        """New coordinates and priors; also the matrix that takes rows to the new coordinates, from the right.

        The width of a Gaussian's prior is ``width``, or the best of its group, places of the Gaussians that speak for
        it: itself, the member of a bank that counts most, or all classes.
        """
        reference = self.moved(ways)
        there = reference.to(self.reference, intercept=ways.intercept)
        change = self._change(reference, ways, there)
        unit = self.prior(ways).std
        level = self.guess(ways, guess) ** 2
        sums = [self._taken_out(ways, k, belief, change, noises, level) for k, belief in enumerate(beliefs)]
        widths = _widths(sums, groups, ways.reach, width) if ways.learns_width else [1.0] * len(sums)
        pairs = [each.belief(width) for each, width in zip(sums, widths, strict=True)]
        _check_numbers([belief for belief, _ in pairs])
        priors = tuple(each.prior(width, float(unit[-1])) for each, width in zip(sums, widths, strict=True))
        after = [_relearned(noise, left, level) for noise, (_, left) in zip(noises, pairs, strict=False)]
        new = replace(self, reference=reference, priors=priors)
        return new, [belief for belief, _ in pairs], after, there

    def slope(self, ways: Ways, beliefs: Sequence[DenseGaussian]) -> float:
        """Derivative of the log evidence by the logarithm of the width that all of these beliefs have, sites still."""
        unit = float(self.prior(ways).std[0])
        sums = [self._taken_out(ways, k, belief, None, [], 0.0) for k, belief in enumerate(beliefs)]
        return sum(each.slope(float(width) / unit) for each, width in zip(sums, self.widths(), strict=True))

    def widths(self) -> Array:
        """Of each prior: the first weight's standard deviation."""
        return np.array([prior.std[0] for prior in self.priors])

    def _change(self, reference: Reference, ways: Ways, there: Array) -> tuple[Array, Array] | None:
        """The way to another reference and back, if it is another."""
        if reference is self.reference:
            return None
        forth = self.reference.to(reference, intercept=ways.intercept)
        return each_class(forth, ways.classes), each_class(there, ways.classes)

    def _taken_out(
        self,
        ways: Ways,
        k: int,
        belief: DenseGaussian,
        change: tuple[Array, Array] | None,
        noises: Sequence[NoiseBelief],
        level: float,
    ) -> SiteSum:
        """What belief ``k`` has learned, ready for a prior in the new coordinates; ``level`` is a guess of σ²."""
        (mean, std), before, noise = self.prior(ways), self.priors[k], noises[k] if noises else None
        if not ways.learns_width:
            std = np.where(np.isin(np.arange(std.size), list(ways.apart)), std, before.std)
        known = None if noise is None else Noise(noise.shape, noise.scale, noise.prior_scale)
        scale = 0.0 if noise is None else noise.prior_shape * level
        return SiteSum.of(
            belief, before, Independent(mean, std), apart=ways.apart, change=change, noise=known, prior_scale=scale,
        )  # fmt: skip

    def in_user_units(self, belief: AnyBelief, *, intercept: bool) -> AnyBelief:
        """The same belief over the weights of features as they come."""
        change = self.to_user_units(intercept=intercept)
        found = []
        for each in members(belief):
            if isinstance(each, DenseGaussian):
                whole = each_class(change, each.dim // len(change))
                found.append(DenseGaussian.from_factor(whole @ each.mean, whole @ each.factor))
        return with_members(belief, found, self.priors)

    def to_user_units(self, *, intercept: bool) -> Array:
        """The matrix that takes weights to those of the features as they come."""
        return self.reference.to(Reference.unknown(self.reference.scale.size), intercept=intercept)

    def aged(self, steps: Sequence[Array | float], ticks: float) -> Coordinates:
        """Priors that have taken part in a random walk of so much variance a tick, one each."""
        priors = tuple(
            Independent(mean, np.sqrt(std**2 + ticks * step))
            for (mean, std), step in zip(self.priors, steps, strict=True)
        )
        return replace(self, priors=priors)

    def state(self) -> dict[str, np.ndarray]:
        """Named arrays that hold everything."""
        parts: dict[str, np.ndarray] = {}
        for name, member in (("features", self.features), ("target", self.target), ("reference", self.reference)):
            parts |= {f"{name}.{key}": array for key, array in member.state().items()}
        for i, (mean, std) in enumerate(self.priors):
            parts |= {f"prior{i}.mean": mean.copy(), f"prior{i}.std": std.copy()}
        return parts

    @classmethod
    def from_state(cls, arrays: dict[str, np.ndarray], width: int, dim: int, n_beliefs: int) -> Coordinates:
        """Undo `state`."""
        priors = []
        for i in range(n_beliefs):
            part = schema.part_of(arrays, f"prior{i}.")
            schema.equal(f"prior{i}", schema.check(part, PRIOR)["d"], dim, "one for each parameter")
            priors.append(Independent(part["mean"], part["std"]))
        return cls(
            Spread.from_state(schema.part_of(arrays, "features."), width),
            Spread.from_state(schema.part_of(arrays, "target."), 1),
            Reference.from_state(schema.part_of(arrays, "reference."), width),
            tuple(priors),
        )


def _widths(
    sums: Sequence[SiteSum], groups: Sequence[tuple[int, ...]], reach: float, width: float | None
) -> list[float]:
    """Of every Gaussian: the width that is given, or that of most evidence of its group."""
    if width is not None:
        return [width] * len(sums)
    best = {group: SiteSum.pooled([sums[k] for k in group]).best_width(1.0, reach) for group in set(groups)}
    return [best[group] for group in groups]


def _check_numbers(beliefs: Sequence[DenseGaussian]) -> None:
    if not all(np.isfinite(belief.mean).all() and np.isfinite(belief.factor).all() for belief in beliefs):
        msg = "the sites are too large to be seen from another prior"
        raise np.linalg.LinAlgError(msg)


def _relearned(noise: NoiseBelief, scale: float | None, level: float) -> NoiseBelief:
    """The same noise under another prior."""
    return noise if scale is None else replace(noise, scale=scale, prior_scale=noise.prior_shape * level)


def each_class(change: Array, classes: int) -> Array:
    """The same change of coordinates for the weights of each class."""
    return change if classes == 1 else np.asarray(np.kron(np.eye(classes), change), dtype=np.float64)


def members(belief: AnyBelief) -> list[Belief]:
    """The Gaussians that a belief is made of: those of a bank, of classes, or itself."""
    if isinstance(belief, BlockGaussian):
        return list(belief.blocks)
    return belief.members if isinstance(belief, Bank) else [belief]


def with_members(belief: AnyBelief, found: Sequence[DenseGaussian], priors: Sequence[Independent]) -> AnyBelief:
    """The same belief of other Gaussians; where it forgets, towards those priors."""
    if isinstance(belief, BlockGaussian):
        return BlockGaussian(found)
    if not isinstance(belief, Bank):
        return found[0]
    bank = belief.copy()
    back = priors[0].belief()
    bank.replace_members(
        found, [Forgetting(each.factor, back) if isinstance(each, Forgetting) else each for each in bank.dynamics]
    )
    return bank
