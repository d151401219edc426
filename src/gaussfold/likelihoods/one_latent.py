"""A likelihood of one latent, seen as one of several: D = 1, through the compiled expectations where there are any."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from typing import ClassVar, Protocol, cast, runtime_checkable

import numpy as np

from gaussfold.likelihoods.base import ScalarLikelihood
from gaussfold.likelihoods.chained import AnyCubature, VectorLikelihood
from gaussfold.likelihoods.gaussian import Gaussian
from gaussfold.likelihoods.normal import NormalMoments
from gaussfold.protocols import Likelihood
from gaussfold.types import Array, ArrayLike, Moments, Record


@dataclass(frozen=True)
class OneLatent(VectorLikelihood):
    """``Y (N, 1)``, ``mean (N, 1)``, ``cov (N, 1, 1)`` passed on to a scalar likelihood.

    With ``cubature=None`` expectations are the scalar likelihood's own (exact to rounding for the built-in families);
    with a rule they are sums over its nodes, as for several latents.

    Examples
    --------
    >>> from gaussfold.likelihoods import Bernoulli
    >>> model = OneLatent(Bernoulli())
    >>> first, second = model.expected_derivatives(np.ones((1, 1)), np.zeros((1, 1)), np.ones((1, 1, 1)))
    >>> first, second
    (array([[0.5]]), array([[[-0.2066]]]))
    """

    scalar: Likelihood
    latents: ClassVar[int] = 1
    outputs: ClassVar[int] = 1
    responses: ClassVar[int] = 1

    @property
    def log_concave(self) -> bool:
        """As the scalar likelihood says."""
        return self.scalar.log_concave

    @property
    def gaussian_noise(self) -> bool:
        """Whether the scalar likelihood is the normal one."""
        return isinstance(self.scalar, Gaussian)

    def check_labels(self, Y: ArrayLike, name: str = "Y") -> None:
        """As the scalar likelihood does."""
        self.scalar.check_labels(np.asarray(Y), name)

    def config(self) -> dict[str, object]:
        """The scalar likelihood's."""
        return self.scalar.config()

    def __str__(self) -> str:
        return str(self.scalar)

    def log_prob(self, Y: ArrayLike, F: ArrayLike) -> Array:
        """``log p(y | f)``; 0 for a missing label."""
        y, f = np.asarray(Y, dtype=float)[..., 0], np.asarray(F, dtype=float)[..., 0]
        value = self.scalar.log_prob(y, f)
        return np.asarray(np.where(np.isnan(y), 0.0, value))

    def derivatives(self, Y: ArrayLike, F: ArrayLike) -> tuple[Array, Array]:
        """``l'`` and ``l''``; 0 for a missing label."""
        y, f = np.asarray(Y, dtype=float)[..., 0], np.asarray(F, dtype=float)[..., 0]
        first, second = self.scalar.derivatives(y, f)
        shape = np.broadcast_shapes(y.shape, f.shape)
        first, second = (np.where(np.isnan(y), 0.0, np.broadcast_to(d, shape)) for d in (first, second))
        return first[..., None], second[..., None, None]

    def conditional(self, F: ArrayLike) -> NormalMoments:
        """Mean and variance of y given f."""
        f = np.asarray(F, dtype=float)[..., 0]
        mean, variance = self.scalar.conditional(f)
        return NormalMoments(np.asarray(mean)[..., None], np.asarray(variance)[..., None, None])

    def conditional_slopes(self, F: ArrayLike) -> NormalMoments:
        """And the first derivatives."""
        return self.conditional_curvatures(F).having(mean_curvature=None, cov_curvature=None)

    def conditional_curvatures(self, F: ArrayLike) -> NormalMoments:
        """And the first two derivatives."""
        f = np.asarray(F, dtype=float)[..., 0]
        first, second = conditional_derivatives(self.scalar, f)
        return self.conditional(F).having(
            mean_slope=first.mean[..., None, None],
            cov_slope=first.variance[..., None, None, None],
            mean_curvature=second.mean[..., None, None, None],
            cov_curvature=second.variance[..., None, None, None, None],
        )

    def expected_log_prob(self, Y: Array, mean: Array, cov: Array, cubature: AnyCubature = None) -> Array:
        """``E log p(y | f)``; 0 for a missing label."""
        if cubature is not None:
            return super().expected_log_prob(Y, mean, cov, cubature)
        value = self.scalar.expected_log_prob(Y[:, 0], _scalar(mean, cov))
        return np.asarray(np.where(np.isnan(Y[:, 0]), 0.0, value))

    def expected_derivatives(
        self, Y: Array, mean: Array, cov: Array, cubature: AnyCubature = None
    ) -> tuple[Array, Array]:
        """``E l'`` and ``E l''``; 0 for a missing label."""
        if cubature is not None:
            return super().expected_derivatives(Y, mean, cov, cubature)
        first, second = self.scalar.expected_derivatives(Y[:, 0], _scalar(mean, cov))
        missing = np.isnan(Y[:, 0])
        if missing.any():
            first, second = np.where(missing, 0.0, first), np.where(missing, 0.0, second)
        return first[:, None], second[:, None, None]

    @property
    def one_latent(self) -> Likelihood:
        """The scalar likelihood."""
        return self.scalar

    def compiled_site(
        self, rule: Record | None, Y: Array, mean: Array, cov: Array, cubature: AnyCubature = None
    ) -> tuple[Array, Array] | None:
        """What the engine's rule of that record says of every row: gradient and curvature; None if it does not know."""
        record = self.scalar.record
        if cubature is not None or record is None or rule is None:
            return None
        engine = import_module("gaussfold.engine.arrays.over_arrays")
        y, latent = np.ascontiguousarray(Y[:, 0]), _scalar(mean, cov)
        first, second = engine.surrogates(record, rule, y, np.ones_like(y), *latent)
        return first[:, None], second[:, None, None]

    def tilted(
        self, Y: Array, mean: Array, cov: Array, alpha: float = 1.0, cubature: AnyCubature = None
    ) -> tuple[Array, Array, Array]:
        """``log E p^α`` and its derivatives in the mean."""
        if cubature is not None or not isinstance(self.scalar, ScalarLikelihood):
            return super().tilted(Y, mean, cov, alpha, cubature)
        value, first, second = self.scalar.tilted(Y[:, 0], _scalar(mean, cov), alpha)
        return value, first[:, None], second[:, None, None]

    def tilted_slopes(
        self, Y: Array, mean: Array, cov: Array, alpha: float = 1.0, cubature: AnyCubature = None
    ) -> tuple[Array, Array]:
        """Derivatives in the mean and, by Price's theorem, in the variance."""
        if cubature is not None or not isinstance(self.scalar, ScalarLikelihood):
            return super().tilted_slopes(Y, mean, cov, alpha, cubature)
        _, first, second = self.tilted(Y, mean, cov, alpha)
        return first, 0.5 * (second + first[:, :, None] ** 2)

    def log_predictive(
        self, Y: Array, mean: Array, cov: Array, cubature: AnyCubature = None, *, alpha: float = 1.0
    ) -> Array:
        """``log E p(y | f)^α``; 0 for a missing label."""
        if cubature is not None:
            return super().log_predictive(Y, mean, cov, cubature, alpha=alpha)
        if alpha == 1.0:
            value = self.scalar.log_predictive(Y[:, 0], _scalar(mean, cov))
        else:
            value = self.tilted(Y, mean, cov, alpha)[0]
        return np.asarray(np.where(np.isnan(Y[:, 0]), 0.0, value))

    def predictive(self, mean: Array, cov: Array, cubature: AnyCubature = None) -> tuple[Array, Array]:
        """Mean (N, 1) and variance (N, 1, 1) of y."""
        if cubature is not None:
            return super().predictive(mean, cov, cubature)
        first, total = self.scalar.predictive(_scalar(mean, cov))
        return first[:, None], total[:, None, None]


@runtime_checkable
class _KnowsItsSlopes(Protocol):
    """A likelihood that differentiates its conditional moments itself."""

    def conditional_derivatives(self, f: ArrayLike) -> tuple[Moments, Moments]: ...


def conditional_derivatives(likelihood: Likelihood, f: Array) -> tuple[Moments, Moments]:
    """First and second derivatives of E[y|f] and Var[y|f]: the likelihood's own, or central differences."""
    if isinstance(likelihood, _KnowsItsSlopes):
        first, second = likelihood.conditional_derivatives(f)
    else:
        first, second = ScalarLikelihood.conditional_derivatives(cast("ScalarLikelihood", likelihood), f)
    return _like(f, first), _like(f, second)


def _like(f: Array, moments: Moments) -> Moments:
    """The same numbers in the shape of f."""
    return Moments(*(np.asarray(a) + 0.0 * f for a in moments))


def _scalar(mean: Array, cov: Array) -> Moments:
    return Moments(np.ascontiguousarray(mean[:, 0]), np.ascontiguousarray(cov[:, 0, 0]))


def as_vector(likelihood: Likelihood | VectorLikelihood) -> VectorLikelihood:
    """The likelihood as one of several latents; a scalar one is wrapped.

    Examples
    --------
    >>> from gaussfold.likelihoods import Bernoulli
    >>> model = as_vector(Bernoulli())
    >>> model.latents, model.log_prob(np.array([[1.0]]), np.array([[0.0]])).round(4)
    (1, array([-0.6931]))
    """
    return likelihood if isinstance(likelihood, VectorLikelihood) else OneLatent(likelihood)
