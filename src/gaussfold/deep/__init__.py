"""A posterior for any network: a function ``log_likelihood(params, batch)`` over any tree of parameters.

Needs JAX and optax, the extra ``gaussfold[jax]``; the names are imported on first use.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

_HOMES = {
    "FactorIterates": "swag",
    "MultiSWAG": "swag",
    "SLANG": "slang",
    "SWAG": "swag",
    "LRVGA": "lrvga",
    "Layout": "trees",
    "MultiPosterior": "posterior",
    "Posterior": "posterior",
    "LearnedGaussian": "likelihoods",
    "LogLikelihood": "likelihoods",
    "Prediction": "prediction",
    "Softmax": "likelihoods",
    "fit_together": "together",
    "Choice": "search",
    "LogUniform": "search",
    "Search": "search",
    "random_search": "search",
    "TrainingError": "training",
    "VIFA": "vifa",
    "log_likelihood": "likelihoods",
    "with_noise": "likelihoods",
    "layout_of": "trees",
    "load": "posterior",
}

__all__ = [
    "LRVGA",
    "SLANG",
    "SWAG",
    "VIFA",
    "Choice",
    "FactorIterates",
    "Layout",
    "LearnedGaussian",
    "LogLikelihood",
    "LogUniform",
    "MultiPosterior",
    "MultiSWAG",
    "Posterior",
    "Prediction",
    "Search",
    "Softmax",
    "TrainingError",
    "fit_together",
    "layout_of",
    "load",
    "log_likelihood",
    "random_search",
    "with_noise",
]

if TYPE_CHECKING:
    from gaussfold.deep.likelihoods import LearnedGaussian, LogLikelihood, Softmax, log_likelihood, with_noise
    from gaussfold.deep.lrvga import LRVGA
    from gaussfold.deep.posterior import MultiPosterior, Posterior, load
    from gaussfold.deep.prediction import Prediction
    from gaussfold.deep.search import Choice, LogUniform, Search, random_search
    from gaussfold.deep.slang import SLANG
    from gaussfold.deep.swag import SWAG, FactorIterates, MultiSWAG
    from gaussfold.deep.together import fit_together
    from gaussfold.deep.training import TrainingError
    from gaussfold.deep.trees import Layout, layout_of
    from gaussfold.deep.vifa import VIFA


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        msg = f"module 'gaussfold.deep' has no attribute {name!r}"
        raise AttributeError(msg)
    try:
        value: object = getattr(importlib.import_module(f"gaussfold.deep.{_HOMES[name]}"), name)
    except ModuleNotFoundError as error:
        if (error.name or "").split(".")[0] not in ("jax", "jaxlib", "optax"):
            raise
        msg = f"gaussfold.deep.{name} needs {error.name}, which is not installed: pip install 'gaussfold[jax]'"
        raise ModuleNotFoundError(msg, name=error.name) from error
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
