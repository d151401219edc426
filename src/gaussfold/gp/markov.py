"""Gaussian processes on a line by Kalman filter and smoother, bayes-newton (68)-(71): linear in N."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from gaussfold.gp import square_root
from gaussfold.gp.covariances import Covariance
from gaussfold.gp.priors import Marginals, PriorGradient, Slopes, lost
from gaussfold.gp.statespace import SumSpace
from gaussfold.linalg.small import non_positive
from gaussfold.types import Array, Sites

COMPLEX_STEP = 1e-30


class Steps(NamedTuple):
    """Sorted inputs as steps: row n is ``table[step[n]]`` after row n - 1; row 0 is at ``start``."""

    start: float
    step: np.ndarray
    table: Array


def steps_of(times: Array) -> Steps:
    """Differences of sorted inputs, equal ones (to their own rounding) merged into one table entry."""
    if times.size < 2:
        return Steps(float(times[0]) if times.size else 0.0, np.zeros(times.size, dtype=np.int64), np.ones(1))
    dt = np.diff(times)
    quantum = 4.0 * np.finfo(float).eps * max(float(np.abs(times[[0, -1]]).max()), np.finfo(float).tiny)
    keys = np.rint(dt / quantum)
    _, first, inverse = np.unique(keys, return_index=True, return_inverse=True)
    start = float(times[0])
    if first.size > dt.size // 4:  # hardly any two alike: a table in time order is read straight through
        return Steps(start, np.arange(times.size), np.concatenate([[0.0], np.where(keys == 0.0, 0.0, dt)]))
    table = np.where(keys[first] == 0.0, 0.0, dt[first])
    return Steps(start, np.concatenate([[0], inverse.ravel()]), table)


class Filtered(NamedTuple):
    """Everything a forward pass leaves behind; which arrays depends on the path that ran."""

    arrays: tuple[np.ndarray, ...]
    log_z: Any


class Chain:
    """State-space matrices of independent latents on one sequence of steps, and the passes over them."""

    def __init__(self, covariances: Sequence[Covariance], steps: Steps) -> None:
        spaces = [c.state_space() for c in covariances]
        self.space = SumSpace(spaces)
        self.steps = steps
        self.A = self.space.transition(steps.table)
        self.Q = self.space.noise(steps.table, self.A)
        self.H = np.zeros((len(spaces), self.space.size))
        at = 0
        for d, space in enumerate(spaces):
            self.H[d, at : at + space.size] = space.measurement
            at += space.size
        self.start = np.zeros(self.space.size), np.ascontiguousarray(self.space.initial(steps.start))
        self.is_pair = self.H.shape == (1, 2) and self.H[0, 0] == 1.0 and self.H[0, 1] == 0.0

    def posterior(self, precision: Array, shift: Array) -> tuple[Array, Array, float]:
        """Marginal means and covariances, and log Z; on square roots where rounding defeats the covariances."""
        filtered, bad = self._filter(precision, shift)
        if bad < 0:
            mean, cov, _ = self.backward(filtered)
            if np.isfinite(filtered.log_z) and np.isfinite(mean).all() and np.isfinite(cov).all():
                return mean, cov, float(filtered.log_z)
        found = self.on_roots(precision, shift, bad)
        return found.mean, found.cov, found.log_z

    def on_roots(self, precision: Array, shift: Array, bad: int = -1) -> square_root.Smoothed:
        """The posterior on square roots; ``bad`` is the row that defeated the covariances, for the error."""
        if non_positive(precision).any():
            raise lost(bad if bad >= 0 else None, "first seen at, in time order,")
        m, P = self.start
        model = square_root.Model(self.steps.step, self.A, _roots(self.Q), self.H, m, _roots(P[None])[0])
        return square_root.smooth(model, precision, shift)

    def state(self, precision: Array, shift: Array, row: int) -> tuple[Array, Array]:
        """Filtered mean and covariance of the state at a row."""
        filtered, bad = self._filter(precision, shift)
        if bad < 0:
            return self.last(filtered, row)
        found = self.on_roots(precision, shift, bad)
        root = found.filtered_root[row]
        return found.filtered_mean[row], root @ root.T

    def forward(self, precision: Array, shift: Array) -> Filtered:
        """Filter; raises if a site leaves no positive covariance."""
        filtered, bad = self._filter(precision, shift)
        if bad >= 0:
            raise lost(bad, "first seen at, in time order,", sharp=not non_positive(precision.real).any())
        return filtered

    def _filter(self, precision: Array, shift: Array) -> tuple[Filtered, int]:
        from gaussfold.engine import kalman, kalman_pair

        (N, D), S = shift.shape, self.space.size
        kind = shift.dtype
        m, P = self.start
        if self.is_pair:
            store = np.empty((N, 7), kind)
            flat = np.ascontiguousarray(precision[:, 0, 0]), np.ascontiguousarray(shift[:, 0])
            log_z, bad = kalman_pair.forward_pair(self.steps.step, self.A, self.Q, m, P, *flat, store)
            filtered = Filtered((flat[0], store), log_z)
        else:
            arrays = tuple(np.empty(s, kind) for s in ((N, S), (N, S, S), (N, D, S), (N, D), (N, D, D)))
            fixed = [a.astype(kind, copy=False) for a in (self.A, self.Q, self.H, m, P)]
            sites = np.ascontiguousarray(precision), np.ascontiguousarray(shift)
            log_z, bad = kalman.forward(self.steps.step, *fixed, *sites, *arrays)  # type: ignore[call-arg]
            filtered = Filtered((sites[0], *arrays), log_z)
        return filtered, int(bad)

    def backward(self, filtered: Filtered, differentiate: bool = False) -> tuple[Array, Array, tuple[Array, ...]]:
        """Smooth: marginal means (N, D) and covariances (N, D, D); adjoints of A, Q and the first covariance."""
        from gaussfold.engine import kalman, kalman_pair

        kind = filtered.arrays[0].dtype
        bars = np.zeros(self.A.shape, kind), np.zeros(self.A.shape, kind), np.zeros(self.start[1].shape, kind)
        N, D = len(self.steps.step), len(self.H)
        if self.is_pair:
            mean, var = np.empty(N, kind), np.empty(N, kind)
            kalman_pair.backward_pair(self.steps.step, self.A, *filtered.arrays, mean, var, differentiate, *bars)  # type: ignore[call-arg,arg-type]
            return mean[:, None], var[:, None, None], bars
        mean, cov = np.empty((N, D), kind), np.empty((N, D, D), kind)
        A, H = (a.astype(kind, copy=False) for a in (self.A, self.H))
        arguments: tuple[Any, ...] = (A, H, *filtered.arrays, mean, cov, differentiate, *bars)
        kalman.backward(self.steps.step, *arguments)
        return mean, cov, bars

    def last(self, filtered: Filtered, row: int = -1) -> tuple[Array, Array]:
        """Filtered mean and covariance of the state at a row."""
        if self.is_pair:
            m1, m2, p, q, r, *_ = filtered.arrays[1][row]
            return np.array([m1, m2]), np.array([[p, q], [q, r]])
        return filtered.arrays[1][row].copy(), filtered.arrays[2][row].copy()

    def log_z_gradient(self, bars: tuple[Array, ...]) -> Array:
        """From the adjoints of the matrices to those of the log hyperparameters."""
        bar_A, bar_Q, bar_P = bars
        return self.space.vjp(self.steps.table, self.A, bar_A, bar_Q, self.steps.start, bar_P)


class MarkovPrior:
    """Independent Gaussian processes on a line, one per latent, each with a state-space form.

    Inputs may come in any order, at any distances, and more than once.

    Parameters
    ----------
    covariances
        One per latent.
    X
        Inputs (N, 1).
    """

    def __init__(self, covariances: Sequence[Covariance], X: Array, _order: Any = None) -> None:
        if X.shape[1] != 1:
            msg = (
                f"X has {X.shape[1]} columns: structure='markov' needs exactly one (time); "
                "use structure='dense' or 'sparse' for inputs in several dimensions"
            )
            raise ValueError(msg)
        self.covariances = tuple(covariances)
        self.X = X
        if _order is None:
            order = np.argsort(X[:, 0], kind="stable")
            is_sorted = bool((order == np.arange(order.size)).all())
            self._order = None if is_sorted else order, steps_of(X[order, 0])
        else:
            self._order = _order
        self._chain = Chain(self.covariances, self._order[1])

    def with_covariances(self, covariances: Sequence[Covariance]) -> MarkovPrior:
        """The same inputs with other covariances."""
        return MarkovPrior(covariances, self.X, self._order)

    def _sorted(self, *arrays: Array) -> tuple[Array, ...]:
        order = self._order[0]
        return arrays if order is None else tuple(a[order] for a in arrays)

    def _given(self, *arrays: Array) -> tuple[Array, ...]:
        order = self._order[0]
        if order is None:
            return arrays
        out = tuple(np.empty_like(a) for a in arrays)
        for mine, a in zip(out, arrays, strict=True):
            mine[order] = a
        return out

    def update(self, sites: Sites) -> Marginals:
        """Posterior under these sites: one pass forward, one back."""
        mean, cov, log_z = self._chain.posterior(*self._sorted(*sites))
        mean, cov = self._given(mean, cov)
        return Marginals(mean, cov, cov, log_z, partial(self.others, sites))

    def others(self, sites: Sites) -> tuple[Array, Array]:
        """What all sites but a row's own say of it, on square roots."""
        precision, shift = self._sorted(*sites)
        found = self._chain.on_roots(precision, shift)
        mean, cov = self._given(found.others_mean, found.others_cov)
        return mean, cov

    def gradient(self, sites: Sites, slopes: Slopes | None) -> PriorGradient:
        """The adjoint of the filter gives ∂log Z/∂log θ, and a complex step through the sites the chain.

        ``m = ∂log Z/∂λ`` and ``C + mm' = -2 ∂log Z/∂Λ``, so that with slopes g, G the rest of dE is the derivative of
        ∂log Z/∂log θ in the direction ``δλ = g - 2Gm``, ``δΛ = -2G``.
        """
        precision, shift = sites
        if slopes is not None:
            G = slopes.cov + slopes.inner
            mean = self.update(sites).mean
            d_shift = slopes.mean - 2.0 * np.einsum("nde,ne->nd", G, mean)
            precision = precision - 2j * COMPLEX_STEP * G
            shift = shift + 1j * COMPLEX_STEP * d_shift
        filtered = self._chain.forward(*self._sorted(precision, shift))
        bars = self._chain.backward(filtered, differentiate=True)[2]
        total = -self._chain.log_z_gradient(tuple(np.ascontiguousarray(b.real) for b in bars))
        if slopes is not None:
            total = total + self._chain.log_z_gradient(tuple(np.ascontiguousarray(b.imag) / COMPLEX_STEP for b in bars))
        return PriorGradient(total)

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
        return Extended(self.covariances, self.X, X)

    def sample(self, sites: Sites, X: Array, n: int, rng: np.random.Generator) -> Array:
        """Draw a path from the prior, then correct it by what the data say (Matheron's rule)."""
        return self.extended(X).sample(sites, n, rng)


class Extended:
    """A chain over training inputs followed by others, in time order."""

    def __init__(self, covariances: Sequence[Covariance], train: Array, test: Array) -> None:
        self._count, self._test = len(train), len(test)
        self._prior = MarkovPrior(covariances, np.vstack([train, test]))

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
            shift[:N] -= np.einsum("nde,ne->nd", sites.precision, path[:N]) + noise
            draws[i] = (path + self._prior.update(Sites(padded.precision, shift)).mean)[N:]
        return draws

    def _paths(self, n: int, rng: np.random.Generator) -> Any:
        """Paths of the prior at all inputs, in the given order."""
        chain = self._prior._chain
        roots, first = _roots(chain.Q), _roots(chain.start[1][None])[0]
        for _ in range(n):
            noise = rng.standard_normal((len(chain.steps.step), chain.space.size))
            state = first @ noise[0]
            path = [chain.H @ state]
            for step, e in zip(chain.steps.step[1:], noise[1:], strict=True):
                state = chain.A[step] @ state + roots[step] @ e
                path.append(chain.H @ state)
            yield self._prior._given(np.array(path))[0]


def _roots(matrices: Array) -> Array:
    """Square roots of positive semi-definite matrices; eigenvalues below zero are rounding and count as zero."""
    values, vectors = np.linalg.eigh(matrices)
    return np.asarray(vectors * np.sqrt(np.maximum(values, 0.0))[:, None, :])
