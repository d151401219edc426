"""Plain training: the one network at the maximum of the posterior, with the same face as the rest."""

from __future__ import annotations

from typing import ClassVar, TypedDict, Unpack

from gaussfold.beliefs.factor import FactorGaussian
from gaussfold.deep.iterates import SGDIterates
from gaussfold.deep.point import PointMass
from gaussfold.deep.steps import Optimiser
from gaussfold.deep.types import Arrays, Inner, LogLikelihoodFunction, Rates, Spread, Tree
from gaussfold.types import Array

NEVER = 2**30
"""Steps before which nothing is collected: the last iterate is all that is wanted."""


class PlainOptions(TypedDict, total=False):
    """Keywords of :class:`MAP`."""

    optimizer: Optimiser
    learning_rate: Rates
    max_grad_norm: float | None
    prior_mean: Spread
    batch_size: int | None
    temperature: float | str
    max_bad_steps: int
    seed: int


class Nothing:
    """A collector of no samples."""

    needed = 0

    def take(self, samples: Array) -> None:
        """Not looked at."""
        del samples

    def belief(self) -> FactorGaussian:
        """There is none."""
        msg = "posterior: plain training collects no samples, so no Gaussian can be made of them; use SWAG for one"
        raise ValueError(msg)

    def arrays(self) -> Arrays:
        """None."""
        return {}


class MAP(SGDIterates):
    """Gradient descent to the maximum of the posterior: a network without error bars, for ensembles and comparisons.

    Parameters
    ----------
    log_likelihood, params, prior_precision, prior_mean, batch_size, max_bad_steps, seed
        As for :class:`gaussfold.deep.VIFA`.
    optimizer, learning_rate, max_grad_norm, temperature
        As for :class:`gaussfold.deep.SWAG`.

    Examples
    --------
    Five networks from five starts, and what they say together:

    >>> import gaussfold as gf, numpy as np
    >>> X = np.linspace(-1.0, 1.0, 64, dtype=np.float32)[:, None]
    >>> function = gf.deep.log_likelihood(lambda w, X: X @ w, gf.likelihoods.Gaussian(0.1))
    >>> ensemble = gf.deep.Ensemble([MAP(function, np.full(1, s, np.float32)) for s in (-0.5, 0.0, 0.5)])
    >>> print(ensemble.fit(X, 2.0 * X[:, 0], steps=500).mean.round(1))
    [2.]
    """

    kind: ClassVar[str] = "MAP"
    least_rank: ClassVar[int] = 0
    why_least_rank: ClassVar[str] = ""

    def __init__(
        self,
        log_likelihood: LogLikelihoodFunction,
        params: Tree,
        prior_precision: Spread = "fan-in",
        **options: Unpack[PlainOptions],
    ) -> None:
        super().__init__(log_likelihood, params, 0, prior_precision, burn_in=NEVER, **options)

    def collector(self, taken: int = 0, arrays: Arrays | None = None) -> Nothing:
        """One that looks at nothing."""
        del taken, arrays
        return Nothing()

    def belief(self, inner: Inner) -> PointMass:
        """Where the descent is."""
        return PointMass(inner["theta"])

    def belief_of(self, inner: Inner) -> PointMass:
        """The same for a loop outside."""
        return self.belief(inner)
