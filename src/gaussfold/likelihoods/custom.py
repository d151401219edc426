"""A likelihood from one function, ``log_prob(y, f)``: the rest by automatic differentiation and cubature (JAX)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from functools import cached_property
from typing import Any

import numpy as np

from gaussfold.checks import whole
from gaussfold.expectations.kinks import mended
from gaussfold.expectations.tilted import tilted
from gaussfold.likelihoods.chained import AnyCubature, VectorLikelihood
from gaussfold.likelihoods.normal import NormalMoments
from gaussfold.types import Array, ArrayLike, Moments


class CustomLikelihood(VectorLikelihood):
    """``p(y | f)`` of P outputs and D latents, given as a JAX function of one observation.

    Everything is computed in double precision, whatever the program's own JAX setting is, and that setting is not
    touched. Newton, vi and power ep need ``log_prob`` only. The rules that linearise the response (taylor, pl, pl2) and
    Gauss-Newton also need its conditional mean and covariance: give ``conditional``, or ``labels`` if y is one label
    out of a few.

    Parameters
    ----------
    log_prob
        ``log_prob(y, f) -> scalar`` with y of shape (P,) and f of shape (D,), written with ``jax.numpy``. With
        ``outputs=1`` and ``latents=1`` they are arrays of one element too.
    latents, outputs
        D and P.
    conditional
        ``conditional(f) -> (mean (P,), covariance (P, P))``, written with ``jax.numpy``.
    labels
        The values that a single discrete output can take; its moments are then sums over them.
    gaussian_noise
        True if y given f is normal with the moments that ``conditional`` gives: Gauss-Newton then differentiates the
        whitened residual, bayes-newton (38), (43).

    Examples
    --------
    >>> import jax.numpy as jnp
    >>> laplace = CustomLikelihood(lambda y, f: -jnp.abs(y[0] - f[0]) - jnp.log(2.0))
    >>> laplace.log_prob([[1.5]], [[0.25]])
    array([-1.9431])

    Notes
    -----
    A row in which some but not all outputs are missing reaches ``log_prob`` with NaN in it: the function has to deal
    with that itself. A function cannot be saved, so :meth:`config` refuses.
    """

    def __init__(
        self,
        log_prob: Callable[[Any, Any], Any],
        latents: int = 1,
        outputs: int = 1,
        *,
        conditional: Callable[[Any], tuple[Any, Any]] | None = None,
        labels: Sequence[float] | None = None,
        gaussian_noise: bool = False,
    ) -> None:
        for name, value in (("latents", latents), ("outputs", outputs)):
            whole(name, value, owner="CustomLikelihood")
        if labels is not None and (conditional is not None or outputs != 1):
            msg = "labels are for one discrete output, and replace conditional; give one of the two"
            raise ValueError(msg)
        self._function = log_prob
        self._shape, self._gaussian_noise = (int(latents), int(outputs)), bool(gaussian_noise)
        self._labels = None if labels is None else np.asarray(labels, dtype=float)
        self._moments = self._summed if labels is not None else conditional
        self._jax()

    @property
    def latents(self) -> int:
        """D."""
        return self._shape[0]

    @property
    def outputs(self) -> int:
        """P."""
        return self._shape[1]

    @property
    def gaussian_noise(self) -> bool:
        """As was said."""
        return self._gaussian_noise

    def __repr__(self) -> str:
        return f"CustomLikelihood({self._function!r}, latents={self.latents}, outputs={self.outputs})"

    def explains(self, Y: Array) -> np.ndarray:
        """Any number, or one of the labels."""
        return np.ones(Y.shape, dtype=bool) if self._labels is None else np.isin(Y, self._labels)

    def log_prob(self, Y: ArrayLike, F: ArrayLike) -> Array:
        """The function itself, row by row; 0 where all outputs are missing."""
        return self._over_rows(self._compiled["value"], Y, F)[0]

    def derivatives(self, Y: ArrayLike, F: ArrayLike) -> tuple[Array, Array]:
        """Gradient and Hessian in f, by automatic differentiation; 0 where all outputs are missing."""
        first, second = self._over_rows(self._compiled["derivatives"], Y, F)
        return first, second

    def expected_derivatives(
        self, Y: Array, mean: Array, cov: Array, cubature: AnyCubature = None
    ) -> tuple[Array, Array]:
        """``E ∇ log p`` and ``E ∇² log p``; of one latent with what kinks of log p add to the latter."""
        first, second = super().expected_derivatives(Y, mean, cov, cubature)
        if self.latents > 1:
            return first, second
        by_parts, size, variance = np.empty(len(mean)), np.empty(len(mean)), cov[:, 0, 0]
        for block in self.blocks(Y, mean, cov, cubature):
            value = self.log_prob(block.labels, block.latents)
            value = value - (value @ block.weights)[:, None]
            by_parts[block.rows] = value @ (block.weights * (block.points[:, 0] ** 2 - 1.0))
            size[block.rows] = np.abs(value) @ block.weights
        with np.errstate(invalid="ignore", divide="ignore"):
            by_parts = by_parts / variance
        return first, mended(second[:, 0, 0], by_parts, size, variance)[:, None, None]

    def tilted(
        self, Y: Array, mean: Array, cov: Array, alpha: float = 1.0, cubature: AnyCubature = None
    ) -> tuple[Array, Array, Array]:
        """``log E p^α`` and its derivatives in the mean; of one latent by nodes around the mode, kinks included."""
        if self.latents > 1 or self.outputs > 1 or cubature is not None:
            return super().tilted(Y, mean, cov, alpha, cubature)

        def log_prob(y: Array, f: Array) -> Array:
            return self.log_prob(y[..., None], f[..., None])

        def derivatives(y: Array, f: Array) -> tuple[Array, Array]:
            first, second = self.derivatives(y[..., None], f[..., None])
            return first[..., 0], second[..., 0, 0]

        value, first, second = tilted(log_prob, derivatives, Y[:, 0], Moments(mean[:, 0], cov[:, 0, 0]), alpha)
        return value, first[:, None], second[:, None, None]

    def log_predictive(
        self, Y: Array, mean: Array, cov: Array, cubature: AnyCubature = None, *, alpha: float = 1.0
    ) -> Array:
        """``log E p(y | f)^α``, by the same nodes."""
        if self.latents > 1 or self.outputs > 1 or cubature is not None:
            return super().log_predictive(Y, mean, cov, cubature, alpha=alpha)
        return np.where(np.isnan(Y[:, 0]), 0.0, self.tilted(Y, mean, cov, alpha)[0])

    def conditional(self, F: ArrayLike) -> NormalMoments:
        """What ``conditional`` or ``labels`` give."""
        return NormalMoments(*self._of_latents("moments", F))

    def conditional_slopes(self, F: ArrayLike) -> NormalMoments:
        """And first derivatives."""
        return NormalMoments(*self._of_latents("moments", F), *self._of_latents("slopes", F))

    def conditional_curvatures(self, F: ArrayLike) -> NormalMoments:
        """And second derivatives."""
        names = ("moments", "slopes", "curvatures")
        return NormalMoments(*(array for name in names for array in self._of_latents(name, F)))

    # How.

    def _jax(self) -> Any:
        try:
            import jax
        except ImportError as error:
            msg = "CustomLikelihood differentiates with JAX, which is not installed: pip install 'gaussfold[jax]'"
            raise ImportError(msg) from error
        return jax

    def _double(self) -> AbstractContextManager[Any]:
        """Double precision inside, the program's own setting outside."""
        try:
            from jax import enable_x64
        except ImportError:  # where JAX had it before
            from jax.experimental import enable_x64
        switch: AbstractContextManager[None] = enable_x64(True)
        return switch

    def _summed(self, f: Any) -> tuple[Any, Any]:
        """Moments of one discrete output, as sums over its labels."""
        np_ = self._jax().numpy
        labels = np_.asarray(self._labels)
        p = np_.exp(np_.stack([self._function(label[None], f) for label in labels]))
        mean = (p * labels).sum()
        return mean[None], (p * (labels - mean) ** 2).sum()[None, None]

    @cached_property
    def _compiled(self) -> dict[str, Callable[..., Any]]:
        """Every function over a batch of rows."""
        jax = self._jax()
        fn = self._function

        def both(y: Any, f: Any) -> Any:
            return jax.grad(fn, argnums=1)(y, f), jax.hessian(fn, argnums=1)(y, f)

        table = {
            "value": jax.jit(jax.vmap(lambda y, f: (fn(y, f),))),
            "derivatives": jax.jit(jax.vmap(both)),
        }
        if self._moments is not None:
            slopes = jax.jacfwd(self._moments)
            table["moments"] = jax.jit(jax.vmap(self._moments))
            table["slopes"] = jax.jit(jax.vmap(slopes))
            table["curvatures"] = jax.jit(jax.vmap(jax.jacfwd(slopes)))
        return table

    def _over_rows(self, function: Callable[..., Any], Y: ArrayLike, F: ArrayLike) -> tuple[Array, ...]:
        """Run over rows with broadcast leading axes; rows without any output give zeros."""
        Y, F = np.asarray(Y, dtype=float), np.asarray(F, dtype=float)
        lead = np.broadcast_shapes(Y.shape[:-1], F.shape[:-1])
        y = np.broadcast_to(Y, (*lead, self.outputs)).reshape(-1, self.outputs)
        f = np.broadcast_to(F, (*lead, self.latents)).reshape(-1, self.latents)
        missing = np.isnan(y).all(axis=1)
        found = self._padded(function, np.where(missing[:, None], 1.0, y), f)
        return tuple(
            np.where(missing.reshape((-1,) + (1,) * (a.ndim - 1)), 0.0, a).reshape(lead + a.shape[1:]) for a in found
        )

    def _of_latents(self, name: str, F: ArrayLike) -> tuple[Array, ...]:
        if name not in self._compiled:
            msg = (
                f"{self!r} has no conditional moments, which taylor, pl, pl2, Gauss-Newton and predictions of y need; "
                "give conditional=lambda f: (mean, covariance), or labels= for a discrete output"
            )
            raise ValueError(msg)
        F = np.asarray(F, dtype=float)
        found = self._padded(self._compiled[name], F.reshape(-1, self.latents))
        return tuple(a.reshape(F.shape[:-1] + a.shape[1:]) for a in found)

    def _padded(self, function: Callable[..., Any], *columns: Array) -> tuple[Array, ...]:
        """Run on a number of rows that is a power of two: otherwise every new number of rows would compile anew."""
        rows = columns[0].shape[0]
        if rows == 0:
            columns = tuple(np.zeros((1, *c.shape[1:])) for c in columns)
        extra = (1 << max(columns[0].shape[0] - 1, 0).bit_length()) - columns[0].shape[0]
        whole = [np.concatenate([c, np.broadcast_to(c[-1:], (extra, *c.shape[1:]))]) for c in columns]
        with self._double():
            return tuple(np.asarray(a, dtype=float)[:rows] for a in function(*whole))
