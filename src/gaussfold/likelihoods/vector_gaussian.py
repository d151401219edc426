"""Several numbers seen at once with Gaussian noise: what the Kalman filter takes, rvga (40)-(42), (55)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from gaussfold.checks import doubles, finite_entries
from gaussfold.likelihoods import normal
from gaussfold.likelihoods.chained import AnyCubature
from gaussfold.likelihoods.gaussian_noise import GaussianNoise
from gaussfold.likelihoods.normal import NormalMoments
from gaussfold.linalg.small import inverse, smallest_eigenvalues
from gaussfold.types import Array, ArrayLike


@dataclass(frozen=True, eq=False)
class VectorGaussian(GaussianNoise):
    """``y | f ~ N(f, R)`` for q outputs at once; NaN marks outputs that were not seen, of which R has no say then.

    With ``fold(belief, VectorGaussian(R), H, Y)``, H of shape (n, q, d), it is the Kalman filter's measurement.

    Parameters
    ----------
    cov
        R, shape (q, q), symmetric positive definite; or one for each row of the call, (n, q, q).

    Examples
    --------
    >>> import gaussfold as gf
    >>> belief = gf.DenseGaussian.isotropic(2, std=1.0)
    >>> H, Y = [[[1.0, 0.0], [0.0, 1.0]]], [[0.8, float("nan")]]
    >>> result = gf.fold(belief, VectorGaussian([[1.0, 0.5], [0.5, 2.0]]), H, Y)
    >>> print(belief.mean, belief.variance())
    [0.4 0. ] [0.5 1. ]
    """

    cov: ArrayLike
    matrices: Array = field(init=False, repr=False)
    """R as an array."""
    log_concave: ClassVar[bool] = True

    def __post_init__(self) -> None:
        given = doubles("cov", self.cov, "(q, q), or (n, q, q) for one each row")
        if given.ndim not in (2, 3) or given.shape[-1] != given.shape[-2] or given.shape[-1] == 0:
            msg = f"cov: shape {given.shape}; VectorGaussian needs (q, q), or (n, q, q) for one each row"
            raise ValueError(msg)
        finite_entries("cov", given)
        each = given.reshape(-1, *given.shape[-2:])
        apart = np.abs(each - np.swapaxes(each, -1, -2)).max(axis=(1, 2)) > 1e-8 * np.abs(each).max(axis=(1, 2))
        smallest = smallest_eigenvalues(0.5 * (each + np.swapaxes(each, -1, -2)))
        bad = apart | ~(smallest > 0.0)
        if bad.any():
            row = int(np.argmax(bad))
            what = "not symmetric" if apart[row] else f"smallest eigenvalue {float(smallest[row]):.3g}"
            where = f"cov[{row}]" if given.ndim == 3 else "cov"
            msg = f"{where} is not positive definite ({what}); symmetrise it, and give every output noise of its own"
            raise ValueError(msg)
        object.__setattr__(self, "matrices", given)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, VectorGaussian) and np.array_equal(self.matrices, other.matrices)

    def __hash__(self) -> int:
        return hash((self.matrices.shape, self.matrices.tobytes()))

    @property
    def latents(self) -> int:
        """One for each output."""
        return int(self.matrices.shape[-1])

    @property
    def outputs(self) -> int:
        """The size q of R."""
        return int(self.matrices.shape[-1])

    def of_row(self, row: int) -> VectorGaussian:
        """With the covariance of that row alone."""
        return self if self.matrices.ndim == 2 else VectorGaussian(self.matrices[row])

    def check_labels(self, Y: ArrayLike, name: str = "Y") -> None:
        """As for every likelihood; and one covariance for each row, if they differ."""
        super().check_labels(Y, name)
        rows = np.shape(Y)[0]
        if self.matrices.ndim == 3 and self.matrices.shape[0] != rows:
            msg = f"cov: {self.matrices.shape[0]} matrices for {rows} rows; give one for each, or a single one for all"
            raise ValueError(msg)

    def conditional(self, F: ArrayLike) -> NormalMoments:
        """``f`` and R."""
        F = np.asarray(F, dtype=float)
        return NormalMoments(F, np.broadcast_to(self._noise(F.ndim), (*F.shape, F.shape[-1])))

    def conditional_slopes(self, F: ArrayLike) -> NormalMoments:
        """The mean moves with f, the covariance does not."""
        found = self.conditional(F)
        return found.having(mean_slope=np.broadcast_to(np.eye(self.latents), found.cov.shape))

    def conditional_curvatures(self, F: ArrayLike) -> NormalMoments:
        """And neither bends."""
        return self.conditional_slopes(F)

    def expected_log_prob(self, Y: Array, mean: Array, cov: Array, cubature: AnyCubature = None) -> Array:
        """``log N(y | m, R) - tr(R⁻¹ V)/2`` over the outputs that were seen."""
        del cubature
        _, kept, _ = normal.keep_observed(Y, self.conditional_slopes(mean))
        slope = np.asarray(kept.mean_slope)
        seen = np.swapaxes(slope, -1, -2) @ inverse(kept.cov) @ slope
        return np.asarray(self.log_prob(Y, mean) - 0.5 * np.einsum("nij,nji->n", seen, cov))

    def expected_derivatives(
        self, Y: Array, mean: Array, cov: Array, cubature: AnyCubature = None
    ) -> tuple[Array, Array]:
        """``R⁻¹(y - m)`` and ``-R⁻¹``: the derivatives at the mean are those of the average."""
        del cov, cubature
        return self.derivatives(Y, mean)

    def tilted(
        self, Y: Array, mean: Array, cov: Array, alpha: float = 1.0, cubature: AnyCubature = None
    ) -> tuple[Array, Array, Array]:
        """``log ∫ N(y | f, R)^α N(f | m, V) df``: a normal density of covariance R/α + V, but for a constant."""
        del cubature
        moments = self.conditional_slopes(mean)
        spread = moments._replace(cov=moments.cov / alpha + cov)
        _, kept, count = normal.keep_observed(Y, moments)
        constant = -0.5 * (alpha - 1.0) * (np.linalg.slogdet(kept.cov)[1] + count * np.log(2.0 * np.pi))
        constant = constant - 0.5 * count * np.log(alpha)
        return normal.log_density(Y, spread) + constant, normal.gradient(Y, spread), normal.hessian(Y, spread)

    def log_predictive(
        self, Y: Array, mean: Array, cov: Array, cubature: AnyCubature = None, *, alpha: float = 1.0
    ) -> Array:
        """``log N(y | m, R + V)`` of the outputs that were seen."""
        return self.tilted(Y, mean, cov, alpha, cubature)[0]

    def predictive(self, mean: Array, cov: Array, cubature: AnyCubature = None) -> tuple[Array, Array]:
        """Mean m and covariance V + R."""
        del cubature
        return mean, np.asarray(cov + self.conditional(mean).cov)

    def _noise(self, ndim: int) -> Array:
        """R, with as many axes as latents of ``ndim`` axes need if there is one for each row."""
        if self.matrices.ndim == 2:
            return self.matrices
        return self.matrices.reshape(len(self.matrices), *(1,) * (ndim - 2), *self.matrices.shape[1:])
