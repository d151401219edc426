"""What the three structures of a Gaussian-process prior have in common.

A prior takes Gaussian sites on the latents at its inputs and answers with posterior marginals, log Z and their
derivatives. It never sees a likelihood or a rule. Everything is in the sites' natural parameters,
``t(f) = exp(λ'f - f'Λf/2)``: a missing observation is Λ = 0, λ = 0, a rank-deficient site is as good as any, and

    ``log Z = log ∫ p(f) Π t_n(f_n) df``

is (71) up to the normalisers of the sites, which cancel in every energy.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol, Self

import numpy as np

from gaussfold.gp.covariances import Covariance
from gaussfold.gp.covariances.state_space import StateSpace
from gaussfold.types import Array, Sites


class Marginals(NamedTuple):
    """Posterior of the latents, row by row, and the prior's share of the energy."""

    mean: Array
    """(N, D)"""
    cov: Array
    """(N, D, D)"""
    inner: Array
    """(N, D, D): covariance of what the sites see of f. The same as ``cov`` unless the prior is sparse; there the sites
    are on ``W u``, and ``f = W u + (what the inducing variables leave open)``."""
    log_z: float
    others: Callable[[], tuple[Array, Array]] | None = None
    """Mean and covariance that all sites but a row's own give it, computed when asked for: a cavity cannot be told from
    ``cov`` once the row's own site is sharper than the others by more than 1/ε."""


class Slopes(NamedTuple):
    """Derivatives of a function of the marginals: with respect to mean, to cov, and to inner (or None)."""

    mean: Array
    cov: Array
    inner: Array


class PriorGradient(NamedTuple):
    """Derivatives of an energy with respect to what a prior is made of."""

    log_parameters: Array
    inducing: Array | None = None


class Prior(Protocol):
    """A Gaussian process at given inputs."""

    covariances: tuple[Covariance, ...]

    @property
    def Z(self) -> Array | None:
        """Inducing inputs (M, d), of a prior that has such."""
        ...

    def with_covariances(self, covariances: Sequence[Covariance], Z: Array | None = None) -> Self:
        """The same inputs with other covariances (and inducing inputs, if there are any)."""
        ...

    def update(self, sites: Sites) -> Marginals:
        """Posterior under these sites."""
        ...

    def gradient(self, sites: Sites, slopes: Slopes | None) -> PriorGradient:
        """Of ``E = F(marginals) - log Z`` at fixed sites, with F's slopes given (None: F is at a stationary point)."""
        ...

    def predict(self, sites: Sites, X: Array, *, joint: bool = False) -> tuple[Array, Array]:
        """Mean (n, D) and covariance (n, D, D) of the latents at other inputs; joint: covariance (Dn, Dn), D outer."""
        ...

    def sample(self, sites: Sites, X: Array, n: int, rng: np.random.Generator) -> Array:
        """Draws of the latents at other inputs, shape (n, rows, D)."""
        ...


def split(precision: Array) -> tuple[Array, np.ndarray, Array]:
    """Roots of the positive parts, ``Λ₊ = W W'`` (N, D, D); rows and vectors (k, D) of the rest, ``Λ₋ = Σ uu'``."""
    if precision.shape[-1] == 1:
        flat = precision[:, 0, 0]
        rows = np.flatnonzero(flat < 0.0)
        return np.sqrt(np.maximum(flat, 0.0))[:, None, None], rows, np.sqrt(-flat[rows])[:, None]
    values, vectors = np.linalg.eigh(precision)
    # a rounded zero is a zero: it must not become a negative direction
    values = np.where(np.abs(values) <= 1e-14 * np.abs(values).max(axis=1, keepdims=True), 0.0, values)
    rows, columns = np.nonzero(values < 0.0)
    negative = vectors[rows, :, columns] * np.sqrt(-values[rows, columns])[:, None]
    return vectors * np.sqrt(np.maximum(values, 0.0))[:, None, :], rows, negative


def finite(covariance: Covariance, values: Array) -> Array:
    """The values of a covariance, which must be numbers."""
    if not np.isfinite(values).all():
        raise _overflow(covariance)
    return values


def space_of(covariance: Covariance) -> StateSpace:
    """Its state space, which must be of numbers."""
    try:
        space = covariance.state_space()
    except OverflowError:
        raise _overflow(covariance) from None
    finite(covariance, space.feedback)
    return space


def _overflow(covariance: Covariance) -> ValueError:
    return ValueError(
        f"{covariance!r} overflows at these inputs; check its hyperparameters, or bring the inputs to its scale"
    )


def lost(row: int | None = None, what: str = "", *, sharp: bool = False) -> ValueError:
    """The error for sites that leave no posterior, or (sharp) none that covariances can hold in double precision."""
    where = "" if row is None else f" ({what} row {row})"
    if sharp:
        msg = (
            f"the sites are too sharp for double precision{where}: their precision exceeds that of the prior by more "
            "than 1e15; use smaller prior variances or a larger noise, or go on with the iterations before learning"
        )
        return ValueError(msg)
    msg = (
        f"the sites leave no positive definite posterior covariance{where}: a likelihood that is not log-concave "
        "gave negative site precisions that outweigh the prior; use curvature='gauss-newton', 'quasi-newton' or "
        "'heuristic', or a smaller damping"
    )
    return ValueError(msg)
