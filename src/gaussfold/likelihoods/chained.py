"""Likelihoods of several latents, ``p(y_n | f_n)`` with ``f_n`` in R^D, and what follows from them by cubature."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from typing import ClassVar, NamedTuple, TypeAlias

import numpy as np

from gaussfold import registry
from gaussfold.expectations.cubature import Cubature, resolve_cubature
from gaussfold.likelihoods import normal
from gaussfold.likelihoods.normal import NormalMoments
from gaussfold.linalg.small import lower_roots, root_adjoint, symmetrised
from gaussfold.protocols import Likelihood
from gaussfold.types import Array, ArrayLike, Record

BLOCK = 1 << 19
"""Numbers per temporary array: rows are integrated in blocks so that N x points x D² never stands in memory."""

AnyCubature: TypeAlias = str | Cubature | None


class Block(NamedTuple):
    """Some rows, each with all nodes of a cubature rule."""

    rows: slice
    labels: Array  # (n, 1, P)
    latents: Array  # (n, points, D): mean + root x
    roots: Array  # (n, D, D), root root' = cov
    points: Array  # (points, D), for N(0, I)
    weights: Array  # (points,)

    def average(self, values: Array) -> Array:
        """Over the nodes: (n, points, ...) or (n, 1, ...) to (n, ...)."""
        if values.shape[:2] == self.latents.shape[:2]:
            return np.asarray(np.einsum("p,np...->n...", self.weights, values))
        return np.asarray(np.broadcast_to(values, (self.latents.shape[0], 1, *values.shape[2:]))[:, 0])


class VectorLikelihood(ABC):
    """A likelihood p(y | f) of P outputs given D latents; the parent of every chained family.

    Shapes: ``Y (..., P)`` with NaN for a missing output, ``F (..., D)``; the leading axes broadcast. A subclass gives
    :meth:`log_prob` and :meth:`derivatives`, and :meth:`conditional` with its slopes for the rules that linearise
    (taylor, pl, pl2, gauss-newton). A row whose outputs are all missing gives the log probability 0.

    Expectations are over ``f ~ N(mean, cov)`` per row, ``mean (N, D)``, ``cov (N, D, D)``, by a cubature rule (see
    :mod:`gaussfold.expectations.cubature`).

    Attributes
    ----------
    latents, outputs, responses : int
        D, P, and how many numbers ``conditional`` describes; properties, or class attributes of a subclass.
    gaussian_noise : bool
        Whether ``y | f`` is normal with the moments that :meth:`conditional` gives, bayes-newton (33). Gauss-Newton
        then differentiates the whitened residual (38), (43); otherwise it is the generalised form (40), (44).

    Examples
    --------
    >>> import numpy as np
    >>> from scipy.special import gammaln
    >>> class Sum(VectorLikelihood):  # counts whose rate is the product of two: exp(f₁ + f₂)
    ...     latents = 2
    ...     log_concave = True
    ...     def log_prob(self, Y, F):
    ...         y, f = Y[..., 0], np.sum(F, axis=-1)
    ...         return y * f - np.exp(f) - gammaln(y + 1.0)
    ...     def derivatives(self, Y, F):
    ...         rate = np.exp(np.sum(F, axis=-1))[..., None]
    ...         return (Y - rate) * np.ones(2), -rate[..., None] * np.ones((2, 2))
    >>> first, second = Sum().expected_derivatives(np.array([[3.0]]), np.zeros((1, 2)), 0.5 * np.eye(2)[None])
    >>> first.round(4), second.round(4)  # 3 - exp(1/2), -exp(1/2)
    (array([[1.3513, 1.3513]]), array([[[-1.6487, -1.6487],
            [-1.6487, -1.6487]]]))
    """

    labels: ClassVar[str] = "finite numbers"
    remedy: ClassVar[str] = "drop or correct such rows"

    @property
    def latents(self) -> int:
        """D."""
        return 1

    @property
    def outputs(self) -> int:
        """P."""
        return 1

    @property
    def responses(self) -> int:
        """How many numbers :meth:`conditional` describes."""
        return self.outputs

    @property
    def gaussian_noise(self) -> bool:
        """Whether y given f is normal."""
        return False

    @property
    def log_concave(self) -> bool:
        """Whether the Hessian of log p is negative semi-definite for every label."""
        return False

    @property
    def one_latent(self) -> Likelihood | None:
        """The likelihood of a single latent that this one stands for; None if it has several, or expects by itself."""
        return None

    @property
    def usual_cubature(self) -> AnyCubature:
        """What cubature=None means; None leaves it to the number of latents."""
        return None

    @property
    def usual_rule(self) -> str:
        """What a Gaussian process takes if no rule is named."""
        return "vi"

    @property
    def class_nodes(self) -> Array | None:
        """Nodes (D, S) that the engine's loops over rows with classes average over; None: they are not for it."""
        return None

    def of_row(self, row: int) -> VectorLikelihood:
        """The likelihood of that row of a call: this one, unless a family has parameters that differ by row."""
        del row
        return self

    # What a subclass says.

    @abstractmethod
    def log_prob(self, Y: ArrayLike, F: ArrayLike) -> Array:
        """``log p(y | f)``, shape (...)."""

    @abstractmethod
    def derivatives(self, Y: ArrayLike, F: ArrayLike) -> tuple[Array, Array]:
        """Gradient (..., D) and Hessian (..., D, D) of ``log p(y | f)`` in f."""

    def conditional(self, F: ArrayLike) -> NormalMoments:
        """Mean (..., P) and covariance (..., P, P) of the response given f."""
        raise ValueError(self._unknown("conditional(F)", F))

    def conditional_slopes(self, F: ArrayLike) -> NormalMoments:
        """Conditional moments and their first derivatives; a slope that is None is zero."""
        raise ValueError(self._unknown("conditional_slopes(F)", F))

    def conditional_curvatures(self, F: ArrayLike) -> NormalMoments:
        """Conditional moments and their first two derivatives; None is zero."""
        raise ValueError(self._unknown("conditional_curvatures(F)", F))

    def closed_regression(self, mean: Array, cov: Array) -> tuple[NormalMoments, Array] | None:
        """The affine fit of :func:`gaussfold.likelihoods.regression.regress` without nodes; None: there is none."""
        del mean, cov
        return None

    def compiled_site(
        self, rule: Record | None, Y: Array, mean: Array, cov: Array, cubature: AnyCubature = None
    ) -> tuple[Array, Array] | None:
        """What the engine's rule of that record says of every row: gradient and curvature; None if it does not know."""
        del rule, Y, mean, cov, cubature
        return None

    def response(self, Y: Array) -> Array:
        """What :meth:`conditional` describes the moments of: the outputs themselves unless a family says otherwise."""
        return Y

    def explains(self, Y: Array) -> np.ndarray:
        """Which labels (of an array of any shape) are possible; every one unless a family says otherwise."""
        return np.ones(Y.shape, dtype=bool)

    # What follows at a point.

    def gauss_newton(self, Y: Array, F: Array) -> Array:
        """Minus the Gauss-Newton Hessian at f, (38) or (40): positive semi-definite."""
        moments = self.conditional_slopes(F)
        return normal.gauss_newton(self.response(Y), moments, moving_cov=self.gaussian_noise)

    def gradient(self, Y: ArrayLike, F: ArrayLike) -> Array:
        """The first of :meth:`derivatives` alone."""
        return self.derivatives(Y, F)[0]

    # What follows by integration.

    def expected_log_prob(self, Y: Array, mean: Array, cov: Array, cubature: AnyCubature = None) -> Array:
        """``E log p(y | f)``, shape (N,)."""
        return self._average(lambda y, f: (self.log_prob(y, f),), Y, mean, cov, cubature)[0]

    def expected_derivatives(
        self, Y: Array, mean: Array, cov: Array, cubature: AnyCubature = None
    ) -> tuple[Array, Array]:
        """``E ∇ log p`` and ``E ∇² log p``: the derivatives of the expectation in the mean (Bonnet, Price)."""
        first, second = self._average(self.derivatives, Y, mean, cov, cubature)
        return first, second

    def summed_slopes(self, Y: Array, mean: Array, cov: Array, cubature: AnyCubature = None) -> tuple[Array, Array]:
        """Derivatives in mean (N, D) and covariance (N, D, D) of ``Σ w log p(m + L x)``, the sum over nodes itself.

        They tend to ``E ∇ log p`` and ``E ∇² log p / 2`` as the nodes become dense (Price), and are the sum's own
        slopes however few there are.
        """
        by_mean, by_cov = np.empty(mean.shape), np.empty(cov.shape)
        for block in self.blocks(Y, mean, cov, cubature):
            gradient = self.gradient(block.labels, block.latents)
            by_mean[block.rows] = np.matmul(block.weights, gradient)
            by_root = np.swapaxes(gradient, 1, 2) @ (block.weights[:, None] * block.points)
            by_cov[block.rows] = symmetrised(root_adjoint(block.roots, by_root))
        return by_mean, by_cov

    def summed(self, Y: Array, mean: Array, cov: Array, cubature: AnyCubature = None) -> tuple[Array, Array, Array]:
        """:meth:`expected_log_prob` with :meth:`summed_slopes`; a family may make both from the same nodes."""
        return self.expected_log_prob(Y, mean, cov, cubature), *self.summed_slopes(Y, mean, cov, cubature)

    def expected_gauss_newton(self, Y: Array, mean: Array, cov: Array, cubature: AnyCubature = None) -> Array:
        """``E G'G``: minus the variational Gauss-Newton Hessian, (43) or (44)."""
        return self._average(lambda y, f: (self.gauss_newton(y, f),), Y, mean, cov, cubature)[0]

    def tilted(
        self, Y: Array, mean: Array, cov: Array, alpha: float = 1.0, cubature: AnyCubature = None
    ) -> tuple[Array, Array, Array]:
        """``log E p(y | f)^α`` (N,), with gradient (N, D) and Hessian (N, D, D) in the mean.

        Raises a ValueError when a rule with negative weights gives a normaliser that is not positive.
        """
        value = np.empty(mean.shape[0])
        first = np.empty(mean.shape)
        second = np.empty(cov.shape)
        for block in self.blocks(Y, mean, cov, cubature):
            rows = block.rows
            value[rows], share = self._shares(block, alpha)
            gradient, hessian = self.derivatives(block.labels, block.latents)
            gradient = alpha * gradient
            average = np.einsum("np,npd->nd", share, gradient)
            spread = np.einsum("np,npd,npe->nde", share, gradient, gradient)
            first[rows] = average
            second[rows] = alpha * np.einsum("np,npde->nde", share, hessian) + spread
            second[rows] -= average[:, :, None] * average[:, None, :]
        return value, first, second

    def tilted_slopes(
        self, Y: Array, mean: Array, cov: Array, alpha: float = 1.0, cubature: AnyCubature = None
    ) -> tuple[Array, Array]:
        """Derivatives of ``log E p(y | f)^α`` in the mean (N, D) and in the covariance (N, D, D).

        The latter through the nodes ``m + L x``: E_t[∇l x'] is the derivative in L, and a triangle of L' times it goes
        back through the Cholesky factor. That needs one derivative of log p less than Price's (∇² + ∇∇')/2, to which it
        converges.
        """
        first = np.empty(mean.shape)
        by_cov = np.empty(cov.shape)
        for block in self.blocks(Y, mean, cov, cubature):
            _, share = self._shares(block, alpha)
            gradient = alpha * self.derivatives(block.labels, block.latents)[0]
            first[block.rows] = np.einsum("np,npd->nd", share, gradient)
            by_root = np.einsum("np,npd,pe->nde", share, gradient, block.points)
            by_cov[block.rows] = symmetrised(root_adjoint(block.roots, by_root))
        return first, by_cov

    def log_predictive(
        self, Y: Array, mean: Array, cov: Array, cubature: AnyCubature = None, *, alpha: float = 1.0
    ) -> Array:
        """``log E p(y | f)``, or of its power alpha, shape (N,): minus the NLPD of a row; 0 if nothing was seen."""
        value = np.empty(mean.shape[0])
        for block in self.blocks(Y, mean, cov, cubature):
            value[block.rows], _ = self._shares(block, alpha)
        return value

    def predictive(self, mean: Array, cov: Array, cubature: AnyCubature = None) -> tuple[Array, Array]:
        """Mean (N, P) and covariance (N, P, P) of the response with f integrated out."""
        blank = np.zeros((mean.shape[0], self.outputs))

        def moments(_: Array, f: Array) -> tuple[Array, Array]:
            given = self.conditional(f)
            inner = given.mean[..., :, None] * given.mean[..., None, :]
            return np.broadcast_to(given.mean, f.shape[:-1] + given.mean.shape[-1:]), given.cov + inner

        first, second = self._average(moments, blank, mean, cov, cubature)
        return first, second - first[:, :, None] * first[:, None, :]

    def check_labels(self, Y: ArrayLike, name: str = "Y") -> None:
        """Raise a ValueError that names the first label that is infinite or impossible. NaN is neither."""
        values = np.asarray(Y, dtype=np.float64)
        bad = ~np.isnan(values) & ~(np.isfinite(values) & self.explains(values))
        if bad.any():
            where = tuple(int(i) for i in np.argwhere(bad)[0])
            msg = (
                f"{name}[{', '.join(map(str, where))}] = {float(values[where])!r}: {self} labels must be {self.labels}"
                f", or NaN where there is none; {self.remedy}"
            )
            raise ValueError(msg)

    def config(self) -> dict[str, object]:
        """Name and parameters; :func:`gaussfold.likelihoods.from_config` turns them back into an object."""
        return dict(registry.config(self))

    def __str__(self) -> str:
        return type(self).__name__

    # How.

    def _shares(self, block: Block, alpha: float) -> tuple[Array, Array]:
        """``log Σ w p^α``, and each node's share of that sum."""
        log_p = alpha * self.log_prob(block.labels, block.latents)
        top = log_p.max(axis=1, keepdims=True)
        terms = block.weights * np.exp(log_p - np.where(np.isfinite(top), top, 0.0))
        total = terms.sum(axis=1, keepdims=True)
        bad = ~(total[:, 0] > 0.0) & ~np.isnan(total[:, 0])
        if bad.any():
            row = int(np.argmax(bad))
            msg = (
                f"the cubature rule gives E p(y | f)^{alpha:g} = {float(total[row, 0])!r} (scaled) in row "
                f"{block.rows.start + row}; unscented-5 has negative weights in 5 and more dimensions: use "
                "cubature='quasi-random' or GaussHermite(3), which have none, or a rule other than ep"
            )
            raise ValueError(msg)
        return (top + np.log(total))[:, 0], terms / total

    def _average(
        self,
        fn: Callable[[Array, Array], tuple[Array, ...]],
        Y: Array,
        mean: Array,
        cov: Array,
        cubature: AnyCubature,
    ) -> list[Array]:
        """The average of every array that ``fn(y, f)`` gives, over the nodes of each row."""
        parts = [
            [block.average(value) for value in fn(block.labels, block.latents)]
            for block in self.blocks(Y, mean, cov, cubature)
        ]
        return [np.concatenate(columns) for columns in zip(*parts, strict=True)]

    def blocks(self, Y: Array, mean: Array, cov: Array, cubature: AnyCubature) -> Iterator[Block]:
        """The rows with their nodes, as many at a time as memory likes."""
        chosen = self.usual_cubature if cubature is None else cubature
        points, weights = resolve_cubature(chosen, self.latents).nodes(self.latents)
        size = max(1, BLOCK // (points.shape[0] * self.latents**2))
        for start in range(0, max(mean.shape[0], 1), size):
            rows = slice(start, min(start + size, mean.shape[0]))
            roots = lower_roots(cov[rows], "cov")
            latents = mean[rows, None, :] + points @ np.swapaxes(roots, -1, -2)
            yield Block(rows, Y[rows, None, :], latents, roots, points, weights)

    def _unknown(self, method: str, F: ArrayLike) -> str:
        return (
            f"{self} does not say {method}, which was asked for at latents of shape {np.shape(F)}: taylor, pl, pl2, "
            "Gauss-Newton and predictions of y need it; define that method, or use rule 'newton', 'vi' or 'ep'"
        )
