"""Unknown noise beside a bank: each member of the bank has a belief of its own about it.

The weights of a member are in units of its noise, and how fast it lets them move decides what it takes for noise. So
the members are weighed by their Student-t predictions (`gaussfold.estimators.noise`), not by those of the fold, whose
noise is one.
"""

from __future__ import annotations

import dataclasses
from typing import NamedTuple, Self

import numpy as np

from gaussfold.beliefs.bank.belief import Bank, BankTrace
from gaussfold.dynamics import Forgetting
from gaussfold.estimators.folded import Folded
from gaussfold.estimators.mixtures import MixedMoments, mixed
from gaussfold.estimators.noise import NoiseBelief, log_student, scaled
from gaussfold.types import Array, Moments


class NoiseBank(NamedTuple):
    """``σ² ~ InverseGamma(shape, scale)``, one for each member."""

    members: tuple[NoiseBelief, ...]

    @classmethod
    def start(cls, guess: NoiseBelief, bank: Bank) -> Self:
        """The same guess for all."""
        return cls((guess,) * len(bank.members))

    def variances(self) -> Array:
        """Posterior means of σ², infinite before about two rows."""
        return np.array([each.variance for each in self.members])

    def variance(self, bank: Bank) -> float:
        """Posterior mean of σ² under the mixture."""
        return float(bank.weights @ self.variances())

    def relax(self, bank: Bank, ticks: float) -> Self:
        """Forgetting, by each member's own factor."""
        return type(self)(
            tuple(each.relax(factor**ticks) for each, factor in zip(self.members, factors(bank), strict=True))
        )

    def learn(self, bank: Bank, folded: Folded, *, per_row: bool, least: float = 1.0) -> tuple[Self, Array]:
        """Fold rows in and weigh the bank's members by them; also the learned rows' log predictive densities.

        ``least``: as for one.
        """
        trace, rows = folded.results[0], folded.learned
        if not isinstance(trace, BankTrace):
            msg = "folded: the trace of a bank is needed"
            raise TypeError(msg)
        scores, weight = np.full((rows.size, len(self.members)), np.nan), np.zeros(rows.size)
        weight[rows] = folded.weight
        after = []
        for k, (noise, part, factor) in enumerate(zip(self.members, trace.members, factors(bank), strict=True)):
            residual, variance = folded.targets[0][rows] - part.mean[rows], part.variance[rows]
            known, shape, scale = noise.learn(residual, variance, folded.weight, factor if per_row else 1.0, least)
            after.append(known)
            scores[rows, k] = log_student(residual, variance, shape, scale)
        before = bank.weigh_again(trace, scores, weight)
        return type(self)(tuple(after)), np.logaddexp.reduce(np.log(before[rows]) + scores[rows], axis=1)

    def scaled(self, latent: MixedMoments) -> MixedMoments:
        """Turn moments in units of each member's noise into plain ones."""
        return mixed(self._plain(latent.components), latent.log_weights)

    def labels(self, latent: MixedMoments) -> Moments:
        """Mean and variance of the label, given plain moments of x'θ."""
        mean, variance = latent.components
        return mixed(Moments(mean, variance + self.variances()), latent.log_weights)

    def weights(self, bank: Bank) -> MixedMoments:
        """Mean and variance of all weights, plain."""
        means = np.stack([member.mean for member in bank.members], axis=1)
        variances = np.stack([member.variance() for member in bank.members], axis=1)
        return mixed(self._plain(Moments(means, variances)), bank.log_weights)

    def _plain(self, components: Moments) -> Moments:
        means, variances = components
        columns = [scaled(Moments(means[:, k], variances[:, k]), each).variance for k, each in enumerate(self.members)]
        return Moments(means, np.stack(columns, axis=1))

    def sample(self, bank: Bank, n: int, rng: np.random.Generator) -> Array:
        """Draws of the weights, each by a member drawn by weight, with a noise level of its own put in."""
        chosen = rng.choice(len(self.members), size=n, p=bank.weights)
        counts = np.bincount(chosen, minlength=len(self.members))
        draws = [
            noise.spread(member.sample(int(count), rng), member.mean, rng)
            for member, noise, count in zip(bank.members, self.members, counts, strict=True)
            if count
        ]
        return np.asarray(rng.permutation(np.concatenate([np.empty((0, bank.dim)), *draws])))

    def arrays(self) -> Array:
        """As numbers, one row a member."""
        return np.array([dataclasses.astuple(each) for each in self.members])

    @classmethod
    def from_arrays(cls, arrays: np.ndarray) -> Self:
        """Undo :meth:`arrays`."""
        return cls(tuple(NoiseBelief(*row) for row in arrays.tolist()))


def factors(bank: Bank) -> list[float]:
    """By which each member forgets; 1 if it does not."""
    return [each.factor if isinstance(each, Forgetting) else 1.0 for each in bank.dynamics]
