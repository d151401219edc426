"""Options that all methods which train in steps have in common."""

from __future__ import annotations

from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np

from gaussfold.deep.trees import Layout
from gaussfold.deep.types import Shaped, Spread


@dataclass(frozen=True)
class Training:
    """Options of every method, as :class:`gaussfold.deep.VIFA` documents them."""

    prior_precision: Spread
    prior_mean: Spread
    batch_size: int | None
    max_bad_steps: int
    seed: int


def spread(name: str, value: Spread, layout: Layout, *, above_zero: bool = False) -> jax.Array:
    """A number, a vector (D,) or a tree of the parameters' structure, as a number or a vector in JAX."""
    if isinstance(value, int | float | np.number) or (isinstance(value, Shaped) and value.shape in ((), (layout.dim,))):
        flat = np.asarray(value, dtype=layout.dtype)
    else:
        layout.check(value, name)
        flat = np.asarray(layout.flatten(value))
    good = np.isfinite(flat) & ((flat > 0.0) | (not above_zero))
    if not good.all():
        what = "finite numbers > 0" if above_zero else "finite numbers"
        first = float(flat.ravel()[int(np.argmin(good))])
        msg = f"{name}={first!r}: {what} are needed: one, one per parameter, or a tree like params"
        raise ValueError(msg)
    return jnp.asarray(flat)
