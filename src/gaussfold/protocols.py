"""The three nouns that meet in a fold: what each promises to the others, and nothing more.

A fourth noun, ``at``, is a name: "prior", "posterior" or "extragradient". Classes need not inherit
from these protocols; having the methods is enough.
"""

from __future__ import annotations

from typing import Protocol, Self, runtime_checkable

import numpy as np

from gaussfold.types import Array, ArrayLike, Moments, Record, Site


@runtime_checkable
class Belief(Protocol):
    """What we know: a Gaussian over the parameters θ, whatever the shape of its covariance.

    A belief is mutable: folding data in changes it in place. It never sees a likelihood or a rule,
    only the Gaussian sites these agree on. Variances are variances, never standard deviations.
    """

    @property
    def dim(self) -> int:
        """Number of parameters d."""
        ...

    @property
    def mean(self) -> Array:
        """Posterior mean μ, shape ``(dim,)``."""
        ...

    def variance(self) -> Array:
        """Marginal variance of each parameter (the covariance's diagonal), shape ``(dim,)``."""
        ...

    def marginal(self, X: ArrayLike) -> Moments:
        """Mean and variance of ``f = x'θ`` for every row x of X."""
        ...

    def sample(self, n: int, rng: np.random.Generator) -> Array:
        """Draw n parameter vectors, shape ``(n, dim)``; the same generator gives the same draws."""
        ...

    def log_prob(self, theta: ArrayLike) -> Array:
        """Normalised log density at each row of theta."""
        ...

    def kl(self, other: Self) -> float:
        """Kullback-Leibler divergence KL(self || other), in nats."""
        ...

    def to_dense(self) -> Belief:
        """Return the same Gaussian with its covariance written out."""
        ...

    def copy(self) -> Self:
        """Return a belief that shares no memory with this one."""
        ...

    def state(self) -> dict[str, np.ndarray]:
        """Everything ``from_state`` needs, as plain named arrays."""
        ...

    @classmethod
    def from_state(cls, state: dict[str, np.ndarray]) -> Self:
        """Rebuild, bit for bit, the belief whose ``state`` this is."""
        ...


@runtime_checkable
class Likelihood(Protocol):
    """What the data say: p(y | f) for a label y and one latent f.

    Everything is elementwise and broadcasts. A NaN label is legal and gives NaN; it stands for
    "predict, don't learn". Labels are checked once, at the door, by ``check_labels``; the other
    methods take them as they come.
    """

    @property
    def log_concave(self) -> bool:
        """Whether ``l'' ≤ 0`` for every label, so that a site precision can never be negative."""
        ...

    @property
    def record(self) -> Record | None:
        """How the engine knows this likelihood; None when only Python does."""
        ...

    def check_labels(self, y: ArrayLike, name: str = "y") -> None:
        """Raise a ValueError that names the first row whose label this likelihood cannot explain."""
        ...

    def log_prob(self, y: ArrayLike, f: ArrayLike) -> Array:
        """``l(f) = log p(y | f)``, normalised over y."""
        ...

    def derivatives(self, y: ArrayLike, f: ArrayLike) -> tuple[Array, Array]:
        """``l'(f)`` and ``l''(f)``."""
        ...

    def conditional(self, f: ArrayLike) -> Moments:
        """Mean and variance of y given f."""
        ...

    def expected_log_prob(self, y: ArrayLike, moments: Moments) -> Array:
        """``E log p(y | f)`` under ``f ~ N(mean, variance)``."""
        ...

    def expected_derivatives(self, y: ArrayLike, moments: Moments) -> tuple[Array, Array]:
        """``E l'(f)`` and ``E l''(f)``."""
        ...

    def log_predictive(self, y: ArrayLike, moments: Moments) -> Array:
        """``log E p(y | f)``: the score of predicting y before seeing it."""
        ...

    def predictive(self, moments: Moments) -> Moments:
        """Mean and variance of y, with f integrated out."""
        ...

    def conditional_mean(self, moments: Moments) -> Moments:
        """Mean and variance of ``E[y | f]``: how unsure we are of the prediction, noise in y apart."""
        ...

    def config(self) -> dict[str, object]:
        """Name and parameters, as JSON can hold them."""
        ...


@runtime_checkable
class Rule(Protocol):
    """Which Gaussian stands in for the likelihood.

    A rule never sees a belief, only the marginal ``N(m, v)`` of one latent per row.
    """

    @property
    def name(self) -> str:
        """The name it goes by in ``fold(rule=...)``."""
        ...

    def site(self, likelihood: Likelihood, y: ArrayLike, moments: Moments) -> Site:
        """Gradient and curvature of the surrogate log likelihood, looking from ``N(m, v)``."""
        ...
