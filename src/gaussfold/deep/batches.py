"""Data as trees of rows, and which rows a step looks at."""

from __future__ import annotations

import math

import jax
import jax.numpy as jnp
import numpy as np

from gaussfold.deep.types import Batch, LogLikelihoodFunction, Tree

_SHUFFLE = 1 << 16
"""Row numbers that are shuffled together."""
_LOOKED_AT = 8
"""Rows with NaN or infinity that are tried one by one: if the function bears those, it knows about them."""
_SHORT = 1 << 12
"""Up to so many rows, row numbers are shuffled by sorting."""


def check_data(data: Batch) -> tuple[Batch, int]:
    """The data as JAX arrays, and the number of rows that all of them have."""
    arrays = jax.tree.map(jnp.asarray, data)
    leaves = jax.tree_util.tree_leaves_with_path(arrays)
    sizes = {jax.tree_util.keystr(path): (leaf.shape[0] if leaf.ndim else None) for path, leaf in leaves}
    if not sizes or None in sizes.values() or len(set(sizes.values())) != 1:
        msg = f"data: numbers of rows {sizes}; give arrays, such as (X, y), that all have the same first axis"
        raise ValueError(msg)
    rows = int(next(iter(sizes.values())) or 0)
    if rows == 0:
        msg = "data: empty batch: it has no rows; at least one is needed"
        raise ValueError(msg)
    return arrays, rows


def check_finite(function: LogLikelihoodFunction, params: Tree, data: Batch) -> None:
    """Refuse rows with NaN or infinity whose log likelihood is no number either: NaN may stand for "not known"."""
    for path, leaf in jax.tree_util.tree_leaves_with_path(data):
        if not jnp.issubdtype(leaf.dtype, jnp.inexact):
            continue
        good = np.asarray(jnp.isfinite(leaf).reshape(leaf.shape[0], -1).all(axis=1))
        for row in np.flatnonzero(~good)[:_LOOKED_AT]:
            value = float(total(function, params, jax.tree.map(lambda a, row=row: a[row : row + 1], data)))
            if not math.isfinite(value):
                name = jax.tree_util.keystr(path)
                msg = (
                    f"data: row {row} of the array {name} has NaN or infinity, and its log likelihood is {value}; "
                    "impute it, or leave the row out"
                )
                raise ValueError(msg)


def check_batch_size(batch_size: int | None, rows: int) -> int:
    """Rows per batch; by default 100, fewer where an epoch would have less than 32 steps, but not below 16."""
    if batch_size is None:
        return min(100, max(16, rows // 32), rows)
    if isinstance(batch_size, bool) or not isinstance(batch_size, int | np.integer) or not 1 <= batch_size <= rows:
        what = "empty batch" if batch_size == 0 else "a whole number is needed"
        msg = f"batch_size={batch_size!r}: {what}; 1 to {rows}, the rows of the data, are allowed"
        raise ValueError(msg)
    return int(batch_size)


def batch_rows(seed: int, first: int, count: int, rows: int, size: int) -> np.ndarray:
    """Row numbers (count, size) of batches first, first+1, ... of an endless sequence of shuffled epochs.

    An epoch has ``rows // size`` batches without a row in common; what is left over sits out. The sequence does not
    depend on how it is cut into calls.
    """
    per_epoch = rows // size
    group = max(1, _SHUFFLE // rows)  # epochs shuffled by one generator
    out = np.empty((count, size), dtype=np.int32)
    done = 0
    while done < count:
        epoch, within = divmod(first + done, per_epoch)
        block, skip = divmod(epoch, group)
        shuffled = _block(seed, block, group, rows)[:, : per_epoch * size].reshape(-1, size)
        at = skip * per_epoch + within
        take = min(count - done, len(shuffled) - at)
        out[done : done + take] = shuffled[at : at + take]
        done += take
    return out


def _block(seed: int, block: int, group: int, rows: int) -> np.ndarray:
    """The shuffled row numbers of ``group`` epochs, (group, rows)."""
    rng = np.random.default_rng([seed, block])
    if rows > _SHORT:
        order = np.broadcast_to(np.arange(rows), (group, rows))  # 64 bits: NumPy shuffles them faster than 32
        return rng.permuted(order, axis=1)
    # Sorting random numbers that end in the row number is three times faster. At least 20 bits are random, so that one
    # pair in a million keeps its order.
    bits = (rows - 1).bit_length()
    keys = rng.integers(0, 1 << 32, (group, rows), dtype=np.uint32)
    keys >>= bits
    keys <<= bits
    keys |= np.arange(rows, dtype=np.uint32)
    keys.sort(axis=1)
    keys &= (1 << bits) - 1
    return keys


def total(function: LogLikelihoodFunction, params: Tree, batch: Batch) -> jax.Array:
    """Log likelihood of a whole batch."""
    return jnp.sum(function(params, batch))


def check_log_likelihood(function: LogLikelihoodFunction, params: Tree, data: Batch, size: int) -> None:
    """Refuse a function that does not give one value per row, or their sum, before anything is learned."""
    batch = jax.tree.map(lambda a: a[:size], data)
    found = jax.eval_shape(function, params, batch)
    one = isinstance(found, jax.ShapeDtypeStruct)
    if not one or found.shape not in ((), (size,)) or not jnp.issubdtype(found.dtype, jnp.floating):
        what = f"an array of {found.dtype}, shape {found.shape}" if one else type(found).__name__
        msg = (
            f"log_likelihood: it returns {what} for a batch of {size} rows; "
            f"one floating point number per row, shape ({size},), or their sum, shape (), is needed"
        )
        raise ValueError(msg)
    if found.shape == () and size > 1:
        _refuse_means(function, params, batch)


def _refuse_means(function: LogLikelihoodFunction, params: Tree, batch: Batch) -> None:
    """A mean over the batch would make the data count too little, without an error anywhere."""
    one, two, both = (
        float(function(params, jax.tree.map(lambda a, part=part: a[part], batch)))
        for part in (slice(0, 1), slice(1, 2), slice(0, 2))
    )
    far = 1e-3 * (abs(one) + abs(two))
    if np.isfinite([one, two, both]).all() and abs(one + two) > far and abs(both - 0.5 * (one + two)) <= 1e-2 * far:
        msg = (
            f"log_likelihood: two rows have {one:.4g} and {two:.4g} alone, but {both:.4g} together: their mean; "
            "return one value per row, or the sum"
        )
        raise ValueError(msg)
