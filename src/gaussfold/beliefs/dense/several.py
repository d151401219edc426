"""A dense belief whose parameters are the weights of several classes, one class after the other."""

from __future__ import annotations

import numpy as np

from gaussfold.engine.softmax.dense import absorb_joint
from gaussfold.observations import Observations
from gaussfold.rows import as_rows, dense_rows
from gaussfold.trace import RowError, Trace
from gaussfold.types import Array, ArrayLike, ClassProgram


def features(dim: int, classes: int) -> int:
    """Weights of each class."""
    if dim % classes:
        msg = f"belief: {dim} parameters for {classes} classes; K times the columns of X are needed, class after class"
        raise ValueError(msg)
    return dim // classes


def class_marginals(mean: Array, factor: Array, X: ArrayLike, classes: int) -> tuple[Array, Array]:
    """Mean (n, K) and covariance (n, K, K) of the latents x'θ_k of every row."""
    size = features(mean.size, classes)
    rows = as_rows(X, size)
    with np.errstate(over="ignore", invalid="ignore"):  # the caller looks for what is not finite
        middle = np.asarray(rows @ mean.reshape(classes, size).T)
        seen = np.stack([rows @ block for block in factor.reshape(classes, size, mean.size)], axis=1)
        return middle, np.asarray(seen @ np.swapaxes(seen, 1, 2))


def joint_pass(
    mean: Array, factor: Array, data: Observations, program: ClassProgram, trace: Trace, first: int = 0
) -> None:
    """All rows through the compiled loop, in place on ``mean`` and ``factor``; ``first`` counts within the call."""
    failed = absorb_joint(
        factor, mean, dense_rows(data.X), data.y, data.weight, trace.site_precision, trace.site_shift, program.nodes,
        program.scoring, trace.mean, trace.variance, trace.log_predictive,
    )  # fmt: skip
    if failed >= 0:
        raise RowError(first + int(failed))
