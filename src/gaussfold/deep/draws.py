"""Standard normals for reparametrised samples: independent, antithetic or on a lattice.

Each of the L draws of a step can be made on its own, from the step's key and its number, so that networks too large
to be drawn L at a time are drawn one after the other.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import ndtri

from gaussfold.checks import one_of

Draw = Callable[[jax.Array, jax.Array, int, int, np.dtype[np.floating]], jax.Array]
"""``draw(key, l, L, size, dtype)``: draw l of the L vectors of N(0, I)."""


def independent(key: jax.Array, number: jax.Array, count: int, size: int, dtype: np.dtype[np.floating]) -> jax.Array:  # noqa: ARG001 - one signature
    """Independent draws."""
    return jax.random.normal(jax.random.fold_in(key, number), (size,), dtype)


def antithetic(key: jax.Array, number: jax.Array, count: int, size: int, dtype: np.dtype[np.floating]) -> jax.Array:
    """Draw l + L/2 is minus draw l: what is odd in the noise cancels."""
    half = count // 2
    sign = jnp.where(number < half, 1.0, -1.0).astype(dtype)
    return sign * jax.random.normal(jax.random.fold_in(key, number % half), (size,), dtype)


def lattice(key: jax.Array, number: jax.Array, count: int, size: int, dtype: np.dtype[np.floating]) -> jax.Array:
    """A rank-one lattice of L points with a random shift, in any dimension; each coordinate is stratified."""
    coprime = jnp.asarray([step for step in range(1, count + 1) if math.gcd(step, count) == 1])
    first, second = jax.random.split(key)
    generator = coprime[jax.random.randint(first, (size,), 0, len(coprime))]
    shift = jax.random.uniform(second, (size,), dtype)
    point = (number * generator % count).astype(dtype) / count + shift
    tiny = jnp.finfo(dtype).epsneg
    return ndtri(jnp.clip(point - jnp.floor(point), tiny, 1.0 - tiny))


DRAWS: dict[str, Draw] = {"independent": independent, "antithetic": antithetic, "qmc": lattice}


def check(samples: str, count: int) -> None:
    """Raise a ValueError unless this way of drawing can give ``count`` draws."""
    one_of("samples", samples, DRAWS)
    if samples == "antithetic" and count % 2:
        msg = f"n_samples={count}: antithetic samples come in pairs; give an even number"
        raise ValueError(msg)
