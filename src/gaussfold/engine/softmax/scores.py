"""What a row's class was thought to be worth before it was learned: log E p(y | f), by the nodes that predictions take.

Of latents with covariances; ``largest`` has those of latents without.

Learning gets by with fewer nodes; a score must be what a user would get by asking first. Reference twin:
``expectations.classes``.
"""

from __future__ import annotations

import math

import numpy as np

from gaussfold.engine.compiled import compiled_reduction
from gaussfold.engine.scalar.exponential import exp_nonpositive, log_positive
from gaussfold.engine.softmax.joint import lower_root


@compiled_reduction
def joint_score(
    mean: np.ndarray, cov: np.ndarray, label: int, nodes: np.ndarray, root: np.ndarray, work: np.ndarray
) -> float:
    """Of latents with covariances, NaN if they can be none. ``root``: (K, K), ``work``: (K + 2, S)."""
    if not lower_root(cov, root):
        return math.nan
    k, size = nodes.shape
    for c in range(k):
        row = work[c]
        row[:] = mean[c]
        for b in range(c + 1):
            z, s = nodes[b], root[c, b]
            for j in range(size):
                row[j] += s * z[j]
    return _log_average(label, k, work)


@compiled_reduction
def _log_average(label: int, k: int, work: np.ndarray) -> float:
    """The log of the mean over nodes of p(y), latents in the first K rows; in the log, however small it is."""
    top, total = work[k], work[k + 1]
    size = top.size
    top[:] = work[0]
    for c in range(1, k):
        row = work[c]
        for j in range(size):
            top[j] = max(top[j], row[j])
    total[:] = 0.0
    for c in range(k):
        row = work[c]
        for j in range(size):
            total[j] += exp_nonpositive(row[j] - top[j])
    own = work[label]
    for j in range(size):
        own[j] -= top[j] + log_positive(total[j])
    highest = own.max()
    if not math.isfinite(highest):
        return math.nan
    mass = 0.0
    for j in range(size):
        mass += exp_nonpositive(own[j] - highest)
    return float(highest + math.log(mass / size))
