"""Gaussian processes: covariances, three kinds of prior, and the model that joins them to a likelihood and a rule.

- `covariances`: one covariance function, one file, its state-space form with it
- `priors`: what a prior promises; `dense`, `sparse`, `markov` (`chain`, `kalman`, `square_root`, `two_passes`) keep it,
  and `space_time`, which is a Markov prior of many places
- `affine`, `means`, `linear_parts`: mean functions, offsets and mixtures of processes, for all three priors
- `weighted`, `outputs`, `extras`: rows that count more or less, several outputs
- `site_updates`, `starts`, `walk`, `mixing`, `inference`: sites from marginals, marginals from sites, until they settle
- `learning`, `hyper`: hyperparameters; `stochastic`: batches; `storage`: model files;
  `first_order`: Adam on the sites, to compare with
- `online`, `origin`, `streamed`: streams on Markov and on sparse priors
- `fitting`, `predicting`, `model`: the class that users see, in three steps
- `outcomes`, `components`, `plots`, `summary`: what it says of y, of its parts, and of itself

Reference twins: ``tests/reference/dense_gp.py`` and ``tests/reference/kalman.py``.
"""

from typing import TYPE_CHECKING

from gaussfold.gp import covariances
from gaussfold.gp.constraints import GammaPrior as GammaPrior
from gaussfold.gp.constraints import LogNormal as LogNormal
from gaussfold.gp.covariances import *  # noqa: F403  there is one list of covariances, and it is there
from gaussfold.gp.first_order import FirstOrderVI as FirstOrderVI
from gaussfold.gp.inference import FitResult as FitResult
from gaussfold.gp.inference import NotConvergedWarning as NotConvergedWarning
from gaussfold.gp.means import BasisMean as BasisMean
from gaussfold.gp.means import ConstantMean as ConstantMean
from gaussfold.gp.means import LinearMean as LinearMean
from gaussfold.gp.means import Mean as Mean
from gaussfold.gp.model import GaussianProcess as GaussianProcess
from gaussfold.gp.outputs import Outputs as Outputs

if not TYPE_CHECKING:
    __all__ = [
        *covariances.__all__,
        *("BasisMean", "ConstantMean", "FirstOrderVI", "FitResult", "GammaPrior", "GaussianProcess", "LinearMean"),
        *("LogNormal", "Mean", "NotConvergedWarning", "Outputs"),
    ]
