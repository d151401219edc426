"""Densities are written once, for NumPy's arrays and for JAX's: each computes with the library its arrays are of.

NumPy's functions work in double precision and say nothing where exp(f) leaves the range; JAX's keep the arrays' own
precision, can be traced, and their slopes are those of the functions themselves.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import scipy

from gaussfold.likelihoods import links
from gaussfold.types import Array, ArrayLike

Function: TypeAlias = Callable[..., Array]
"""Of arrays, elementwise."""


class Library(NamedTuple):
    """The functions that densities are made of."""

    floats: Callable[..., tuple[Array, ...]]
    """Arrays of one shape; views where possible, so not to be written to."""
    array: Callable[[ArrayLike, Array], Array]
    """Numbers as an array of another one's kind."""
    asarray: Function
    """A single number is an array, too."""
    full_like: Callable[[Array, float], Array]
    log: Function
    log1p: Function
    expm1: Function
    exp: Function
    """Infinity where the result is too large, without a warning."""
    where: Function
    isnan: Function
    whole: Function
    """Cut off to whole numbers, as an index."""
    gammaln: Function
    betaln: Function
    cdf: dict[str, Function]
    """Symmetric distribution functions, by the link's name."""
    log_cdf: dict[str, Function]


def library_of(*arrays: ArrayLike) -> Library:
    """JAX where one of the arrays is JAX's (traced or not), else NumPy.

    Examples
    --------
    >>> library_of(0.3, np.zeros(2)) is library_of([1.0])
    True
    """
    if "jax" not in sys.modules:  # then nobody has an array of it, and it need not be loaded
        return NUMPY
    from jax import Array as JaxArray

    return _jax() if any(isinstance(array, JaxArray) for array in arrays) else NUMPY


def numpy_floats(*arrays: ArrayLike) -> tuple[Array, ...]:
    """Float64 arrays, broadcast against each other; views where possible, so not to be written to."""
    return tuple(np.broadcast_arrays(*(np.asarray(a, dtype=np.float64) for a in arrays)))


def rate(f: Array) -> Array:
    """``exp(f)``; infinity is the rightly rounded value beyond 709.78."""
    with np.errstate(over="ignore"):
        return np.asarray(np.exp(f))


def _log(y: Array) -> Array:
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(np.log(y))


NUMPY = Library(
    floats=numpy_floats,
    array=lambda numbers, _: np.asarray(numbers, dtype=np.float64),
    asarray=np.asarray,
    full_like=np.full_like,
    log=_log,
    log1p=np.log1p,
    expm1=np.expm1,
    exp=rate,
    where=np.where,
    isnan=np.isnan,
    whole=lambda y: y.astype(int),
    gammaln=lambda a: scipy.special.gammaln(a),  # late: scipy.special takes its time to load
    betaln=lambda a, b: scipy.special.betaln(a, b),
    cdf={name: link.cdf for name, link in links.BY_NAME.items()},
    log_cdf={name: link.log_cdf for name, link in links.BY_NAME.items()},
)


@cache
def _jax() -> Library:
    import jax
    import jax.numpy as jnp
    from jax.scipy import special

    def floats(*arrays: ArrayLike) -> tuple[Any, ...]:
        return tuple(jnp.broadcast_arrays(*(jnp.asarray(a, jnp.result_type(float, *arrays)) for a in arrays)))

    return Library(
        floats=floats,
        array=lambda numbers, like: jnp.asarray(numbers, jnp.asarray(like).dtype),
        asarray=jnp.asarray,
        full_like=jnp.full_like,
        log=jnp.log,
        log1p=jnp.log1p,
        expm1=jnp.expm1,
        exp=jnp.exp,
        where=jnp.where,
        isnan=jnp.isnan,
        whole=lambda y: y.astype("int32"),
        gammaln=special.gammaln,
        betaln=special.betaln,
        cdf={"logit": jax.nn.sigmoid, "probit": special.ndtr},
        log_cdf={"logit": jax.nn.log_sigmoid, "probit": special.log_ndtr},
    )
