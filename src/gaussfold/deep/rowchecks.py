"""What a pass over rows refuses, and in which words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NoReturn

import numpy as np

from gaussfold import schema
from gaussfold.checks import refuse
from gaussfold.deep.types import Arrays, Tree
from gaussfold.types import Array, ArrayLike


def refuse_unless(sampling: bool, options: Mapping[str, object]) -> None:
    """Refuse options that mean nothing without samples."""
    for name, value in options.items():
        if value is not None and not sampling:
            refuse(name, value, "linearise='samples'", "it belongs to looks at samples; leave it out or give that")


def check_std(std: Array) -> None:
    """Refuse a prior that has no width."""
    if not (np.isfinite(std) & (std > 0.0)).all():
        refuse("prior_std", float(std[~(np.isfinite(std) & (std > 0.0))][0]), "finite numbers > 0", "give those")


def check_waiting(arrays: Arrays) -> None:
    """Refuse rows of a model file that do not belong together; their shape is the network's affair."""
    count = arrays["waiting_weight"].size
    for name in ("waiting_x", "waiting_y"):
        array = arrays[name]
        schema.equal(name, array.shape[:1], (count,), "one row for each weight")
        if array.dtype.kind == "f" and not np.isfinite(array).all():
            schema.refuse(name, "NaN or infinity", "finite numbers are needed")


def checked_weight(sample_weight: ArrayLike | None, rows: int) -> Array:
    """One weight per row, finite and not negative."""
    weight = np.ones(rows) if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
    if weight.shape != (rows,):
        msg = f"sample_weight: shape {weight.shape}; ({rows},) is needed"
        raise ValueError(msg)
    fair = np.isfinite(weight) & (weight >= 0.0)
    if not fair.all():
        bad = int(np.argmin(fair))
        msg = f"sample_weight: row {bad} is {weight[bad]}; finite numbers >= 0 are allowed"
        raise ValueError(msg)
    return weight


def missing_apply(*_: Tree) -> NoReturn:
    """Stands where a model file cannot hold the network."""
    msg = "apply: a model file does not hold it; load with gaussfold.deep.LRVGA.load(path, apply)"
    raise ValueError(msg)


def trouble(first: int, count: int) -> str:
    """What to say of rows at which something is not finite."""
    where = f"row {max(first, 0)}" if count == 1 else f"rows {max(first, 0)} to {first + count - 1}"
    return (
        f"apply: NaN or infinity at {where} of X, or in derivatives there, for parameters drawn from the belief, which "
        "is as it was; scale the inputs, or use a smaller prior_std"
    )
