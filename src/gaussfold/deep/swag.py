"""SWAG, MultiSWAG and the factor analysis of all iterates: Gaussians fitted to the path of gradient descent."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Self, TypedDict, Unpack

import numpy as np

from gaussfold import schema
from gaussfold.beliefs.factor import FactorGaussian
from gaussfold.deep.iterates import SGDIterates
from gaussfold.deep.mixture import Ensemble
from gaussfold.deep.steps import Optimiser
from gaussfold.deep.trees import Layout
from gaussfold.deep.types import Arrays, Document, LogLikelihoodFunction, Rates, Spread, Tree
from gaussfold.estimators.factor_analysis import StreamingFactorAnalysis
from gaussfold.types import Array

SHORT = 30.0
"""Epochs that are enough where the start is a trained network."""


class DescentOptions(TypedDict, total=False):
    """Keywords of :class:`SWAG` that :class:`FactorIterates` and :class:`MultiSWAG` pass on."""

    prior_mean: Spread
    batch_size: int | None
    optimizer: Optimiser
    learning_rate: Rates
    burn_in_rate: Rates
    burn_in: float
    every: float
    windows: bool
    floor: float
    temperature: float | str
    max_grad_norm: float | None
    max_bad_steps: int


class SeededOptions(DescentOptions, total=False):
    """The same, and a seed."""

    seed: int


PARTS = (
    schema.Part("swa", ("d",), "double"),
    schema.Part("spread", ("d",), "double", low=0.0),
    schema.Part("deviations", ("rank", "d"), "double"),
)
"""What a saved training holds of the samples."""


class Deviations:
    """Mean, squares and the latest deviations of samples: (3.1)-(3.4)."""

    def __init__(self, rank: int, layout: Layout, floor: float) -> None:
        self.needed, self._layout, self._floor = rank, layout, floor
        self._count = 0
        self._mean = np.zeros(layout.dim)
        self._spread = np.zeros(layout.dim)  # sum of squared distances from the mean: (3.2) without cancellation
        self._deviations = np.zeros((rank, layout.dim))

    def fill(self, count: int, arrays: Arrays) -> None:
        """Undo :meth:`arrays`."""
        schema.check(arrays, PARTS, {"d": self._layout.dim, "rank": self.needed})
        self._count = count
        self._mean, self._spread = arrays["swa"].copy(), arrays["spread"].copy()
        self._deviations = arrays["deviations"].copy()

    def take(self, samples: Array) -> None:
        """One sample after the other."""
        for sample in samples:
            self._count += 1
            before = sample - self._mean
            self._mean += before / self._count
            after = sample - self._mean
            self._spread += before * after
            self._deviations[(self._count - 1) % self.needed] = after

    def belief(self) -> FactorGaussian:
        """(3.5)."""
        psi = np.maximum(0.5 * self._spread / self._count, self._floor)
        factors = self._deviations.T / np.sqrt(2.0 * (self.needed - 1))
        return FactorGaussian(self._mean, factors, psi, dtype=self._layout.dtype)

    def arrays(self) -> Arrays:
        """All three."""
        return {"swa": self._mean, "spread": self._spread, "deviations": self._deviations}


THESIS: DescentOptions = {
    "optimizer": "sgd",
    "learning_rate": 1e-2,
    "burn_in": 0,
    "every": 1,
    "temperature": 1.0,
}
"""Plain descent whose every iterate counts, as in factor-analysis chapter 4; its prior has precision 1."""


class SWAG(SGDIterates):
    """The Gaussian of stochastic weight averaging: N(θ_SWA, D̂D̂'/(2(K-1)) + Σ_diag/2), factor-analysis (3.1)-(3.5).

    Parameters
    ----------
    log_likelihood, params, prior_precision, prior_mean, batch_size, max_bad_steps, seed
        As for :class:`gaussfold.deep.VIFA`.
    rank
        Number of the latest deviations that make the low-rank part, K ≥ 2; 10 by default, or as many as parameters.
    optimizer, learning_rate, max_grad_norm
        Descent on the mean loss per example; "adam" with 0.01 by default.
    prior_precision
        "fan-in", one per leaf that its first weights tell (:mod:`gaussfold.deep.scales`), or numbers.
    burn_in
        Training before anything is collected: a whole number of steps, or a share of them below 1; three quarters.
    burn_in_rate
        Learning rate until then, if another; a number or a schedule, whatever ``learning_rate`` is.
    every
        Collect each so many steps (an epoch's, in the SWAG paper), or each such share of the training.
    temperature
        The prior counts so many times, for iterates minimise a loss. "auto" as for VIFA.
    windows
        Collect averages over the ``every`` steps instead of single iterates: finite-window averaging, B.2.
    floor
        Least variance of a parameter; one that never moved would have none.
    """

    kind: ClassVar[str] = "SWAG"

    @classmethod
    def from_trained(
        cls,
        log_likelihood: LogLikelihoodFunction,
        params: Tree,
        rank: int | None = None,
        prior_precision: Spread = "fan-in",
        **options: Unpack[SeededOptions],
    ) -> Self:
        """A Gaussian around a network that is trained already: collected from the first step, in 30 epochs."""
        self = cls(log_likelihood, params, rank, prior_precision, **({"burn_in": 0} | options))
        self.usual_epochs = SHORT
        return self

    least_rank: ClassVar[int] = 2
    why_least_rank: ClassVar[str] = "SWAG divides by rank - 1"

    def collector(self, taken: int = 0, arrays: Arrays | None = None) -> Deviations:
        """Mean, squares and deviations."""
        found = Deviations(self.rank, self.layout, self.floor)
        if arrays is not None:
            found.fill(taken, arrays)
        return found


class Analysis:
    """Factor analysis of samples: :class:`gaussfold.StreamingFactorAnalysis`."""

    needed = 2

    def __init__(self, model: StreamingFactorAnalysis, layout: Layout, floor: float) -> None:
        self._model, self._layout, self._floor, self._begun = model, layout, floor, False

    def fill(self, arrays: Arrays) -> None:
        """Undo :meth:`arrays`."""
        found = {n.removeprefix("analysis_"): a for n, a in arrays.items() if n.startswith("analysis_")}
        given = self._model.get_params(deep=False)
        plain = {name: value for name, value in given.items() if name not in ("start", "start_noise")}
        header = {"parameters": plain, "n_features": self._layout.dim, "feature_names": None}
        self._model, self._begun = StreamingFactorAnalysis.from_store(header, found), True

    def take(self, samples: Array) -> None:
        """All at once."""
        self._begun = True
        self._model.partial_fit(samples)

    def belief(self) -> FactorGaussian:
        """The model as it stands."""
        psi = np.maximum(self._model.noise_variance_, self._floor)
        return FactorGaussian(self._model.mean_, self._model.components_.T, psi, dtype=self._layout.dtype)

    def arrays(self) -> Arrays:
        """The model's; none before the first sample."""
        learned = self._model.state() if self._begun else {}
        return {f"analysis_{name}": array for name, array in learned.items()}


class FactorIterates(SGDIterates):
    """Factor analysis of *all* iterates, online: factor-analysis chapter 4, Algorithms 1 and 2.

    Parameters
    ----------
    rank
        Number of factors, 1 to D; 10 by default, or D.
    method
        "recursive-em", "online-em" (Algorithm 2) or "gradient" (Algorithm 1), see
        :class:`gaussfold.StreamingFactorAnalysis`, which takes ``method_options``.
    options
        As for :class:`SWAG`.
    """

    kind: ClassVar[str] = "FactorIterates"
    least_rank: ClassVar[int] = 1
    why_least_rank: ClassVar[str] = "without factors there is nothing to find"

    def __init__(
        self,
        log_likelihood: LogLikelihoodFunction,
        params: Tree,
        rank: int | None = None,
        prior_precision: Spread = "fan-in",
        *,
        method: str = "recursive-em",
        method_options: Document | None = None,
        **options: Unpack[SeededOptions],
    ) -> None:
        super().__init__(log_likelihood, params, rank, prior_precision, **options)
        self.method, self.method_options = method, dict(method_options or {})
        self.collector()  # refuses a method that there is not

    def collector(self, taken: int = 0, arrays: Arrays | None = None) -> Analysis:
        """Factor analysis with as many factors."""
        model = StreamingFactorAnalysis(self.rank, self.method, random_state=self.seed, **self.method_options)
        found = Analysis(model, self.layout, self.floor)
        if arrays is not None and taken:
            found.fill(arrays)
        return found

    def settings(self) -> Document:
        """How iterates are made, collected and analysed."""
        return super().settings() | {"method": self.method}


class MultiSWAG(Ensemble):
    """A mixture of SWAG Gaussians from several starts, with equal weights.

    Parameters
    ----------
    log_likelihood
        As for :class:`SWAG`.
    starts
        Trees of parameters, one per training; each also gets a seed of its own.
    options
        As for :class:`SWAG`.
    """

    def __init__(
        self,
        log_likelihood: LogLikelihoodFunction,
        starts: Sequence[Tree],
        rank: int | None = None,
        seed: int = 0,
        prior_precision: Spread = "fan-in",
        **options: Unpack[DescentOptions],
    ) -> None:
        if not starts:
            msg = "starts: empty; give one tree of parameters per training"
            raise ValueError(msg)
        super().__init__(
            [
                SWAG(log_likelihood, start, rank, prior_precision, seed=seed + number, **options)
                for number, start in enumerate(starts)
            ]
        )
