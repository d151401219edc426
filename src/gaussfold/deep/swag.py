"""SWAG, MultiSWAG and the factor analysis of all iterates: Gaussians fitted to the path of gradient descent."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np

from gaussfold.beliefs.factor import FactorGaussian
from gaussfold.beliefs.lowrank.options import check_rank
from gaussfold.checks import positive
from gaussfold.deep.batches import LogLikelihoodFunction
from gaussfold.deep.iterates import SGDIterates
from gaussfold.deep.posterior import MultiPosterior, Posterior
from gaussfold.deep.trees import Tree
from gaussfold.estimators.factor_analysis import StreamingFactorAnalysis
from gaussfold.types import Array


class SWAG(SGDIterates):
    """The Gaussian of stochastic weight averaging: N(θ_SWA, D̂D̂'/(2(K-1)) + Σ_diag/2), factor-analysis (3.1)-(3.5).

    Parameters
    ----------
    log_likelihood, params, prior_precision, prior_mean, batch_size, max_bad_steps, seed
        As for :class:`gaussfold.deep.VIFA`.
    rank
        Number of the latest deviations that make the low-rank part, K ≥ 2.
    optimizer, learning_rate, max_grad_norm
        Descent on the mean loss per example; "sgd" with 0.01 by default.
    burn_in
        Steps of training before anything is collected.
    burn_in_rate
        Learning rate until then, if another.
    every
        Collect each so many steps (an epoch's, in the SWAG paper).
    windows
        Collect averages over the ``every`` steps instead of single iterates: finite-window averaging, B.2.
    floor
        Least variance of a parameter; one that never moved would have none.
    """

    kind: ClassVar[str] = "SWAG"

    def __init__(
        self,
        log_likelihood: LogLikelihoodFunction,
        params: Tree,
        rank: int = 10,
        prior_precision: Any = 1.0,
        *,
        prior_mean: Any = 0.0,
        batch_size: int | None = None,
        optimizer: Any = "sgd",
        learning_rate: Any = None,
        burn_in_rate: Any = None,
        burn_in: int = 0,
        every: int = 1,
        windows: bool = False,
        floor: float = 1e-12,
        max_grad_norm: float | None = None,
        max_bad_steps: int = 10,
        seed: int = 0,
    ) -> None:
        super().__init__(
            log_likelihood,
            params,
            prior_precision,
            prior_mean=prior_mean,
            batch_size=batch_size,
            optimizer=optimizer,
            learning_rate=learning_rate,
            burn_in_rate=burn_in_rate,
            burn_in=burn_in,
            every=every,
            windows=windows,
            max_grad_norm=max_grad_norm,
            max_bad_steps=max_bad_steps,
            seed=seed,
        )
        self.rank = self._checked_rank(rank)
        self.floor = positive("floor", floor)
        self._forget()

    def _checked_rank(self, rank: int) -> int:
        if check_rank(rank, self.layout.dim, fewest=0) < 2:
            msg = f"rank={rank!r}: SWAG divides by rank - 1; 2 to {self.layout.dim} are allowed"
            raise ValueError(msg)
        return int(rank)

    def _forget(self) -> None:
        super()._forget()
        self._mean = np.zeros(self.layout.dim)
        self._spread = np.zeros(self.layout.dim)  # sum of squared distances from the mean: (3.2) without cancellation
        self._deviations = np.zeros((self.rank, self.layout.dim))

    def _take(self, samples: Array) -> None:
        for number, sample in enumerate(samples, self._taken + 1):
            before = sample - self._mean
            self._mean += before / number
            after = sample - self._mean
            self._spread += before * after
            self._deviations[(number - 1) % self.rank] = after

    def _collected(self) -> dict[str, np.ndarray]:
        arrays = {"swa": self._mean, "spread": self._spread, "deviations": self._deviations}
        return super()._collected() | arrays

    def _recollect(self, arrays: dict[str, np.ndarray]) -> None:
        super()._recollect(arrays)
        self._mean, self._spread = arrays["swa"].copy(), arrays["spread"].copy()
        self._deviations = arrays["deviations"].copy()

    def _settings(self) -> dict[str, Any]:
        return super()._settings() | {"rank": self.rank}

    def _posterior(self, inner: Any) -> Posterior:  # noqa: ARG002 - everything was collected
        self._enough(self.rank)
        psi = np.maximum(0.5 * self._spread / self._taken, self.floor)
        factors = self._deviations.T / np.sqrt(2.0 * (self.rank - 1))
        belief = FactorGaussian(self._mean, factors, psi, dtype=self.layout.dtype)
        return Posterior(belief, self.layout, getattr(self.log_likelihood, "likelihood", None))


class FactorIterates(SWAG):
    """Factor analysis of *all* iterates, online: factor-analysis chapter 4, Algorithms 1 and 2.

    Parameters
    ----------
    rank
        Number of factors, 1 to D.
    method
        "recursive-em", "online-em" (Algorithm 2) or "gradient" (Algorithm 1), see
        :class:`gaussfold.StreamingFactorAnalysis`, which takes ``method_options``.
    options
        As for :class:`SWAG`.
    """

    kind: ClassVar[str] = "FactorIterates"

    def __init__(
        self,
        log_likelihood: LogLikelihoodFunction,
        params: Tree,
        rank: int = 10,
        prior_precision: Any = 1.0,
        *,
        method: str = "recursive-em",
        method_options: dict[str, Any] | None = None,
        **options: Any,
    ) -> None:
        self.method, self.method_options = method, dict(method_options or {})
        super().__init__(log_likelihood, params, rank, prior_precision, **options)

    def _checked_rank(self, rank: int) -> int:
        if check_rank(rank, self.layout.dim, fewest=0) < 1:
            msg = f"rank={rank!r}: 1 to {self.layout.dim} factors are allowed"
            raise ValueError(msg)
        return int(rank)

    def _forget(self) -> None:
        SGDIterates._forget(self)
        self._analysis = StreamingFactorAnalysis(self.rank, self.method, random_state=self.seed, **self.method_options)

    def _take(self, samples: Array) -> None:
        self._analysis.partial_fit(samples)

    def _collected(self) -> dict[str, np.ndarray]:
        learned = {} if not self._taken else self._analysis.state()
        return SGDIterates._collected(self) | {f"analysis_{name}": array for name, array in learned.items()}

    def _recollect(self, arrays: dict[str, np.ndarray]) -> None:
        SGDIterates._recollect(self, arrays)
        self._analysis = StreamingFactorAnalysis(self.rank, self.method, random_state=self.seed, **self.method_options)
        if self._taken:
            found = {n.removeprefix("analysis_"): a for n, a in arrays.items() if n.startswith("analysis_")}
            given = self._analysis.get_params(deep=False)
            plain = {name: value for name, value in given.items() if name not in ("start", "start_noise")}
            header = {"parameters": plain, "n_features": self.layout.dim, "feature_names": None}
            self._analysis = StreamingFactorAnalysis.from_store(header, found)

    def _settings(self) -> dict[str, Any]:
        return super()._settings() | {"method": self.method}

    def _posterior(self, inner: Any) -> Posterior:  # noqa: ARG002 - everything was collected
        self._enough(2)
        psi = np.maximum(self._analysis.noise_variance_, self.floor)
        belief = FactorGaussian(self._analysis.mean_, self._analysis.components_.T, psi, dtype=self.layout.dtype)
        return Posterior(belief, self.layout, getattr(self.log_likelihood, "likelihood", None))


class MultiSWAG:
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
        rank: int = 10,
        seed: int = 0,
        **options: Any,
    ) -> None:
        if not starts:
            msg = "starts: empty; give one tree of parameters per training"
            raise ValueError(msg)
        self.methods = [
            SWAG(log_likelihood, start, rank, seed=seed + number, **options) for number, start in enumerate(starts)
        ]

    def fit(self, data: Any, **length: Any) -> MultiPosterior:
        """Train from every start; arguments as for :meth:`SWAG.fit`."""
        return MultiPosterior([method.fit(data, **length) for method in self.methods])
