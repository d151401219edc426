"""A posterior for any network: a function ``log_likelihood(params, batch)`` over any tree of parameters.

Needs JAX and optax, the extra ``gaussfold[jax]``; the names are imported on first use. What lives where:

- ``vifa`` (its step in ``variational``, ``objective``, ``blocks``), ``slang`` (``curvature``), ``swag`` (``iterates``):
  methods that train in steps, children of ``method`` (how one trains) and ``stepwise`` (what one is); ``plain`` is
  training as everybody has it, its belief a ``point``.
- ``many`` fits several side by side, ``mixture`` makes one posterior of several.
- What is not given follows from the tree (``scales``), the bound (``evidence``) and rows held out (``temperature``);
  ``summary`` says how a training went.
- ``training`` is their one compiled loop, ``batches``, ``feeds`` and ``draws`` what it is fed with, ``steps`` the
  optimiser, ``state`` a training that was saved, ``stepping`` the same as pure functions.
- ``lrvga`` learns in one pass without a learning rate: linearised at the mean (``onepass``, its step in ``linearised``)
  or looking at samples (``extragradient``, ``fisher``); ``rowchecks`` has what both refuse.
- ``wrapping`` takes modules of other libraries apart, ``parts`` looks at some leaves alone.
- ``families`` is how networks learn from the likelihoods of :mod:`gaussfold.likelihoods` (``forms``; those
  that others wrote in NumPy: ``foreign``), ``likelihoods`` joins one with a network,
  ``noise`` is a noise level that is learned.
- ``posterior``, ``prediction`` are what comes out, ``glm`` and ``broadened`` how it predicts without drawing networks;
  ``trees`` how a tree lies in a vector; ``search`` tunes; ``samecode`` sees that nothing is compiled twice.

What must not be broken: the state of a training is a dict of dicts, since a saved one is read by those names.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

_HOMES = {
    "Choice": "gaussfold.deep.search",
    "Ensemble": "gaussfold.deep.mixture",
    "FactorIterates": "gaussfold.deep.swag",
    "LRVGA": "gaussfold.deep.lrvga",
    "Layout": "gaussfold.deep.trees",
    "LearnedGaussian": "gaussfold.deep.noise",
    "LogLikelihood": "gaussfold.deep.likelihoods",
    "LogUniform": "gaussfold.deep.search",
    "MAP": "gaussfold.deep.plain",
    "MultiPosterior": "gaussfold.deep.mixture",
    "MultiSWAG": "gaussfold.deep.swag",
    "NotSettledWarning": "gaussfold.deep.summary",
    "Part": "gaussfold.deep.parts",
    "PointMass": "gaussfold.deep.point",
    "Posterior": "gaussfold.deep.posterior",
    "Prediction": "gaussfold.deep.prediction",
    "SLANG": "gaussfold.deep.slang",
    "SWAG": "gaussfold.deep.swag",
    "Search": "gaussfold.deep.search",
    "Softmax": "gaussfold.likelihoods",
    "Stepper": "gaussfold.deep.stepping",
    "Summary": "gaussfold.deep.summary",
    "TrainingError": "gaussfold.deep.training",
    "VIFA": "gaussfold.deep.vifa",
    "Wrapped": "gaussfold.deep.wrapping",
    "fit_many": "gaussfold.deep.many",
    "keep_compiled": "gaussfold.deep.samecode",
    "layout_of": "gaussfold.deep.trees",
    "load": "gaussfold.deep.mixture",
    "log_likelihood": "gaussfold.deep.likelihoods",
    "only": "gaussfold.deep.parts",
    "random_search": "gaussfold.deep.search",
    "with_noise": "gaussfold.deep.noise",
    "wrap": "gaussfold.deep.wrapping",
}
_OLDER_NAMES = {"fit_together": "fit_many"}

__all__ = [
    "LRVGA",
    "MAP",
    "SLANG",
    "SWAG",
    "VIFA",
    "Choice",
    "Ensemble",
    "FactorIterates",
    "Layout",
    "LearnedGaussian",
    "LogLikelihood",
    "LogUniform",
    "MultiPosterior",
    "MultiSWAG",
    "NotSettledWarning",
    "Part",
    "PointMass",
    "Posterior",
    "Prediction",
    "Search",
    "Softmax",
    "Stepper",
    "Summary",
    "TrainingError",
    "Wrapped",
    "fit_many",
    "fit_together",
    "keep_compiled",
    "layout_of",
    "load",
    "log_likelihood",
    "only",
    "random_search",
    "with_noise",
    "wrap",
]

if TYPE_CHECKING:
    from gaussfold.deep.likelihoods import LogLikelihood, log_likelihood
    from gaussfold.deep.lrvga import LRVGA
    from gaussfold.deep.many import fit_many
    from gaussfold.deep.many import fit_many as fit_together
    from gaussfold.deep.mixture import Ensemble, MultiPosterior, load
    from gaussfold.deep.noise import LearnedGaussian, with_noise
    from gaussfold.deep.parts import Part, only
    from gaussfold.deep.plain import MAP
    from gaussfold.deep.point import PointMass
    from gaussfold.deep.posterior import Posterior
    from gaussfold.deep.prediction import Prediction
    from gaussfold.deep.samecode import keep_compiled
    from gaussfold.deep.search import Choice, LogUniform, Search, random_search
    from gaussfold.deep.slang import SLANG
    from gaussfold.deep.stepping import Stepper
    from gaussfold.deep.summary import NotSettledWarning, Summary
    from gaussfold.deep.swag import SWAG, FactorIterates, MultiSWAG
    from gaussfold.deep.training import TrainingError
    from gaussfold.deep.trees import Layout, layout_of
    from gaussfold.deep.vifa import VIFA
    from gaussfold.deep.wrapping import Wrapped, wrap
    from gaussfold.likelihoods import Softmax


def __getattr__(name: str) -> object:
    known = _OLDER_NAMES.get(name, name)
    if known not in _HOMES:
        msg = f"module 'gaussfold.deep' has no attribute {name!r}"
        raise AttributeError(msg)
    try:
        value: object = vars(importlib.import_module(_HOMES[known]))[known]
    except ModuleNotFoundError as error:
        if (error.name or "").split(".")[0] not in ("jax", "jaxlib", "optax"):
            raise
        msg = f"gaussfold.deep.{name} needs {error.name}, which is not installed: pip install 'gaussfold[jax]'"
        raise ModuleNotFoundError(msg, name=error.name) from error
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
