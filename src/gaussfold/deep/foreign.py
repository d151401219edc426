"""Likelihoods that somebody wrote in NumPy, for JAX: their own functions, called from inside the compiled ones.

``log_prob`` has the slope that ``derivatives`` says, and its slope the curvature; ``conditional`` that of
``conditional_derivatives``. Every call leaves the compiled loop, which takes time: write the functions
with the arrays' own library (:func:`gaussfold.likelihoods.libraries.library_of`), or with operators alone, and they are
traced as the families of the house are.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from gaussfold import likelihoods
from gaussfold.types import Array, ArrayLike, Moments


@lru_cache(maxsize=64)
def traceable(likelihood: likelihoods.ScalarLikelihood) -> likelihoods.ScalarLikelihood:
    """The likelihood itself if JAX can trace its functions, else one that calls them."""
    return likelihood if _is_traced(likelihood) else _Called(likelihood)


def _is_traced(likelihood: likelihoods.ScalarLikelihood) -> bool:
    number = jax.ShapeDtypeStruct((1,), jnp.float32)
    try:
        jax.eval_shape(lambda y, f: (jnp.asarray(likelihood.log_prob(y, f)), likelihood.conditional(f)), number, number)
    except (jax.errors.TracerArrayConversionError, TypeError, AttributeError, NotImplementedError):
        return False
    return True


class _Called(likelihoods.ScalarLikelihood):
    """Another likelihood's functions of arrays that JAX traces."""

    def __init__(self, likelihood: likelihoods.ScalarLikelihood) -> None:
        self._own = likelihood

    def log_prob(self, y: ArrayLike, f: ArrayLike) -> Array:
        """As the likelihood says it."""
        own = self._own
        first = _differentiable(lambda y, f: own.derivatives(y, f)[0], lambda y, f: own.derivatives(y, f)[1], None)
        found: Array = _differentiable(own.log_prob, None, first)(y, f)
        return found

    def conditional(self, f: ArrayLike) -> Moments:
        """As the likelihood says it."""
        own = self._own

        mean = _differentiable(
            lambda _, f: own.conditional(f).mean, lambda _, f: own.conditional_derivatives(f)[0].mean, None
        )
        variance = _differentiable(
            lambda _, f: own.conditional(f).variance, lambda _, f: own.conditional_derivatives(f)[0].variance, None
        )
        return Moments(mean(f, f), variance(f, f))

    def check_labels(self, y: ArrayLike, name: str = "y") -> None:
        """As the likelihood does."""
        self._own.check_labels(y, name)


def _differentiable(
    value: Callable[[Array, Array], Array], slope: Callable[[Array, Array], Array] | None, traced_slope: Any
) -> Any:
    """A function of labels and latents, elementwise in NumPy, with its slope in the latter."""
    function = jax.custom_jvp(partial(_called, value))

    def along(primals: tuple[jax.Array, jax.Array], tangents: tuple[Any, Any]) -> tuple[jax.Array, jax.Array]:
        y, f = primals
        steep = _called(slope, y, f) if slope is not None else traced_slope(y, f)
        return function(y, f), steep * tangents[1]

    function.defjvp(along)
    return lambda y, f: function(*jnp.broadcast_arrays(jnp.asarray(y), jnp.asarray(f)))


def _called(function: Callable[[Array, Array], Array], y: jax.Array, f: jax.Array) -> jax.Array:
    def of_arrays(y: Array, f: Array) -> np.ndarray:
        found = function(np.asarray(y, dtype=np.float64), np.asarray(f, dtype=np.float64))
        return np.broadcast_to(found, f.shape).astype(f.dtype)

    found: jax.Array = jax.pure_callback(
        of_arrays, jax.ShapeDtypeStruct(f.shape, f.dtype), y, f, vmap_method="broadcast_all"
    )
    return found
