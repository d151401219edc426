"""Several outputs, each with a likelihood and a latent of its own; mixed processes let them learn from each other."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from gaussfold.likelihoods import as_vector
from gaussfold.likelihoods import resolve as resolve_likelihood
from gaussfold.likelihoods.chained import AnyCubature, VectorLikelihood
from gaussfold.likelihoods.normal import NormalMoments
from gaussfold.protocols import Likelihood
from gaussfold.registry import register
from gaussfold.types import Array, ArrayLike


@dataclass(frozen=True)
class Outputs(VectorLikelihood):
    """``p(y | f) = Π p_p(y_p | f_p)``: output p looks at latent p alone. Any of them may be missing (NaN).

    Expectations are those of the families, each over its own marginal.

    Examples
    --------
    >>> from gaussfold.likelihoods import Gaussian, Poisson
    >>> Outputs([Gaussian(0.5), Poisson()]).log_prob([[0.3, 2.0]], [[0.1, 0.7]])
    array([-1.6127])
    """

    families: tuple[Likelihood, ...]

    def __init__(self, families: Sequence[str | Likelihood]) -> None:
        if isinstance(families, str) or not len(families):
            msg = f"families={families!r}: Outputs needs a list with one likelihood per output"
            raise ValueError(msg)
        object.__setattr__(self, "families", tuple(resolve_likelihood(part) for part in families))

    @property
    def latents(self) -> int:
        """As many as outputs."""
        return len(self.families)

    @property
    def outputs(self) -> int:
        """As many as families."""
        return len(self.families)

    @property
    def log_concave(self) -> bool:
        """Whether all families are."""
        return all(part.log_concave for part in self.families)

    def explains(self, Y: Array) -> np.ndarray:
        """Output by output."""
        return np.stack(
            [as_vector(part).explains(Y[..., p : p + 1])[..., 0] for p, part in enumerate(self.families)], axis=-1
        )

    def log_prob(self, Y: ArrayLike, F: ArrayLike) -> Array:
        """The sum over the outputs that were seen."""
        Y, F = np.asarray(Y, dtype=float), np.asarray(F, dtype=float)
        return self._sum(lambda part, p: part.log_prob(Y[..., p : p + 1], F[..., p : p + 1]), Y)

    def derivatives(self, Y: ArrayLike, F: ArrayLike) -> tuple[Array, Array]:
        """Output by output: the Hessian is diagonal."""
        Y, F = np.asarray(Y, dtype=float), np.asarray(F, dtype=float)
        shape = np.broadcast_shapes(Y.shape, F.shape)
        first, second = np.zeros(shape), np.zeros((*shape, shape[-1]))
        for p, part in enumerate(self.families):
            with np.errstate(invalid="ignore"):
                slope, bend = as_vector(part).derivatives(Y[..., p : p + 1], F[..., p : p + 1])
            seen = np.broadcast_to(~np.isnan(Y[..., p]), shape[:-1])
            first[..., p] = np.where(seen, slope[..., 0], 0.0)
            second[..., p, p] = np.where(seen, bend[..., 0, 0], 0.0)
        return first, second

    def conditional(self, F: ArrayLike) -> NormalMoments:
        """Output by output."""
        F = np.asarray(F, dtype=float)
        each = [as_vector(part).conditional(F[..., p : p + 1]) for p, part in enumerate(self.families)]
        cov = np.zeros((*F.shape, F.shape[-1]))
        for p, moments in enumerate(each):
            cov[..., p, p] = moments.cov[..., 0, 0]
        return NormalMoments(np.concatenate([m.mean + 0.0 * F[..., :1] for m in each], axis=-1), cov)

    def expected_log_prob(self, Y: Array, mean: Array, cov: Array, cubature: AnyCubature = None) -> Array:
        """Sum of the families'."""
        return self._sum(lambda part, p: part.expected_log_prob(*_marginal(p, Y, mean, cov), cubature), Y)

    def expected_derivatives(
        self, Y: Array, mean: Array, cov: Array, cubature: AnyCubature = None
    ) -> tuple[Array, Array]:
        """Of each part."""
        first, second = np.zeros(mean.shape), np.zeros(cov.shape)
        for p, part in enumerate(self.families):
            seen = ~np.isnan(Y[:, p])
            if seen.any():
                found = as_vector(part).expected_derivatives(*_marginal(p, Y[seen], mean[seen], cov[seen]), cubature)
                first[seen, p], second[seen, p, p] = found[0][:, 0], found[1][:, 0, 0]
        return first, second

    def summed_slopes(self, Y: Array, mean: Array, cov: Array, cubature: AnyCubature = None) -> tuple[Array, Array]:
        """Of each part: by its own sum over nodes, or by Price's theorem where the engine integrates."""
        first, second = np.zeros(mean.shape), np.zeros(cov.shape)
        for p, part in enumerate(self.families):
            seen = ~np.isnan(Y[:, p])
            if not seen.any():
                continue
            model, view = as_vector(part), _marginal(p, Y[seen], mean[seen], cov[seen])
            if cubature is None and part.record is not None:
                by_mean, by_cov = model.expected_derivatives(*view)
                by_cov = 0.5 * by_cov
            else:
                by_mean, by_cov = model.summed_slopes(*view, cubature)
            first[seen, p], second[seen, p, p] = by_mean[:, 0], by_cov[:, 0, 0]
        return first, second

    def log_predictive(
        self, Y: Array, mean: Array, cov: Array, cubature: AnyCubature = None, *, alpha: float = 1.0
    ) -> Array:
        """``log E p^α`` with one output seen; with several by nodes, since the latents depend on each other."""
        if self.outputs == 1:
            return as_vector(self.families[0]).log_predictive(Y, mean, cov, cubature, alpha=alpha)
        return super().log_predictive(Y, mean, cov, cubature, alpha=alpha)

    def predictive(self, mean: Array, cov: Array, cubature: AnyCubature = None) -> tuple[Array, Array]:
        """Each output's mean and variance; covariances between outputs by nodes."""
        if self.outputs > 4:
            means, total = np.empty(mean.shape), np.zeros(cov.shape)
            for p, part in enumerate(self.families):
                _, m, c = _marginal(p, mean, mean, cov)
                first, second = as_vector(part).predictive(m, c, cubature)
                means[:, p], total[:, p, p] = first[:, 0], second[:, 0, 0]
            return means, total
        return super().predictive(mean, cov, cubature)

    def _sum(self, fn: Callable[[VectorLikelihood, int], Array], Y: Array) -> Array:
        """The sum of ``fn(part, p)`` over outputs that were seen."""
        total: Array | float = 0.0
        for p, part in enumerate(self.families):
            with np.errstate(invalid="ignore"):
                value = fn(as_vector(part), p)
            total = total + np.where(np.isnan(Y[..., p]), 0.0, value)
        return np.asarray(total)


def _marginal(p: int, Y: Array, mean: Array, cov: Array) -> tuple[Array, Array, Array]:
    """What output p sees."""
    one = slice(p, p + 1)
    return np.ascontiguousarray(Y[:, one]), np.ascontiguousarray(mean[:, one]), np.ascontiguousarray(cov[:, one, one])


register("likelihood", Outputs)
