"""A belief from its arrays alone: which kind they are of is told by their names."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np

from gaussfold.beliefs.dense.belief import DenseGaussian
from gaussfold.beliefs.diagonal.belief import DiagonalGaussian
from gaussfold.beliefs.diagonal.mixture import DiagonalMixture
from gaussfold.beliefs.diagonal.stack import DiagonalStack
from gaussfold.beliefs.lowrank.belief import LowRankGaussian

Single: TypeAlias = DenseGaussian | LowRankGaussian | DiagonalGaussian | DiagonalMixture | DiagonalStack


def restore_single(state: dict[str, np.ndarray]) -> Single:
    """The belief whose ``state`` this is."""
    if "W" in state:
        return LowRankGaussian.from_state(state)
    if "cells" not in state:
        return DenseGaussian.from_state(state)
    if "stack.mean" in state:
        return DiagonalStack.from_state(state)
    if "log_weights" in state and state["log_weights"].size > 1:
        return DiagonalMixture.from_state(state)
    return DiagonalGaussian.from_state(state)
