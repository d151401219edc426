"""Gaussian processes on a line by Kalman filter and smoother, bayes-newton (68)-(71): linear in N."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import NamedTuple, Self

import numpy as np

from gaussfold.gp.chain import Chain, Steps, steps_of
from gaussfold.gp.covariances import Covariance
from gaussfold.gp.kalman import Filtered
from gaussfold.gp.origin import GONE, Anchor
from gaussfold.gp.priors import Marginals, PriorGradient, Slopes, lost
from gaussfold.gp.square_root import roots_of
from gaussfold.linalg.small import applied
from gaussfold.types import Array, Sites


class TimeOrder(NamedTuple):
    """How given inputs become a sequence in time."""

    order: np.ndarray | None
    """Row of the data that comes n-th, or None if they are sorted."""
    steps: Steps

    @classmethod
    def of(cls, times: Array) -> Self:
        """Find it."""
        if (times[1:] >= times[:-1]).all():
            return cls(None, steps_of(times))
        order = np.argsort(times, kind="stable")
        return cls(order, steps_of(times[order]))

    def sorted(self, *arrays: Array) -> tuple[Array, ...]:
        """Arrays in the order given, in time order."""
        return arrays if self.order is None else tuple(a[self.order] for a in arrays)

    def given(self, *arrays: Array) -> tuple[Array, ...]:
        """Arrays in time order, in the order given."""
        if self.order is None:
            return arrays
        out = tuple(np.empty_like(a) for a in arrays)
        for mine, a in zip(out, arrays, strict=True):
            mine[self.order] = a
        return out


class Spare(NamedTuple):
    """Memory that a filter of so many states has left, to be written over by the next."""

    states: int
    store: Array | None


class MarkovPrior:
    """Independent Gaussian processes on a line, one per latent, each with a state-space form.

    Inputs may come in any order, at any distances, and more than once.

    Parameters
    ----------
    covariances
        One per latent.
    X
        Inputs (N, 1).
    in_time, spare
        What an earlier prior at the same inputs knows, and what it no longer needs.
    origin
        The state before the first input, if rows before it are gone.
    """

    Z = None

    def __init__(
        self,
        covariances: Sequence[Covariance],
        X: Array,
        in_time: TimeOrder | None = None,
        spare: Spare | None = None,
        origin: Anchor | None = None,
    ) -> None:
        if X.shape[1] != 1:
            msg = (
                f"X has {X.shape[1]} columns: structure='markov' needs exactly one (time); "
                "use a SpaceTime covariance for time and places, or structure='dense' or 'sparse'"
            )
            raise ValueError(msg)
        self.covariances = tuple(covariances)
        self.X = X
        self.in_time = TimeOrder.of(X[:, 0]) if in_time is None else in_time
        self.chain = Chain(self.covariances, self.in_time.steps)
        self.origin = origin
        if origin is not None:
            self.chain.start_after(origin)
        self._last: tuple[Sites, Filtered, Array] | None = None
        fits = spare is not None and spare.states == self.chain.space.size
        self._spare: Array | None = spare.store if fits and spare is not None else None

    def with_covariances(self, covariances: Sequence[Covariance], Z: Array | None = None) -> MarkovPrior:
        """The same inputs with other covariances; these have most likely been asked for the last time."""
        del Z  # there are no inducing inputs
        if self.origin is not None:
            raise ValueError(GONE)
        return MarkovPrior(covariances, self.X, self.in_time, Spare(self.chain.space.size, self._spared()))

    def _spared(self) -> Array | None:
        """The last filter's memory, to be written over: pages that are new cost as much as the filter itself."""
        last, self._last = self._last, None
        spare, self._spare = self._spare, None
        return spare if last is None else last[1].store

    def update(self, sites: Sites) -> Marginals:
        """Posterior under these sites: one pass forward, one back."""
        precision, shift = self.in_time.sorted(*sites)
        found = self.chain.posterior(precision, shift, self._spared())
        self._last = None if found.filtered is None else (sites, found.filtered, found.mean)
        mean, cov = self.in_time.given(found.mean, found.cov)
        return Marginals(mean, cov, cov, found.log_z, partial(self.others, sites))

    def others(self, sites: Sites) -> tuple[Array, Array]:
        """What all sites but a row's own say of it, on square roots."""
        precision, shift = self.in_time.sorted(*sites)
        found = self.chain.on_roots(precision, shift)
        mean, cov = self.in_time.given(found.others_mean, found.others_cov)
        return mean, cov

    def gradient(self, sites: Sites, slopes: Slopes | None) -> PriorGradient:
        """The adjoint of the filter gives ∂log Z/∂log θ, and its change in the direction of the sites the chain.

        ``m = ∂log Z/∂λ`` and ``C + mm' = -2 ∂log Z/∂Λ``, so that with slopes g, G the rest of dE is the derivative of
        ∂log Z/∂log θ in the direction ``δλ = g - 2Gm``, ``δΛ = -2G``. The filter of the last update is used again if
        that was at the same sites.
        """
        if self.origin is not None:
            raise ValueError(GONE)
        if self._last is None or self._last[0] is not sites:
            self.update(sites)
        if self._last is None:
            raise lost(sharp=True)
        _, filtered, mean = self._last
        if slopes is None:
            return PriorGradient(-self.chain.log_z_gradient(filtered))
        by_mean, by_cov = self.in_time.sorted(slopes.mean, slopes.cov + slopes.inner)
        d_precision = -2.0 * by_cov
        return PriorGradient(self.chain.log_z_gradient(filtered, (d_precision, by_mean + applied(d_precision, mean))))

    def predict(self, sites: Sites, X: Array, *, joint: bool = False) -> tuple[Array, Array]:
        """At other inputs: they join the chain with sites that say nothing."""
        if joint:
            msg = "the Markov structure keeps no joint covariance; use sample, or structure='dense'"
            raise ValueError(msg)
        return self.extended(X).at(sites)

    def extended(self, X: Array) -> Extended:
        """Training inputs and others in one chain."""
        if X.shape[1] != 1:
            msg = f"X has {X.shape[1]} columns: the model was fitted on one"
            raise ValueError(msg)
        if self.origin is not None and (X[:, 0] < self.origin.time).any():
            early = float(X[:, 0].min())
            msg = f"X holds {early!r}, before {self.origin.time!r}: {GONE}"
            raise ValueError(msg)
        return Extended(self.covariances, self.X, X, self.origin)

    def sample(self, sites: Sites, X: Array, n: int, rng: np.random.Generator) -> Array:
        """Draw a path from the prior, then correct it by what the data say (Matheron's rule)."""
        return self.extended(X).sample(sites, n, rng)


class Extended:
    """A chain over training inputs followed by others, in time order."""

    def __init__(self, covariances: Sequence[Covariance], train: Array, test: Array, origin: Anchor | None) -> None:
        self._count, self._test = len(train), len(test)
        self._prior = MarkovPrior(covariances, np.vstack([train, test]), origin=origin)

    def _padded(self, sites: Sites) -> Sites:
        D = sites.shift.shape[1]
        return Sites(
            np.concatenate([sites.precision, np.zeros((self._test, D, D))]),
            np.concatenate([sites.shift, np.zeros((self._test, D))]),
        )

    def at(self, sites: Sites) -> tuple[Array, Array]:
        """Marginals at the test inputs."""
        found = self._prior.update(self._padded(sites))
        return found.mean[self._count :], found.cov[self._count :]

    def sample(self, sites: Sites, n: int, rng: np.random.Generator) -> Array:
        """``f + E[f | sites with shift λ - Λf - Λ^{1/2}z]`` for f from the prior and z ~ N(0, I)."""
        values, vectors = np.linalg.eigh(sites.precision)
        if (values < -1e-12 * np.abs(values).max(initial=0.0)).any():
            row = int(np.argmin(values[:, 0]))
            msg = (
                f"the site of row {row} has a negative precision ({values[row, 0]:.3g}): no noise has that variance, "
                "so paths cannot be drawn; fit with curvature='gauss-newton', 'quasi-newton' or 'heuristic'"
            )
            raise ValueError(msg)
        root = vectors * np.sqrt(np.maximum(values, 0.0))[:, None, :]
        padded = self._padded(sites)
        N, D = sites.shift.shape
        draws = np.empty((n, self._test, D))
        for i, path in enumerate(self._paths(n, rng)):
            noise = np.einsum("ndi,ni->nd", root, rng.standard_normal((N, D)))
            shift = padded.shift.copy()
            shift[:N] -= applied(sites.precision, path[:N]) + noise
            draws[i] = (path + self._prior.update(Sites(padded.precision, shift)).mean)[N:]
        return draws

    def _paths(self, n: int, rng: np.random.Generator) -> Iterator[Array]:
        """Paths of the prior at all inputs, in the given order."""
        chain = self._prior.chain
        roots, first = roots_of(chain.Q), roots_of(chain.start[1][None])[0]
        for _ in range(n):
            noise = rng.standard_normal((len(chain.steps.step), chain.space.size))
            state = chain.start[0] + first @ noise[0]
            path = [chain.H @ state]
            for step, e in zip(chain.steps.step[1:], noise[1:], strict=True):
                state = chain.A[step] @ state + roots[step] @ e
                path.append(chain.H @ state)
            yield self._prior.in_time.given(np.array(path))[0]
