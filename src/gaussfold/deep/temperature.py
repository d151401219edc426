"""How much a likelihood is to be believed, where nobody has said it: chosen on rows that are held out for it.

A posterior at temperature T is proportional to likelihood^(1/T) · prior. T = 1 is Bayes' rule. Labels that people have
picked because they are clear carry less noise than a softmax says, and then a colder posterior predicts better; so a
likelihood whose noise is the network's to find is tried at both, briefly, without a tenth of the rows, and the colder
one is taken only if it predicts those better by more than chance.
"""

from __future__ import annotations

import math
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import logsumexp

from gaussfold.deep.families import Likelihood, form_of
from gaussfold.deep.noise import LearnedGaussian
from gaussfold.deep.types import Batch, LogLikelihoodFunction, Tree
from gaussfold.types import Array

AUTO = "auto"
CANDIDATES = (1.0, 0.1)
"""Temperatures that are tried; the first one needs no defence."""
FEWEST = 50
"""Rows below which a tenth says nothing."""
NETWORKS = 30
"""Drawn to predict the rows that are held out."""


def is_open(likelihood: Likelihood | None) -> bool:
    """Whether the noise is for the network to find: classes, or a noise level that is learned."""
    return likelihood is not None and (
        isinstance(likelihood, LearnedGaussian) or form_of(likelihood).entropy is not None
    )


def held_out(seed: int, rows: int) -> tuple[np.ndarray, np.ndarray]:
    """Rows to learn from and a tenth that is not, both in order."""
    order = np.random.default_rng([seed, 2**20]).permutation(rows)
    cut = rows // 10
    return np.sort(order[cut:]), np.sort(order[:cut])


def scores(function: LogLikelihoodFunction, networks: Tree, batch: Batch) -> Array:
    """Log predictive density of each row: the mean over networks that are stacked."""
    return np.asarray(_scores(function, networks, batch), dtype=np.float64)


@partial(jax.jit, static_argnums=0)
def _scores(function: LogLikelihoodFunction, networks: Tree, batch: Batch) -> jax.Array:
    each = jax.vmap(lambda params: function(params, batch))(networks)
    return logsumexp(each, axis=0) - jnp.log(each.shape[0])


def best(found: dict[float, Array]) -> float:
    """The temperature with the highest scores; the first one unless another is better by a standard error."""
    first = CANDIDATES[0]
    winner, margin = first, 0.0
    for temperature, each in found.items():
        gain = each - found[first]
        if temperature != first and gain.mean() > max(margin, gain.std() / math.sqrt(len(gain))):
            winner, margin = temperature, float(gain.mean())
    return winner
