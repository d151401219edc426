"""Fold a stream of data into a Gaussian posterior.

The public names, nothing else. They are imported on first use, so that ``import gaussfold``
costs milliseconds: the compiled engine and scikit-learn are only paid for by those who call them.
"""

from __future__ import annotations

TYPE_CHECKING = False  # as typing has it, which takes 3 ms to import

__version__ = "0.2.0.dev0"

_HOMES = {
    "Bank": "gaussfold.beliefs",
    "BlockGaussian": "gaussfold.beliefs.blocks",
    "DenseGaussian": "gaussfold.beliefs.dense.belief",
    "DiagonalBlocks": "gaussfold.beliefs.diagonal.blocks",
    "DiagonalClassStack": "gaussfold.beliefs.diagonal.class_stack",
    "DiagonalGaussian": "gaussfold.beliefs.diagonal.belief",
    "DiagonalMixture": "gaussfold.beliefs.diagonal.mixture",
    "DiagonalStack": "gaussfold.beliefs.diagonal.stack",
    "FactorGaussian": "gaussfold.beliefs.factor",
    "FoldResult": "gaussfold.folding",
    "GPClassifier": "gaussfold.estimators.gp",
    "GPRegressor": "gaussfold.estimators.gp",
    "LowRankGaussian": "gaussfold.beliefs.lowrank.belief",
    "StreamingClassifier": "gaussfold.estimators",
    "StreamingFactorAnalysis": "gaussfold.estimators.factor_analysis",
    "StreamingPoissonRegressor": "gaussfold.estimators",
    "StreamingRegressor": "gaussfold.estimators",
    "fold": "gaussfold.folding",
    "load": "gaussfold.store",
    "save": "gaussfold.store",
    "sweep": "gaussfold.sweeping",
}
_MODULES = (
    "batch",
    "data",
    "deep",
    "distributed",
    "dynamics",
    "gp",
    "hashing",
    "likelihoods",
    "lookback",
    "metrics",
    "rules",
)

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
    "FoldResult",
    "GPClassifier",
    "GPRegressor",
    "LowRankGaussian",
    "StreamingClassifier",
    "StreamingFactorAnalysis",
    "StreamingPoissonRegressor",
    "StreamingRegressor",
    "__version__",
    "batch",
    "data",
    "deep",
    "distributed",
    "dynamics",
    "fold",
    "gp",
    "hashing",
    "likelihoods",
    "load",
    "lookback",
    "metrics",
    "rules",
    "save",
    "sweep",
]

if TYPE_CHECKING:
    from gaussfold import batch, data, deep, distributed, dynamics, gp, hashing, likelihoods, lookback, metrics, rules
    from gaussfold.beliefs.bank.belief import Bank
    from gaussfold.beliefs.blocks import BlockGaussian
    from gaussfold.beliefs.dense.belief import DenseGaussian
    from gaussfold.beliefs.diagonal.belief import DiagonalGaussian
    from gaussfold.beliefs.diagonal.blocks import DiagonalBlocks
    from gaussfold.beliefs.diagonal.class_stack import DiagonalClassStack
    from gaussfold.beliefs.diagonal.mixture import DiagonalMixture
    from gaussfold.beliefs.diagonal.stack import DiagonalStack
    from gaussfold.beliefs.factor import FactorGaussian
    from gaussfold.beliefs.lowrank.belief import LowRankGaussian
    from gaussfold.estimators import StreamingClassifier, StreamingPoissonRegressor, StreamingRegressor
    from gaussfold.estimators.factor_analysis import StreamingFactorAnalysis
    from gaussfold.estimators.gp import GPClassifier, GPRegressor
    from gaussfold.folding import FoldResult, fold
    from gaussfold.store import load, save
    from gaussfold.sweeping import sweep


def __getattr__(name: str) -> object:
    import importlib

    if name in (*_MODULES, "spark"):  # which is not in ``__all__``: it needs PySpark
        value: object = importlib.import_module(f"gaussfold.{name}")
    elif name in _HOMES:
        value = getattr(importlib.import_module(_HOMES[name]), name)
    else:
        msg = f"module 'gaussfold' has no attribute {name!r}"
        raise AttributeError(msg)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
