"""The three nouns that meet in a fold: what each promises to the others, and nothing more.

A fourth noun, ``at``, is a name: "prior", "posterior" or "extragradient". Classes need not inherit
from these protocols; having the methods is enough.

What we know can be read (:class:`Distribution`, and :class:`Gaussian` if it is one), folded into (:class:`Belief`), or
both: a ``FactorGaussian`` is a Gaussian that no data can be folded into, a ``DiagonalMixture`` a belief that is no
Gaussian, and the others are both.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Protocol, Self, runtime_checkable

import numpy as np

from gaussfold.trace import ONCE, Pass, Trace
from gaussfold.types import Array, ArrayLike, Moments, Program, Record, Site

if TYPE_CHECKING:
    from gaussfold.beliefs.dense.belief import DenseGaussian
    from gaussfold.observations import Observations


@runtime_checkable
class Distribution(Protocol):
    """What can be read off anything we know: a distribution of the parameters θ, Gaussian or a mixture of such.

    Variances are variances, never standard deviations.
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

    def copy(self) -> Self:
        """Return a twin that shares no memory with this one."""
        ...

    def state(self) -> dict[str, np.ndarray]:
        """Everything ``from_state`` needs, as plain named arrays."""
        ...

    @classmethod
    def from_state(cls, state: dict[str, np.ndarray]) -> Self:
        """Rebuild, bit for bit, what this is the ``state`` of."""
        ...


@runtime_checkable
class Gaussian(Distribution, Protocol):
    """What a Gaussian knows besides, whatever the shape of its covariance."""

    def entropy(self) -> float:
        """Differential entropy, in nats."""
        ...

    def kl(self, other: Self) -> float:
        """Kullback-Leibler divergence KL(self || other), in nats."""
        ...

    def to_dense(self) -> DenseGaussian:
        """Return the same Gaussian with its covariance written out."""
        ...

    @classmethod
    def combine(cls, prior: Self, shards: Iterable[Self]) -> Gaussian:
        """Prior × Π (shard / prior): what one pass over all shards' data would know."""
        ...


@runtime_checkable
class Foldable(Protocol):
    """What data can be folded into: :func:`gaussfold.fold` changes it in place, whole or not at all.

    It never sees a likelihood or a rule, only the Gaussian sites these agree on: one by one (:meth:`absorb`), or as a
    program that its compiled loop runs and that is opaque to it (:meth:`absorb_row`, :meth:`absorb_stream`). Methods
    only, so that a type can be asked whether it has them: asking an object for its properties would compute them.
    """

    def absorb(self, x: Array, precision: float, shift: float) -> None:
        """Multiply by one site exp(shift·f - ½·precision·f²), f = x'θ; x a dense row."""
        ...

    def absorb_row(self, row: Array, y: float, program: Program) -> Trace | None:
        """Visit one C-contiguous float64 row (1, dim), unchecked, where there is a quicker way than a stream of one.

        None, and nothing has changed, where there is none or the row or the label is not fit to learn from.
        """
        ...

    def absorb_stream(self, data: Observations, program: Program, how: Pass = ONCE) -> Trace:
        """Visit checked rows in order, each once: marginal, site, absorb; returns what was met and made."""
        ...

    def relax(self, factor: float, prior: Self) -> None:
        """Natural parameters become factor × their own + (1 - factor) × those of the prior."""
        ...

    def diffuse(self, variance: float | Array) -> None:
        """Add ``variance`` to every parameter's, independently; one for all or, where the form allows it, one each."""
        ...

    def become(self, other: Self) -> None:
        """Take over another belief's numbers; the other must not be used any more."""
        ...


@runtime_checkable
class Belief(Distribution, Foldable, Protocol):
    """What we know and go on learning: it can be read, and folded into."""


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
class QuadraticallyBounded(Protocol):
    """A likelihood whose logarithm has a quadratic lower bound, which is what rule "quadratic" puts in its place."""

    def quadratic_bound(self, y: ArrayLike, moments: Moments) -> tuple[Array, Array]:
        """Slope at the mean and curvature of the bound that is tightest on average under ``N(mean, variance)``."""
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
