"""What we know: Gaussians over the parameters, one file or package per shape of covariance.

``dense``, ``diagonal``, ``lowrank`` and a ``bank`` of one of these can be folded into, ``factor`` only read. ``trace``
is what a pass leaves behind, ``visits`` the rows on their way, ``natural`` the parameters that add. Each is imported on
first use: the command line needs the diagonal ones, and should not wait for the others. A new one:
docs/skeletons/belief.py.

What must not be broken: a program is handed on unread; an update happens whole or not at all; any chunking gives the
same posterior; ``state`` and back is bit for bit. Twins: ``tests/reference/dense.py``, ``diagonal.py``, ``lowrank.py``.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gaussfold.beliefs.bank.belief import Bank
    from gaussfold.beliefs.blocks import BlockGaussian
    from gaussfold.beliefs.dense.belief import DenseGaussian
    from gaussfold.beliefs.diagonal.belief import DiagonalGaussian
    from gaussfold.beliefs.diagonal.blocks import DiagonalBlocks
    from gaussfold.beliefs.diagonal.class_stack import DiagonalClassStack
    from gaussfold.beliefs.diagonal.coupling import Joint, Marginal
    from gaussfold.beliefs.diagonal.mixture import DiagonalMixture
    from gaussfold.beliefs.diagonal.stack import DiagonalStack
    from gaussfold.beliefs.factor import FactorGaussian
    from gaussfold.beliefs.lowrank.belief import LowRankGaussian

__all__ = [
    "Bank",
    "BlockGaussian",
    "DenseGaussian",
    "DiagonalBlocks",
    "DiagonalClassStack",
    "DiagonalGaussian",
    "DiagonalMixture",
    "DiagonalStack",
    "FactorGaussian",
    "Joint",
    "LowRankGaussian",
    "Marginal",
]

_HOMES = {
    "Bank": "bank.belief",
    "BlockGaussian": "blocks",
    "DenseGaussian": "dense.belief",
    "DiagonalBlocks": "diagonal.blocks",
    "DiagonalClassStack": "diagonal.class_stack",
    "DiagonalGaussian": "diagonal.belief",
    "DiagonalMixture": "diagonal.mixture",
    "DiagonalStack": "diagonal.stack",
    "FactorGaussian": "factor",
    "Joint": "diagonal.coupling",
    "LowRankGaussian": "lowrank.belief",
    "Marginal": "diagonal.coupling",
}


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        msg = f"module 'gaussfold.beliefs' has no attribute {name!r}"
        raise AttributeError(msg)
    value: object = getattr(importlib.import_module(f"gaussfold.beliefs.{_HOMES[name]}"), name)
    globals()[name] = value
    return value
